"""Results summed by hour and UTC day: written by ``roll`` and ``reroll``, read by lists and charts.

Readers rely on two invariants. The sums end at ``MonitorStateRow.rolled_until``: later results are
read themselves, and the row of the hour in which it lies has only the time before it. The row of a
day is the sum of the rows of its hours that have ended.

No library does this for SQLite and PostgreSQL alike: TimescaleDB's continuous aggregates are for
PostgreSQL only, and take account of neither maintenance nor late results.
"""

from app.db.rollups.days import CachedDays, Days, add_seconds, public_day
from app.db.rollups.reading import (
    NO_FIGURES,
    ChartFigures,
    ListFigures,
    only_summed,
    report_figures,
    slow_spans,
    sums_between,
    sums_by_period,
    usual_times,
)
from app.db.rollups.rows import DOWN_SINCE, SUMMED, checks, incidents_between, monitor_of
from app.db.rollups.writing import is_summed, reroll, reroll_each, roll

__all__ = [
    "DOWN_SINCE", "NO_FIGURES", "SUMMED", "CachedDays", "ChartFigures", "Days", "ListFigures",
    "add_seconds", "checks", "incidents_between", "is_summed", "monitor_of", "only_summed",
    "public_day", "report_figures", "reroll", "reroll_each", "roll", "slow_spans", "sums_between",
    "sums_by_period", "usual_times",
]  # fmt: skip
