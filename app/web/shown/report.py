"""A monthly availability report: the month and the monitors in the address, and their figures.

If WeasyPrint is installed (``pip install weasyprint``; it needs Pango from the system), the report
is also offered as a PDF file. Otherwise, people can print the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flask import current_app, render_template, request

from app import records
from app.errors import Invalid, Unsupported
from app.i18n import N_, _
from app.rules.figures import report_subject, report_title
from app.rules.text import record_id
from app.stats.report import ALL
from app.stats.series import day_state
from app.stores import current_store
from app.web.frame import choices, servers, tags
from app.web.shown import charts, monitor_rows, months, times
from app.web.shown.months import Month

INCIDENTS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Strip:
    """The days of a monitor: the bar, its sentence, and the start of the data, if the data begin
    after the start of the month.
    """

    bar: Any
    sentence: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Report:
    """``chosen``: the ids in the address; empty for all monitors. ``figures``: those of each
    monitor by its id, and of all monitors together under ``ALL``. ``cut``: there are more monitors
    than a report may have. ``earlier``: the figures of the previous month.
    """

    month: Month
    chosen: Sequence[int]
    tag: str | None
    monitors: Sequence[records.MonitorRef]
    figures: Mapping[int, Mapping[str, Any]]
    cut: bool
    earlier: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def previous(self, id: int = ALL) -> Mapping[str, Any] | None:
        """The figures of a monitor, or of all, in the previous month; None without checks."""
        figures = self.earlier.get(id)
        return figures if figures and figures["checks"] else None

    @property
    def total(self) -> Mapping[str, Any]:
        return self.figures[ALL]

    @property
    def title(self) -> str:
        names = [monitor.name for monitor in self.monitors]
        subject = report_subject(names, self.tag, chosen=bool(self.chosen) or self.cut)
        return report_title(subject, self.month.label)

    @property
    def file_name(self) -> str:
        return f"availability-{self.month}"

    @property
    def has_begun(self) -> bool:
        return self.month.span()[0] < times.now()

    @property
    def is_over(self) -> bool:
        return self.month.span()[1] <= times.now()

    def strip(self, id: int) -> Strip | None:
        """The bar of a monitor; None if the store has no days, or no data in them."""
        days = self.figures[id].get("days") or []
        states = [day_state(day) for day in days]
        with_data = [day for day, state in zip(days, states, strict=True) if state != "none"]
        if not with_data:
            return None
        begins_later = with_data[0] is not days[0]
        return Strip(
            charts.cells(days, days=True),
            monitor_rows.in_words(days, self.month.label),
            datetime.fromisoformat(with_data[0]["start"]) if begins_later else None,
        )

    def incidents(self) -> list[records.Incident]:
        """The incidents that count, in the order of their start."""
        ids = {monitor.id for monitor in self.monitors}
        monitor_id = next(iter(ids)) if len(ids) == 1 else None
        start, end = self.month.span()
        overlaps = current_store().incidents.overlapping(start, end, monitor_id)
        down_incidents = [
            incident
            for incident in overlaps
            if incident.monitor_id in ids
            and incident.classification is None
            and incident.severity == records.IncidentSeverity.DOWN
        ]
        return down_incidents[::-1]


def requested() -> Report:
    """The report that the address describes. Without a month, it is the previous one; the present
    one if that has no checks. Raises Invalid and Unsupported.
    """
    servers.refuse_bare()
    current = months.month_of(times.now())
    monitor_ids, tag = _chosen(), tags.requested()
    monitors, cut = _monitors(monitor_ids, tag)

    ids = [monitor.id for monitor in monitors]

    def figures_of(month: Month, *, days: bool) -> Mapping[int, Mapping[str, Any]]:
        return current_store().results.report(ids, *month.span(), days=days)

    month_text = request.args.get("month")
    month = months.read(month_text, current) if month_text else current.plus(-1) or current
    report = Report(month, monitor_ids, tag, monitors, figures_of(month, days=True), cut)
    if not month_text and not report.total["checks"]:
        now = figures_of(current, days=True)
        return replace(report, month=current, figures=now, earlier=report.figures)
    earlier = month.plus(-1)
    return replace(report, earlier=figures_of(earlier, days=False)) if earlier else report


def _chosen() -> list[int]:
    texts = request.args.getlist("monitors")
    try:
        return list(dict.fromkeys(record_id(text) for text in texts))
    except ValueError:
        raise Invalid({"monitors": [_("Choose monitors by their ids.")]}) from None


def _monitors(ids: Sequence[int], tag: str | None) -> tuple[Sequence[records.MonitorRef], bool]:
    """The monitors of the report by name, and whether there are more than a report may have. Chosen
    monitors must also have the tag.
    """
    limit = records.MAX_REPORT_MONITORS + 1
    if tag is None:
        refs = current_store().monitors.refs(ids=ids or None, limit=limit)
    else:
        tagged = choices.refs_of(records.MonitorQuery(tag=tag), limit)
        refs = [ref for ref in tagged if not ids or ref.id in ids]
    return refs[: records.MAX_REPORT_MONITORS], len(refs) > records.MAX_REPORT_MONITORS


# --- The report as a file -------------------------------------------------------------------------

LACKING = N_(
    "This installation cannot make PDF files. Print the page from your browser, or install"
    " WeasyPrint and Pango on the server."
)


def can_make_pdf() -> bool:
    """Whether the library is installed. It is imported for the first file, because it is large."""
    return find_spec("weasyprint") is not None


def pdf(report: Report, made_by: str) -> bytes:
    """Raises Unsupported."""
    try:
        import weasyprint
    except (ImportError, OSError):  # OSError: Pango is missing
        raise Unsupported(_(LACKING)) from None
    sheet = Path(str(current_app.static_folder)) / "css/pages/paper.css"
    page = render_template(
        "reports/paper.html",
        report=report,
        made_by=made_by,
        most_incidents=INCIDENTS_SHOWN,
        style=sheet.read_text("utf-8"),
    )
    file: bytes = weasyprint.HTML(string=page, url_fetcher=_refuse_url).write_pdf()
    return file


def _refuse_url(url: str, *_args: object, **_kwargs: object) -> Any:
    """Refuse to load a URL: a text in the page must not make the server request anything."""
    raise RuntimeError(f"A report loads nothing, and not {url}.")


# A spreadsheet runs a cell that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plain(text: str) -> str:
    """Text that no spreadsheet reads as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
