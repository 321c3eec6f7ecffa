"""Places that checks run from: list, new, edit, delete, and an agent's token, shown once."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from flask import Blueprint, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid, WakefulError
from app.forms import binding
from app.forms.browser import BrowserLocationForm
from app.i18n import _
from app.records import (
    DEFAULT_LOCATION,
    Carrier,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSortBy,
    Place,
    Role,
    needs_admin,
    words_of,
)
from app.stores import base, current_store
from app.web.forms import DeleteForm, not_read, not_saved, saved, show_errors
from app.web.frame import links, servers
from app.web.frame.repeated import shown_once
from app.web.frame.session import SAFE_METHODS, guarded, needs
from app.web.frame.store_errors import NOT_TAKEN

blueprint = guarded(Blueprint("locations", __name__, url_prefix="/settings/locations"))

QUEUE_COMMANDS = (
    "WAKEFUL_LOCATION={name} wakeful checker --carrier queue",
    "wakeful prober --location {name}",
)

Answer = str | Response | tuple[str, int]

NAMED = 20  # of the monitors that keep a place from being deleted


@blueprint.get("")
def index() -> str:
    servers.refuse_bare()
    found = current_store().locations.list(binding.page_query(links.pairs()))
    return render_template(
        "locations/index.html", page=found, link=links.page_link, told=_told(found.total)
    )


def _told(places: int) -> Sequence[str] | None:
    """The contacts that learn of a silent place; None where nobody asks or a store cannot tell."""
    if places < 2:
        return None
    return current_store().contacts.defaults()


@blueprint.route("/new", methods=["GET", "POST"])
def new() -> Answer:
    if request.method in SAFE_METHODS:
        servers.refuse_bare()
    first = Carrier.AGENT if current_user.is_admin else Carrier.LOCAL
    return _edited(BrowserLocationForm(data={"carrier": first}), None)


@blueprint.route("/<int:id>/edit", methods=["GET", "POST"])
def edit(id: int) -> Answer:
    try:
        place = current_store().locations.get(id)
    except NOT_TAKEN as fault:
        return _unread(fault, id)
    return _edited(BrowserLocationForm(record=place, without=("name",)), place)


def _unread(fault: WakefulError, id: int) -> Answer:
    """What was typed into the form of a place that cannot be read now."""
    if request.method in SAFE_METHODS:
        raise fault
    place = Place(id, _("Place %(id)s", id=id))
    form = BrowserLocationForm(record=place, without=("name",))
    return _form_page(form, place, not_read(form, fault))


def _edited(form: BrowserLocationForm, place: Place | None) -> Answer:
    before = place.carrier if place else None
    if not current_user.is_admin:
        form.carrier.leave_out(*(word for word in Carrier if needs_admin(word, before)))
    elif place is not None and place.name == DEFAULT_LOCATION:
        form.carrier.leave_out(Carrier.AGENT)
    if form.validate_on_submit():
        try:
            if place is not None and _ends_agent(form, place):
                return _form_page(form, place, 422, ends_agent=True)
            record = _save(form, place)
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            return _form_page(form, place, not_saved(form, fault))
        else:
            if record.token:
                return _started(record, url_for(".index"))
            saved(form, _("%(name)s saved.", name=record.title))
            return redirect(_next(record, place))
    return _form_page(form, place, 422 if form.is_submitted() else 200)


def _next(record: Place, before: Place | None) -> str:
    """After a place was saved: how to start it, where that is new and takes several commands."""
    is_new = before is None or before.carrier != record.carrier
    if record.carrier == Carrier.QUEUE and is_new:
        return url_for(".start", id=record.id)
    return url_for(".index")


@blueprint.get("/<int:id>/start")
@needs(Role.EDITOR)
def start(id: int) -> str | Response:
    """How to start the checks of a place that get there over a queue."""
    place = current_store().locations.get(id)
    if place.carrier != Carrier.QUEUE:
        return redirect(url_for(".edit", id=id))
    return render_template("locations/queue.html", place=place, queue=QUEUE_COMMANDS)


def _save(form: BrowserLocationForm, place: Place | None) -> Place:
    locations = current_store().locations
    if place is None:
        return locations.create(form.fields())
    record = locations.update(place.id, form.fields())
    becomes_agent = Carrier.AGENT == record.carrier != place.carrier
    return locations.new_token(place.id) if becomes_agent else record


def _ends_agent(form: BrowserLocationForm, place: Place) -> bool:
    """Whether saving ends the token of an agent, and the person was not asked yet."""
    chosen = form.carrier.data
    return Carrier.AGENT == place.carrier != chosen and "sure" not in request.form


def _form_page(
    form: BrowserLocationForm, place: Place | None, status: int, *, ends_agent: bool = False
) -> Answer:
    page = render_template(
        "locations/form.html",
        form=form,
        place=place,
        ends_agent=ends_agent,
        queue=QUEUE_COMMANDS,
        agent=_agent_command("YOUR_TOKEN"),
        secrets=_secrets_of(place),
    )
    return page, status


@blueprint.route("/<int:id>/token", methods=["GET", "POST"])
@needs(Role.ADMIN)
def token(id: int) -> Answer:
    """A new token for an agent."""
    place = current_store().locations.get(id)
    if DeleteForm().validate_on_submit():
        # Sent again, as by a reload, it would end the token that was just copied.
        return _started(current_store().locations.new_token(id), url_for(".edit", id=id))
    return render_template("locations/token.html", place=place, secrets=_secrets_of(place))


def _secrets_of(place: Place | None) -> Sequence[tuple[Monitor, str]] | None:
    """The monitors whose stored secrets an agent gets, the first hundred of its place, each with
    the names of these secrets; None for a place without an agent.
    """
    if place is None or place.carrier != Carrier.AGENT:
        return None
    query = MonitorQuery(location=place.name, per_page=100, sort_by=MonitorSortBy.NAME)
    monitors = current_store().monitors.list(query).items
    named = [(monitor, words_of(monitor.sent_secrets)) for monitor in monitors]
    return [(monitor, words) for monitor, words in named if words]


def _started(place: Place, back: str) -> Response:
    """How to start the agent, with its token."""
    command = _agent_command(str(place.token))
    return shown_once("locations/started.html", back, place=place, command=command)


def _agent_command(token: str) -> str:
    server = f"WAKEFUL_SERVER={shlex.quote(_server())}"
    return f"{server} WAKEFUL_AGENT_TOKEN={token} wakeful agent"


def _server() -> str:
    """Where an agent reaches the server that the place is of."""
    remotes = servers.servers()
    return links.own("") if remotes is None else str(remotes.chosen.address)


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(id: int) -> Answer:
    store = current_store()
    place, form = store.locations.get(id), DeleteForm()
    refused, users = _in_use(place)
    if not refused and form.validate_on_submit():
        try:
            store.locations.delete(id)
        except Conflict as fault:
            refused, users = str(fault), store.locations.users(id, NAMED)
        else:
            saved(form, _("%(name)s deleted.", name=place.title))
            return redirect(url_for(".index"))
    page = render_template(
        "locations/delete.html", form=form, place=place, refused=refused, users=users
    )
    return page, 422 if refused and form.is_submitted() else 200


def _in_use(place: Place) -> tuple[str, Sequence[MonitorRef]]:
    """Why a place cannot be deleted, and the first of the monitors that keep it. Known before the
    person is asked, and types a password for it.
    """
    if place.name == DEFAULT_LOCATION:
        return _(base.DEFAULT_STAYS), ()
    if place.monitors:
        return _(base.PLACE_IN_USE), current_store().locations.users(place.id, NAMED)
    return "", ()
