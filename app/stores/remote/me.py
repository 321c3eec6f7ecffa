"""The answer of a remote server to ``me``, about itself and our key, cached for some minutes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from app.errors import WakefulError
from app.i18n import N_
from app.stores.base import Extent
from app.stores.remote import envelope
from app.stores.remote.connection import REPEATED, RemoteConnection
from app.stores.remote.meaning import raise_if_refused

ASKED_AGAIN_SECONDS = 300.0


class Me:
    """``ask_for_records`` raises if the server does not answer at all. Safe to use from several
    threads.
    """

    def __init__(self, connection: RemoteConnection, ask_for_records: Callable[[], object]) -> None:
        self.connection, self.ask_for_records = connection, ask_for_records
        self._extent: Extent | None = None
        self._asked_at = 0.0

    @property
    def extent(self) -> Extent:
        """The extent in the server's last answer.

        While that is not known, raises what any read raises: taken for a bare one while it does not
        answer, a Wakeful would be sent a form without the fields of our own.
        """
        if self._extent is None or time.monotonic() - self._asked_at > ASKED_AGAIN_SECONDS:
            try:
                self._extent = self.ask()
            except WakefulError:
                if self._extent is None:
                    raise
            self._asked_at = time.monotonic()
        return self._extent

    @property
    def is_wakeful(self) -> bool:
        """Whether its last answer was a Wakeful's. Sends no request."""
        return self._extent is not None and self._extent > Extent.BARE

    def ask(self) -> Extent:
        """The extent by a request made now."""
        answer = self.connection.read("/me")
        if answer.status == 429 or answer.status in REPEATED:
            raise_if_refused(self.connection, answer)
        data = envelope.record(answer.body, "key")
        if 200 <= answer.status < 300 and _is_wakeful(data):
            return Extent.TAG if data.get("tag") else Extent.WHOLE
        # This is not the ``me`` of Wakeful. But while a server restarts, its proxy answers every
        # request with 404, and then nothing is known.
        if self._extent != Extent.BARE:
            self.ask_for_records()
        if self.is_wakeful:
            raise self.connection.unavailable(
                N_("The server %(server)s does not say what it offers just now.")
            )
        return Extent.BARE


def _is_wakeful(data: Any) -> bool:
    """Whether a ``me`` has both fields by which a Wakeful is recognized."""
    level = data.get("api_level") if isinstance(data, Mapping) else None
    is_level = isinstance(level, int) and not isinstance(level, bool) and level >= 1
    return is_level and isinstance(data.get("scope"), str)
