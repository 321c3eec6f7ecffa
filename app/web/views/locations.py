"""Places that checks run from: list, new, edit, delete, and an agent's token, shown once."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Conflict
from app.forms.browser import BrowserForm, browser
from app.forms.queries import page_query
from app.forms.resources import LocationForm
from app.i18n import _
from app.records import (
    DEFAULT_PLACE,
    Carrier,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSortBy,
    Place,
    Role,
    Sort,
    needs_admin,
    words_of,
)
from app.stores import base, current_store
from app.web.frame import links, servers
from app.web.frame.editing import DeleteForm, Editing
from app.web.frame.repeated import shown_once
from app.web.frame.session import Answer, guarded, needs

blueprint = guarded("locations", __name__, "/settings/locations")

QUEUE_COMMANDS = (
    "WAKEFUL_LOCATION={name} wakeful checker --carrier queue",
    "wakeful prober --location {name}",
)

MAX_NAMED = 20  # of the monitors that use a place, which then cannot be deleted


@blueprint.get("")
def index() -> str:
    servers.refuse_bare()
    page = current_store().locations.list(page_query(links.pairs()))
    # The contacts that are notified of a silent place; with a single place, nobody is notified.
    notified = current_store().contacts.defaults() if page.total > 1 else None
    return render_template("locations/index.html", page=page, notified=notified)


class LocationEditing(Editing[Place, BrowserForm]):
    collection, template, subject = "locations", "locations/form.html", "place"

    def stand_in(self, id: int) -> Place:
        return Place(id, _("Place %(id)s", id=id))

    def bind(self) -> BrowserForm:
        place = self.record
        if place is None:
            first = Carrier.AGENT if current_user.is_admin else Carrier.LOCAL
            form = browser(LocationForm)(data={"carrier": first})
        else:
            form = browser(LocationForm)(record=place, without=("name",))
        carrier = place.carrier if place else None
        if not current_user.is_admin:
            form.carrier.leave_out(*(word for word in Carrier if needs_admin(word, carrier)))
        elif place is not None and place.name == DEFAULT_PLACE:
            form.carrier.leave_out(Carrier.AGENT)
        return form

    def question(self) -> Response | None:
        """Saving may end the token of an agent."""
        carrier = self.record.carrier if self.record else None
        ends_agent = Carrier.AGENT == carrier != self.form.carrier.data
        if not ends_agent or "sure" in request.form:
            return None
        return self.page(422, ends_agent=True)

    def save(self) -> Place:
        place, old = super().save(), self.record
        becomes_agent = old is not None and Carrier.AGENT == place.carrier != old.carrier
        return self.records.new_token(place.id) if becomes_agent else place

    def finish(self, record: Place) -> Response:
        return _show_command(record, url_for(".index")) if record.token else super().finish(record)

    def name_of(self, record: Place) -> str:
        return record.title

    def next_address(self, record: Place) -> str:
        """The page to show next: the commands that start the place, if its carrier is new."""
        is_new = self.record is None or self.record.carrier != record.carrier
        if record.carrier == Carrier.QUEUE and is_new:
            return url_for(".start", id=record.id)
        return url_for(".index")

    def context(self) -> dict[str, Any]:
        return {
            "queue": QUEUE_COMMANDS,
            "agent": _agent_command("YOUR_TOKEN"),
            "secrets": _secrets_of(self.record),
            "ends_agent": False,
        }


LocationEditing.register(blueprint)


@blueprint.get("/<int:id>/start")
@needs(Role.EDITOR)
def start(id: int) -> str | Response:
    """The commands that start the checks of a place with a queue."""
    place = current_store().locations.get(id)
    if place.carrier != Carrier.QUEUE:
        return redirect(url_for(".edit", id=id))
    return render_template("locations/queue.html", place=place, queue=QUEUE_COMMANDS)


@blueprint.route("/<int:id>/token", methods=["GET", "POST"])
@needs(Role.ADMIN)
def token(id: int) -> Answer:
    """A new token for an agent."""
    place = current_store().locations.get(id)
    if DeleteForm().validate_on_submit():
        return _show_command(current_store().locations.new_token(id), url_for(".edit", id=id))
    return render_template("locations/token.html", place=place, secrets=_secrets_of(place))


def _secrets_of(place: Place | None) -> Sequence[tuple[Monitor, str]] | None:
    """The monitors whose stored secrets the agent of a place gets, among the first hundred of the
    place, each with the names of the secrets; None for a place without an agent.
    """
    if place is None or place.carrier != Carrier.AGENT:
        return None
    query = MonitorQuery(
        location=place.name, per_page=100, sort_by=MonitorSortBy.NATURAL, sort=Sort.ASC
    )
    monitors = current_store().monitors.list(query).items
    named = [(monitor, words_of(monitor.sent_secrets)) for monitor in monitors]
    return [(monitor, words) for monitor, words in named if words]


def _show_command(place: Place, back: str) -> Response:
    """The commands that start the agent, with its token."""
    command = _agent_command(str(place.token))
    return shown_once("locations/started.html", back, place=place, command=command)


def _agent_command(token: str) -> str:
    """The command that starts an agent, with the address of the server that has the place."""
    remotes = servers.servers()
    address = links.absolute("") if remotes is None else str(remotes.chosen.address)
    server = f"WAKEFUL_SERVER={shlex.quote(address)}"
    return f"{server} WAKEFUL_AGENT_TOKEN={token} wakeful agent"


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(id: int) -> Answer:
    store = current_store()
    place, form = store.locations.get(id), DeleteForm()
    refused, users = _in_use(place)
    if not refused and form.validate_on_submit():
        try:
            store.locations.delete(id)
        except Conflict as fault:
            refused, users = str(fault), store.locations.users(id, MAX_NAMED)
        else:
            flash(_("%(name)s deleted.", name=place.title), "success")
            return redirect(url_for(".index"))
    page = render_template("locations/delete.html", place=place, refused=refused, users=users)
    return page, 422 if refused and form.is_submitted() else 200


def _in_use(place: Place) -> tuple[str, Sequence[MonitorRef]]:
    """Why a place cannot be deleted, and the first monitors that use it; empty if it can. It is
    read before the person is asked for a password.
    """
    if place.name == DEFAULT_PLACE:
        return _(base.DEFAULT_STAYS), ()
    if place.monitors:
        return _(base.PLACE_IN_USE), current_store().locations.users(place.id, MAX_NAMED)
    return "", ()
