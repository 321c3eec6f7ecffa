"""A monitor's checks with filters, and one day of a monitor."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from flask import redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid, NotFound
from app.forms.browser import BrowserForm
from app.forms.fields import DateTime, Options
from app.i18n import N_, _
from app.records import PAGE_SIZES, Monitor, ResultQuery, Verdict
from app.rules.text import END_BEFORE_START, digits
from app.stores import current_store
from app.web.frame import servers
from app.web.frame.session import guarded
from app.web.shown import looks, places, statistics, times

blueprint = guarded("checks", __name__, "/monitors/<int:id>")

PER_PAGE = 25
DAY = timedelta(days=1)
CHANGES_SHOWN = 100


class FilterForm(BrowserForm):
    """The filters. Times are in the person's zone."""

    from_ = DateTime(N_("From"), name="from")
    to = DateTime(N_("To"))
    verdict = Options(
        N_("Verdict"), {verdict: looks.VERDICT[verdict].word for verdict in Verdict}, none=N_("Any")
    )
    location = Options(N_("Place"), places.titles, none=N_("Any"))

    class Meta:
        csrf = False  # the form changes nothing


@blueprint.get("/checks")
def index(id: int) -> str | tuple[str, int]:
    store = current_store()
    monitor = store.monitors.get(id)
    form = _filter_form(monitor)
    if form.validate() and form.from_.data and form.to.data and form.to.data <= form.from_.data:
        form.to.add_fault(_(END_BEFORE_START))
    faulty = bool(form.error_summary())
    page = None if faulty else store.results.list(_query(id, form))
    answer = render_template("monitors/checks.html", monitor=monitor, form=form, page=page)
    return (answer, 422) if faulty else answer


def _filter_form(monitor: Monitor) -> FilterForm:
    """The filters, with a choice of the place if there are several."""
    several = len(monitor.locations) > 1 and not servers.is_bare()
    if several:
        places.choose_from(monitor.locations)
    without = () if several else ("location",)
    return FilterForm(formdata=request.args, zone=times.zone(), without=without)


def _query(id: int, form: FilterForm) -> ResultQuery:
    return ResultQuery(
        monitor_id=id,
        from_=form.from_.data,
        to=form.to.data,
        verdict=form.verdict.data,
        location=form.location.data if "location" in form else None,
        per_page=_number_in_query("per_page", PER_PAGE, PAGE_SIZES),
        page=_number_in_query("page", 1),
    )


def _number_in_query(name: str, default: int, allowed: tuple[int, ...] = ()) -> int:
    raw = request.args.get(name, "")
    if not raw:
        return default
    number = digits(raw, 15)
    if not number or (allowed and number not in allowed):
        raise Invalid({name: [_("Choose a number from the list.")]})
    return number


@blueprint.get("/day")
def open_day(id: int) -> Response:
    """Redirect to the day in the field beside the bar."""
    day_text = request.args.get("day")
    day = url_for(".day", id=id, day=day_text) if day_text else None
    return redirect(day or url_for("monitors.show", id=id))


@blueprint.get("/days/<day>")
def day(id: int, day: str) -> str:
    """One day in UTC, as in the bar of 90 days."""
    store = current_store()
    monitor = store.monitors.get(id)
    try:
        start = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        previous_day, next_day = start - DAY, start + DAY
    except (ValueError, OverflowError):
        raise NotFound(N_("day"), day) from None
    query = ResultQuery(
        id, from_=start, to=next_day, per_page=PER_PAGE, page=_number_in_query("page", 1)
    )
    results = changes = chart = None
    incidents = store.incidents.overlapping(start, next_day, id)
    if not servers.is_bare():
        results = store.results.list(query)
        changes = store.results.list(replace(query, changes=True, per_page=CHANGES_SHOWN, page=1))
        if start < times.now():
            figures_of_day = store.results.statistics_between(id, start, next_day)
            chart = statistics.chart_context(monitor, figures_of_day, incidents)
    figures = store.results.report([id], start, next_day) if servers.is_whole() else {}
    return render_template(
        "monitors/day.html",
        monitor=monitor,
        start=start,
        previous_day=previous_day,
        next_day=next_day if next_day <= times.now() else None,
        incidents=incidents,
        drawn=chart,
        changes=changes,
        figures=figures.get(id),
        page=results,
    )
