"""Monitors: list, show, new, edit, clone, delete, pause, check now, test before saving."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import (
    Blueprint,
    current_app,
    flash,
    redirect,
    render_template,
    request,
    session,
    url_for,
)
from werkzeug.wrappers import Response

from app.checks.kinds import kind_of
from app.errors import Conflict, Invalid, Throttled, Unavailable, WakefulError
from app.forms import binding
from app.forms.browser import BrowserCheckForm, BrowserForm, BrowserMonitorForm
from app.forms.lists import PairList
from app.forms.monitor import OWN_FIELDS, MonitorForm, interval_length, name_of
from app.forms.schema import labels_of
from app.i18n import N_, _
from app.records import (
    DEFAULT_ACCEPTED_STATUSES,
    DEFAULT_CONFIRMATIONS,
    DEFAULT_SSL_ALERT_DAYS,
    DEFAULT_TIMEOUT,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSortBy,
    Outcome,
    Pair,
    Sort,
)
from app.stores import Extent, current_store, same_url
from app.web.forms import (
    BulkForm,
    DeleteForm,
    is_kept,
    not_read,
    not_saved,
    saved,
    show_errors,
)
from app.web.frame import choices, fragments, links, servers
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.frame.store_errors import NOT_TAKEN
from app.web.shown import (
    channel_setup,
    checked,
    expiries,
    form_sums,
    monitor_rows,
    planned,
    statistics,
    times,
)
from app.web.shown.places import title as place_title
from app.web.views import channel_tests, shared_channels

blueprint = guarded(Blueprint("monitors", __name__, url_prefix="/monitors"))

Answer = str | Response | tuple[str, int]

# Parameters of the list that are ours, not interface.md's.
OWN_FILTERS = ("state", "tag", "location")
BULK_TYPED = "bulk"  # in the session: what the bar below the list said when it was refused
DEFAULT_INTERVAL = 60
LOCATIONS, LOCATION_RULE, CONTACTS = (
    "locations",
    "location_rule",
    "contacts",
)  # the fields of these names
CHECKED_ELSEWHERE = N_(
    "The check was made from %(place)s, which is not one of this monitor's places. So it is "
    "listed, and changes nothing else."
)
DELETED = N_("%(name)s deleted.")
DELETED_WITH_ALL = N_("%(name)s deleted, with its incidents and results.")
NOT_PAUSED = N_("The server took the request, and %(name)s is still not paused.")
NOT_RESUMED = N_("The server took the request, and %(name)s is still paused.")
LIST_UPTIME = ("30d",)  # the range that the list shows
# The direction that a click on a column's head begins with: the worst, the slowest, and A to Z.
FIRST_DIRECTION = {
    MonitorSortBy.STATE: Sort.DESC,
    MonitorSortBy.NAME: Sort.ASC,
    MonitorSortBy.RESPONSE_TIME: Sort.DESC,
}
# What a new form starts with, besides what is empty.
STARTS_WITH = {
    "interval": DEFAULT_INTERVAL,
    "ssl_alert_days": DEFAULT_SSL_ALERT_DAYS,
    "timeout": DEFAULT_TIMEOUT,
    "accepted_statuses": DEFAULT_ACCEPTED_STATUSES,
    "confirmations": DEFAULT_CONFIRMATIONS,
    "follow_redirects": True,
    "verify_tls": True,
}


@blueprint.get("")
def index() -> Response:
    store, query = current_store(), list_query()
    counters = None if servers.is_bare() else store.monitors.overview(query)
    shown = replace(query, uptime=LIST_UPTIME, hours=True, counts=counters, brief=True)
    page = store.monitors.list(shown)
    typed = {} if fragments.asked() else session.pop(BULK_TYPED, None) or {}
    return fragments.page(
        "monitors/index.html",
        "monitors/_parts.html",
        page=page,
        rows=monitor_rows.of(page.items),
        query=query,
        counters=counters,
        order=None if servers.is_bare() else links.order(query, FIRST_DIRECTION),
        here=links.here,
        link=links.page_link,
        faults=typed.pop("faults", ()),
        bulk=bulk_form(formdata=None, data=typed),
    )


def bulk_form(**kwargs: Any) -> BulkForm:
    """What can be done with the ticked ones, on this server."""
    form = BulkForm(**kwargs)
    if servers.is_bare():
        form.leave_out_tags()
    if not servers.is_whole():
        form.leave_out_maintenance()
    form.contacts = channel_setup.contact_choices(current_store().contacts.names())
    if not form.contacts:
        form.leave_out_contacts()
    form.places = current_store().monitors.locations()
    if len(form.places) < 2:
        form.leave_out_places()
    return form


def list_query(args: links.Args | None = None) -> MonitorQuery:
    """The list's parameters from the address, or from ``args``: the worst first, unless they say
    otherwise. Raises Invalid for one that is misspelt.
    """
    without = OWN_FILTERS if servers.is_bare() else ()
    asked = links.pairs(*without, args=args)
    query = binding.monitor_query(asked)
    by_itself = not any(name == "sort_by" and value for name, value in asked)
    if by_itself and not servers.is_bare():
        return replace(query, sort_by=MonitorSortBy.STATE)
    return query


@blueprint.get("/<int:id>")
def show(id: int) -> Response:
    monitor = current_store().monitors.get(id)
    seen = statistics.of(monitor)
    return fragments.page(
        "monitors/show.html",
        "monitors/_shown.html",
        monitor=monitor,
        here=links.here,
        tried=channel_tests.shown(id),
        chain_of=statistics.chain,  # called where it is shown: a refreshed part has no chain
        expiries=expiries,
        windows_of=planned.for_monitor,  # called where it is shown, as the chain
        missing=_labels(monitor.missing),
        misread=_labels(monitor.misread),
        **seen,
    )


def _labels(names: Collection[str]) -> list[str]:
    """What people call these fields."""
    labels = {"paused": N_("Paused"), "status": N_("State"), **labels_of(MonitorForm)}
    return [_(label) for name, label in labels.items() if name in names]


@blueprint.route("/new", methods=["GET", "POST"])
def new() -> Answer:
    form = monitor_form()
    if request.method == "GET" and request.args.get("url"):
        form.url.data = request.args["url"]
        form.name.data = name_of(request.args["url"])
    return _edited(form, None)


@blueprint.route("/<int:id>/clone", methods=["GET", "POST"])
def clone(id: int) -> Answer:
    try:
        original = current_store().monitors.get(id)
    except NOT_TAKEN as fault:
        return _unread(fault, id, clone=True)
    form = monitor_form(original, clone=True)
    if request.method == "GET":
        form.name.data = _("%(name)s (copy)", name=original.name)[: form.name.most]
    return _edited(form, original)


@blueprint.route("/<int:id>/edit", methods=["GET", "POST"])
def edit(id: int) -> Answer:
    try:
        monitor = current_store().monitors.get(id)
    except NOT_TAKEN as fault:
        return _unread(fault, id)
    return _edited(monitor_form(monitor), monitor)


def _unread(fault: WakefulError, id: int, *, clone: bool = False) -> Answer:
    """What was typed into the form of a monitor that cannot be read now."""
    if request.method in SAFE_METHODS:
        raise fault
    if request.headers.get("X-Fragment") == "test":
        return render_template("monitors/_test.html", faults=[], failure=str(fault), tested=True)
    monitor = Monitor(
        id,
        request.form.get("name") or _("Monitor %(id)s", id=id),
        "",
        DEFAULT_INTERVAL,
        request_auth_password_set="remove_password" in request.form,
    )
    form = monitor_form(monitor, clone=clone)
    return _form_page(form, monitor, status=not_read(form, fault))


def monitor_form(record: Monitor | None = None, *, clone: bool = False) -> BrowserMonitorForm:
    data = None if record else _starts_with()
    form = BrowserMonitorForm(record=record, clone=clone, data=data, **_surroundings())
    if servers.extent() == Extent.BARE:
        form.leave_out_auto()
    return _shaped(form)


def _starts_with() -> dict[str, Any]:
    contacts = current_store().contacts.defaults() if request.method in SAFE_METHODS else ()
    return STARTS_WITH | {"quiet_zone": times.zone().key, CONTACTS: tuple(contacts)}


def _surroundings() -> dict[str, Any]:
    store = current_store()
    settings = current_app.extensions["wakeful.settings"]
    places = _places()
    return {
        "zone": times.zone(),
        "now": store.now(),
        "telegram_token_set": bool(settings.telegram_token),
        "without": _not_shown(places),
        "places": places,
        "bare": servers.servers() is not None and not _own_fields_shown(),
    }


def _places() -> Mapping[str, str]:
    """The places to choose from. Without an answer, those that were chosen: what was typed must not
    be lost because the server has died meanwhile.
    """
    try:
        return current_store().monitors.locations()
    except NOT_TAKEN:
        if request.method in SAFE_METHODS:
            raise
        return {}


def _not_shown(places: Collection[str]) -> Sequence[str]:
    """The fields that this form does not have. Where there is one place, there is no choice; a
    page that was opened then must not be read as "none chosen".
    """
    shown: dict[str, bool]
    if request.method in SAFE_METHODS:
        several = len(places) > 1
        shown = {
            LOCATIONS: several,
            LOCATION_RULE: several,
            CONTACTS: servers.is_whole(),
        }
    else:
        shown = {name: name in request.form for name in (LOCATIONS, LOCATION_RULE, CONTACTS)}
    without = tuple(name for name, is_shown in shown.items() if not is_shown)
    return without if _own_fields_shown() else (*OWN_FIELDS, *without)


def _own_fields_shown() -> bool:
    """Whether the form has the fields that are not interface.md's. One that was sent tells itself:
    the server may have been updated meanwhile, or not answer now, and a box that nobody was shown
    must not be read as unticked.
    """
    if request.method in SAFE_METHODS:
        return not servers.is_bare()
    return any(name in request.form for name in OWN_FIELDS)


def _shaped(form: BrowserMonitorForm) -> BrowserMonitorForm:
    """Label and choice read as one: "Check every", "3 minutes"."""
    form.interval.label.text = _("Check every")
    form.interval.choices = [
        (value, interval_length(int(value)) if value.isdecimal() else label)
        for value, label in form.interval.choices
    ]
    return form


def _edited(form: BrowserMonitorForm, monitor: Monitor | None) -> Answer:
    """One round of the form: a row more or less, a test, or the save."""
    if form.change_rows():
        return _form_page(form, monitor)
    if form.is_submitted() and channel_tests.BUTTON in request.form:
        return _tried(form, monitor)
    if form.is_submitted() and "test" in request.form:
        return _tested(form, monitor)
    if form.validate_on_submit():
        try:
            if twins := _twins(form, monitor):
                return _form_page(form, monitor, twins=twins)
            record = _save(form, monitor)
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            return _form_page(form, monitor, status=not_saved(form, fault))
        else:
            saved(form, _("%(name)s saved.", name=record.name), record)
            shared_channels.offer(record, () if monitor is None or form.clone else monitor.alerts)
            return redirect(url_for(".show", id=record.id))
    return _form_page(form, monitor, status=422 if form.is_submitted() else 200)


def _twins(form: BrowserMonitorForm, monitor: Monitor | None) -> Sequence[MonitorRef]:
    """Other monitors that check the URL already, unless the person has seen that, or the monitor
    that is edited or cloned has this URL too.
    """
    url = form.url.data or ""
    seen = [request.form.get("anyway", ""), monitor.url if monitor else ""]
    if any(same_url.is_same(url, one) for one in seen):
        return ()
    return current_store().monitors.watching(url)


def _save(form: BrowserMonitorForm, monitor: Monitor | None) -> Monitor:
    store = current_store()
    if monitor is not None and not form.clone:
        return store.monitors.update(monitor.id, form.fields())
    source = monitor.id if monitor else None
    return store.monitors.create(form.fields(), secrets_from=source)


def _form_page(
    form: BrowserMonitorForm, monitor: Monitor | None, *, status: int = 200, **more: Any
) -> Answer:
    """``more``: what the page says besides the form, such as the outcome of a test."""
    if CONTACTS in form:
        names = choices.contacts(form, form.contacts.data)
        form.contacts.choices = channel_setup.contact_choices(names, form)
    lacking = channel_setup.lacking(form)
    page = render_template(
        "monitors/form.html", form=form, monitor=monitor, sums=form_sums, lacking=lacking, **more
    )
    # What was typed comes back, a password too: nothing may keep a copy of that.
    headers = {"Cache-Control": "no-store"} if form.is_submitted() else {}
    return Response(page, status, headers, mimetype="text/html")


def _tried(form: BrowserMonitorForm, monitor: Monitor | None) -> Answer:
    """Send a test alert to the channels as they are typed, saved or not."""
    editing = monitor is not None and not form.clone
    tried = channel_tests.rows(form.alerts, monitor.id if monitor and editing else None)
    faulty = bool(form.alerts.errors) or any(
        row.key_errors or row.value_errors for row in form.alerts.rows
    )
    return _form_page(form, monitor, status=422 if faulty else 200, tried=tried)


def _tested(form: BrowserMonitorForm, monitor: Monitor | None) -> Answer:
    """Check what is typed without keeping anything; the page script asks for the outcome alone."""
    check = BrowserCheckForm(record=monitor, **_surroundings())
    outcome: Outcome | None = None
    failure: str | None = None
    twins: Sequence[MonitorRef] = ()
    if check.validate():
        try:
            twins = _twins(form, monitor)
            outcome = current_store().checks.run_unsaved(
                check.fields(), secrets_from=monitor.id if monitor else None
            )
        except WakefulError as fault:
            failure = str(fault)
    else:
        _show_faults(form, check)
    kind = kind_of(check.url.data or "")
    shown = {"outcome": outcome, "failure": failure, "tested": True, "kind": kind, "twins": twins}
    if outcome is not None and LOCATIONS in form:
        shown["left_out"] = checked.left_out(outcome.result, form.locations.data or ())
    if request.headers.get("X-Fragment") == "test":
        faults = check.error_summary()
        return render_template("monitors/_test.html", form=form, faults=faults, **shown)
    judged = outcome is not None or failure is not None
    return _form_page(form, monitor, status=200 if judged else 422, **shown)


def _show_faults(form: BrowserMonitorForm, check: BrowserForm) -> None:
    for field in check.schema_fields():
        ours = form[field.short_name]
        ours.errors = field.errors
        if isinstance(field, PairList) and isinstance(ours, PairList):
            ours.rows = field.rows


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(id: int) -> Answer:
    monitor = current_store().monitors.get(id)
    form = DeleteForm()
    if form.validate_on_submit():
        current_store().monitors.delete(id)
        deleted = DELETED if servers.is_bare() else DELETED_WITH_ALL
        flash(_(deleted, name=monitor.name), "success")
        return redirect(url_for(".index"))
    return render_template("monitors/delete.html", monitor=monitor, bare=servers.is_bare())


@blueprint.post("/<int:id>/pause")
def pause(id: int) -> Response:
    monitor = current_store().monitors.update(id, {"pause": True})
    if is_kept("pause", True, monitor):
        sentence = _("%(name)s paused. It is not checked until you resume it.", name=monitor.name)
        flash(sentence, "success")
    else:
        flash(_(NOT_PAUSED, name=monitor.name), "warning")
    return redirect(_back(id))


@blueprint.post("/<int:id>/resume")
def resume(id: int) -> Response:
    monitor = current_store().monitors.update(id, {"pause": False})
    if not is_kept("pause", False, monitor):
        flash(_(NOT_RESUMED, name=monitor.name), "warning")
    elif servers.is_bare():  # it does not say when it checks
        flash(_("%(name)s resumed.", name=monitor.name), "success")
    else:
        flash(_("%(name)s resumed. It is checked at once.", name=monitor.name), "success")
    return redirect(_back(id))


@blueprint.post("/<int:id>/check")
def check(id: int) -> Response:
    store = current_store()
    try:
        result = store.checks.run(id)
    except (Conflict, Throttled, Unavailable) as fault:  # a place is silent, or brings no result
        flash(str(fault), "warning")
        return redirect(_back(id))
    monitor = store.monitors.get(id)
    flash(*checked.said(result, monitor))
    if result.location not in monitor.locations:
        flash(_(CHECKED_ELSEWHERE, place=place_title(result.location)), "info")
    return redirect(_back(id))


@blueprint.post("/<int:id>/test-alert")
def test_alert(id: int) -> Response:
    place = request.form.get("place", "")
    ids = channel_tests.stored(id, int(place[:6]) if place.isascii() and place.isdigit() else None)
    if not ids:
        flash(_("This monitor has no alert channels yet. Add one to the monitor first."), "warning")
        return redirect(_back(id))
    tried = ",".join(str(one) for one in ids)
    return redirect(url_for(".show", id=id, tried=tried, _anchor="alerts"))


def _back(id: int) -> str:
    return url_for(".show", id=id)


def masked(pairs: tuple[Pair, ...]) -> list[Pair]:
    """Secrets as pages may show them."""
    return [pair.masked() for pair in pairs]
