"""Results summed by hour and UTC day: written by ``roll`` and ``reroll``, read by lists and charts.

Two invariants keep readers simple: sums exist only before ``MonitorStateRow.rolled_until`` (after
it, the results themselves are read; the row of the hour in which it lies has the time before it),
and the row of a day is the sum of the rows of its hours that have ended.

No library does this for SQLite and PostgreSQL alike: TimescaleDB's continuous aggregates are for
PostgreSQL only, and take account of neither maintenance nor late results.
"""

from app.db.rollups.days import CachedDays, Days, day_of, plus
from app.db.rollups.reading import (
    NO_FIGURES,
    Charted,
    ListFigures,
    between,
    only_summed,
    report_figures,
    single,
    slow_spans,
    usual,
)
from app.db.rollups.rows import DOWN_SINCE, SUMMED, checks, incidents_between, monitor_of
from app.db.rollups.writing import is_summed, reroll, reroll_each, roll

__all__ = [
    "DOWN_SINCE", "NO_FIGURES", "SUMMED", "CachedDays", "Charted", "Days", "ListFigures", "between",
    "checks", "day_of", "incidents_between", "is_summed", "monitor_of", "only_summed", "plus",
    "report_figures", "reroll", "reroll_each", "roll", "single", "slow_spans", "usual",
]  # fmt: skip
