"""/api/v1/incidents (interface.md 4.2, decisions.md 4)."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.incident import IncidentStoreForm, IncidentUpdateForm
from app.forms.queries import IncidentQueryForm
from app.i18n import _

INCIDENTS = "/incidents"
INCIDENT = "/incidents/{id}"


@operation("GET", INCIDENTS, "List incidents", "Incident", paged=True, query=IncidentQueryForm)
def list_(call: Call) -> Response:
    page = call.store.incidents.list(binding.incident_query(call.query))
    return paged(page, json_of, call.query)


@operation("POST", INCIDENTS, "Create an incident", "Incident", status=201, form=IncidentStoreForm)
def store(call: Call) -> Response:
    return created(json_of(call.store.incidents.create(call.new(IncidentStoreForm))))


@operation("GET", INCIDENT, "Show an incident", "Incident")
def show(call: Call) -> Response:
    record = call.store.incidents.get(call.id)
    call.without_input()
    return one(json_of(record))


@operation(
    "PUT PATCH", INCIDENT, "Update an incident", "Incident", form=IncidentUpdateForm, update=True
)
def update(call: Call) -> Response:
    fields = call.changes(IncidentUpdateForm, call.store.incidents.get(call.id))
    by = _("API key %(name)s", name=call.key.name) if call.key else None
    return one(json_of(call.store.incidents.update(call.id, fields, by=by)))


@operation("DELETE", INCIDENT, "Delete an incident", "Deleted")
def delete(call: Call) -> Response:
    call.store.incidents.get(call.id)
    call.without_input()
    call.store.incidents.delete(call.id)
    return deleted("incident", call.id)
