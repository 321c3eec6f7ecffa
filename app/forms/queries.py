"""The parameters of lists and other operations (API 1). An empty parameter counts as absent
(decision 1).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from app import records
from app.forms.fields import DateTime, Ids, Number, NumberChoice, RecordId, Switch, Text, WordChoice
from app.forms.schema import SchemaForm, query_values
from app.i18n import N_, _
from app.rules.brackets import Pairs
from app.rules.text import END_BEFORE_START

SEARCHED = "Finds it anywhere in the text, ignoring case."
TOO_LONG = N_("This covers more than %(most)s days. Send an earlier time.")
_LAST_PAGE = records.MAX_ID // 1000  # page times page size must fit into the database's integers


class ListForm(SchemaForm):
    """The parameters of a list. ``makes``: the class of the query."""

    makes: ClassVar[Any]


class PageForm(ListForm):
    """A list with the parameters of paging alone."""

    makes: ClassVar[Any] = records.PageQuery
    per_page = NumberChoice(
        "Page size",
        {size: str(size) for size in records.PAGE_SIZES},
        default=records.DEFAULT_PAGE_SIZE,
        description="How many records a page has.",
    )
    page = Number("Page", (1, None), default=1, description="The page number, from 1.")


class PingQueryForm(PageForm):
    makes = records.PingQuery


class MonitorFilterForm(ListForm):
    makes = records.MonitorQuery
    search = Text("Search", limit=records.MAX_SEARCH, description=SEARCHED)
    search_by = WordChoice(
        "Search in", records.MonitorSearchBy, default=records.MonitorSearchBy.NAME,
        description="`any` (extension) finds each word in the name, the URL or a tag.",
    )  # fmt: skip
    status_page_id = RecordId("Status page", description="Only the monitors of this status page.")
    contact_id = RecordId(
        "Contact", description="Extension: only the monitors that use this contact."
    )
    tag = Text("Tag", limit=records.MAX_TAG, description="Extension: only those with this tag.")
    location = Text(
        "Place", limit=records.MAX_LOCATION,
        description="Extension: only those that this place checks.",
    )  # fmt: skip
    depends_on = RecordId(
        "Reached through", description="Extension: only those that depend on this monitor directly."
    )


class MonitorQueryForm(PageForm, MonitorFilterForm):
    makes = records.MonitorQuery
    state = WordChoice("State", records.MonitorStatus, description="Extension.")
    hours = Switch("Hours", default=False, description="Extension: with each its last 24 hours.")
    sort_by = WordChoice(
        "Order by", records.MonitorSortBy, default=records.MonitorSortBy.ID,
        description="Extensions: natural (by name, Shop 2 before Shop 10); state (descending is the"
        " worst first, then in natural order).",
    )  # fmt: skip
    sort = WordChoice("Direction", records.Sort, default=records.Sort.DESC)


class IncidentQueryForm(PageForm):
    makes = records.IncidentQuery
    search = Text("Search", limit=records.MAX_SEARCH, description=SEARCHED)
    search_by = WordChoice(
        "Search in", records.IncidentSearchBy, default=records.IncidentSearchBy.URL
    )
    monitor_id = RecordId("Monitor", description="Only the incidents of this monitor.")
    status = WordChoice("Status", records.IncidentStatus)
    severity = WordChoice(
        "Severity", records.IncidentSeverity,
        description="An addition of ours: down, or slow for so long that it alerts.",
    )  # fmt: skip
    sort_by = WordChoice(
        "Order by", records.IncidentSortBy, default=records.IncidentSortBy.ENDED_AT
    )
    sort = WordChoice("Direction", records.Sort, default=records.Sort.DESC)


class BetweenForm(PageForm):
    """A list of records between two moments."""

    from_ = DateTime("From", name="from", description="The earliest to list.")
    to = DateTime("To", description="The latest to list.")

    def check_cross_field(self) -> None:
        start, end = self.from_, self.to
        if self.flawless(start, end) and start.data and end.data and end.data < start.data:
            end.add_fault(_("This must not be earlier than from."))


class ResultQueryForm(BetweenForm):
    makes = records.ResultQuery
    verdict = WordChoice("Verdict", records.Verdict)
    changes = Switch(
        "Changes", default=False,
        description="Extension: only the first and those at which verdict or cause changed.",
    )  # fmt: skip
    location = Text(
        "Place", limit=records.MAX_LOCATION,
        description="Extension: only those of the place of this name.",
    )  # fmt: skip


class MarkerQueryForm(BetweenForm):
    makes = records.MarkerQuery
    monitor_id = RecordId("Monitor", description="Only markers that concern this monitor.")


class DeliveryQueryForm(PageForm):
    makes = records.DeliveryQuery
    monitor_id = RecordId("Monitor")
    incident_id = RecordId("Incident")
    contact_id = RecordId("Contact", description="Only messages to this contact.")
    channel = WordChoice("Channel", records.Channel)
    status = WordChoice("Status", records.DeliveryStatus)


class SubscriberQueryForm(PageForm):
    makes = records.SubscriberQuery


class PostQueryForm(PageForm):
    makes = records.PostQuery
    open = Switch(
        "Open", default=False, description="Only posts that have not ended, scheduled ones too."
    )


class DraftQueryForm(SchemaForm):
    incident_id = RecordId("Incident", required=True, description="What the post is about.")


class StatisticsQueryForm(SchemaForm):
    range = WordChoice(
        "Range", records.StatisticsRange, default=records.StatisticsRange.DAY,
        description="How far back to look.",
    )  # fmt: skip
    from_ = DateTime("From", name="from", description="Extension: with to, in place of range.")
    to = DateTime("To", description="The end of that time; it may be still to come.")

    def check_cross_field(self) -> None:
        start, end = self.from_, self.to
        if not self.flawless(start, end):
            return
        if start.data or end.data:
            check_span(start, end)
            if self.range.sent:
                self.range.add_fault(_("Send range, or from and to."))


class SlowAlertsQueryForm(SchemaForm):
    slow_after = Number(
        "Slow after", records.SLOW_AFTER_MS, required=True,
        description="ms: a slower answer is slow.",
    )  # fmt: skip
    slow_alert_after = Number(
        "Alert after", (1, records.SLOW_ALERT_AFTER_MINUTES[1]), required=True,
        description="Minutes whose median must be slow.",
    )  # fmt: skip


def check_span(start: DateTime, end: DateTime) -> None:
    """Add a fault if the start or the end is missing, the end is not after the start, or the time
    between them is too long.
    """
    if start.data is None or end.data is None:
        (end if start.data else start).add_fault(_("Send from and to, or neither."))
    elif end.data <= start.data:
        end.add_fault(_(END_BEFORE_START))
    elif end.data - start.data > timedelta(days=records.MAX_REPORT_DAYS):
        end.add_fault(_(TOO_LONG, most=records.MAX_REPORT_DAYS))


class ReportQueryForm(SchemaForm):
    """The whole hours from and to, and the monitors."""

    from_ = DateTime("From", name="from", required=True, description="A whole hour in UTC.")
    to = DateTime("To", required=True, description="A whole hour in UTC; it may be still to come.")
    monitors = Ids(
        "Monitors", limit=records.MAX_REPORT_MONITORS,
        description="Comma-separated ids. Leave empty for all.",
    )  # fmt: skip
    days = Switch("Days", default=False, description="With each monitor its days, in UTC.")

    def check_cross_field(self) -> None:
        start, end = self.from_, self.to
        for field in (start, end):
            if field.data and field.data.replace(minute=0, second=0, microsecond=0) != field.data:
                field.add_fault(_("Send a whole hour, such as 2026-11-01T00:00:00."))
        if self.flawless(start, end):
            check_span(start, end)


class NoQueryForm(SchemaForm):
    """An operation without parameters."""


def list_query(form_class: type[ListForm], pairs: Pairs, **ids: int) -> Any:
    """The query of a list. ``ids``: the ids in its path, such as ``monitor_id``."""
    values = query_values(form_class, pairs)
    if "page" in values:
        values["page"] = min(values["page"], _LAST_PAGE)
    if "from" in values:
        values["from_"] = values.pop("from")
    for name in ("monitor_id", "incident_id", "status_page_id"):
        # No record has such an id, and the database could not compare it. 0 finds nothing either.
        if values.get(name) is not None and not 1 <= values[name] <= records.MAX_ID:
            values[name] = 0
    return form_class.makes(**ids, **values)


def page_query(pairs: Pairs) -> records.PageQuery:
    """The query of a list with the parameters of paging alone."""
    query: records.PageQuery = list_query(PageForm, pairs)
    return query
