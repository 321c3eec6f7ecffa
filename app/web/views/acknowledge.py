"""The page behind the link in an alert: one click, without an account."""

from __future__ import annotations

from flask import Blueprint, render_template
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access.acknowledgements import Acknowledgement, read_token
from app.errors import Denied, NotFound
from app.records import Incident
from app.stores import current_store
from app.web.forms import DeleteForm
from app.web.frame import servers

blueprint = Blueprint("acknowledge", __name__)

ELSEWHERE = "This dashboard sends no alerts. Open the link on the server that sent the message."
Answer = str | Response | tuple[str, int]


@blueprint.route("/acknowledge/<token>", methods=["GET", "POST"])
def page(token: str) -> Answer:
    if servers.servers() is not None:
        # With a key that two installations share, it would act on another server's incident.
        return render_template("acknowledge/void.html", sentence=ELSEWHERE), 404
    try:
        link = read_token(token)
        incident = current_store().incidents.get(link.incident_id)
    except (Denied, NotFound) as fault:
        gone = "The incident no longer exists." if isinstance(fault, NotFound) else str(fault)
        return render_template("acknowledge/void.html", sentence=gone), 404
    form = DeleteForm()
    if form.validate_on_submit() and _is_waiting(incident):
        by = _who(link)
        fields = {"acknowledged_at": current_store().now()}
        incident = current_store().incidents.update(incident.id, fields, by=by)
    return render_template(
        "acknowledge/page.html", incident=incident, waiting=_is_waiting(incident)
    )


def _is_waiting(incident: Incident) -> bool:
    return incident.acknowledged_at is None and incident.ended_at is None


def _who(link: Acknowledgement) -> str:
    email: str | None = current_user.person.email if current_user.is_authenticated else None
    return email or link.via
