"""Whether a check of one of several places tells the state machine something new. Pure.

Live results and stored ones that are judged again (``replay``) follow the same rules.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from app.engine.state import Stands, State
from app.records import Verdict

# Checks of several places that begin within this time belong to the same slot.
TOGETHER = timedelta(seconds=2)
_GOOD = (Verdict.UP, Verdict.DEGRADED)


def tells(seen: Verdict, vote: Verdict, stands: Stands, *, repeats: bool) -> bool:
    """Whether the vote of all places is new to the state machine, after one has ``seen`` this.

    When several places repeat a check at once, they confirm once together, with the first of them
    that ``repeats`` it. A result without a vote changes nothing. A good check confirms no failure
    that another place saw: only one that fails again does.
    """
    if seen is Verdict.UNKNOWN and vote is not Verdict.UNKNOWN:
        return False
    down = vote is Verdict.DOWN
    if down and seen in _GOOD and stands in (Stands.CLEAR, Stands.CONFIRMING):
        return False
    return repeats or down is not (stands is Stands.CONFIRMING)


def repeats(
    state: State, previous: datetime | None, judged_at: datetime | None, failures: int
) -> bool:
    """Whether a place repeats the check that was counted last, which began at ``judged_at``: where
    something is being confirmed, it has checked since, or with it. ``previous`` is when its check
    before this one began, ``failures`` how many failing checks in a row it has now.

    A place that failed more often than was counted repeats it too: the failure that was counted may
    be its own, which an agent brought after later checks of others.

    Places check at the same times, and the first failure is recorded within milliseconds: the
    checks that other places begin just after it repeat nothing. Counted as repeats, they would
    confirm a failure that lasted for a moment.
    """
    if state.stands not in (Stands.CONFIRMING, Stands.RECOVERING) or judged_at is None:
        return True
    if state.stands is Stands.CONFIRMING and failures > state.failures:
        return True
    return previous is not None and previous >= judged_at - TOGETHER


def confirms(stands: Stands, vote: Verdict) -> bool:
    """Whether such a vote would confirm a failure. Only ``quorum.repeated`` votes do."""
    return stands is Stands.CONFIRMING and vote is Verdict.DOWN
