"""The front of a status page and its preview in the editor, the list of public pages, and the form
for a page's password.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from functools import partial
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment
from markupsafe import Markup
from werkzeug.wrappers import Response

from app.i18n import N_, _, spoken
from app.pages.addresses import HTML, PageContext
from app.pages.bars import BarsCache
from app.pages.feed_text import affected
from app.records import (
    ENDED_STATES,
    MAINTENANCE_STATES,
    OPEN_STATES,
    Component,
    ComponentState,
    PostState,
    PublicPage,
    PublicWindow,
    StatusPage,
)
from app.rules.calendar_entries import series, uid_of_post
from app.rules.figures import day_and_month, percent, span, zoned_moment
from app.rules.linked import linked
from app.rules.page_state import COMPONENT, ORDER, PAGE, POST, worst
from app.rules.time import in_zone, iso, zone_of

BARS = BarsCache()
WRONG = N_("The password is wrong.")
LINK, NO_LINK = ' href="', ' data-href="'
ICON = "<use"
MAX_PLANS = 10  # on the page; the calendar has all
MAX_DATES = 2  # of repeated maintenance
MAX_NAMES = 10  # of the monitors in one state, in the headline


@dataclass(frozen=True, slots=True)
class Section:
    """The monitors under one heading. ``name``: the heading; None for monitors without one."""

    name: str | None
    components: Sequence[Component]

    @property
    def state(self) -> ComponentState:
        return worst([component.state for component in self.components if component.counts])

    @property
    def counted(self) -> str:
        """The number of monitors; if the section is not operational, with the number in its
        state.
        """
        total = len(self.components)
        if self.state == ComponentState.OPERATIONAL:
            return str(total)
        count = sum(component.state == self.state for component in self.components)
        return _("%(count)s of %(total)s", count=count, total=total)


@dataclass(frozen=True, slots=True)
class PublicPlan:
    """Maintenance with its next dates; ``repeats``: the later ones in words."""

    windows: Sequence[PublicWindow]
    repeats: str


@dataclass(frozen=True, slots=True)
class AffectedMonitors:
    """The monitors of a state that is not operational. ``more``: how many ``components`` lacks."""

    word: str
    components: Sequence[Component]
    more: int


def front_page(
    page: PublicPage, context: PageContext, template: str = "status/front.html"
) -> bytes:
    announced = [post for post in page.posts if post.state == PostState.SCHEDULED]
    return render(
        template,
        page.page,
        context,
        made_at=page.made_at,
        state=PAGE[page.state],
        sections=sections(page.components),
        # Posts about incidents come before posts about maintenance.
        open_posts=sorted(
            (post for post in page.posts if post.state in OPEN_STATES),
            key=lambda post: post.state in MAINTENANCE_STATES,
        ),
        announced=announced,
        past_posts=[post for post in page.posts if post.state in ENDED_STATES],
        recent_incidents=page.recent_incidents,
        running=_plans(page, running=True),
        coming=_plans(page, running=False),
        affects=partial(affected, page.components),
        affected_states=_affected_by_state(page.components),
        today=page.components[0].days[-1].day if page.components else None,
        shapes=_shapes(page),
    )


def _shapes(page: PublicPage) -> tuple[str, ...]:
    """The icons of all states on the page."""
    looks = [PAGE[page.state], *(COMPONENT[component.state] for component in page.components)]
    for post in page.posts:
        looks += [POST[post.state], *(POST[update.state] for update in post.updates)]
    return tuple(sorted({"up", "degraded", *(look.shape for look in looks)}))


def sections(components: Sequence[Component]) -> list[Section]:
    return [
        Section(name, list(members))
        for name, members in groupby(components, lambda component: component.group)
    ]


def _plans(page: PublicPage, *, running: bool) -> list[PublicPlan]:
    """The maintenance that runs, or that comes: windows that are not cancelled, and that no post
    announces.
    """
    posted = {uid_of_post(post) for post in page.posts if post.state in MAINTENANCE_STATES}
    by_series: dict[str, list[PublicWindow]] = {}
    for window in page.windows:
        is_shown = not window.cancelled and window.uid not in posted
        if is_shown and (window.start_at <= page.made_at) == running:
            by_series.setdefault(series(window.uid), []).append(window)
    return [
        PublicPlan(windows[:MAX_DATES], "" if running else windows[0].repeats)
        for windows in list(by_series.values())[:MAX_PLANS]
    ]


def _affected_by_state(components: Sequence[Component]) -> list[AffectedMonitors]:
    """The components that are not operational, the worst state first."""
    groups = []
    for state in ORDER[:-1]:
        members = [component for component in components if component.state == state]
        if members:
            more = max(0, len(members) - MAX_NAMES)
            groups.append(AffectedMonitors(_(COMPONENT[state].word), members[:MAX_NAMES], more))
    return groups


def page_list(pages: Sequence[StatusPage], context: PageContext) -> bytes:
    template = context.templates.get_template("status/list.html")
    return template.render(context=context, pages=pages, page=None).encode()


def password_form(context: PageContext, status: int = 200, fault: str | None = None) -> Response:
    template = context.templates.get_template("status/password.html")
    body = template.render(context=context, page=None, fault=fault)
    return Response(body, status, content_type=HTML)


def render(template: str, page: StatusPage, context: PageContext, **values: Any) -> bytes:
    """A page of a status page, with the values that all its templates need."""
    shared = {
        "page": page,
        "home": page.home_url and urlsplit(page.home_url).hostname,
        "own": language_attribute(context.brand.language),
        "context": context,
        "times": PageTimes(zone_of(page.zone)),
        "looks": COMPONENT,
        "post_looks": POST,
        "bars": BARS.of,
        "percent": percent,
        "span": span,
        "linked": linked,
    }
    return context.templates.get_template(template).render(shared | values).encode()


def language_attribute(language: str) -> Markup | str:
    """The ``lang`` attribute for texts of the page's authors, if Wakeful's sentences are in another
    language.
    """
    return "" if language == spoken() else Markup(' lang="{}"').format(language)


def preview(templates: Environment, public_page: PublicPage, **look: Any) -> str:
    """The whole document, with inactive links: a page that is not saved has no other pages.
    ``look``: ``static``, ``brand``, ``logo`` and ``colours`` of its ``PageContext``.
    """
    context = PageContext(templates=templates, up="", front="", **look)
    head, tag, body = (
        front_page(public_page, context, "status/preview.html").decode().partition("<body")
    )
    body = body.replace(LINK, NO_LINK).replace(ICON + NO_LINK, ICON + LINK)
    return head + tag + body


# --- Times and texts, in the page's zone


@dataclass(frozen=True, slots=True)
class PageTimes:
    """Moments as ``<time>``, which a script converts to the reader's zone."""

    zone: tzinfo

    def at(self, moment: datetime | None) -> Markup | str:
        """``22 Nov 2026, 09:32 CET``."""
        if moment is None:
            return ""
        return _time(moment, zoned_moment(moment, self.zone), "at")

    def since(self, moment: datetime, today: date | None) -> Markup:
        """``09:32`` for a moment today, otherwise ``22 Nov, 09:32``."""
        local = in_zone(moment, self.zone)
        text = f"{local:%H:%M}"
        if local.date() != today:
            text = f"{day_and_month(local)}, {text}"
        return _time(moment, text, "since")

    def between(self, start: datetime, end: datetime | None) -> Markup:
        """``22 Nov 2026, 09:32 – 10:15 CET``, or ``22 Nov, 23:32 – 23 Nov 2026, 00:15 CET``."""
        begin = in_zone(start, self.zone)
        if end is None:
            from_ = f"{day_and_month(begin)}, {begin:%H:%M}"
            return Markup("{} – {}").format(_time(start, from_, "clock"), _("now"))
        stop = in_zone(end, self.zone)
        of_one_day = begin.date() == stop.date()
        year = f" {begin.year:04}" if of_one_day or begin.year != stop.year else ""
        day = "" if of_one_day else f"{day_and_month(stop)} {stop.year:04}, "
        from_ = f"{day_and_month(begin)}{year}, {begin:%H:%M}"
        until = f"{day}{stop:%H:%M} {stop.tzname() or ''}"
        times = _time(start, from_, "clock"), _time(end, until.rstrip(), "at")
        return Markup("<span data-range>{} – {}</span>").format(*times)


def _time(moment: datetime, text: str, mark: str) -> Markup:
    return Markup('<time datetime="{}" data-{}>{}</time>').format(iso(moment), Markup(mark), text)  # noqa: S704 - our own words
