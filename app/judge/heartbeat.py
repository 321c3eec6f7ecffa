"""The judgement of pings and missed deadlines of a heartbeat (decision 18). The recorder stores it
as a result, which ``verdict.judge_result`` judges like any other.

    ping        run                    fault                 next deadline
    ==========  =====================  ====================  =============
    success     ends the one of rid    none                  from this ping
    fail        ends the one of rid    heartbeat_failed      from this ping
    start       begins                 --                    --
    log         --                     --                    --

``rid`` is the id of a run, which a job may send with its pings. Other faults: no success or failure
by the deadline and the grace after it (``heartbeat_missed``), or a run that lasts too long
(``heartbeat_overran``). A fault lasts until a success or another failure.

While no web process runs, no ping can arrive: that time is added to each deadline, and a heartbeat
that would have missed one is unknown. Pure: clock and stored state are arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from app.i18n import N_, _
from app.records import ArrivedPing, Cause, PingKind, Verdict
from app.rules.figures import span
from app.rules.schedules import next_due
from app.rules.time import zone_of

MAX_RUNS = 50  # open at the same time; the oldest are dropped
MISSED = N_("No ping since %(since)s; one was due by %(due)s.")
NONE_CAME = N_("No ping came; one was due by %(due)s.")
FAILED = N_("It reported failure.")
FAILED_WITH = N_("It reported failure: exit status %(status)s.")
OVERRAN = N_("It started at %(start)s and had not ended after %(most)s.")
NOT_LISTENING = N_("Pings could not arrive: no web process of this installation was running.")


class HeartbeatFault(NamedTuple):
    """Why a heartbeat is down, and since when."""

    code: Cause
    sentence: str
    since: datetime


class OpenRun(NamedTuple):
    """A run that has started. ``until``: when it will have lasted too long; None if it has no
    limit, or has lasted too long already.
    """

    rid: str | None
    started_at: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatRules:
    """``schedule``: lines of ``rules.schedules``; if empty, ``period`` applies."""

    period: timedelta
    grace: timedelta
    schedule: Sequence[str] = ()
    zone: str = "UTC"
    max_run: timedelta | None = None

    def due_after(self, at: datetime) -> datetime | None:
        return next_due(self.schedule, self.zone, at) if self.schedule else at + self.period


@dataclass(frozen=True, slots=True)
class HeartbeatState:
    """``ended_at``: the last success or failure since watching began. ``expected_at``: the present
    deadline, without grace. ``unknown_until``: a ping may have been lost, so the heartbeat is
    unknown until then.
    """

    last_ping_at: datetime | None = None
    ended_at: datetime | None = None
    expected_at: datetime | None = None
    unknown_until: datetime | None = None
    runs: tuple[OpenRun, ...] = ()
    fault: HeartbeatFault | None = None

    @property
    def running_since(self) -> datetime | None:
        return min((run.started_at for run in self.runs), default=None)

    def verdict(self, now: datetime) -> Verdict | None:
        """The verdict; None for a pending heartbeat: no run has ended yet, and no ping was due."""
        if self.fault is not None:
            return Verdict.DOWN
        if self.unknown_until is not None and now < self.unknown_until:
            return Verdict.UNKNOWN
        return None if self.ended_at is None else Verdict.UP

    def acts_at(self, rules: HeartbeatRules) -> datetime | None:
        """When, without a ping before, the next fault comes or ``unknown_until`` is over."""
        moments = [run.until for run in self.runs]
        if self.fault is None:
            moments += [self.unknown_until, _latest(rules, self.expected_at)]
        return min((moment for moment in moments if moment is not None), default=None)


def after_ping(
    rules: HeartbeatRules, state: HeartbeatState, ping: ArrivedPing
) -> tuple[HeartbeatState, timedelta | None]:
    """The state after a ping, and how long the run took that the ping ended."""
    state = replace(state, last_ping_at=ping.at)
    if ping.kind is PingKind.LOG:
        return state, None
    others = tuple(run for run in state.runs if run.rid != ping.rid)
    if ping.kind is PingKind.START:
        until = None if rules.max_run is None else ping.at + rules.max_run
        runs = (*others, OpenRun(ping.rid, ping.at, until))[-MAX_RUNS:]
        return replace(state, runs=runs), None
    started = next((run.started_at for run in state.runs if run.rid == ping.rid), None)
    state = replace(
        state,
        runs=others,
        ended_at=ping.at,
        expected_at=rules.due_after(ping.at),
        unknown_until=None,
        fault=None if ping.kind is PingKind.SUCCESS else _failure(ping),
    )
    return state, None if started is None else max(ping.at - started, timedelta(0))


def after_time(rules: HeartbeatRules, state: HeartbeatState, now: datetime) -> HeartbeatState:
    """The state at ``now``, if no ping has come since."""
    overrun = min(
        (run for run in state.runs if run.until is not None and run.until <= now),
        key=lambda run: run.until or now,
        default=None,
    )
    if overrun is not None:
        runs = tuple(
            run._replace(until=None) if run.until is not None and run.until <= now else run
            for run in state.runs
        )
        state = replace(state, runs=runs, fault=state.fault or _overrun(rules, overrun, now))
    latest = _latest(rules, state.expected_at)
    if state.fault is None and latest is not None and latest <= now:
        state = replace(state, unknown_until=None, fault=_missed(rules, state, latest, now))
    return state


def after_change(rules: HeartbeatRules, state: HeartbeatState, now: datetime) -> HeartbeatState:
    """The state after a change of the rules: by the new ones, no deadline was missed before now."""
    runs = tuple(
        run._replace(until=_run_until(rules, run, now)) if run.started_at <= now else run
        for run in state.runs
    )
    if state.expected_at is None:
        return replace(state, runs=runs)
    expected = rules.due_after(state.ended_at or now)
    return replace(state, runs=runs, expected_at=expected and max(expected, now))


def after_resume(rules: HeartbeatRules, state: HeartbeatState, now: datetime) -> HeartbeatState:
    """The state of a heartbeat that is resumed: pending, with a full period until the deadline."""
    return HeartbeatState(last_ping_at=state.last_ping_at, expected_at=rules.due_after(now))


def after_absence(
    rules: HeartbeatRules, state: HeartbeatState, since: datetime, returned_at: datetime
) -> HeartbeatState:
    """The state after the time in which no web process ran, which is added to each deadline."""
    absence = returned_at - since
    runs = tuple(
        run if run.until is None else run._replace(until=max(run.until, since) + absence)
        for run in state.runs
    )
    latest = _latest(rules, state.expected_at)
    if state.fault is not None or state.expected_at is None or latest is None:
        return replace(state, runs=runs)
    expected = max(state.expected_at + absence, returned_at)
    may_be_lost = latest <= returned_at
    return replace(
        state,
        runs=runs,
        expected_at=expected,
        unknown_until=expected + rules.grace if may_be_lost else state.unknown_until,
    )


def _latest(rules: HeartbeatRules, expected_at: datetime | None) -> datetime | None:
    return None if expected_at is None else expected_at + rules.grace


def _run_until(rules: HeartbeatRules, run: OpenRun, now: datetime) -> datetime | None:
    return None if rules.max_run is None else max(run.started_at + rules.max_run, now)


def _failure(ping: ArrivedPing) -> HeartbeatFault:
    sentence = _(FAILED_WITH, status=ping.exit_status) if ping.exit_status else _(FAILED)
    return HeartbeatFault(Cause.HEARTBEAT_FAILED, sentence, ping.at)


def _overrun(rules: HeartbeatRules, run: OpenRun, now: datetime) -> HeartbeatFault:
    since = run.until or now
    length = span((since - run.started_at).total_seconds())
    sentence = _(OVERRAN, start=_zoned(run.started_at, rules.zone, now), most=length)
    return HeartbeatFault(Cause.HEARTBEAT_OVERRAN, sentence, since)


def _missed(
    rules: HeartbeatRules, state: HeartbeatState, latest: datetime, now: datetime
) -> HeartbeatFault:
    due = _zoned(latest, rules.zone, now)
    sentence = _(NONE_CAME, due=due)
    if state.ended_at is not None:
        sentence = _(MISSED, since=_clock(state.ended_at, rules.zone, now), due=due)
    return HeartbeatFault(Cause.HEARTBEAT_MISSED, sentence, state.expected_at or latest)


def _zoned(moment: datetime, zone: str, now: datetime) -> str:
    """``_clock`` with the name of the zone, unless it is UTC."""
    clock = _clock(moment, zone, now)
    return clock if zone == "UTC" else f"{clock} ({zone})"


def _clock(moment: datetime, zone: str, now: datetime) -> str:
    """The time by the clocks of the zone, with the day unless it is that of ``now``."""
    local, local_now = moment.astimezone(zone_of(zone)), now.astimezone(zone_of(zone))
    return f"{local:%H:%M}" if local.date() == local_now.date() else f"{local:%Y-%m-%d %H:%M}"
