"""Maintenance windows: list with a calendar, show with what comes next, new, edit, delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid, WakefulError
from app.forms.browser import BrowserWindowForm
from app.forms.fields import Options
from app.i18n import N_, _
from app.records import MAX_SEARCH, MaintenanceWindow, MonitorRef
from app.rules import recurrence
from app.stores import current_store
from app.web.forms import DeleteForm, not_read, not_saved, saved, show_errors
from app.web.frame import choices, fragments, links, servers
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.frame.store_errors import NOT_TAKEN
from app.web.shown import months, planned, times

blueprint = guarded(Blueprint("windows", __name__, url_prefix="/maintenance"))

Answer = str | Response | tuple[str, int]

CRON = "cron"
OFTEN = [
    (recurrence.ONCE, N_("Once")),
    ("daily", N_("Every day")),
    ("weekly", N_("Every week")),
    (recurrence.MONTHLY, N_("Every month")),
    (CRON, N_("Custom (cron)")),
]
SCOPES = [("all", N_("All monitors")), ("chosen", N_("Only these monitors and tags"))]
PREVIEW = 5
MOST_A_MONTH = 1000  # occurrences of one window on the calendar; a cron line may say each minute


class ExtraOptions(Options):
    """A choice of the page that is no field of the record."""

    extra = True


class WindowPageForm(BrowserWindowForm):
    """The window's form with choices in the place of words: how often, and for whom.

    ``repeat`` is then the cron line alone.
    """

    often = ExtraOptions(N_("Repeat"), labels=OFTEN, default=recurrence.ONCE)
    scope = ExtraOptions(N_("For"), labels=SCOPES, default="all")

    def process(self, formdata: Any = None, *args: Any, **kwargs: Any) -> None:
        super().process(formdata, *args, **kwargs)
        self.repeat.label.text = _("Cron expression")
        self.repeat.description = _(
            "Minute, hour, day, month and day of the week: 0 3 * * 1 is every Monday at 03:00."
        )
        if not self.submitted:
            word = self.repeat.data in recurrence.WORDS
            self.often.data = self.repeat.data if word else CRON
            self.scope.data = "chosen" if self.monitors.data or self.tags.data else "all"
        elif self.often.data != CRON:
            self.repeat.process_errors = []
            self.repeat.data = self.often.data
        if self.often.data != CRON:
            self.repeat.shown = ""
        if self.submitted and self.scope.data == "all":
            self.monitors.data, self.monitors.entry_errors = (), {}
            self.tags.data, self.tags.process_errors = (), []

    def check_together(self) -> None:
        super().check_together()
        if (
            self.flawless(self.repeat)
            and self.often.data == CRON
            and self.repeat.data in recurrence.WORDS
        ):
            self.repeat.fault(_("Enter a cron expression such as 0 3 * * 1."))
        nobody = not self.monitors.data and not self.tags.data
        if self.scope.data == "chosen" and nobody and self.flawless(self.tags):
            self.monitors.fault(_("Choose a monitor or enter a tag, or choose all monitors."))


@blueprint.get("")
def index() -> Response:
    servers.refuse_bare()
    known, more = planned.known()
    month = months.read(request.args.get("month"), months.month_of(times.local(times.now())))
    found = sorted((planned.of(window) for window in known), key=lambda one: one.order)
    return fragments.page(
        "maintenance/index.html",
        "maintenance/_list.html",
        planned=found,
        more=more,
        names=_names(known),
        month=month,
        sheet=_sheet(known, month),
        here=links.here,
        weekdays=months.WEEKDAYS,
        today=times.local(times.now()).date(),
        explain=recurrence.explain,
    )


def _sheet(known: Iterable[MaintenanceWindow], month: months.Month) -> months.Sheet:
    sheet, zone = months.Sheet(), times.zone()
    start, end = month.span(zone)
    # The days of the neighbours that fill the first and the last week.
    start, end = start - timedelta(days=7), end + timedelta(days=7)
    for window in known:
        spans = recurrence.next_occurrences(window, MOST_A_MONTH, start)
        within = ((max(a, start), min(b, end)) for a, b in spans if a < end)
        sheet.put(window.id, window.name, within, zone)
    return sheet


@blueprint.get("/<int:id>")
def show(id: int) -> Response:
    window = current_store().windows.get(id)
    return fragments.page(
        "maintenance/show.html",
        "maintenance/_shown.html",
        window=window,
        planned=planned.of(window),
        occurrences=recurrence.next_occurrences(window, PREVIEW, times.now()),
        names=_names([window]),
        explain=recurrence.explain,
    )


@blueprint.route("/new", methods=["GET", "POST"])
def new() -> Answer:
    if request.method in SAFE_METHODS:
        servers.refuse_bare()
    first = _first()
    chosen = request.args.get("monitor_id", "")
    if chosen.isascii() and chosen.isdigit():
        first |= {"monitors": (int(chosen),)}
    return _edited(WindowPageForm(data=first, zone=times.zone()), None)


def plan_for(ids: Sequence[int], tags: Sequence[str] = ()) -> Answer:
    """The form of a new window for these monitors, or for those with these tags."""
    servers.refuse_bare()
    data = _first() | {"monitors": tuple(ids), "tags": tuple(tags)}
    form = WindowPageForm(None, data=data, zone=times.zone())
    return _form_page(form, None, 200)


def _first() -> dict[str, Any]:
    """What a new form starts with."""
    start = times.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return {
        "start_at": start,
        "end_at": start + timedelta(hours=1),
        "repeat": recurrence.ONCE,
        "zone": times.zone().key,
    }


@blueprint.route("/<int:id>/edit", methods=["GET", "POST"])
def edit(id: int) -> Answer:
    try:
        window = current_store().windows.get(id)
    except NOT_TAKEN as fault:
        return _unread(fault, id)
    return _edited(WindowPageForm(record=window, zone=times.zone()), window)


def _unread(fault: WakefulError, id: int) -> Answer:
    """What was typed into the form of a window that cannot be read now."""
    if request.method in SAFE_METHODS:
        raise fault
    now = times.now()
    window = MaintenanceWindow(id, request.form.get("name") or _("Window %(id)s", id=id), now, now)
    form = WindowPageForm(record=window, zone=times.zone())
    return _form_page(form, window, not_read(form, fault))


def _edited(form: WindowPageForm, window: MaintenanceWindow | None) -> Answer:
    occurrences = None
    if form.is_submitted() and "find" in request.form:
        return _form_page(form, window, 200)
    if form.validate_on_submit():
        if "preview" in request.form:
            occurrences = _preview(form)
            return _form_page(form, window, 200, occurrences)
        try:
            record = _save(form, window)
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            return _form_page(form, window, not_saved(form, fault))
        else:
            saved(form, _("%(name)s saved.", name=record.name))
            return redirect(url_for(".show", id=record.id))
    return _form_page(form, window, 422 if form.is_submitted() else 200)


def _preview(form: WindowPageForm) -> list[recurrence.Span]:
    """The next occurrences of what is typed."""
    empty = MaintenanceWindow(0, "", form.start_at.data, form.end_at.data)
    typed = replace(
        empty,
        repeat=form.repeat.data,
        repeat_until=form.repeat_until.data,
        zone=form.zone.data,
    )
    return recurrence.next_occurrences(typed, PREVIEW, times.now())


def _save(form: WindowPageForm, window: MaintenanceWindow | None) -> MaintenanceWindow:
    store = current_store()
    if window is None:
        return store.windows.create(form.fields())
    return store.windows.update(window.id, form.fields())


def _form_page(
    form: WindowPageForm,
    window: MaintenanceWindow | None,
    status: int,
    occurrences: Sequence[recurrence.Span] | None = None,
) -> Answer:
    search = request.form.get("search", "").strip()[:MAX_SEARCH]
    offered = choices.monitors(form, form.monitors.data, search)
    offered.sort(key=lambda one: one.id not in form.monitors.data)  # the chosen ones first
    form.monitors.choices = [(str(one.id), one.name) for one in offered]
    page = render_template(
        "maintenance/form.html",
        form=form,
        window=window,
        occurrences=occurrences,
        search=search,
        found="find" in request.form,
    )
    return page, status


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(id: int) -> Answer:
    window = current_store().windows.get(id)
    form = DeleteForm()
    if form.validate_on_submit():
        current_store().windows.delete(id)
        flash(_("%(name)s deleted. It no longer silences alerts.", name=window.name), "success")
        return redirect(url_for(".index"))
    return render_template("maintenance/delete.html", window=window)


def _names(known: Iterable[MaintenanceWindow]) -> dict[int, MonitorRef]:
    ids = {id for window in known for id in window.monitors}
    return {one.id: one for one in current_store().monitors.refs(ids=sorted(ids))} if ids else {}
