"""What a remote server offers beyond interface.md, cached for some minutes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from app.errors import WakefulError
from app.i18n import N_
from app.stores.base import ADDED_TO_API, Feature
from app.stores.remote.connection import Connection
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
    """What the server at ``connection`` offers. Safe to use from several threads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
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

    def ask(self) -> frozenset[Feature]:
        """What the server offers, from a request made now."""
        answer = self.connection.read("/me")
        if answer.status == 200:
            return _offered(answer.body)
        if answer.status in (401, 429) or answer.status >= 500:
            refuse(self.connection, answer)
        # Only a Wakeful has ``me``, and /api/v1 only grows (decisions.md 8). But a proxy says 404
        # to everything while its server restarts, and then nothing is known.
        refuse(self.connection, self.connection.read("/monitors", [("per_page", "10")]))
        if self._known:
            raise self.connection.unavailable(
                N_("The server %(server)s does not say what it offers just now.")
            )
        return frozenset()


def _offered(body: Any) -> frozenset[Feature]:
    """What a Wakeful offers, according to its ``me``."""
    data = body.get("data") if isinstance(body, Mapping) else None
    named = data.get("features") if isinstance(data, Mapping) else None
    words = named if isinstance(named, list) else []
    return OF_WAKEFUL | {feature for feature in ADDED_TO_API if feature.value in words}
