"""The stored evidence of checks, which shows why an incident opened.

``IncidentRow.evidence`` is ``{"failing": check, "confirming": [check, ...], "last_good": check,
"usual": figures, "places": [place, ...]}``: the first failing check, its repeats, the last good
check before them that is stored in full (null without one), the usual figures before the failure
(``_usual_before``), and the newest check of each place (app/engine/recorder/by_place.py).

A place may see a failure that does not change the state: other places are good, or have just been
counted for the same repeat. Its newest such check is stored aside until an incident opens. A check
has the result's fields and the evidence of the prober (app/checks/http/outcome.py).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median_low
from typing import Any

from flask import current_app
from sqlalchemy import BindParameter, bindparam, or_, select, update

from app.codec import json_of
from app.codec.evidence import read_assertion
from app.db import AnySession, journal
from app.db.by_place import NewestCheck
from app.db.tables import IncidentRow, MonitorEvidenceRow, ResultRow
from app.db.types import Unreadable, from_ms, readable, to_ms
from app.engine.recorder import by_place
from app.engine.recorder.rows import find_open_incident
from app.engine.schedule import last_scheduled
from app.records import GOOD_VERDICTS, PHASES, Outcome, Result, Verdict
from app.rules.time import iso
from app.rules.who_saw import named_places, title_of

# A check that is up has evidence only now and then (app/checks/outcome.py), a degraded one always.
# Therefore the evidence of a slow monitor is stored only after this time: it is large, and rarely
# read.
SLOW_STORED_EVERY = 600.0  # seconds
ASIDE = "aside"  # marks a check that is stored aside
_OF_RESULT = ("ip", "http_version", "location")
OTHER_PLACES = "elsewhere"  # a key in the last good check: those of other places, by their names
MAX_OTHER_PLACES = 9

_EVIDENCE: Any = MonitorEvidenceRow.__table__
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_FAILING = select(_EVIDENCE.c.monitor_id, _EVIDENCE.c.failing).where(
    _EVIDENCE.c.monitor_id.in_(_IDS), _EVIDENCE.c.failing.is_not(None)
)
_LAST_GOOD = select(_EVIDENCE.c.monitor_id, _EVIDENCE.c.last_good).where(
    _EVIDENCE.c.monitor_id.in_(_IDS)
)
_ASKED = select(MonitorEvidenceRow.asked).where(MonitorEvidenceRow.monitor_id == bindparam("id"))


def entry_of(outcome: Outcome) -> dict[str, Any]:
    """The check as evidence is stored: ready for JSON."""
    result = outcome.result
    return {
        "checked_at": iso(result.checked_at),
        "verdict": str(result.verdict),
        **{name: getattr(result, name) for name in (*by_place.OF_CHECK, *_OF_RESULT)},
        "timings": result.timings.by_phase(),
        "redirects": list(result.redirects),
        "warnings": list(result.warnings),
        **({"assertions": list(map(json_of, result.assertions))} if result.assertions else {}),
        **(outcome.evidence or {}),
    }


def wants_good(outcome: Outcome) -> bool:
    """Whether to store this good check's evidence, for comparison with the next failure."""
    result = outcome.result
    if outcome.evidence is None or not result.is_good:
        return False
    if result.verdict is Verdict.UP or result.monitor_id is None:
        return True
    stored_at: dict[int, float] = current_app.extensions.setdefault("wakeful.slow_stored", {})
    moment = time.monotonic()
    if moment - stored_at.get(result.monitor_id, -SLOW_STORED_EVERY) < SLOW_STORED_EVERY:
        return False
    stored_at[result.monitor_id] = moment
    return True


def beside_others(session: AnySession, good: Mapping[int, Any]) -> dict[int, Any]:
    """The good checks of monitors with several places, each with the last good checks of the other
    places: a failure is compared with a check of the same place.
    """
    stored = _last_good(session, list(good))
    return {
        id: check | {OTHER_PLACES: _last_of_others(check, stored.get(id))}
        for id, check in good.items()
    }


