"""What is kept and said of the places of a monitor: who saw a failure, and who did not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.db import AnySession
from app.db.by_place import Seen, newest, newest_of
from app.i18n import _n
from app.judge.verdict import Vote, vote_lasts
from app.records import Verdict
from app.rules.time import iso

_WHAT = {Verdict.DOWN: "Down", Verdict.DEGRADED: "Slow"}


def of_monitor(session: AnySession, monitor: Any, now: datetime) -> list[Seen]:
    """What its places saw last, of what still counts."""
    return newest(session, monitor.id, now - vote_lasts(monitor))


def of_monitors(
    session: AnySession, monitors: Iterable[Any], now: datetime
) -> dict[int, list[Seen]]:
    """As ``of_monitor``, by monitor id."""
    by_since: dict[datetime, list[int]] = defaultdict(list)
    for monitor in monitors:
        by_since[now - vote_lasts(monitor)].append(monitor.id)
    found: dict[int, list[Seen]] = {}
    for since, ids in by_since.items():
        found |= newest_of(session, ids, since)
    return found


def told_by_some(
    seen: Sequence[Seen], votes: Sequence[Vote], together: Verdict
) -> tuple[str | None, str | None]:
    """The code and the sentence of a monitor that is ``together`` because of what some places see:
    down, or degraded.
    """
    unconfirmed_too = together is Verdict.DOWN  # a vote for down need not be confirmed
    down = {
        vote.place
        for vote in votes
        if vote.verdict is Verdict.DOWN and (unconfirmed_too or vote.lasting)
    }
    slow = {vote.place for vote in votes if vote.verdict is Verdict.DEGRADED}
    verdict = Verdict.DOWN if down else Verdict.DEGRADED
    who = [one for one in seen if one.place in (down or slow) and one.verdict is verdict]
    if not who:
        return None, None
    names = ", ".join(one.title for one in who)
    counted = f"{_WHAT[verdict]} in {len(who)} of {len(votes)} places ({names})"
    cause = who[0].cause
    said = [f"{counted}: {cause}" if cause else f"{counted}.", *_silent(seen)]
    return who[0].cause_code, " ".join(said)


def _silent(seen: Sequence[Seen]) -> Iterator[str]:
    """Which places are not among those that are counted: they were checked once, and have no result
    that still counts. People miss them otherwise.
    """
    names = [one.title for one in seen if one.at is None and one.last_at is not None]
    if names:
        yield _n(
            "%(names)s is silent and has no vote.",
            "%(names)s are silent and have no vote.",
            len(names),
            names=", ".join(names),
        )


def evidence_of(
    seen: Sequence[Seen], aside: Mapping[str, Any], since: datetime
) -> list[dict[str, Any]]:
    """``evidence.places`` of an incident that began at ``since``. ``aside``: the failing checks of
    places by name, of those that have none among the checks that opened it.
    """
    return [place_of(one, since, aside.get(one.name)) for one in seen]


def place_of(one: Seen, since: datetime, check: Any = None) -> dict[str, Any]:
    """A place in ``evidence.places``; a place without a vote is unknown. ``earlier``: its newest
    check is from before ``since``, so it says nothing of the failure. A failure in a maintenance
    before it opens no incident, and counts as none.
    """
    if one.maintenance and one.verdict is Verdict.DOWN:
        one = replace(one, verdict=None, cause_code=None, cause=None, status_code=None)
    return {
        "name": one.name,
        "label": one.label,
        "verdict": str(one.verdict or Verdict.UNKNOWN),
        "cause_code": one.cause_code,
        "cause": one.cause,
        "status_code": one.status_code,
        "response_time": one.response_time,
        "checked_at": iso(one.at) if one.at else None,
        "earlier": one.at is not None and (one.at < since or one.maintenance),
        "check": check if one.verdict is Verdict.DOWN else None,
    }
