"""/api/v1/incidents (API 4, decision 4)."""

from __future__ import annotations

from flask import Response

from app.api.envelope import answer_rows, record_answer
from app.api.operations import Call, operation, register
from app.codec import json_of
from app.errors import WakefulError
from app.forms.incident import AcknowledgeAllForm, IncidentUpdateForm
from app.forms.queries import IncidentQueryForm
from app.i18n import _
from app.records.resources import INCIDENTS

register(INCIDENTS, query=IncidentQueryForm, refusals={"create": (409,)})


@operation(
    "PUT PATCH",
    "/incidents/{id}",
    "Update an incident",
    "Incident",
    form=IncidentUpdateForm,
    update=True,
    refusals=(409,),
    level=0,
)
def update(call: Call) -> Response:
    """Changes what is sent. An empty `ended_at` opens the incident again: 409 if its monitor has
    another open one, with its id in `open_incident_id`.
    """
    fields = call.changes(IncidentUpdateForm, call.store.incidents.get(call.id))
    return record_answer(json_of(call.store.incidents.update(call.id, fields, by=_author(call))))


@operation(
    "POST",
    "/incidents/acknowledge",
    "Acknowledge many incidents",
    "Incident",
    form=AcknowledgeAllForm,
    several=True,
)
def acknowledge(call: Call) -> Response:
    """Up to 500, in one transaction, so people get one message. `data` has the answer for each, in
    their order: the incident, which is unchanged if it was acknowledged before, 404 for an unknown
    one, or 409 for one that has ended; then the status is 207.
    """
    ids = call.new(AcknowledgeAllForm)["ids"]
    answers = call.store.incidents.acknowledge(ids, by=_author(call))
    return answer_rows(
        [answer if isinstance(answer, WakefulError) else json_of(answer) for answer in answers], 200
    )


def _author(call: Call) -> str | None:
    return _("API key %(name)s", name=call.key.name) if call.key else None
