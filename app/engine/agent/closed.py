"""Notices that the agent's own policy refuses the checks of all its monitors."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from app.records import Result

log = logging.getLogger(__name__)


class Closed:
    """The monitors whose last check was refused. Without a line in the log, an agent that may reach
    none of its targets looks like one that works.
    """

    def __init__(self) -> None:
        self._refused: set[int] = set()
        self._told = False

    def note(self, results: Sequence[tuple[int, Result]], monitors: Collection[int]) -> None:
        """Take in results, each with the id of its monitor, and log once when the last check of
        each of ``monitors``, all that the agent checks, was refused.
        """
        for id, result in results:
            if result.was_made:
                self._refused.discard(id)
            else:
                self._refused.add(id)
        self._refused = {id for id in self._refused if id in monitors}
        closed = bool(self._refused) and len(self._refused) == len(monitors)
        if closed and not self._told and results:
            log.warning(
                "WAKEFUL_ALLOW_NETWORKS of this agent allows no check of its monitors (%d). The"
                " last one: %s",
                len(monitors),
                results[-1][1].cause,
            )
        self._told = closed
