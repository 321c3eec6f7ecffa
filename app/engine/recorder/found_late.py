"""Find and store the incidents that only late results show. They have ended: no state changes, and
nobody is alerted. An outage without a recovery ends when its last result stops counting; later
results may extend it.

The stored results of all places around the late ones are judged again (``app/judge/replay.py``).
The outages that they show replace the incidents of that time that were found late before, so parts
of a backlog may arrive in any order, or twice. An incident whose end a person has set stays. The
times in which a monitor was unreachable because of an outage of a parent (decision 20) are found in
the same way, parents first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import and_, not_, or_, select

from app.db import AnySession, dependencies, rollups
from app.db.statements import grouped, select_fresh, updating
from app.db.tables import IncidentRow, PlaceRow, UnreachableRow
from app.db.types import to_ms
from app.engine.recorder import unreachable
from app.engine.recorder.rows import cover_limit_s, in_whole_seconds, last_pause, rejudged_from
from app.judge.replay import (
    FAR_FUTURE,
    BehindSpan,
    BlockedSpan,
    ParentsAt,
    Replay,
    TimeSpan,
    margin,
    parents_by_outages,
)
from app.judge.verdict import NO_PARENTS, PastResult, Rules, State, vote_valid_for
from app.records import MAX_CAUSE, Result, Verdict
from app.stats.tally import HOUR_MS, without

# An incident found late that a person has neither reopened nor ended
_CORRECTABLE = and_(
    IncidentRow.found_late, IncidentRow.ended_at.is_not(None), IncidentRow.ending.is_(None)
)


class Outage(NamedTuple):
    """An outage that late results show, as the fields of an incident. ``seen_by``: the titles of
    their places.
    """

    started_at: datetime
    ended_at: datetime
    cause: str | None
    cause_code: str | None
    seen_by: tuple[str, ...]


@dataclass(slots=True)
class Search:
    """A search for outages of a monitor around some results of ``place``, from ``first`` to
    ``last``. ``monitor`` is a row with ``id``, ``interval`` (exact), ``timeout``,
    ``confirmations``, ``location_rule`` and the columns for ``rows.last_pause``; ``places`` check
    it.
    """

    monitor: Any
    place: int
    first: datetime
    last: datetime
    places: Collection[int]
    late_failures: list[Result] = field(default_factory=list)
    times: set[int] = field(default_factory=set)  # of the results (ms)
    incidents: Sequence[IncidentRow] = ()  # the stored ones that were found late, oldest first
    # The stored times behind an outage of a parent: those found late, and those found in time
    behind: Sequence[UnreachableRow] = ()
    behind_in_time: Sequence[TimeSpan] = ()

    def add(self, result: Result, *, late: bool) -> None:
        self.first = min(self.first, result.checked_at)
        self.last = max(self.last, result.checked_at)
        self.times.add(to_ms(result.checked_at))
        if late and result.verdict is Verdict.DOWN:
            self.late_failures.append(result)

    @property
    def rules(self) -> Rules:
        monitor = self.monitor
        since = dict.fromkeys(self.places, rejudged_from(monitor))
        return Rules(monitor.location_rule, monitor.confirmations, vote_valid_for(monitor), since)

    @property
    def covers(self) -> timedelta:
        return timedelta(seconds=cover_limit_s(self.monitor))

    @property
    def margin(self) -> timedelta:
        return margin(self.rules, self.covers)

    @property
    def since(self) -> datetime:
        """The time from which the late results may have changed the verdict."""
        return max(self.first - self.margin, rejudged_from(self.monitor))

    @property
    def begin(self) -> datetime:
        """The time from which results are read: they may have a vote or count at ``since``."""
        begin = self.since - max(vote_valid_for(self.monitor), self.covers)
        return max(begin, rejudged_from(self.monitor))

    @property
    def final_at(self) -> datetime:
        """The time from which the late results have no effect on the verdict."""
        return self.last + self.margin

    @property
    def is_needed(self) -> bool:
        """Whether the search may change something: there is a late failure, or a stored outage."""
        rows: list[IncidentRow | UnreachableRow] = [*self.incidents, *self.behind]
        return bool(self.late_failures) or any(row.started_at <= self.final_at for row in rows)


def find_outages(
    session: AnySession, searches: Sequence[Search], place: int, now: datetime
) -> dict[int, TimeSpan]:
    """Judge the stored results again, and store the incidents that the late results of a ``place``
    show. Returns the time in which incidents have changed, by monitor. The caller has locked the
    states.
    """
    place_row = session.get_one(PlaceRow, place)
    title = place_row.label or place_row.name
    above = dependencies.above(session, [search.monitor.id for search in searches])
    by_depth = grouped((len(above.get(search.monitor.id, ())), search) for search in searches)
    changed_times: dict[int, TimeSpan] = {}
    # Monitors with the same number of parents are not parents of each other.
    for _depth, same_depth in sorted(by_depth.items()):
        needed = read_stored(session, same_depth)
        incidents, parents = (
            _blocked_spans(session, needed),
            _parents_by_time(session, needed, above),
        )
        for search, replaced, spans, behind in _replayed(needed, incidents, parents):
            outages = [outage for span in spans if (outage := _outage(span, search, title))]
            old_outages = [_outage_of(row) for row in replaced]
            times = _store_behind(session, search, behind)
            if outages != old_outages:
                times += _changed_span(old_outages, outages) or ()
                _store(session, search.monitor.id, replaced, outages, now)
            if times:
                changed_times[search.monitor.id] = min(times), max(times)
        session.flush()
    return changed_times


def _store_behind(
    session: AnySession, search: Search, behind: Sequence[BehindSpan]
) -> tuple[datetime, ...]:
    """Replace the stored times behind outages of parents that were found late by ``behind``,
    without the times that were found in time. Returns the starts and ends of the changed times.
    """
    spans = {
        (parent, *part)
        for parent, span in behind
        for part in without(_in_whole_seconds([span]), search.behind_in_time)
    }
    rows = {(row.parent_id, row.started_at, _end_of(row)): row for row in search.behind}
    for key in rows.keys() - spans:
        session.delete(rows[key])
    for parent, start, end in sorted(spans - rows.keys()):
        times = {"started_at": start, "ended_at": end}
        session.add(
            UnreachableRow(monitor_id=search.monitor.id, parent_id=parent, **times, found_late=True)
        )
    return tuple(time for _parent, *times in spans ^ rows.keys() for time in times)


def read_stored(session: AnySession, searches: Sequence[Search]) -> list[Search]:
    """Set the stored incidents and times of each search. Returns the searches that may change
    them.
    """
    if not searches:
        return []
    by_id = {search.monitor.id: search for search in searches}
    rows = session.scalars(
        select_fresh(IncidentRow)
        .where(
            IncidentRow.monitor_id.in_(list(by_id)),
            _CORRECTABLE,
            IncidentRow.ended_at >= min(search.since for search in searches),
        )
        .order_by(IncidentRow.monitor_id, IncidentRow.started_at)
    )
    recent = (row for row in rows if _end_of(row) >= by_id[row.monitor_id].since)
    incidents = grouped((row.monitor_id, row) for row in recent)
    for id, search in by_id.items():
        search.incidents = incidents.get(id, ())
    _set_behind(session, by_id)
    return [search for search in searches if search.is_needed]


def _set_behind(session: AnySession, by_id: Mapping[int, Search]) -> None:
    row = UnreachableRow
    since = min(search.since for search in by_id.values())
    rows = session.scalars(
        select(row)
        .where(row.monitor_id.in_(list(by_id)), or_(row.ended_at.is_(None), row.ended_at >= since))
        .order_by(row.started_at)
    ).all()
    for id, search in by_id.items():
        spans = [span for span in rows if span.monitor_id == id and _end_of(span) >= search.since]
        search.behind = [span for span in spans if span.found_late]
        in_time = [span for span in spans if not span.found_late]
        search.behind_in_time = [(span.started_at, _end_of(span)) for span in in_time]


def _store(
    session: AnySession,
    monitor_id: int,
    replaced: Sequence[IncidentRow],
    outages: Sequence[Outage],
    now: datetime,
) -> None:
    """Store these outages in place of the incidents ``replaced``. An incident that overlaps an
    outage gets its times, and keeps its comment and acknowledgement.
    """
    unmatched = list(replaced)
    for outage in outages:
        start, end = outage.started_at, outage.ended_at
        row = next(
            (row for row in unmatched if row.started_at <= end and _end_of(row) >= start), None
        )
        if row is None:
            row = IncidentRow(
                monitor_id=monitor_id, found_late=True, created_at=in_whole_seconds(now)
            )
            session.add(row)
        else:
            unmatched.remove(row)
        row.started_at, row.ended_at = start, end
        row.cause, row.cause_code = outage.cause, outage.cause_code
        row.seen_by = list(outage.seen_by)
        row.updated_at = in_whole_seconds(now)
        if row.acknowledged_at is not None:
            row.acknowledged_at = min(max(row.acknowledged_at, start), end)
    for row in unmatched:
        session.delete(row)


def _end_of(row: IncidentRow | UnreachableRow) -> datetime:
    return row.ended_at or FAR_FUTURE


def end_found_late(session: AnySession, monitor_id: int, now: datetime) -> None:
    """End the incidents of a monitor that were found late, if they end after ``now``: it is paused,
    or loses a place.
    """
    correctable = ((IncidentRow, _CORRECTABLE), (UnreachableRow, UnreachableRow.found_late))
    for row, is_correctable in correctable:
        session.execute(
            updating(row)
            .where(row.monitor_id == monitor_id, is_correctable)
            .where(row.started_at < now, row.ended_at > now)
            .values(ended_at=in_whole_seconds(now))
        )


def _blocked_spans(session: AnySession, searches: Sequence[Search]) -> dict[int, list[BlockedSpan]]:
    by_monitor: dict[int, list[BlockedSpan]] = {search.monitor.id: [] for search in searches}
    if searches:
        row = IncidentRow
        ended, begin = row.ended_at, min(search.begin for search in searches)
        rows = session.execute(
            select(row.monitor_id, row.started_at, ended, row.by_hand)
            .where(
                row.monitor_id.in_(list(by_monitor)),
                or_(ended.is_(None), ended > begin),
                not_(_CORRECTABLE),
            )
            .order_by(row.started_at, row.id)
        )
        for id, started_at, ended_at, by_hand in rows:
            by_monitor[id].append(BlockedSpan(started_at, ended_at, by_hand))
    for search in searches:
        # In a pause no outage is found, as during an incident by hand.
        if pause := last_pause(search.monitor):
            by_monitor[search.monitor.id].append(BlockedSpan(*pause, by_hand=True, pause=True))
            by_monitor[search.monitor.id].sort(key=lambda span: span.started_at)
    return by_monitor


def _parents_by_time(
    session: AnySession, searches: Sequence[Search], above: Mapping[int, Collection[int]]
) -> dict[int, ParentsAt]:
    """The parents of each monitor by time. In an outage of a parent, no outage of it is found."""
    above = {id: above[id] for search in searches if (id := search.monitor.id) in above}
    begin = min((search.begin for search in searches), default=FAR_FUTURE)
    outages = unreachable.outages_above(session, above, begin)
    return {id: parents_by_outages(spans, NO_PARENTS) for id, spans in outages.items()}


def _replayed(
    searches: Sequence[Search],
    incidents: Mapping[int, Sequence[BlockedSpan]],
    parents: Mapping[int, ParentsAt],
) -> Iterator[tuple[Search, list[IncidentRow], Sequence[TimeSpan], Sequence[BehindSpan]]]:
    """Judge the results of each search again. Yields it with the stored incidents of the judged
    time, the outages of that time, and the times behind outages of parents.
    """
    unfinished = []
    for search, checks in _read((search, search.begin, search.final_at) for search in searches):
        of_monitor = incidents[search.monitor.id]
        spans = [span for span in of_monitor if (span.ended_at or FAR_FUTURE) > search.begin]
        parents_at = parents.get(search.monitor.id, parents_by_outages((), NO_PARENTS))
        replay, in_time = (_replay(search, spans, parents_at) for _number in range(2))
        replay.judge(checks)
        in_time.judge(_without_own(search, checks))
        outages = _final_outages(search, replay)
        if outages is None:
            unfinished.append((search, replay, in_time))
        else:
            replaced = [row for row in search.incidents if row.started_at < search.final_at]
            search.behind = [row for row in search.behind if row.started_at < search.final_at]
            in_time.finish()
            new_outages = _not_judged_in_time(outages, in_time.outages, replaced)
            replay.finish()
            yield search, replaced, new_outages, replay.behind
    replays = {search.monitor.id: (replay, in_time) for search, replay, in_time in unfinished}
    for search, checks in _read(
        (search, search.final_at, None) for search, *_replays in unfinished
    ):
        replay, in_time = replays[search.monitor.id]
        replay.judge(checks)
        in_time.judge(checks)
        replay.finish()
        in_time.finish()
        outages = _not_judged_in_time(replay.outages, in_time.outages, search.incidents)
        yield search, list(search.incidents), outages, replay.behind


def _replay(search: Search, incidents: Sequence[BlockedSpan], parents_at: ParentsAt) -> Replay:
    lasting_outage = next((row for row in search.incidents if row.started_at < search.since), None)
    behind = next((row for row in search.behind if row.started_at < search.since), None)
    state, covered_until = State(), None
    if lasting_outage is not None:
        state, covered_until = State(down_since=lasting_outage.started_at), _end_of(lasting_outage)
    elif behind is not None:
        state, covered_until = State(behind=behind.parent_id), _end_of(behind)
    replay = Replay(
        search.rules, search.covers, search.since, state, incidents, covered_until, parents_at
    )
    if behind is not None:
        replay.behind_since = behind.started_at
    return replay


def _without_own(search: Search, checks: Iterable[PastResult]) -> Iterator[PastResult]:
    """The results without those of ``search``."""
    return (
        check for check in checks if check.place != search.place or check.at_ms not in search.times
    )


def _not_judged_in_time(
    spans: Iterable[TimeSpan], in_time: Iterable[TimeSpan], stored: Iterable[IncidentRow]
) -> Sequence[TimeSpan]:
    """The time of the outages ``spans`` that only the late results show. ``in_time``: the outages
    by the other results alone. Their time was judged when these arrived, unless it has a ``stored``
    incident found late: its ordinary incident may have been deleted, and must not be stored again.
    """
    stored_spans = [(row.started_at, _end_of(row)) for row in stored]
    return without(_in_whole_seconds(spans), without(_in_whole_seconds(in_time), stored_spans))


def _in_whole_seconds(spans: Iterable[TimeSpan]) -> list[TimeSpan]:
    """The spans in whole seconds, as incidents are stored."""
    rounded = [(in_whole_seconds(start), in_whole_seconds(end)) for start, end in spans]
    return [(start, end) for start, end in rounded if start < end]


def _final_outages(search: Search, replay: Replay) -> Sequence[TimeSpan] | None:
    """The outages until ``final_at``; None if the last one ends after it, and later results must be
    judged.
    """
    final_at = search.final_at
    lasting_outage = next(
        (row for row in search.incidents if row.started_at < final_at < _end_of(row)), None
    )
    if lasting_outage is None:
        return replay.outages if replay.is_clear else None
    if replay.unrecovered_since is None:
        return None
    return [*replay.outages, (replay.unrecovered_since, _end_of(lasting_outage))]


def _read(
    searches: Iterable[tuple[Search, datetime, datetime | None]],
) -> Iterator[tuple[Search, Sequence[PastResult]]]:
    """The results of each search between two times (None: to the last result). Searches of about
    the same time share a statement: a batch usually has the same minutes of many monitors.
    """
    spans = [(to_ms(begin), to_ms(stop or FAR_FUTURE), search) for search, begin, stop in searches]
    group: list[tuple[int, int, Search]] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        if group:
            first, length = group[0][0], group[0][1] - group[0][0]
            begins_near = span[0] - first <= min(length, HOUR_MS) // 2
            if not begins_near or span[1] - span[0] > 2 * length:
                yield from _read_group(group)
                group = []
        group.append(span)
    if group:
        yield from _read_group(group)


def _read_group(
    group: Sequence[tuple[int, int, Search]],
) -> Iterator[tuple[Search, Sequence[PastResult]]]:
    ids = [search.monitor.id for _begin, _end, search in group]
    first, last = group[0][0], max(end for _begin, end, _look in group)
    checks = rollups.checks(ids, first, last)
    for begin, end, search in group:
        yield search, [check for check in checks[search.monitor.id] if begin <= check.at_ms < end]


def _outage(span: TimeSpan, search: Search, title: str) -> Outage | None:
    """The outage in this time; None if neither a late failure nor a stored late incident is in it:
    a failure that arrived in time has an ordinary incident.
    """
    start, end = span
    incidents = [row for row in search.incidents if row.started_at < end and _end_of(row) > start]
    failures = [
        result
        for result in search.late_failures
        if start <= in_whole_seconds(result.checked_at) < end
    ]
    if not incidents and not failures:
        return None
    causes = [(row.started_at, row.cause, row.cause_code) for row in incidents]
    causes += [(result.checked_at, result.cause, result.cause_code) for result in failures]
    _at, cause, code = min(causes, key=lambda cause: cause[0])
    places = set(chain.from_iterable(row.seen_by or () for row in incidents))
    places |= {title} if failures else set()
    return Outage(start, end, cause and cause[:MAX_CAUSE], code, tuple(sorted(places)))


def _outage_of(row: IncidentRow) -> Outage:
    seen_by = tuple(row.seen_by or ())
    return Outage(row.started_at, _end_of(row), row.cause, row.cause_code, seen_by)


def _changed_span(old_outages: Sequence[Outage], new_outages: Sequence[Outage]) -> TimeSpan | None:
    """The time in which these outages differ: for one that became longer, only the new part."""
    old, new = (
        {outage.started_at: outage.ended_at for outage in outages}
        for outages in (old_outages, new_outages)
    )
    times = [
        time
        for start in old.keys() | new.keys()
        if old.get(start) != new.get(start)
        for time in (old.get(start, start), new.get(start, start))
    ]
    return (min(times), max(times)) if times else None
