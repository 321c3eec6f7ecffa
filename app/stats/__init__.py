"""Figures from results and incidents: pure functions over rows, without database and clock.

What counts, for statistics, reports and pages alike:

- A result covers the time from its check until the next one in its place, at most
  ``cover_limit_ms`` by the interval that its monitor had then. Time without cover is a gap. A pause
  ends the cover, as does removing the place from the monitor. A check on request covers nothing if
  the monitor is paused or not checked from the place; it covers a second if no place checks the
  monitor.
- Covered time in a maintenance window, to the second, is neither up nor down. The time of an
  ``unknown`` result is neither up nor down, unless a result of another place covers it. If a window
  was changed or deleted since, ``maintenance`` of the results counts instead.
- The time in which a monitor was unreachable because of a parent is unknown.
- All other covered time is watched. It is down while a down incident lasts, also one that only late
  results show (``found_late``). It is up otherwise: a single failure that a recheck cancelled is no
  downtime, nor is a failure that too few places see. Up is degraded if a place gets slow answers,
  or if a place sees a failure through all confirmations that another place does not see.
- An incident that is classified as a false alarm does not count. One that is classified as
  maintenance counts as maintenance.
- Uptime is up / (up + down); without watched time there is none.
- Response times are those of good answers outside of maintenance.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

# The ranges of statistics (decision 11).
RANGES: Mapping[str, timedelta] = {
    "3h": timedelta(hours=3),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
    "365d": timedelta(days=365),
}
