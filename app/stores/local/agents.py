"""The server's side of agents: what each has to check, and the results that it brings.

An agent checks on its own schedule, behind any NAT, and may be cut off for hours. So each of its
results names monitor and time, is taken once, and is judged only while it is recent and newer than
what was judged before. Needs an application context.
"""

from __future__ import annotations

import base64
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any

from sqlalchemy import select

from app.access import Access, agents
from app.access.agents import AgentPlace
from app.codec.packing import outcome_of, pack
from app.codec.sealing import ABOUT_ASSIGNED, public_key, seal_to
from app.codec.values import Odd
from app.config import Settings
from app.db import assignments, changes, db, journal, places, shards, writing
from app.db.assignments import Assigned
from app.db.tables import AssignmentRow, MonitorRow, MonitorStateRow
from app.db.types import from_ms, to_ms
from app.engine import recorder
from app.engine.agent.buffer import KEPT
from app.engine.schedule import Claim, Standing
from app.errors import Conflict, Invalid, Throttled
from app.i18n import N_, _
from app.records import Outcome
from app.rules.clocks import SKEW
from app.stores.local.agent_budget import MOST_RESULTS, Budgets

log = logging.getLogger(__name__)

OTHER_KEY = N_(
    "The agent of this place has another key. If its folder was lost, make a new token for the "
    "place and start the agent with it."
)
BUSY = N_("Results of %(place)s are being recorded. Send these again in a second.")
# Results of one monitor in a request that are judged, each in a transaction of its own. Within two
# intervals an agent makes fewer.
MOST_JUDGED = 10
MOST_CHANGES = 5_000  # with more, the agent reads everything again
BEAT_SECONDS = 2.0  # how often a request is written down as a sign of life
LONGEST_VERSION = 32
OLDEST = KEPT + timedelta(hours=1)  # an agent looks for old results every ten minutes


@dataclass(frozen=True, slots=True)
class _Sent:
    """A result as an agent sent it. ``made_for``: when the monitor, as the agent knew it, was last
    changed (ms).
    """

    outcome: Outcome
    made_for: int

    @property
    def monitor_id(self) -> int:
        return self.outcome.result.monitor_id or 0

    @property
    def at(self) -> datetime:
        return self.outcome.result.checked_at


