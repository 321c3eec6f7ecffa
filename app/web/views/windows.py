"""Maintenance windows: list with a calendar, show with what comes next, new, edit, delete."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from flask import request
from werkzeug.wrappers import Response

from app.forms.browser import BrowserForm
from app.forms.fields import Options
from app.forms.resources import WindowForm
from app.i18n import N_, _
from app.records import MAX_SEARCH, MaintenanceWindow, MonitorRef
from app.rules import recurrence
from app.rules.zones import present_name
from app.stores import current_store
from app.web.frame import choices, fragments, servers, tags
from app.web.frame.editing import Editing
from app.web.frame.session import guarded
from app.web.shown import months, planned, times

blueprint = guarded("windows", __name__, "/maintenance")

CRON = "cron"
OFTEN = {
    recurrence.ONCE: N_("Once"),
    "daily": N_("Every day"),
    "weekly": N_("Every week"),
    recurrence.MONTHLY: N_("Every month"),
    CRON: N_("Custom (cron)"),
}
SCOPES = {"all": N_("All monitors"), "chosen": N_("Only these monitors and tags")}
MAX_A_MONTH = 1000  # occurrences of one window on the calendar; a cron line may say each minute


class ExtraOptions(Options):
    """A choice of the page that is no field of the record."""

    extra = True


class WindowPageForm(BrowserForm, WindowForm):
    """The window's form with two choices: how often it repeats, and for which monitors. The input
    ``repeat`` has a cron expression alone.
    """

    often = ExtraOptions(N_("Repeat"), OFTEN, default=recurrence.ONCE)
    scope = ExtraOptions(N_("For"), SCOPES, default="all")

    def process(self, formdata: Any = None, *args: Any, **kwargs: Any) -> None:
        sent_values = self.meta.wrap_formdata(self, formdata)
        named = sent_values.get("zone") if sent_values else None
        stored_zone = getattr(self.record, "zone", None) or (kwargs.get("data") or {}).get("zone")
        if zone := present_name(named or stored_zone):
            self.context = replace(self.context, zone=ZoneInfo(zone))  # its times are in this zone
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
            self.repeat.sent_text = ""
        if self.submitted and self.scope.data == "all":
            self.monitors.data, self.monitors.entry_errors = (), {}
            self.tags.data, self.tags.process_errors = (), []

    def check_cross_field(self) -> None:
        super().check_cross_field()
        if (
            self.flawless(self.repeat)
            and self.often.data == CRON
            and self.repeat.data in recurrence.WORDS
        ):
            self.repeat.add_fault(_("Enter a cron expression such as 0 3 * * 1."))
        nobody = not self.monitors.data and not self.tags.data
        if self.scope.data == "chosen" and nobody and self.flawless(self.tags):
            self.monitors.add_fault(_("Choose a monitor or enter a tag, or choose all monitors."))


@blueprint.get("")
def index() -> Response:
    servers.refuse_bare()
    windows, more = planned.newest()
    month = months.read(request.args.get("month"), months.month_of(times.local(times.now())))
    rows = sorted((planned.planned_of(window) for window in windows), key=lambda item: item.order)
    return fragments.page(
        "maintenance/index.html",
        "maintenance/_list.html",
        planned=rows,
        more=more,
        names=_names(windows),
        month=month,
        sheet=_sheet(windows, month),
        weekdays=months.WEEKDAYS,
        today=times.local(times.now()).date(),
        explain=recurrence.explain,
    )


def _sheet(windows: Iterable[MaintenanceWindow], month: months.Month) -> months.Sheet:
    sheet, zone = months.Sheet(), times.zone()
    start, end = month.span(zone)
    # With the days of the neighbouring months in the first and the last week.
    start, end = start - timedelta(days=7), end + timedelta(days=7)
    for window in windows:
        spans = recurrence.next_occurrences(window, MAX_A_MONTH, start)
        within = ((max(span[0], start), min(span[1], end)) for span in spans if span[0] < end)
        sheet.put(window.id, window.name, within, zone)
    return sheet


@blueprint.get("/<int:id>")
def show(id: int) -> Response:
    window = current_store().windows.get(id)
    return fragments.page(
        "maintenance/show.html",
        "maintenance/_shown.html",
        window=window,
        planned=planned.planned_of(window),
        dates=planned.next_dates(window),
        reach=tags.sentence(window.tags, window.monitors),
        names=_names([window]),
        explain=recurrence.explain,
    )


class WindowEditing(Editing[MaintenanceWindow, WindowPageForm]):
    collection, template, subject = "windows", "maintenance/form.html", "window"
    by_tag = "tags"
    leads_to, delete_button = ".show", N_("Delete this window")
    deletion = N_(
        "If it is in progress, it ends at once, and people are alerted again. Time already recorded"
        " as maintenance does not change. This cannot be undone."
    )
    deleted = N_("%(name)s deleted. It no longer silences alerts.")

    def stand_in(self, id: int) -> MaintenanceWindow:
        name, now = request.form.get("name") or _("Window %(id)s", id=id), times.now()
        return MaintenanceWindow(id, name, now, now)

    def bind(self) -> WindowPageForm:
        first = None
        if self.record is None:
            first, monitor_id = _first_values(), request.args.get("monitor_id", "")
            if monitor_id.isascii() and monitor_id.isdigit():
                first = _first_values(at_once=True) | {"monitors": (int(monitor_id),)}
        return WindowPageForm(record=self.record, data=first, zone=times.zone())

    def answer_button(self) -> Response | None:
        return self.page(200) if "find" in request.form else None

    def question(self) -> Response | None:
        """A preview of the typed window, if requested: its next occurrences and its monitors."""
        if "preview" not in request.form:
            return super().question()
        form = self.form
        empty = MaintenanceWindow(0, "", form.start_at.data, form.end_at.data)
        window = replace(
            empty, repeat=form.repeat.data, repeat_until=form.repeat_until.data, zone=form.zone.data
        )
        reach = tags.sentence(form.tags.data, form.monitors.data) or tags.sentence_of_all()
        return self.page(200, dates=planned.next_dates(window), previewed=window, reach=reach)

    def context(self) -> dict[str, Any]:
        chosen_ids = self.form.monitors.data
        search = request.form.get("search", "").strip()[:MAX_SEARCH]
        offered = choices.monitors(self.form, chosen_ids, search)
        offered.sort(key=lambda monitor: monitor.id not in chosen_ids)  # the chosen ones first
        self.form.monitors.choices = [(str(monitor.id), monitor.name) for monitor in offered]
        return {"search": search, "found": "find" in request.form, "dates": None}


WindowEditing.register(blueprint)


def plan_for(ids: Sequence[int], tags: Sequence[str] = ()) -> Response:
    """The form of a new window for these monitors, or for those with these tags."""
    servers.refuse_bare()
    data = _first_values() | {"monitors": tuple(ids), "tags": tuple(tags)}
    editing = WindowEditing()
    editing.form = WindowPageForm(None, data=data, zone=times.zone())
    return editing.page(200)


def _first_values(*, at_once: bool = False) -> dict[str, Any]:
    """The first values of a new form: one hour, from the next full hour, or from now."""
    now = times.now().replace(second=0, microsecond=0)
    start = now if at_once else now.replace(minute=0) + timedelta(hours=1)
    return {
        "start_at": start,
        "end_at": start + timedelta(hours=1),
        "repeat": recurrence.ONCE,
        "zone": times.zone().key,
    }


def _names(windows: Iterable[MaintenanceWindow]) -> dict[int, MonitorRef]:
    ids = {id for window in windows for id in window.monitors}
    return {ref.id: ref for ref in current_store().monitors.refs(ids=sorted(ids))} if ids else {}
