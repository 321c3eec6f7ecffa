"""The page of the link in an alert, which acknowledges with one click and without an account."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Blueprint, current_app, make_response, render_template, request
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access import actors
from app.access.tokens import Acknowledgement, read_acknowledgement
from app.cookies import cookie_name, is_secure
from app.errors import Denied, NotFound
from app.forms.browser import BrowserForm
from app.forms.fields import Text
from app.i18n import N_, _
from app.records import MAX_VISITOR_NAME, Actor, Incident
from app.stores import current_store
from app.web.frame import servers
from app.web.frame.session import Answer

blueprint = Blueprint("acknowledge", __name__)

ELSEWHERE = N_("This dashboard sends no alerts. Open the link on the server that sent the message.")
ALL = "all"  # the button for all incidents of the message
NAME = "wakeful_name"  # the cookie
NAME_SECONDS = 365 * 24 * 3600


class AcknowledgeForm(BrowserForm):
    name = Text(
        N_("Your name (optional)"),
        limit=MAX_VISITOR_NAME,
        description=N_("Others see who acknowledged it. This device remembers the name."),
        render_kw={"autocomplete": "name"},
    )


@blueprint.route("/acknowledge/<token>", methods=["GET", "POST"])
def page(token: str) -> Answer:
    if servers.servers() is not None:
        # Two installations may share a secret key: the link must not act on another's incident.
        return render_template("acknowledge/void.html", sentence=_(ELSEWHERE)), 404
    try:
        link = read_acknowledgement(token)
        incident = current_store().incidents.get(link.incident_id)
    except (Denied, NotFound) as fault:
        gone = _("The incident no longer exists.") if isinstance(fault, NotFound) else str(fault)
        return render_template("acknowledge/void.html", sentence=gone), 404
    form = AcknowledgeForm(data={"name": request.cookies.get(_cookie(), "")[:MAX_VISITOR_NAME]})
    in_message = _waiting_in_message(link)
    acknowledges = bool(_is_waiting(incident) or in_message) and form.validate_on_submit()
    if acknowledges:
        by = _visitor_name(link, form.name.data)
        incidents = in_message if ALL in request.form else [incident]
        with actors.acting_as(_actor(by)):
            current_store().incidents.acknowledge([each.id for each in incidents], by=by)
        incident, in_message = current_store().incidents.get(incident.id), _waiting_in_message(link)
    page = render_template(
        "acknowledge/page.html",
        incident=incident,
        form=form,
        notes=current_store().monitors.notes(incident.monitor_id),
        waiting=_is_waiting(incident),
        in_message=in_message if any(each.id != incident.id for each in in_message) else (),
        logged_in=current_user.is_authenticated,
    )
    response = make_response(page, 422 if form.errors else 200)
    if acknowledges:
        _remember(response, form.name.data)
    return response


def _waiting_in_message(link: Acknowledgement) -> Sequence[Incident]:
    """The open, unacknowledged incidents of the link's message, if it is about several."""
    if link.delivery_id is None:
        return ()
    return current_store().incidents.unacknowledged_in(link.delivery_id)


def _is_waiting(incident: Incident) -> bool:
    return incident.acknowledged_at is None and incident.ended_at is None


def _visitor_name(link: Acknowledgement, name: str | None) -> str:
    """The name for others: the typed one, the logged-in person's, or the channel of the link."""
    if name and name.strip():
        # Without the email address, which only its owner may know.
        via = _("a link in an email") if "@" in link.via else link.via
        return _("%(name)s, from %(link)s", name=name.strip(), link=via)
    label: str | None = current_user.person.label if current_user.is_authenticated else None
    return label or _("Somebody, from %(link)s", link=link.via)


def _actor(by: str) -> Actor:
    """The logged-in person, or an unknown one who has the link."""
    if current_user.is_authenticated:
        return actors.by_person(current_user.person, request.remote_addr)
    return actors.by_link(by, request.remote_addr)


def _cookie() -> str:
    return cookie_name(current_app, request, NAME)


def _remember(response: Response, name: str | None) -> None:
    """Store the name in a cookie, for the next incident."""
    root = request.environ.get("SCRIPT_NAME", "")
    response.set_cookie(
        _cookie(),
        name or "",
        max_age=NAME_SECONDS if name else 0,
        path=f"{root}/acknowledge",
        secure=is_secure(current_app, request),
        httponly=True,
        samesite="Lax",
    )
