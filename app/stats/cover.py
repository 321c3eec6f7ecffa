"""The time that checks of one place or of several cover, and its kind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

from app.judge.verdict import PastResult, failures_after
from app.records import Verdict

OVERDUE_MS = 60_000  # a check may be late by this much without a gap before it
Span = tuple[int, int]  # begin and end, ms
At = TypeVar("At", int, datetime)
# The kinds of covered time. Whether WATCHED is up or down depends on incidents.
WATCHED, UNKNOWN, MAINTENANCE, DEGRADED = range(4)
# The time after a failure in one of several places: before and after all confirmations.
_FAILING, _PERSISTENT = 4, 5
_KINDS = {Verdict.UNKNOWN: UNKNOWN, Verdict.DEGRADED: DEGRADED}
# A tuple is faster than a set, and is tested for each check.
_WATCHED_VERDICTS = (Verdict.UP, Verdict.DOWN)
Cover = tuple[int, int, int]  # kind, begin and end
ALL_TIME: Sequence[Span] = ((-(2**62), 2**62),)


def cover_limit_ms(interval: int, timeout: int) -> int:
    """The longest time, in ms, that one result of a monitor counts; ``interval`` and ``timeout``
    are seconds.
    """
    return (interval + timeout) * 1000 + OVERDUE_MS


def covered(
    checks: Sequence[PastResult], limit: int, planned: Sequence[Span] = (), confirmations: int = 0
) -> list[Cover]:
    """The time that ``checks`` (in order) cover; adjoining spans of one kind are merged.

    A check counts until the next one of its place, ``limit`` ms at most. ``_kind_of_all`` combines
    the kinds of several places; a failure of one place counts there after ``confirmations``. A
    check in a window of ``planned`` does not make the time after the window maintenance.

    Most monitors have one kind all day, so callers work on a few spans, not on each check.
    """
    if not of_several_places(checks):
        return _cover_of_place(checks, _kinds(checks, planned), limit)
    by_place: dict[int, list[PastResult]] = {}
    for check in checks:
        by_place.setdefault(check.place, []).append(check)
    covers = [
        _cover_of_place(own_checks, _kinds_of_place(own_checks, limit, confirmations), limit)
        for own_checks in by_place.values()
    ]
    windows = _maintenance(checks, planned)
    return [
        (MAINTENANCE if inside else kind, first, last)
        for kind, begin, stop in _of_all_places(covers)
        for inside, first, last in split(windows, begin, stop)
    ]


_PLACE = itemgetter(PastResult._fields.index("place"))


def of_several_places(checks: Sequence[PastResult]) -> bool:
    return len(checks) > 1 and len(set(map(_PLACE, checks))) > 1


def _kinds(checks: Iterable[PastResult], planned: Sequence[Span]) -> list[int]:
    """The kind of each check."""
    return [
        MAINTENANCE
        if maintenance and not _is_within(planned, at_ms)
        else (WATCHED if verdict in _WATCHED_VERDICTS else _KINDS[verdict])
        for at_ms, verdict, maintenance, _, _, _, _ in checks
    ]


def _kinds_of_place(checks: Iterable[PastResult], limit: int, confirmations: int) -> Iterator[int]:
    """The kind of each check of one of several places, without maintenance (``_maintenance``).
    Failures in a row are counted as for the place's vote, but a gap resets the count.
    """
    failures = stop = 0
    for at_ms, verdict, maintenance, _, _, covers_ms, _ in checks:
        failures = failures_after(0 if at_ms > stop else failures, verdict, maintenance=maintenance)
        if verdict is Verdict.DOWN:
            yield _PERSISTENT if failures > confirmations else _FAILING
        else:
            yield WATCHED if verdict is Verdict.UP else _KINDS[verdict]
        stop = at_ms + (limit if covers_ms is None else covers_ms)


def _cover_of_place(checks: Iterable[PastResult], kinds: Iterable[int], limit: int) -> list[Cover]:
    """``covered`` for the checks of one place. ``kinds``: the kind of each check. The first span
    has no length; callers skip such spans.
    """
    spans: list[Cover] = []
    kind, begin, stop = WATCHED, 0, 0
    for (at_ms, _, _, _, _, covers_ms, _), next_kind in zip(checks, kinds, strict=True):
        if next_kind != kind or at_ms > stop:
            spans.append((kind, begin, min(stop, at_ms)))
            kind, begin = next_kind, at_ms
        stop = at_ms + (limit if covers_ms is None else covers_ms)
    spans.append((kind, begin, stop))
    return spans


def _maintenance(checks: Iterable[PastResult], planned: Sequence[Span]) -> list[Span]:
    """The spans in which the newest check of all places was in maintenance, outside of the windows
    of ``planned``. A span lasts until the next check that was not in maintenance.
    """
    spans: list[Span] = []
    since = None
    for check in checks:
        is_maintenance = check.maintenance and not _is_within(planned, check.at_ms)
        if is_maintenance and since is None:
            since = check.at_ms
        elif not is_maintenance and since is not None:
            spans.append((since, check.at_ms))
            since = None
    return spans if since is None else [*spans, (since, ALL_TIME[0][1])]


def _is_within(spans: Sequence[Span], at_ms: int) -> bool:
    return bool(spans) and overlap(spans, at_ms, at_ms + 1) > 0


def _of_all_places(covers: Iterable[Iterable[Cover]]) -> Iterator[Cover]:
    """Combine the cover of each place."""
    changes = sorted(
        change
        for spans in covers
        for kind, begin, stop in spans
        for change in ((begin, kind, 1), (stop, kind, -1))
        if begin < stop
    )
    counts = [0] * (_PERSISTENT + 1)  # how many places see each kind
    present, since = None, 0
    for at, simultaneous in groupby(changes, key=itemgetter(0)):
        for _at, kind, difference in simultaneous:
            counts[kind] += difference
        following = _kind_of_all(counts)
        if following != present:
            if present is not None:
                yield present, since, at
            present, since = following, at


def _kind_of_all(counts: Sequence[int]) -> int | None:
    """The kind of a moment, by how many places see each kind; None if no check covers it
    (decision 14).

    ``unknown`` is no vote. The time is degraded if one place is slow, or if one place sees a
    persistent failure while another is up. The time of any other failure is WATCHED: the monitor's
    rule decides whether an incident opens, and the incident makes the time down.
    """
    if counts[DEGRADED] or (counts[_PERSISTENT] and counts[WATCHED]):
        return DEGRADED
    if counts[WATCHED] or counts[_FAILING] or counts[_PERSISTENT]:
        return WATCHED
    return UNKNOWN if counts[UNKNOWN] else None


def split(spans: Sequence[tuple[At, At]], begin: At, end: At) -> list[tuple[bool, At, At]]:
    """Split the time from ``begin`` to ``end`` at ``spans`` (merged, in order). Returns for each
    piece whether it is inside a span, its begin and its end.
    """
    if not spans:
        return [(False, begin, end)]
    pieces: list[tuple[bool, At, At]] = []
    at = begin
    index = max(0, bisect_right(spans, (begin,)) - 1)
    while at < end and index < len(spans) and spans[index][0] < end:
        first, last = max(at, spans[index][0]), min(end, spans[index][1])
        if first < last:
            pieces += [(False, at, first), (True, first, last)]
            at = last
        index += 1
    pieces.append((False, at, end))
    return pieces


def overlap(spans: Sequence[Span], begin: int, end: int) -> int:
    """How many ms of ``begin`` to ``end`` are covered by ``spans`` (merged, in order)."""
    return sum(last - first for inside, first, last in split(spans, begin, end) if inside)
