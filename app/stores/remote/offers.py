"""What a remote server offers beyond interface.md, cached for some minutes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from app.errors import WakefulError
from app.i18n import N_
from app.stores.base import ADDED_TO_API, Feature
from app.stores.remote import envelope
from app.stores.remote.connection import REPEATED, Connection
from app.stores.remote.meaning import refuse

# What every Wakeful offers over its API. The rest it offers where ``me`` says so.
OF_WAKEFUL = frozenset(
    {
        Feature.CHECK, Feature.RESULTS, Feature.STATISTICS, Feature.DELIVERIES, Feature.WINDOWS,
        Feature.EXTRA_FIELDS,
    }
)  # fmt: skip
ASKED_AGAIN_SECONDS = 300.0  # a server that was updated meanwhile offers more


class Offers:
    """What the server at ``connection`` offers. Safe to use from several threads.

    ``ask_for_records`` raises where the server does not answer at all.
    """

    def __init__(self, connection: Connection, ask_for_records: Callable[[], object]) -> None:
        self.connection, self.ask_for_records = connection, ask_for_records
        self._known: frozenset[Feature] | None = None
        self._missing: frozenset[Feature] = frozenset()
        self._asked_at = 0.0

    def known(self) -> frozenset[Feature]:
        """What the server said last.

        While that is not known, raises what any read raises: taken for a bare one while it does not
        answer, a Wakeful would be sent a form without the fields of our own.
        """
        if self._known is None or time.monotonic() - self._asked_at > ASKED_AGAIN_SECONDS:
            try:
                self._known = self.ask()
                self._missing = frozenset()
            except WakefulError:
                if self._known is None:
                    raise
            self._asked_at = time.monotonic()
        return self._known - self._missing

    def lacks(self, feature: Feature) -> None:
        """Note that the server does not have this feature, though it says so."""
        self._missing |= {feature}

    @property
    def is_wakeful(self) -> bool:
        """Whether it is known to be a Wakeful. Nothing is asked for that."""
        return self._known is not None and Feature.EXTRA_FIELDS in self._known

    @property
    def is_bare(self) -> bool:
        """Whether it is known to be none. Nothing is asked for that."""
        return self._known is not None and not self.is_wakeful

    def ask(self) -> frozenset[Feature]:
        """What the server offers, from a request made now."""
        answer = self.connection.read("/me")
        if answer.status == 429 or answer.status in REPEATED:
            refuse(self.connection, answer)
        data = envelope.record(answer.body, "key")
        if 200 <= answer.status < 300 and _is_wakeful(data):
            words = data["features"] if isinstance(data.get("features"), list) else []
            return OF_WAKEFUL | {feature for feature in ADDED_TO_API if feature.value in words}
        # Whatever else this is, it is not the ``me`` of a Wakeful. But a proxy says 404 to
        # everything while its server restarts, and then nothing is known.
        if self._known != frozenset():
            self.ask_for_records()
        if self._known:
            raise self.connection.unavailable(
                N_("The server %(server)s does not say what it offers just now.")
            )
        return frozenset()


def _is_wakeful(data: Any) -> bool:
    """By its own mark: somebody else's ``me`` may have anything but both of these."""
    level = data.get("api_level") if isinstance(data, Mapping) else None
    is_level = isinstance(level, int) and not isinstance(level, bool) and level >= 1
    return is_level and isinstance(data.get("scope"), str)