def _last_of_others(check: Mapping[str, Any], stored: Any) -> dict[str, Any]:
    by_location = {good.get("location"): good for good in reversed(good_checks(stored))}
    newest_last = [(name, good) for name, good in by_location.items() if name != check["location"]]
    return dict(newest_last[-MAX_OTHER_PLACES:])


def good_checks(stored: Any) -> list[dict[str, Any]]:
    """The stored last good checks of a monitor, one for each place, the newest first."""
    if not isinstance(stored, dict):
        return []
    newest = {key: value for key, value in stored.items() if key != OTHER_PLACES}
    return [newest, *reversed((stored.get(OTHER_PLACES) or {}).values())]


class FailingChecks:
    """The failing checks of a batch's monitors that are stored until an incident opens. They are
    read together, when the first one is needed, and written together.
    """

    def __init__(self, session: AnySession, monitor_ids: Collection[int]) -> None:
        self._session, self._ids = session, monitor_ids
        self._stored: dict[int, Any] | None = None
        self._changed: set[int] = set()

    def add(self, outcome: Outcome, *, first: bool) -> None:
        """Add a failing check. ``first``: drop the stored ones, except those stored aside."""
        id = outcome.result.monitor_id or 0
        self._set(id, [*(self.aside(id) if first else self._checks_of(id)), entry_of(outcome)])

    def add_aside(self, outcome: Outcome) -> None:
        """Store a failing check of a place that does not change the monitor's state."""
        id, location = outcome.result.monitor_id or 0, outcome.result.location
        self._set(id, [*self._but_aside(id, location), entry_of(outcome) | {ASIDE: True}])

    def drop_aside(self, monitor_id: int, location: str) -> None:
        """Drop the failing check of a place that is stored aside: its check is good again."""
        if self._all.get(monitor_id) is not None:
            self._set(monitor_id, self._but_aside(monitor_id, location) or None)

    def drop(self, monitor_id: int) -> None:
        if self._all.get(monitor_id) is not None:
            self._set(monitor_id, None)

    def aside(self, monitor_id: int) -> list[Any]:
        return [check for check in self._checks_of(monitor_id) if ASIDE in check]

    def has_aside(self, monitor_id: int, location: str | None) -> bool:
        """Whether a failing check of this place is stored aside."""
        return any(check.get("location") == location for check in self.aside(monitor_id))

    def pop(self, monitor_id: int) -> list[Any]:
        """Remove and return the failing checks of a monitor, without those stored aside, for the
        incident that opens.
        """
        checks = [check for check in self._checks_of(monitor_id) if ASIDE not in check]
        self._set(monitor_id, None)
        return checks

    def write(self) -> None:
        """Write the changed checks."""
        journal.store_evidence("failing", {id: self._all[id] for id in sorted(self._changed)})
        self._changed = set()

    @property
    def _all(self) -> dict[int, Any]:
        if self._stored is None:
            rows = self._session.execute(_FAILING, {"ids": list(self._ids)})
            self._stored = {row.monitor_id: row.failing for row in rows}
        return self._stored

    def _checks_of(self, monitor_id: int) -> list[Any]:
        return readable(self._all.get(monitor_id)) or []

    def _but_aside(self, monitor_id: int, location: str) -> list[Any]:
        """The failing checks without the one of this place that is stored aside."""
        return [
            check
            for check in self._checks_of(monitor_id)
            if ASIDE not in check or check.get("location") != location
        ]

    def _set(self, monitor_id: int, checks: list[Any] | None) -> None:
        self._all[monitor_id] = checks
        self._changed.add(monitor_id)


