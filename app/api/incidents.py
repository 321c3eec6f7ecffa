"""/api/v1/incidents (API 4, decision 4)."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import record_answer
from app.api.operations import operation, register
from app.codec import json_of
from app.forms.incident import IncidentUpdateForm
from app.forms.queries import IncidentQueryForm
from app.i18n import _
from app.records.resources import INCIDENTS

register(
    INCIDENTS,
    query=IncidentQueryForm,
    refusals={"create": (409,)},
)


@operation(
    "PUT PATCH",
    "/incidents/{id}",
    "Update an incident",
    "Incident",
    form=IncidentUpdateForm,
    update=True,
    refusals=(409,),
)
def update(call: Call) -> Response:
    """Changes what is sent. An empty `ended_at` opens the incident again: 409 if its monitor has
    another open one, with its id in `open_incident_id`.
    """
    fields = call.changes(IncidentUpdateForm, call.store.incidents.get(call.id))
    by = _("API key %(name)s", name=call.key.name) if call.key else None
    return record_answer(json_of(call.store.incidents.update(call.id, fields, by=by)))
