"""A month in the history of a status page: each day with its incidents, posts and maintenance."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from urllib.parse import parse_qs

from app.i18n import _
from app.pages.addresses import PageContext
from app.pages.feed_text import affected
from app.pages.front import render, sections
from app.records import (
    Component,
    Post,
    PublicDay,
    PublicIncident,
    PublicMonth,
    PublicPage,
    PublicWindow,
)
from app.rules.figures import MONTHS
from app.rules.time import in_zone, zone_of

_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})", re.ASCII)
YEARS_BACK = 20


@dataclass(frozen=True, slots=True)
class Day:
    """A day with its events. ``troubled``: the monitors with time down, unknown or in maintenance,
    and their figures. ``has_figures``: whether anything was checked.
    """

    day: date
    troubled: Sequence[tuple[Component, PublicDay]]
    incidents: Sequence[PublicIncident]
    posts: Sequence[Post]
    windows: Sequence[PublicWindow]
    has_figures: bool = True

    @property
    def uneventful(self) -> bool:
        return not (self.troubled or self.incidents or self.posts or self.windows)


def month_of_query(query: str, page: PublicPage) -> tuple[int, int] | None:
    """The month in a query; the present month if the query has none; None if it is invalid."""
    now = page.made_at.astimezone(zone_of(page.page.zone))
    text = parse_qs(query, max_num_fields=20).get("month", [""])[0] if query.count("&") < 20 else ""
    if not text:
        return now.year, now.month
    match = _MONTH.fullmatch(text)
    month = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= month[1] <= 12 or not now.year - YEARS_BACK <= month[0] <= now.year:
        return None
    return month


def month_page(month: PublicMonth, context: PageContext) -> bytes:
    return render(
        "status/history.html",
        month.page,
        context,
        made_at=month.made_at,
        title=f"{_(MONTHS[month.month - 1])} {month.year}",
        earlier=_month_query(month, -1) if month.earlier else None,
        later=_month_query(month, 1) if month.later else None,
        sections=sections(month.components),
        days=days(month),
        component_names={component.id: component.name for component in month.components},
        affects=partial(affected, month.components),
    )


def _month_query(month: PublicMonth, by: int) -> str:
    year, index = divmod(month.year * 12 + month.month - 1 + by, 12)
    return f"{year:04}-{index + 1:02}"


def days(month: PublicMonth) -> list[Day]:
    """The days of the month, the newest first."""
    zone = zone_of(month.page.zone)

    def is_on(day: date, start: datetime | None, end: datetime | None) -> bool:
        begin = in_zone(start, zone).date() if start else None
        stop = in_zone(end or month.made_at, zone).date()
        return begin is not None and begin <= day <= stop

    windows = [window for window in month.windows if not window.cancelled]
    of_month = []
    # All monitors have the same days.
    for index, day in enumerate(figures.day for figures in _days_of_month(month)):
        figures_of = [(component, component.days[index]) for component in month.components]
        of_month.append(
            Day(
                day,
                [
                    (component, figures)
                    for component, figures in figures_of
                    if figures.down_s or figures.maintenance_s or figures.unknown_s
                ],
                [item for item in month.incidents if is_on(day, item.started_at, item.ended_at)],
                [post for post in month.posts if is_on(day, *_period_of(post))],
                [window for window in windows if is_on(day, window.start_at, window.end_at)],
                any(figures.uptime is not None for _component, figures in figures_of),
            )
        )
    return of_month[::-1]


def _days_of_month(month: PublicMonth) -> Sequence[PublicDay]:
    if month.components:
        return month.components[0].days
    last = calendar.monthrange(month.year, month.month)[1]
    every = [date(month.year, month.month, number) for number in range(1, last + 1)]
    now = month.made_at.astimezone(zone_of(month.page.zone)).date()
    return [PublicDay(day) for day in every if day <= now]


def _period_of(post: Post) -> tuple[datetime | None, datetime | None]:
    if post.starts_at is not None:
        return post.starts_at, post.ends_at
    return post.created_at, post.created_at
