"""What home shows when nothing is down: each monitor as a strip, and what is worth knowing next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.records import Monitor, MonitorQuery, MonitorSortBy, Sort
from app.stores import current_store
from app.web.frame import servers
from app.web.shown import monitor_rows, planned

STRIPS = 50  # of the sizes of interface.md; with more monitors, the worst and a link to the list
EXPIRIES, EXPIRIES_ASKED = 3, 10
WINDOWS = 2


@dataclass(frozen=True, slots=True)
class Expiry:
    monitor: Monitor
    what: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Calm:
    """``more``: how many monitors have no strip."""

    rows: Sequence[monitor_rows.Row]
    more: int
    expiries: Sequence[Expiry]
    windows: Sequence[planned.Planned]


def read() -> Calm:
    page = current_store().monitors.list(_strips())
    return Calm(
        rows=monitor_rows.of(page.items),
        more=max(0, page.total - len(page.items)),
        expiries=_expiries(),
        windows=planned.soon(WINDOWS),
    )


def _strips() -> MonitorQuery:
    worst_first = not servers.is_bare()
    return MonitorQuery(
        sort_by=MonitorSortBy.STATE if worst_first else MonitorSortBy.NAME,
        sort=Sort.DESC if worst_first else Sort.ASC,
        per_page=STRIPS,
        uptime=(),
        hours=True,
        brief=True,
    )


def _expiries() -> Sequence[Expiry]:
    """The certificates and domains that expire next, of the monitors that are checked."""
    if servers.is_bare():
        return ()
    query = MonitorQuery(
        sort_by=MonitorSortBy.EXPIRES_AT,
        sort=Sort.ASC,
        per_page=EXPIRIES_ASKED,
        uptime=(),
        brief=True,
    )
    found = {
        (what, monitor.domain if what == "domain" else monitor.id): Expiry(monitor, what, at)
        for monitor in current_store().monitors.list(query).items
        for what, at in (
            ("certificate", monitor.ssl_expires_at),
            ("domain", monitor.domain_expires_at),
        )
        if at is not None and not monitor.paused
    }
    return sorted(found.values(), key=lambda one: one.at)[:EXPIRIES]