def store_assertions(session: AnySession, result: Result) -> None:
    """Store the values that the assertions found in a check on request."""
    id = result.monitor_id or 0
    stored = readable(session.scalar(_ASKED, {"id": id})) or {}
    entry = [to_ms(result.checked_at), [json_of(row) for row in result.assertions]]
    journal.store_evidence("asked", {id: {**stored, result.location: entry}})


def with_assertions(session: AnySession, result: Result) -> Result:
    """The stored result of a check on request, with the values that its assertions found."""
    stored = readable(session.scalar(_ASKED, {"id": result.monitor_id})) or {}
    at_ms, rows = stored.get(result.location) or (None, ())
    if at_ms != to_ms(result.checked_at):
        return result
    return replace(result, assertions=tuple(map(read_assertion, rows)))


def add_place(session: AnySession, monitor_id: int, outcome: Outcome) -> None:
    """Add a failing check of one more place to the evidence of the open incident."""
    incident = find_open_incident(session, monitor_id)
    evidence = None if incident is None else readable(incident.evidence)
    if incident is None or not isinstance(evidence, dict):
        return
    check = entry_of(outcome)
    fields = {name: check[name] for name in ("checked_at", "verdict", *by_place.OF_CHECK)}
    places = [
        place | fields | {"earlier": False, "check": check}
        if place.get("name") == outcome.result.location
        and (place.get("verdict") != Verdict.DOWN or place.get("earlier"))
        else place
        for place in evidence.get("places") or []
    ]
    store_evidence(incident, {**evidence, "places": places})


def store_evidence(incident: IncidentRow, evidence: Mapping[str, Any]) -> None:
    """Store the evidence of an incident, and the titles of the places that saw it, for lists."""
    incident.evidence = evidence
    # The values of severities equal those of verdicts.
    saw = [place for place in named_places(evidence) if place.get("verdict") == incident.severity]
    incident.seen_by = list(map(title_of, saw)) or None


@dataclass(frozen=True, slots=True)
class NewIncident:
    """An incident that opens now and began at ``since``. ``places``: the newest check of each
    place.
    """

    monitor: Any  # has ``id``, ``interval`` and ``updated_at``
    since: datetime
    places: Sequence[NewestCheck]


def of_incidents(
    session: AnySession, failing: FailingChecks, new_incidents: Sequence[NewIncident]
) -> dict[int, dict[str, Any]]:
    """The evidence for new incidents, by monitor. Parts that cannot be read are left out: an
    incident opens without them.
    """
    ids = [incident.monitor.id for incident in new_incidents]
    aside = {id: failing.aside(id) for id in ids}
    checks = {id: failing.pop(id) for id in ids}
    good, usual = _last_good(session, ids), _usual_before(session, new_incidents, checks)
    return {
        (id := incident.monitor.id): {
            "failing": checks[id][0] if checks[id] else None,
            "confirming": checks[id][1:],
            "last_good": _good_before(checks[id], good.get(id)),
            "usual": usual[id],
            "places": _places(incident, checks[id], aside[id]),
        }
        for incident in new_incidents
    }


def _last_good(session: AnySession, ids: Sequence[int]) -> dict[int, Any]:
    rows = session.execute(_LAST_GOOD, {"ids": ids}).all()
    if unreadable := [row.monitor_id for row in rows if isinstance(row.last_good, Unreadable)]:
        session.execute(
            update(_EVIDENCE).where(_EVIDENCE.c.monitor_id.in_(unreadable)).values(last_good=None)
        )
    return {row.monitor_id: readable(row.last_good) for row in rows}


def _good_before(checks: Sequence[Any], stored: Any) -> Any:
    """The last good check in the place of the first failing one, else in any place."""
    good = good_checks(stored)
    place = checks[0].get("location") if checks else None
    return next(
        (check for check in good if check.get("location") == place), good[0] if good else None
    )


