"""A part of a chart in full width: the time between ``from`` and ``to`` in the address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from flask import request

from app.errors import Invalid
from app.forms.browser import BrowserForm
from app.forms.fields import DateTime
from app.forms.queries import check_span
from app.i18n import N_, _
from app.records import MAX_REPORT_DAYS
from app.rules import text
from app.rules.time import iso
from app.web.frame import links
from app.web.shown import times

MAX_LENGTH = timedelta(days=MAX_REPORT_DAYS)
NAMES = ("from", "to")
ANCHOR = "chart"


class Instant(DateTime):
    """A time as a person types it, or in UTC with a Z, as links have it, which others may open."""

    def read(self, value: str) -> datetime:
        return text.moment(value) if value.endswith("Z") else super().read(value)


class SpanForm(BrowserForm):
    from_ = Instant(N_("From"), name="from")
    to = Instant(N_("To"))

    class Meta:
        csrf = False  # the form changes nothing

    def check_cross_field(self) -> None:
        if self.flawless(self.from_, self.to):
            check_span(self.from_, self.to)


@dataclass(frozen=True, slots=True)
class Zoom:
    """The chosen time in words, and the addresses of earlier, later and wider times, if any."""

    start: datetime
    end: datetime

    @property
    def words(self) -> str:
        start, end = times.local(self.start), times.local(self.end)
        until = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%a %-d %b, %H:%M}"
        return _("%(start)s to %(end)s", start=f"{start:%a %-d %b %Y, %H:%M}", end=until)

    @property
    def earlier(self) -> str:
        length = self.end - self.start
        return _address(self.start - length, self.start)

    @property
    def later(self) -> str | None:
        length = self.end - self.start
        return _address(self.end, self.end + length) if self.end < times.now() else None

    @property
    def wider(self) -> str | None:
        length = min(2 * (self.end - self.start), MAX_LENGTH)
        if length <= self.end - self.start:
            return None
        end = min(self.end + length / 4, max(times.now(), self.end))
        return _address(end - length, end)


def form() -> SpanForm:
    """The form, with the time of the address in the person's zone."""
    span = SpanForm(formdata=request.args, zone=times.zone())
    for field in (span.from_, span.to):
        field.sent_text = None
    return span


def requested() -> Zoom | None:
    """The time in the address. Raises Invalid."""
    if not any(request.args.get(name) for name in NAMES):
        return None
    span = form()
    if not span.validate() or span.from_.data is None or span.to.data is None:
        raise Invalid(span.named_errors())
    return Zoom(span.from_.data, span.to.data)


def _address(start: datetime, end: datetime) -> str:
    return links.here(**{"range": None, "from": iso(start), "to": iso(end), "_anchor": ANCHOR})
