"""The evidence that is kept of checks, to show why an incident opened.

``IncidentRow.evidence`` is ``{"failing": check, "confirming": [check, ...], "last_good": check,
"usual": figures, "places": [place, ...]}``: the first failing check, its repeats, the last good one
before them that is known in full (null when there was none), what was usual
(app/engine/recorder/usual.py), and what each place saw (app/engine/recorder/by_place.py).

A failing check of a place that does not change the state (the others do not see it, or have just
been counted for the same repeat) is kept aside, the newest of each place, until an incident opens.
A check is the result's fields and, beside them, what the prober saw (app/checks/http/evidence.py).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from flask import current_app

from app.db import AnySession
from app.db.by_place import Seen
from app.db.tables import IncidentRow, MonitorEvidenceRow, MonitorRow
from app.db.types import readable
from app.engine.recorder import by_place
from app.engine.recorder.rows import open_incident
from app.engine.recorder.usual import usual
from app.engine.schedule import last_slot
from app.records import Outcome, Verdict
from app.rules.time import iso
from app.rules.who_saw import places_of, title_of

# A check that is up has evidence only now and then (app/checks/outcome.py), a degraded one always.
# Storing all of it would be most of what the database writes, though it is rarely read.
SLOW_KEPT_EVERY = 600.0  # seconds
ASIDE = "aside"  # marks a check that is kept aside


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
        "timings": result.timings.by_phase(),
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
        before = _aside(row) if first else readable(row.failing) or []
        row.failing = [*before, check_of(outcome)]


def keep_aside(session: AnySession, outcome: Outcome) -> None:
    """Keep a failing check of a place that does not change the monitor's state."""
    result = outcome.result
    row = _row(session, result.monitor_id or 0)
    row.failing = [*_but_aside(row, result.location), check_of(outcome) | {ASIDE: True}]


def drop_aside(session: AnySession, monitor_id: int, location: str) -> None:
    """Drop what was kept aside of a place, because its check is good again."""
    row = session.get(MonitorEvidenceRow, monitor_id)
    if row is not None and row.failing is not None:
        row.failing = _but_aside(row, location) or None


def add_place(session: AnySession, monitor_id: int, outcome: Outcome) -> None:
    """Note in the open incident that one more place sees it."""
    incident = open_incident(session, monitor_id)
    kept = None if incident is None else readable(incident.evidence)
    if incident is None or not isinstance(kept, dict):
        return
    result = outcome.result
    places = [
        place
        | {"verdict": str(result.verdict), "cause_code": result.cause_code, "cause": result.cause}
        | {"status_code": result.status_code, "response_time": result.response_time}
        | {"checked_at": iso(result.checked_at), "earlier": False, "check": check_of(outcome)}
        if place.get("name") == result.location and place.get("verdict") != Verdict.DOWN
        else place
        for place in kept.get("places") or []
    ]
    keep(incident, {**kept, "places": places})


def keep(incident: IncidentRow, kept: Mapping[str, Any]) -> None:
    """Store the evidence of an incident, and beside it what lists show of it."""
    incident.evidence = kept
    saw = [title_of(place) for place in places_of(kept) if place.get("verdict") == Verdict.DOWN]
    incident.seen_by = saw or None


def _aside(row: MonitorEvidenceRow) -> list[Any]:
    return [check for check in readable(row.failing) or [] if ASIDE in check]


def _but_aside(row: MonitorEvidenceRow, location: str) -> list[Any]:
    """The failing checks without that which was kept aside of this place."""
    kept = readable(row.failing) or []
    return [check for check in kept if ASIDE not in check or check.get("location") != location]


def drop_failing(session: AnySession, monitor_id: int) -> None:
    row = session.get(MonitorEvidenceRow, monitor_id)
    if row is not None:
        row.failing = None


def of_incident(
    session: AnySession, monitor: MonitorRow, since: datetime, seen: Sequence[Seen]
) -> dict[str, Any]:
    """The evidence for an incident that opens now and began at ``since``. ``seen``: what its places
    saw last. Parts that cannot be read are dropped: they must not keep an incident from opening.
    """
    row = _row(session, monitor.id)
    aside = _aside(row)
    checks = [check for check in readable(row.failing) or [] if ASIDE not in check]
    told = {check.get("location") for check in checks}
    row.failing = None
    row.last_good = readable(row.last_good)
    # Another place may reach another address, or take ten times as long.
    place = next(
        (one.place for one in seen if checks and one.name == checks[0].get("location")), None
    )
    return {
        "failing": checks[0] if checks else None,
        "confirming": checks[1:],
        "last_good": row.last_good,
        "usual": usual(session, monitor.id, since, place),
        "places": by_place.evidence_of(
            seen,
            {
                check["location"]: {key: value for key, value in check.items() if key != ASIDE}
                for check in aside
                if check.get("location") not in told
            },
            # All places check in the same slot, some a moment before the first that failed.
            last_slot(monitor.id, monitor.interval, since),
        ),
    }


def _row(session: AnySession, monitor_id: int) -> MonitorEvidenceRow:
    row = session.get(MonitorEvidenceRow, monitor_id)
    if row is None:
        row = MonitorEvidenceRow(monitor_id=monitor_id)
        session.add(row)
    return row