def _places(
    incident: NewIncident, checks: Sequence[Any], aside: Sequence[Any]
) -> list[dict[str, Any]]:
    failing_in = {check.get("location") for check in checks}
    aside_by_place = {
        check["location"]: {key: value for key, value in check.items() if key != ASIDE}
        for check in aside
        if check.get("location") not in failing_in
    }
    # All places check at the same scheduled time, some a moment before the first that failed.
    begin = last_scheduled(incident.monitor.id, incident.monitor.interval, incident.since)
    return [
        by_place.place_of(place, begin, aside_by_place.get(place.name)) for place in incident.places
    ]


# --- The usual figures before an incident

USUAL_WITHIN = timedelta(days=1)  # before the failure
MAX_CHECKS = 50
MIN_CHECKS = 5  # with fewer checks, there are no usual figures
_RESULTS: Any = ResultRow.__table__
# Built once, because it runs for each incident that opens.
_GOOD_IN_ALL = (
    select(*(_RESULTS.c[name] for name in ("at", "response_time", *PHASES, "context_id")))
    .where(
        _RESULTS.c.monitor_id == bindparam("id"),
        _RESULTS.c.at >= bindparam("first"),
        _RESULTS.c.at < bindparam("since"),
        or_(*(_RESULTS.c.verdict == verdict for verdict in GOOD_VERDICTS)),
        _RESULTS.c.maintenance.is_(False),
    )
    .order_by(_RESULTS.c.at.desc())
    .limit(MAX_CHECKS)
)
_GOOD_IN_PLACE = _GOOD_IN_ALL.where(_RESULTS.c.location_id == bindparam("place"))


def _usual_before(
    session: AnySession, new_incidents: Sequence[NewIncident], checks: Mapping[int, Sequence[Any]]
) -> dict[int, dict[str, Any] | None]:
    """The usual figures by monitor: ``{"checked_at", "response_time", "timings", "addresses"}`` of
    the newest good checks before its failure; None without good checks. ``checked_at`` is the time
    of the last one. The checks are those of the place of its first failing check, or of all places
    if no failing check is stored.

    The figures are medians, so that a single slow check does not count, and null if there were few
    checks. Checks from before the monitor's last change are left out: they may be of another
    target.
    """
    good = {
        incident.monitor.id: _good(session, incident, checks[incident.monitor.id])
        for incident in new_incidents
    }
    contexts = {row.context_id for rows in good.values() for row in rows}
    addresses = {id: context.get("ip") for id, context in journal.contexts(contexts).items()}
    return {id: _usual(rows, addresses) for id, rows in good.items()}


def _good(session: AnySession, incident: NewIncident, checks: Sequence[Any]) -> Sequence[Any]:
    """Rows of ``_GOOD_IN_ALL``, the newest first."""
    monitor, name = incident.monitor, checks[0].get("location") if checks else None
    # The place of the first failing check: others may reach another address, or take longer.
    place = next((place.place_id for place in incident.places if place.name == name), None)
    parameters = {
        "id": monitor.id,
        "first": to_ms(max(incident.since - USUAL_WITHIN, monitor.updated_at)),
        "since": to_ms(incident.since),
        "place": place,
    }
    return session.execute(_GOOD_IN_ALL if place is None else _GOOD_IN_PLACE, parameters).all()


def _usual(rows: Sequence[Any], addresses: Mapping[int, Any]) -> dict[str, Any] | None:
    if not rows:
        return None
    enough = rows if len(rows) >= MIN_CHECKS else []
    addresses_used = {addresses.get(id) for id in {row.context_id for row in rows}}
    return {
        "checked_at": iso(from_ms(rows[0].at)),
        "response_time": _median([row.response_time for row in enough]),
        "timings": {name: _median([getattr(row, name) for row in enough]) for name in PHASES},
        "addresses": sorted(ip for ip in addresses_used if ip and isinstance(ip, str)),
    }


def _median(values: Sequence[int | None]) -> int | None:
    measured = [value for value in values if value is not None]
    return median_low(measured) if measured else None
