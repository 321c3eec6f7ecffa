"""The time axis of a chart: marks at round times in the person's zone, and the sentence for each
bucket that a pointer or the keyboard selects. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

from app.i18n import _, _n
from app.web.shown import charts, monitor_rows
from app.web.shown.looks import ms as text

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# The longest time of an axis, the step between its marks, and their format. Days are counted from a
# Monday, so that marks two weeks apart are Mondays. On a longer axis, the marks are months.
MARKS = (
    (12 * MINUTE, 2 * MINUTE, "%H:%M"),
    (40 * MINUTE, 5 * MINUTE, "%H:%M"),
    (80 * MINUTE, 10 * MINUTE, "%H:%M"),
    (4 * HOUR, 30 * MINUTE, "%H:%M"),
    (8 * HOUR, HOUR, "%H:%M"),
    (16 * HOUR, 2 * HOUR, "%H:%M"),
    (30 * HOUR, 4 * HOUR, "%H:%M"),
    (4 * DAY, 12 * HOUR, "%a %H:%M"),
    (8 * DAY, DAY, "%a %-d"),
    (16 * DAY, 2 * DAY, "%-d %b"),
    (40 * DAY, 5 * DAY, "%-d %b"),
    (110 * DAY, 14 * DAY, "%-d %b"),
)
MONTHS = 2
MONDAY = datetime(1970, 1, 5)  # noqa: DTZ001 - a date in any zone


def of_statistics(statistics: Mapping[str, Any], zone: tzinfo) -> list[tuple[datetime, str]]:
    """The ``marks`` of the chart of a ``statistics`` answer. They end at the end of its time, not
    of its last bucket, which may end tomorrow.
    """
    buckets = statistics["buckets"]
    if not buckets:
        return []
    first, last = buckets[0]["start"], statistics.get("to") or buckets[-1]["end"]
    return marks(datetime.fromisoformat(first), datetime.fromisoformat(last), zone)


def marks(first: datetime, last: datetime, zone: tzinfo) -> list[tuple[datetime, str]]:
    """The marks between ``first`` and ``last``: moments, each with its label, in order."""
    begin = first.astimezone(zone).replace(tzinfo=None)
    end = last.astimezone(zone).replace(tzinfo=None)
    fitting = ((step, form) for longest, step, form in MARKS if last - first <= longest)
    step, form = next(fitting, (None, "%b"))
    moments = _months(begin, end) if step is None else _steps(begin, end, step)
    labels = [(moment.replace(tzinfo=zone), moment.strftime(form)) for moment in moments]
    return [(moment, text) for moment, text in labels if first <= moment <= last]


def _steps(begin: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    moment = begin - (begin - MONDAY) % step
    while moment <= end:
        yield moment
        moment += step


def _months(begin: datetime, end: datetime) -> Iterator[datetime]:
    for month in range(begin.year * 12 + begin.month - 1, end.year * 12 + end.month):
        if month % MONTHS == 0:
            yield MONDAY.replace(month // 12, month % 12 + 1, 1)


def readings(
    buckets: Sequence[charts.Bucket],
    format_moment: Callable[[datetime], str],
    phases: Mapping[str, str],
    earlier: charts.EarlierSeries | None = None,
) -> list[str]:
    """A sentence for each bucket of a chart. ``phases``: the labels of the measured phases."""
    sentences = []
    for bucket in buckets:
        start, spent = datetime.fromisoformat(bucket["start"]), bucket["timings"]
        facts = [*_facts(bucket)]
        if bucket["response_time"] is not None:
            facts += [f"{word} {text(spent[name] or 0)}" for name, word in phases.items()]
        if earlier and (ms := earlier.at(start)) is not None:
            facts.append(f"{earlier.title}: {text(ms)}")
        sentences.append(f"{format_moment(start)}: {', '.join(facts)}")
    return sentences


def form_of(seconds: int, length: timedelta) -> str:
    """The format of moments: a date for buckets of days; a time alone if the chart has at most a
    day and an hour; otherwise both.
    """
    if seconds >= DAY.total_seconds():
        return "%a %-d %b %Y"
    return "%H:%M" if length <= DAY + HOUR else "%a %-d %b, %H:%M"


def _facts(bucket: charts.Bucket) -> Iterator[str]:
    if bucket["response_time"] is not None:
        yield text(bucket["response_time"])
        if bucket["p95"] is not None and bucket["checks"] != 1:
            yield f"p95 {text(bucket['p95'])}"
            yield _n("%(num)s check", "%(num)s checks", bucket["checks"])
    for state in ("down", "maintenance", "unknown"):
        if bucket[state]:
            yield monitor_rows.time_in_state(state, bucket[state])
    if bucket["response_time"] is None and not (bucket["down"] or bucket["maintenance"]):
        yield _("no response time") if bucket["checks"] else _("no check")
