"""The places of a monitor in causes and evidence: who saw a failure, and who did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.db import AnySession
from app.db.by_place import NewestCheck, newest_checks_of
from app.db.statements import grouped
from app.i18n import N_, _, _n
from app.judge.verdict import Vote, vote_valid_for
from app.records import Verdict
from app.rules.time import iso

OF_CHECK = ("cause_code", "cause", "status_code", "response_time")  # in all evidence
_COUNTED = {
    Verdict.DOWN: N_("Down in %(count)s of %(total)s places (%(names)s)"),
    Verdict.DEGRADED: N_("Slow in %(count)s of %(total)s places (%(names)s)"),
}


def of_monitors(
    session: AnySession, monitors: Iterable[Any], now: datetime
) -> dict[int, list[NewestCheck]]:
    """The newest result of each place that still counts, by monitor id."""
    by_since = grouped((now - vote_valid_for(monitor), monitor.id) for monitor in monitors)
    by_monitor: dict[int, list[NewestCheck]] = {}
    for since, ids in by_since.items():
        by_monitor |= newest_checks_of(session, ids, since)
    return by_monitor


def cause_by_some(
    places: Sequence[NewestCheck], votes: Sequence[Vote], monitor_verdict: Verdict
) -> tuple[str | None, str | None]:
    """The code and the sentence of a monitor whose verdict comes from some of its places: down, or
    degraded.
    """
    unconfirmed_too = monitor_verdict is Verdict.DOWN  # a vote for down need not be confirmed
    down = {
        vote.place
        for vote in votes
        if vote.verdict is Verdict.DOWN and (unconfirmed_too or vote.persistent)
    }
    slow = {vote.place for vote in votes if vote.verdict is Verdict.DEGRADED}
    verdict = Verdict.DOWN if down else Verdict.DEGRADED
    causing = [
        place for place in places if place.place_id in (down or slow) and place.verdict is verdict
    ]
    if not causing:
        return None, None
    saw = counted(verdict, [place.title for place in causing], len(votes))
    cause = causing[0].cause
    sentences = [f"{saw}: {cause}" if cause else f"{saw}.", *_silent(places)]
    return causing[0].cause_code, " ".join(sentences)


def counted(verdict: Verdict, titles: Sequence[str], total: int) -> str:
    """The beginning of a cause: how many of ``total`` places see the verdict, and their names."""
    names = ", ".join(titles)
    return _(_COUNTED[verdict], count=len(titles), total=total, names=names)


def _silent(places: Sequence[NewestCheck]) -> Iterator[str]:
    """A sentence about places that are not counted: they have made checks, but have no result that
    still counts.
    """
    names = [place.title for place in places if place.at is None and place.last_at is not None]
    if names:
        yield _n(
            "%(names)s is silent and has no vote.",
            "%(names)s are silent and have no vote.",
            len(names),
            names=", ".join(names),
        )


def place_of(place: NewestCheck, since: datetime, check: Any = None) -> dict[str, Any]:
    """A place in ``evidence.places``; a place without a vote is unknown. ``earlier``: its newest
    check was made before ``since``, so it says nothing about the failure. A failure in an earlier
    maintenance window does not count.
    """
    if place.maintenance and place.verdict is Verdict.DOWN:
        place = replace(place, verdict=None, cause_code=None, cause=None, status_code=None)
    return {
        "name": place.name,
        "label": place.label,
        "verdict": str(place.verdict or Verdict.UNKNOWN),
        **{name: getattr(place, name) for name in OF_CHECK},
        "checked_at": iso(place.at) if place.at else None,
        "earlier": place.at is not None and (place.at < since or place.maintenance),
        "check": check if place.verdict is Verdict.DOWN else None,
    }