class LocalAgents:
    def __init__(self, settings: Settings, access: Access) -> None:
        self.budgets = Budgets(access)
        self._confirm_seconds = settings.confirm_seconds
        # By place
        self._locks: dict[int, threading.Lock] = defaultdict(threading.Lock)
        self._beats: dict[int, float] = {}  # when its last sign of life was written (monotonic)
        self._recorded: dict[int, datetime] = {}

    def place_of(self, token: str) -> AgentPlace | None:
        place = agents.agent_of(token)
        db.session.rollback()
        return place

    def ended_place(self, token: str) -> str | None:
        """The name of the place whose token this was."""
        name = agents.ended_place(token)
        db.session.rollback()
        return name

    def hello(self, place: AgentPlace, data: Mapping[str, Any]) -> dict[str, Any]:
        """The first request of an agent, with the key that its monitors' secrets are sealed to. The
        key stays until a new token is made. Raises Invalid and Conflict.
        """
        key = str(data.get("public_key") or "")
        try:
            public_key(key)
        except ValueError as fault:
            raise Invalid({"public_key": [_("The key is wrong: %(why)s", why=fault)]}) from None
        if place.public_key != key:
            with writing():
                kept = agents.keep_public_key(place, key)
            if not kept:
                raise Conflict(_(OTHER_KEY))
        return {"location": place.name, "confirm_seconds": self._confirm_seconds}

    def assigned(self, place: AgentPlace, since: int | None) -> dict[str, Any]:
        """What the agent has to check: all of it, or what has changed since this number. Only the
        agent can read it.
        """
        if place.public_key is None:
            raise Conflict(_("Send your public key first."))
        change = changes.newest()  # before the rows are read: later changes come again
        ids = None if since is None else self._changed(since, change)
        if ids is None:
            found = assignments.of_shards(place.id, range(shards.count()))
        else:
            found = assignments.of_monitors(place.id, ids)
        versions = _versions([one.spec.monitor_id or 0 for one in found])
        told = {
            "whole": ids is None,
            "assigned": [_assigned(one, versions) for one in found],
            "gone": sorted((ids or set()) - {one.spec.monitor_id for one in found}),
        }
        public = base64.b64decode(place.public_key)
        sealed = seal_to(public, told, ABOUT_ASSIGNED.format(place.name))
        return {"change": change, "sealed": base64.b64encode(sealed).decode()}

    @staticmethod
    def _changed(since: int, newest: int) -> set[int] | None:
        """The monitors that have changed; None if that is not known any more."""
        if since > newest:
            return None  # of a database that an older backup has replaced
        found = changes.since(since, MOST_CHANGES)
        if len(found) == MOST_CHANGES or (found and found[0][0] != since + 1):
            return None  # some have been deleted
        return {monitor_id for _number, monitor_id in found}

    def take(self, place: AgentPlace, data: Mapping[str, Any]) -> dict[str, Any]:
        """Take results. Returns how many were taken and refused, the new standing of each monitor
        that was judged, and the number of the newest change. Raises Invalid and Throttled.
        """
        sent, wrong = _read(data.get("results"))
        now = datetime.now(UTC)
        with self._alone(place):
            self.budgets.results(place, len(sent) + wrong)
            told = self._record(place, sent, now)
        self._beat(place, data, now, recorded=bool(sent))
        told["refused"] += wrong
        return told | {"change": changes.newest()}

    @contextmanager
    def _alone(self, place: AgentPlace) -> Iterator[None]:
        """An agent that repeats a request may come before the first has ended. The second does not
        wait: waiting requests of one place would take all threads of the web server.
        """
        lock = self._locks[place.id]
        if not lock.acquire(blocking=False):
            raise Throttled(_(BUSY, place=place.name), 1)
        try:
            yield
        finally:
            lock.release()

    def _record(self, place: AgentPlace, sent: Sequence[_Sent], now: datetime) -> dict[str, Any]:
        # A deleted place may have had the same name.
        journal.know_location(place.name, place.id)
        known = _known(place.id, {one.monitor_id for one in sent})
        own = [one for one in sent if one.monitor_id in known and _may_be(one, now)]
        judged, late = _sorted(own, known, now)
        if of_before := len(own) - len(judged) - len(late):
            log.warning(
                "%d results of %s are left out: when it made them, it did not know yet that what"
                " these monitors check was changed.",
                of_before,
                place.name,
            )
        fresh = len(judged) and self._judge(place, judged, known, now)
        recorder.record_late(
            [one.outcome.result for one in late],
            location=place.name,
            judged=[one.outcome.result for one in judged],
        )
        return {
            "taken": len(judged) + len(late),
            "refused": len(sent) - len(own),
            "standings": fresh or {},
        }

    @staticmethod
    def _judge(
        place: AgentPlace, judged: Sequence[_Sent], known: Mapping[int, Any], now: datetime
    ) -> dict[str, Any]:
        """Judge results, those of a monitor one after the other. Returns its standing then."""
        tokens = _tokens(place.id)
        turns = {id: row.turn for id, row in known.items()}
        told: dict[str, Any] = {}
        for some in _in_turn(judged):
            claims = [
                (_claim(one.monitor_id, turns[one.monitor_id], tokens), one.outcome) for one in some
            ]
            stood = recorder.record_claimed(claims, now, location=place.name)
            for (claim, _outcome), standing in zip(claims, stood, strict=True):
                told[str(claim.monitor_id)] = None if standing is None else _standing(standing)
                if standing is not None:
                    turns[claim.monitor_id] = standing.turn
        return told

    def _beat(
        self, place: AgentPlace, data: Mapping[str, Any], now: datetime, *, recorded: bool
    ) -> None:
        clock = time.monotonic()
        if not recorded and clock - self._beats.get(place.id, float("-inf")) < BEAT_SECONDS:
            return
        self._beats[place.id] = clock
        if recorded:
            self._recorded[place.id] = now
        with writing():
            places.seen(
                place.name,
                now,
                process=f"agent:{place.name}"[:96],
                version=str(data.get("version") or "")[:LONGEST_VERSION] or None,
                clock_offset_ms=_number(data.get("clock_offset_ms"), 10**12),
                checks_per_minute=_number(data.get("checks_per_minute"), 10**8),
                last_check_at=self._recorded.get(place.id),
            )


def _number(value: Any, most: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) <= most else None


def _read(data: Any) -> tuple[list[_Sent], int]:
    """The results of a request, and how many cannot be read. Raises Invalid."""
    if not isinstance(data, list) or len(data) > MOST_RESULTS:
        raise Invalid(
            {"results": [_("Send a list of at most %(most)d results.", most=MOST_RESULTS)]}
        )
    sent, wrong = [], 0
    for one in data:
        try:
            made_for = one["made_for"]
            outcome = outcome_of(one["outcome"])
            if not isinstance(made_for, int) or outcome.result.monitor_id is None:
                raise Odd("made_for")
            at = from_ms(to_ms(outcome.result.checked_at))  # as it will be stored
            placed = replace(outcome, result=replace(outcome.result, checked_at=at))
            sent.append(_Sent(placed, made_for))
        except (Odd, KeyError, TypeError, OverflowError):
            wrong += 1
    return sent, wrong


