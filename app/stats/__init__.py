"""Figures from results and incidents: pure functions over rows, without database and clock.

What counts (one definition, also for what is shown on pages):

- A result covers the time from its check until the next one, at most ``cover_limit_ms`` as its
  monitor was then: longer silence is a gap, of which we know nothing. A pause ends it, and a check
  made by hand while paused does not count.
- Covered time in a maintenance window, to the second, is neither up nor down, and neither is that
  of an ``unknown`` result. Of a window that was changed or deleted since, its results tell.
- All other covered time is watched. It is down while an incident lasts, from ``started_at`` to
  ``ended_at``, and up otherwise: a single failure that a recheck cancelled is no downtime.
- An incident classified as a false alarm does not count; one classified as maintenance makes its
  time maintenance.
- Uptime is up / (up + down); without watched time there is none.
- Response times are those of good answers outside of maintenance.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

# The ranges of statistics (decisions.md 11); the three hours are an addition of ours.
RANGES: Mapping[str, timedelta] = {
    "3h": timedelta(hours=3),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
    "365d": timedelta(days=365),
}
