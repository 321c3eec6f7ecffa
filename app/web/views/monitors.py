"""Monitors: list, show, new, edit, clone, delete, pause, check now, check before saving."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flask import flash, redirect, render_template, request, session, url_for
from werkzeug.wrappers import Response

from app.checks.kinds import kind_of
from app.errors import Conflict, Throttled, Unavailable, WakefulError
from app.forms import queries
from app.forms.browser import BrowserCheckForm, BrowserMonitorForm
from app.forms.fields import with_scheme
from app.forms.lists import PairList
from app.forms.monitor import ADDED_FIELDS, MonitorForm, name_of
from app.forms.queries import MonitorQueryForm, PingQueryForm
from app.forms.schema import labels_of
from app.i18n import N_, _
from app.records import (
    DEFAULT_ACCEPTED_STATUSES,
    DEFAULT_CONFIRMATIONS,
    DEFAULT_SSL_ALERT_DAYS,
    DEFAULT_TIMEOUT,
    MAX_SEARCH,
    MAX_TAGS,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSearchBy,
    MonitorSortBy,
    Outcome,
    Sort,
    is_heartbeat,
)
from app.rules.natural import natural_key
from app.rules.text import digits
from app.stores import Extent, current_settings, current_store, same_url
from app.web.frame import choices, fragments, links, remembered, servers, tags
from app.web.frame.editing import Editing, flash_if_kept
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.frame.store_errors import STORE_REFUSALS
from app.web.many_forms import CONTACT_ACTIONS, PARENT_ACTIONS, PLACE_ACTIONS, BulkForm
from app.web.shown import calling, checked, form_summaries, monitor_rows, planned, statistics, times
from app.web.shown.places import title as place_title
from app.web.views import channel_tests, contacts

blueprint = guarded("monitors", __name__, "/monitors")


# Parameters of the list that are ours, not the base API's.
OWN_FILTERS = ("state", "tag", "location")
REFUSED_BULK = "bulk"  # the key in the session of the bar below the list, as it was refused
DEFAULT_INTERVAL = 60
DEPENDS_ON, FIND = "depends_on", "find_parents"  # the field, and the button that searches for it
CHECK = "check"  # the button that checks what is typed
SLOW_ALERTS = "slow_alerts"  # the button that counts the alerts for slowness of past results
LOCATIONS, LOCATION_RULE, CONTACTS = "locations", "location_rule", "contacts"  # fields
CHECKED_ELSEWHERE = N_(
    "The check was made from %(place)s, which is not one of this monitor's places. So it is "
    "listed, and changes nothing else."
)
DELETED_WITH_ALL = N_("%(name)s deleted, with its incidents and results.")
# The direction that a click on a column's head begins with: the worst, the slowest, and A to Z.
FIRST_DIRECTION = {
    MonitorSortBy.STATE: Sort.DESC,
    MonitorSortBy.NAME: Sort.ASC,
    MonitorSortBy.RESPONSE_TIME: Sort.DESC,
}
FIRST_ON_BARE = {MonitorSortBy.NAME: Sort.ASC}
# Values that a new form starts with. ``_first_values`` adds the zone and the contacts.
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
    row_query = replace(
        query, uptime=(monitor_rows.LISTED,), hours=True, counts=counters, brief=True
    )
    if query.sort_by == MonitorSortBy.NAME:
        row_query = replace(row_query, sort_by=MonitorSortBy.NATURAL)
    page = store.monitors.list(row_query)
    refused = {} if fragments.is_fragment() else session.pop(REFUSED_BULK, None) or {}
    answer = fragments.page(
        "monitors/index.html",
        "monitors/_parts.html",
        page=page,
        rows=monitor_rows.rows_of(page.items),
        query=query,
        counters=counters,
        chips=chips(query),
        order=links.order(query, FIRST_ON_BARE if servers.is_bare() else FIRST_DIRECTION),
        faults=refused.pop("faults", ()),
        bulk=bulk_form(formdata=None, data=refused),
    )
    return remembered.remember(answer, _list_name())


def chips(query: MonitorQuery) -> Sequence[tuple[str, int]]:
    """The tags of the monitors that the other filters find, each with its count: the chosen tag
    first, then the most frequent ones.
    """
    if servers.is_bare():
        return ()
    counts = dict(current_store().monitors.tag_counts(query) or {})
    if query.tag:
        counts.setdefault(query.tag, 0)
    most_first = sorted(counts.items(), key=lambda chip: (-chip[1], natural_key(chip[0])))
    return sorted(most_first, key=lambda chip: chip[0] != query.tag)


def bulk_form(**kwargs: Any) -> BulkForm:
    """The form of the actions on ticked monitors that this server supports."""
    form = BulkForm(bare=servers.is_bare(), **kwargs)
    if servers.is_bare():
        form.action.leave_out("tag", "untag", "note", *PARENT_ACTIONS)
    if not servers.is_whole():
        form.action.leave_out("maintenance")
    form.contacts = choices.contact_choices(current_store().contacts.names())
    if not form.contacts:
        form.action.leave_out(*CONTACT_ACTIONS)
    form.places = current_store().monitors.locations()
    if len(form.places) < 2:
        form.action.leave_out(*PLACE_ACTIONS, "rule")
    return form


def list_query(args: links.Args | None = None) -> MonitorQuery:
    """The query of the list, from the address or ``args``, then the person's last choices. Without
    an order in them, the worst monitors come first. Raises Invalid for a misspelt parameter.
    """
    without = OWN_FILTERS if servers.is_bare() else ()
    pairs = links.pairs(*without, args=args)
    defaults = {"search_by": str(MonitorSearchBy.ANY)}
    if not servers.is_bare():
        defaults["sort_by"] = str(MonitorSortBy.STATE)
    query: MonitorQuery = remembered.list_query(MonitorQueryForm, pairs, _list_name(), **defaults)
    return replace(query, exact=True)


def _list_name() -> str:
    """The name under which the choices of the list are remembered. A bare server has fewer orders,
    so its choices have a name of their own.
    """
    return "bare_monitors" if servers.is_bare() else "monitors"


@blueprint.get("/reach")
def reach() -> str:
    """The number of monitors that the typed tags and chosen monitors of a form select."""
    typed_tags = [tag.strip() for text in request.args.getlist("tags") for tag in text.split(",")]
    names = [tag for tag in dict.fromkeys(typed_tags) if tag][:MAX_TAGS]
    ids = map(digits, request.args.getlist("monitors")[: choices.MAX])
    return tags.sentence(names, [id for id in ids if id is not None])


@blueprint.get("/<int:id>")
def show(id: int) -> Response:
    monitor = current_store().monitors.get(id)
    return fragments.page(
        "monitors/show.html",
        "monitors/_shown.html",
        monitor=monitor,
        test_alerts=channel_tests.tests_in_address(id),
        # These are called where they are shown: not every page or part shows them.
        chain_of=statistics.certificate_chain,
        parents_of=lambda of: current_store().monitors.refs(ids=of.depends_on),
        children_of=current_store().monitors.children,
        windows_of=planned.for_monitor,
        call_commands=calling.commands_of,
        certificate_alert=monitor_rows.certificate_alert,
        domain_alert=monitor_rows.domain_alert,
        missing=_labels(monitor.missing),
        misread=_labels(monitor.misread),
        **statistics.context_of(monitor),
    )


def _labels(names: Collection[str]) -> list[str]:
    """The labels of these fields."""
    labels = {"paused": N_("Paused"), "status": N_("State"), **labels_of(MonitorForm)}
    return [_(label) for name, label in labels.items() if name in names]


class MonitorEditing(Editing[Monitor, BrowserMonitorForm]):
    collection, template, subject = "monitors", "monitors/form.html", "monitor"
    leads_to, on_bare_servers, clone = ".show", True, False
    delete_button = N_("Delete this monitor")
    deletion = N_(
        "This also deletes its incidents, results and pending alerts. This cannot be undone. To"
        " stop the checks for a while, pause it instead."
    )

    def consequence(self, record: Monitor) -> str:
        if servers.is_bare():  # which may keep what belongs to it
            return _("This cannot be undone. To stop the checks for a while, pause it instead.")
        return super().consequence(record)

    def stand_in(self, id: int) -> Monitor:
        name = request.form.get("name") or _("Monitor %(id)s", id=id)
        has_password = "remove_password" in request.form
        return Monitor(id, name, "", DEFAULT_INTERVAL, request_auth_password_set=has_password)

    def bind(self) -> BrowserMonitorForm:
        form, url = monitor_form(self.record, clone=self.clone), request.args.get("url")
        if request.method == "GET" and self.record is None and url:
            form.url.data, form.name.data = url, name_of(url)
        if request.method == "GET" and self.record is not None and self.clone:
            form.name.data = _("%(name)s (copy)", name=self.record.name)[: form.name.limit]
            if "slug" in form:  # if two heartbeats have one slug, a ping by slug reaches neither
                form.slug.data = None
        return form

    def answer_unread(self, fault: WakefulError) -> Response:
        if request.headers.get(fragments.HEADER) == CHECK:
            return self.outcome_part(faults=[], failure=str(fault))
        return super().answer_unread(fault)

    def answer_button(self) -> Response | None:
        """The buttons add or remove a row, find parents, add an offered assertion, send test
        alerts, count alerts for slowness, or check what is typed.
        """
        if channel_tests.BUTTON in request.form:
            return self._send_tests()
        is_offer = "offer" in request.form and "assertions" in self.form
        if is_offer:
            self.form.assertions.add_offered(request.form["offer"])
        finds_parents = FIND in request.form and DEPENDS_ON in self.form
        if is_offer or finds_parents or self.form.change_rows() or SLOW_ALERTS in request.form:
            return self.page(200)
        return self._check_typed() if CHECK in request.form else None

    def question(self) -> Response | None:
        twins = self._twins()
        return self.page(200, twins=twins) if twins else None

    def _twins(self) -> Sequence[MonitorRef]:
        """Other monitors that check the same URL. Empty if the person has seen them already, or if
        the monitor that is edited or cloned has this URL too.
        """
        url = self.form.url.data or ""
        if is_heartbeat(url):
            return ()
        approved = [request.form.get("anyway", ""), self.record.url if self.record else ""]
        if any(same_url.is_same(url, seen_url) for seen_url in approved):
            return ()
        return current_store().monitors.watching(url)

    def save(self) -> Monitor:
        if self.record is not None and not self.clone:
            return super().save()
        return current_store().monitors.create(self.form.fields(), secrets_from=self.id)

    def notice(self, record: Monitor) -> str:
        notice = super().notice(record)
        typed_url = request.form.get("url", "").strip()
        if with_scheme(typed_url) != typed_url:
            notice += " " + _("https:// was put before its address. Edit it if that is wrong.")
        return notice

    def finish(self, record: Monitor) -> Response:
        response = super().finish(record)
        old_alerts = self.record.alerts if self.record is not None and not self.clone else ()
        contacts.offer_shared_channels(record, old_alerts)
        return response

    def context(self) -> dict[str, Any]:
        form = self.form
        if CONTACTS in form:
            names = choices.contacts(form, form.contacts.data)
            form.contacts.choices = choices.contact_choices(names, form)
        search = request.form.get("find", "").strip()[:MAX_SEARCH]
        if DEPENDS_ON in form:
            form.depends_on.choices = choices.parents(form, self.record, search)
        return {
            "summary": form_summaries.words,
            "summary_data": form_summaries.as_data,
            # Only if somebody asks: it reads the checks of a month.
            "slow_alerts": form_summaries.slow_alerts(form, self.id)
            if SLOW_ALERTS in request.form
            else "",
            "search": search,
            "lacking": choices.channels_not_set_up(form),
            "test_alerts": {},
            "twins": (),
            "shows_outcome": False,
        }

    @property
    def deleted(self) -> str:  # type: ignore[override]
        return super().deleted if servers.is_bare() else DELETED_WITH_ALL

    def _send_tests(self) -> Response:
        """Send a test alert to the channels as they are typed, saved or not."""
        alerts = self.form.alerts
        test_alerts = channel_tests.send_typed(alerts, None if self.clone else self.id)
        faulty = alerts.errors or any(row.all_errors for row in alerts.rows)
        return self.page(422 if faulty else 200, test_alerts=test_alerts)

    def _check_typed(self) -> Response:
        """Run a check with the typed fields and store nothing. A request by script gets only the
        outcome.
        """
        form, check = self.form, BrowserCheckForm(record=self.record, **_form_context())
        context: dict[str, Any] = {"outcome": None, "failure": None, "twins": ()}
        valid = check.validate()
        if valid:
            try:
                context["twins"] = self._twins()
                outcome = current_store().checks.run_unsaved(check.fields(), secrets_from=self.id)
                context |= self._outcome_context(outcome)
            except WakefulError as fault:
                context["failure"] = str(fault)
        else:
            for field in check.schema_fields():
                form_field = form[field.short_name]
                form_field.errors = field.errors
                if isinstance(field, PairList) and isinstance(form_field, PairList):
                    form_field.rows = field.rows
        context["kind"] = kind_of(check.url.data or "")
        if request.headers.get(fragments.HEADER) == CHECK:
            return self.outcome_part(faults=check.error_summary(), **context)
        return self.page(200 if valid else 422, shows_outcome=True, **context)

    def _outcome_context(self, outcome: Outcome) -> dict[str, Any]:
        form, left_out = self.form, None
        if LOCATIONS in form:
            left_out = checked.unchecked_places(outcome.result, form.locations.data or ())
        offers = checked.offers(outcome) if "assertions" in form else {}
        return {"outcome": outcome, "offers": offers, "left_out": left_out}

    def outcome_part(self, **context: Any) -> Response:
        page = render_template("monitors/_outcome.html", form=self.form, **context)
        return Response(page, mimetype="text/html")


class MonitorCloning(MonitorEditing):
    """A new monitor from the one of this id."""

    clone = True


MonitorEditing.register(blueprint)
MonitorCloning.register(blueprint, clone="/<int:id>/clone")


def monitor_form(record: Monitor | None = None, *, clone: bool = False) -> BrowserMonitorForm:
    data = None if record else _first_values()
    form = BrowserMonitorForm(record=record, clone=clone, data=data, **_form_context())
    if servers.extent() == Extent.BARE:
        form.leave_out_auto()
    return form


def _first_values() -> dict[str, Any]:
    contacts = current_store().contacts.defaults() if request.method in SAFE_METHODS else ()
    return STARTS_WITH | {"quiet_zone": times.zone().key, CONTACTS: tuple(contacts)}


def _form_context() -> dict[str, Any]:
    store = current_store()
    places = _places()
    return {
        "zone": times.zone(),
        "now": store.now(),
        "telegram_token_set": bool(current_settings().telegram_token),
        "without": _left_out(places),
        "places": places,
        "bare": servers.servers() is not None and not _added_fields_shown(),
    }


def _places() -> Mapping[str, str]:
    """The places to choose from; none for a sent form if the server does not answer now: the typed
    fields must not be lost.
    """
    try:
        return current_store().monitors.locations()
    except STORE_REFUSALS:
        if request.method in SAFE_METHODS:
            raise
        return {}


def _left_out(places: Collection[str]) -> Sequence[str]:
    """The fields that this form does not have. With one place, there is no choice; a page that was
    opened then must not be read as "no place chosen".
    """
    several = len(places) > 1
    if request.method in SAFE_METHODS:
        shown_fields = {LOCATIONS: several, LOCATION_RULE: several, CONTACTS: servers.is_whole()}
    else:
        shown_fields = {name: name in request.form for name in (LOCATIONS, LOCATION_RULE, CONTACTS)}
    without = tuple(name for name, is_shown in shown_fields.items() if not is_shown)
    return without if _added_fields_shown() else (*ADDED_FIELDS, *without)


def _added_fields_shown() -> bool:
    """Whether the form has the fields that the base API lacks. For a sent form, its fields decide:
    the server may have been updated meanwhile, or not answer now, and a box that was not on the
    page must not be read as unticked.
    """
    if request.method in SAFE_METHODS:
        return not servers.is_bare()
    return any(name in request.form for name in ADDED_FIELDS)


@blueprint.post("/<int:id>/pause", endpoint="pause", defaults={"pause": True})
@blueprint.post("/<int:id>/resume", endpoint="resume", defaults={"pause": False})
def set_pause(id: int, pause: bool) -> Response:
    monitor = current_store().monitors.update(id, {"pause": pause})
    if pause:
        sentence = _("%(name)s paused. It is not checked until you resume it.", name=monitor.name)
    elif servers.is_bare():  # a bare server does not say when it checks
        sentence = _("%(name)s resumed.", name=monitor.name)
    else:
        sentence = _("%(name)s resumed. It is checked at once.", name=monitor.name)
    flash_if_kept("pause", pause, monitor, sentence)
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
    flash(*checked.message(result, monitor))
    if result.location not in monitor.locations:
        flash(_(CHECKED_ELSEWHERE, place=place_title(result.location)), "info")
    return redirect(_back(id))


@blueprint.post("/<int:id>/test-alert")
def test_alert(id: int) -> Response:
    index = digits(request.form.get("position", ""))
    ids = channel_tests.send_stored(id, index)
    if not ids:
        flash(_("This monitor has no alert channels yet. Add one to the monitor first."), "warning")
        return redirect(_back(id))
    test_alerts = ",".join(map(str, ids))
    return redirect(url_for(".show", id=id, test_alerts=test_alerts, _anchor="alerts"))


@blueprint.post("/<int:id>/ping-url")
def new_ping_url(id: int) -> Response:
    """Make a new secret for the ping URL; the old URL stops working."""
    try:
        current_store().heartbeats.new_token(id)
        flash(_("The old ping URL has ended. Give the new one to the job."), "success")
    except Conflict as fault:
        flash(str(fault), "warning")
    return redirect(url_for(".show", id=id, _anchor="calling"))


@blueprint.get("/<int:id>/pings")
def pings(id: int) -> str:
    monitor = current_store().monitors.get(id)
    query = queries.list_query(PingQueryForm, links.pairs(), monitor_id=id)
    page = current_store().heartbeats.list(query)
    return render_template("monitors/pings.html", monitor=monitor, page=page)


@blueprint.get("/<int:id>/pings/<int:ping>")
def ping(id: int, ping: int) -> str:
    """One ping, with everything that is stored of its request."""
    monitor = current_store().monitors.get(id)
    record = current_store().heartbeats.get(id, ping)
    return render_template("monitors/ping.html", monitor=monitor, ping=record)


def _back(id: int) -> str:
    return url_for(".show", id=id)
