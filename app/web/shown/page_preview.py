"""The page that an editor's form describes, as the public would see it on a good day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from flask import current_app

from app.i18n import N_, _
from app.records import (
    DEFAULT_PAGE_ZONE,
    PAGE_DAYS,
    Component,
    ComponentState,
    PageState,
    PageTheme,
    PublicDay,
    PublicPage,
    StatusPage,
)
from app.rules.time import zone_of
from app.web.frame.assets import asset
from app.web.shown import times
from app.web.shown.page_lines import Line

UNNAMED = N_("Your page")
RESPONSE_TIME = 120  # ms


def html(form: Any, lines: Iterable[Line]) -> str:
    """The document of the preview. ``form`` may have faults, and may not be validated."""
    now = times.now()
    page = StatusPage(
        0,
        form.name.data or _(UNNAMED),
        "",
        description=form.description.data,
        zone=form.zone.data or DEFAULT_PAGE_ZONE,
        theme=form.theme.data or PageTheme.SYSTEM,
    )
    days = _good_days(now.astimezone(zone_of(page.zone)).date())
    components = list(_components(lines, form, days))
    state = PageState.OPERATIONAL if components else PageState.UNKNOWN
    public = PublicPage(page, state, components, posts=(), windows=(), made_at=now)
    made: str = current_app.extensions["wakeful.preview"](public, asset)
    return made


def _good_days(today: date) -> Sequence[PublicDay]:
    first = today - timedelta(days=PAGE_DAYS - 1)
    return [PublicDay(first + timedelta(days=n), 100.0) for n in range(PAGE_DAYS)]


def _components(lines: Iterable[Line], form: Any, days: Sequence[PublicDay]) -> Iterator[Component]:
    group = None
    for line in lines:
        if line.monitor is None:
            group = line.text
            continue
        yield Component(
            -line.monitor.id,  # figures that are kept for the monitor's id are real ones
            line.name,
            ComponentState.OPERATIONAL,
            group=group,
            url=line.monitor.url or None if form.show_urls.data else None,
            response_time=RESPONSE_TIME if form.show_response_times.data else None,
            uptime=100.0,
            days=days,
        )
