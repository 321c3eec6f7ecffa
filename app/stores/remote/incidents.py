"""Incidents of another server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from app.codec import MalformedData, foreign, reader
from app.codec.evidence import phases, read_evidence
from app.codec.values import each, object_, text, texts, time_text, whole, word
from app.errors import Conflict, Invalid, NotFound, WakefulError
from app.i18n import _
from app.records import (
    Incident,
    IncidentQuery,
    IncidentSearchBy,
    IncidentStatus,
    MonitorRef,
    Page,
    Verdict,
)
from app.rules import brackets
from app.rules.what_changed import changes_of
from app.stores import base
from app.stores.base import HAS_ENDED, Extent, Fields
from app.stores.remote import envelope
from app.stores.remote.collection import RemoteCollection
from app.stores.remote.part import after_write, parameters


class RemoteIncidents(RemoteCollection[Incident, IncidentQuery], base.Incidents):
    in_base_api = True

    def read(self, data: Any) -> Incident:
        return _read(data, self.store.now())

    def parameters(self, query: IncidentQuery) -> brackets.Pairs:
        # The base API does not have the default value, so it is not sent.
        default = ("search_by",) if query.search_by == IncidentSearchBy.URL else ()
        return parameters(query, leave=("brief", "counted", *default))

    def list(self, query: IncidentQuery) -> Page[Incident]:
        """Incidents that do not match are left out: some servers ignore filters, and a resolved
        incident would be shown as open.
        """
        page = super().list(query)
        items = [incident for incident in page.items if _is_asked_for(incident, query)]
        return replace(page, items=items, total=page.total - len(page.items) + len(items))

    def select_items(self, items: Sequence[Any], asked: Mapping[str, str]) -> Sequence[Any]:
        id, status = asked.get("monitor_id"), asked.get("status")
        query = IncidentQuery(
            monitor_id=int(id) if id else None, status=IncidentStatus(status) if status else None
        )
        sort_by = "started_at" if asked.get("sort_by") == "started_at" else "ended_at"
        understood, malformed = envelope.read_entries(items, self.read)
        understood = [entry for entry in understood if _is_asked_for(entry[0], query)]
        understood.sort(
            key=lambda entry: getattr(entry[0], sort_by) or datetime.max.replace(tzinfo=UTC),
            reverse=asked.get("sort") != "asc",
        )
        entries = [data for _incident, data in understood]
        return [*entries, *(data for data, _fault in malformed)]

    def newest(self, fields: Fields) -> int | None:
        started = fields["started_at"].replace(microsecond=0)
        query = IncidentQuery(monitor_id=fields["monitor_id"], sort_by="started_at")
        ids = [incident.id for incident in self.list(query).items if incident.started_at == started]
        return max(ids, default=None)

    def update(
        self, id: int, fields: Fields, *, by: str | None = None, expected: Fields | None = None
    ) -> Incident:
        # The base API has no ``by`` and ``expected``: the server knows whose key it is.
        return super().update(id, fields)

    def acknowledge(
        self, ids: Sequence[int], *, by: str | None = None
    ) -> Sequence[Incident | WakefulError]:
        if self.me.extent == Extent.BARE:
            return [self._acknowledge(id) for id in ids]
        answer = self._write("POST", f"{self.path}/acknowledge", {"ids": tuple(ids)})
        with after_write():
            return self._content(answer, partial(self._answers, ids))

    def _acknowledge(self, id: int) -> Incident | WakefulError:
        """Acknowledge an incident by an update: the base API has no other way."""
        try:
            incident = self.get(id)
            if not incident.is_open:
                return Conflict(_(HAS_ENDED))
            if incident.acknowledged_at is not None:
                return incident
            return self.update(id, {"acknowledged_at": self.store.now()})
        except (NotFound, Conflict, Invalid) as fault:
            return fault

    def _answers(self, ids: Sequence[int], data: Any) -> Sequence[Incident | WakefulError]:
        if not isinstance(data, list) or len(data) != len(ids):
            raise MalformedData("incidents")
        return [self._answer(id, row) for id, row in zip(ids, data, strict=True)]

    def _answer(self, id: int, row: Any) -> Incident | WakefulError:
        row = object_(row, "incidents")
        if "data" in row:
            return self.read(row["data"])
        return NotFound("incident", id) if row.get("status") == 404 else Conflict(_(HAS_ENDED))

    def complete(self, incidents: Sequence[Incident]) -> Sequence[Incident]:
        """Add the names of the monitors, which some servers leave out."""
        missing = [incident.monitor_id for incident in incidents if not incident.monitor]
        nameless = {id: MonitorRef(id, _("Monitor %(id)s", id=id), "") for id in missing}
        refs = self.store.monitors.refs(ids=missing) if missing else ()
        monitors = nameless | {ref.id: ref for ref in refs}
        return [
            incident
            if incident.monitor
            else replace(incident, monitor=monitors[incident.monitor_id])
            for incident in incidents
        ]


def _is_asked_for(incident: Incident, query: IncidentQuery) -> bool:
    any_status = query.status is None or "status" in incident.missing
    return (
        query.monitor_id in (None, incident.monitor_id)
        and query.severity in (None, incident.severity)
        and (any_status or incident.status == query.status)
    )


def _read(data: Any, now: datetime) -> Incident:
    """The incident in this JSON. ``now``: the server's time, for the duration of an open incident
    if the server does not send it.
    """
    fields, gaps = foreign.incident(data)
    read = _incident({name: value for name, value in fields.items() if name != "status"})
    read = replace(
        read,
        status=fields["status"] or _status(read),
        changes=changes_of(read.evidence),
        missing=tuple(gaps.missing),
        misread=tuple(gaps.misread),
    )
    if read.duration is None and (read.ended_at is not None or read.is_open):
        so_far = int(((read.ended_at or now) - read.started_at).total_seconds())
        read = replace(read, duration=max(0, so_far))
    return read


def _status(incident: Incident) -> IncidentStatus:
    if incident.ended_at is not None:
        return IncidentStatus.RESOLVED
    if incident.acknowledged_at is not None:
        return IncidentStatus.ACKNOWLEDGED
    return IncidentStatus.UNRESOLVED


# --- Evidence: read strictly, so that pages need no checks ----------------------------------------


def evidence(data: Any) -> Mapping[str, Any] | None:
    """The checks around an incident. A server may send only the failing check in their place."""
    if not isinstance(data, Mapping):
        return None
    if not {"failing", "last_good", "confirming"} & data.keys():
        return _check(data)
    return {
        "failing": _check(data.get("failing")),
        "last_good": _check(data.get("last_good")),
        "confirming": list(each(data.get("confirming"), _check)),
        "usual": _usual(data.get("usual")),
        "places": list(each(data.get("places"), _place)),
    }


def _place(data: Any) -> dict[str, Any] | None:
    if not isinstance(data, Mapping):
        return None
    return {
        **{name: text(data.get(name)) for name in ("name", "label", "cause_code", "cause")},
        "verdict": str(word(Verdict, data.get("verdict")) or Verdict.UNKNOWN),
        **_measured(data),
        "earlier": data.get("earlier") is True,
        "check": _check(data.get("check")),
    }


def _usual(data: Any) -> dict[str, Any] | None:
    """Figures over the good checks before the failure."""
    if not isinstance(data, Mapping):
        return None
    return {
        "checked_at": time_text(data.get("checked_at")),
        "response_time": whole(data.get("response_time")),
        "timings": phases(data.get("timings")),
        "addresses": list(texts(data.get("addresses"))),
    }


def _check(data: Any) -> dict[str, Any] | None:
    if not isinstance(data, Mapping):
        return None
    words = ("verdict", "cause_code", "cause", "location")
    result = {
        **{name: text(data.get(name)) for name in words},
        **_measured(data),
        "warnings": list(texts(data.get("warnings"))),
    }
    fields = {name: value for name, value in result.items() if value not in (None, [])}
    return fields | read_evidence(data)


def _measured(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "checked_at": time_text(data.get("checked_at")),
        "status_code": whole(data.get("status_code")),
        "response_time": whole(data.get("response_time")),
    }


_incident = reader(Incident, "incident", evidence=evidence)
