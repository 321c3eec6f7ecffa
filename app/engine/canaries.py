"""The canaries of this place, and which of them have ever accepted a connection (decision 10).

The accepting ones are stored in the database, and cached in memory: when the network of this
machine fails, the database may be out of reach too.
"""

from __future__ import annotations

import logging
from datetime import datetime

from app.config import Settings
from app.db.settings import change_setting, setting
from app.net import canary

log = logging.getLogger(__name__)


class Canaries:
    """``learn`` and ``recall`` need an application context; ``works`` needs none and may take
    seconds.
    """

    def __init__(self, settings: Settings) -> None:
        self.named = canary.parse_canaries(settings.canaries)
        self._dns_servers = settings.name_servers
        self._place = settings.location
        self._accepted: frozenset[str] = frozenset()

    def works(self) -> bool:
        """Whether the network of this machine works."""
        return canary.network_works(self.named, self._accepted, dns_servers=self._dns_servers)

    def recall(self) -> None:
        """Read which canaries have accepted before. Of those, a refusal is a failure; of any other,
        it counts as an answer.
        """
        try:
            self._keep(setting(canary.MEMORY))
        except Exception:
            log.exception("The earlier answers of the canaries cannot be read.")

    def learn(self, now: datetime) -> None:
        """Ask all canaries, and store which of them accept."""
        if self.named:
            answers = canary.ask(self.named, dns_servers=self._dns_servers)

            def with_answers(memory: str | None) -> str:
                return canary.write_memory(memory, self._place, answers)

            self._keep(change_setting(canary.MEMORY, with_answers, now))

    def _keep(self, memory: str | None) -> None:
        self._accepted |= canary.have_accepted(canary.read_memory(memory, self._place))
