"""The evidence that is kept of checks, to show why an incident opened.

``IncidentRow.evidence`` is ``{"failing": check, "confirming": [check, ...], "last_good": check,
"usual": figures}``: the first failing check, its repeats, the last good one before them that is
known in full (null when there was none), and what was usual (app/engine/recorder/usual.py).
A check is the result's fields and, beside them, what the prober saw (app/checks/http/evidence.py).
"""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime
from typing import Any

from flask import current_app

from app.db import AnySession
from app.db.tables import MonitorEvidenceRow
from app.db.types import readable
from app.engine.recorder.usual import usual
from app.records import Outcome, Verdict
from app.rules.time import iso

# A check that is up has evidence only now and then (app/checks/outcome.py), a degraded one always.
# Storing all of it would be most of what the database writes, though it is rarely read.
SLOW_KEPT_EVERY = 600.0  # seconds


def check_of(outcome: Outcome) -> dict[str, Any]:
    """The check in the form in which evidence is stored: JSON-ready."""
    result = outcome.result
    return {
        "checked_at": iso(result.checked_at),
        "verdict": str(result.verdict),
        "cause_code": result.cause_code,
        "cause": result.cause,
        "status_code": result.status_code,
        "response_time": result.response_time,
        "timings": asdict(result.timings),
        "ip": result.ip,
        "http_version": result.http_version,
        "redirects": list(result.redirects),
        "warnings": list(result.warnings),
        "location": result.location,
        **(outcome.evidence or {}),
    }


def wants_good(outcome: Outcome) -> bool:
    """Whether to keep this good check's evidence, for comparison with the next failure."""
    result = outcome.result
    if outcome.evidence is None or not result.is_good:
        return False
    if result.verdict is Verdict.UP or result.monitor_id is None:
        return True
    kept: dict[int, float] = current_app.extensions.setdefault("wakeful.slow_kept", {})
    moment = time.monotonic()
    if moment - kept.get(result.monitor_id, -SLOW_KEPT_EVERY) < SLOW_KEPT_EVERY:
        return False
    kept[result.monitor_id] = moment
    return True


def keep_failing(session: AnySession, outcome: Outcome, *, first: bool) -> None:
    monitor_id = outcome.result.monitor_id
    if monitor_id is not None:
        row = _row(session, monitor_id)
        before = [] if first else readable(row.failing) or []
        row.failing = [*before, check_of(outcome)]


def drop_failing(session: AnySession, monitor_id: int) -> None:
    row = session.get(MonitorEvidenceRow, monitor_id)
    if row is not None:
        row.failing = None


def of_incident(session: AnySession, monitor_id: int, since: datetime) -> dict[str, Any]:
    """The evidence for an incident that opens now and began at ``since``. Parts that cannot be read
    are dropped: they must not keep an incident from opening.
    """
    row = _row(session, monitor_id)
    checks = readable(row.failing) or []
    row.failing = None
    row.last_good = readable(row.last_good)
    return {
        "failing": checks[0] if checks else None,
        "confirming": checks[1:],
        "last_good": row.last_good,
        "usual": usual(session, monitor_id, since),
    }


def _row(session: AnySession, monitor_id: int) -> MonitorEvidenceRow:
    row = session.get(MonitorEvidenceRow, monitor_id)
    if row is None:
        row = MonitorEvidenceRow(monitor_id=monitor_id)
        session.add(row)
    return row