def _known(place: int, ids: Collection[int]) -> dict[int, Any]:
    """What is known of the monitors that the place checks, of these."""
    if not ids:
        return {}
    rows = db.session.execute(
        select(
            AssignmentRow.monitor_id,
            AssignmentRow.turn,
            AssignmentRow.checked_at,
            MonitorRow.interval,
            MonitorRow.timeout,
            MonitorRow.paused,
            MonitorRow.created_at,
            MonitorRow.updated_at,
            MonitorStateRow.spec_since,
            MonitorStateRow.judged_since,
            MonitorStateRow.resumed_at,
        )
        .join(MonitorRow, MonitorRow.id == AssignmentRow.monitor_id)
        .join(MonitorStateRow, MonitorStateRow.monitor_id == AssignmentRow.monitor_id)
        .where(AssignmentRow.location_id == place, AssignmentRow.monitor_id.in_(ids))
    ).all()
    db.session.rollback()
    return {row.monitor_id: row for row in rows}


def _sorted(
    sent: Sequence[_Sent], known: Mapping[int, Any], now: datetime
) -> tuple[list[_Sent], list[_Sent]]:
    """The results that are judged, each monitor's in the order of time, and those that come too
    late. Each recent one is judged, not the newest alone: an outage begins with the first of them.

    An agent that is cut off goes on checking, and does not know of changes. If what is checked
    was changed, its results of after that are neither: they are of something else. With every other
    change, such as another name, they say how the monitor is.
    """
    of_monitor: dict[int, list[_Sent]] = defaultdict(list)
    for one in sent:
        of_monitor[one.monitor_id].append(one)
    judged: list[_Sent] = []
    late: list[_Sent] = []
    for monitor_id in sorted(of_monitor):
        row, own = known[monitor_id], sorted(of_monitor[monitor_id], key=lambda one: one.at)
        since = row.spec_since or row.created_at
        first_judged = own[-MOST_JUDGED:][0].at
        for one in own:
            current = one.made_for >= to_ms(since) or one.made_for == to_ms(row.updated_at)
            if current and one.at >= first_judged and _is_recent(one, row, now):
                judged.append(one)
            elif current or one.at < since:
                late.append(one)
    return judged, late


def _in_turn(judged: Iterable[_Sent]) -> Iterator[list[_Sent]]:
    """The first result of each monitor, then the second of each, and so on."""
    of_monitor: dict[int, list[_Sent]] = defaultdict(list)
    for one in judged:
        of_monitor[one.monitor_id].append(one)
    for some in zip_longest(*of_monitor.values()):
        yield [one for one in some if one is not None]


def _may_be(one: _Sent, now: datetime) -> bool:
    """Whether an agent can have made a result at its time. It keeps results for a day; what is
    older could only fill years of figures. A result from further in the future than SKEW would hide
    all later ones.
    """
    return now - OLDEST <= one.at <= now + SKEW


def _is_recent(one: _Sent, row: Any, now: datetime) -> bool:
    """Whether a result still says how its monitor is: as long as its place has a vote. What was
    seen before a pause, or before a change of what the votes make of it, has none.
    """
    if row.paused or now - one.at > timedelta(seconds=2 * row.interval + row.timeout):
        return False
    if any(one.at < since for since in (row.spec_since, row.judged_since, row.resumed_at) if since):
        return False
    before: datetime | None = row.checked_at
    return before is None or one.at > before or before > now + SKEW


def _tokens(place: int) -> dict[int, int]:
    """The tokens of the place's shards. No checker owns them: the agent makes all checks."""
    found = shards.read(place)
    if len(found) < shards.count():
        with writing():
            shards.make(place)
        found = shards.read(place)
    db.session.rollback()
    return {shard.number: shard.token for shard in found}


def _claim(monitor_id: int, turn: int, tokens: Mapping[int, int]) -> Claim:
    shard = shards.of(monitor_id)
    return Claim(monitor_id, shard, tokens[shard], turn)


def _versions(ids: Sequence[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for start in range(0, len(ids), assignments.AT_ONCE):
        part = ids[start : start + assignments.AT_ONCE]
        rows = db.session.execute(
            select(MonitorRow.id, MonitorRow.updated_at).where(MonitorRow.id.in_(part))
        )
        found |= {row.id: to_ms(row.updated_at) for row in rows}
    db.session.rollback()
    return found


def _assigned(one: Assigned, versions: Mapping[int, int]) -> dict[str, Any]:
    return {
        "spec": pack(one.spec),
        "interval": one.interval,
        "version": versions.get(one.spec.monitor_id or 0, 0),
        "standing": {
            "slot": _told(one.slot),
            "checked_at": _told(one.checked_at),
            "unconfirmed_at": _told(one.unconfirmed_at),
            "blind": one.blind,
            "asked_at": _told(one.asked_at),
        },
    }


def _standing(standing: Standing) -> dict[str, Any]:
    return {
        "slot": _told(standing.slot),
        "checked_at": _told(standing.checked_at),
        "unconfirmed_at": _told(standing.unconfirmed_at),
        "blind": standing.blind,
    }


def _told(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
