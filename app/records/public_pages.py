"""Status pages as the public sees them: these records have no field that the pages do not show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from app.records.status_pages import (
    DEFAULT_PAGE_LANGUAGE,
    ComponentState,
    PageState,
    PageTheme,
    Post,
    StatusPage,
)


@dataclass(frozen=True, slots=True)
class Brand:
    """How the pages of a status page look. ``logo`` and ``favicon``: the versions of its images, in
    their addresses.
    """

    theme: str = PageTheme.SYSTEM
    accent: str | None = None
    language: str = DEFAULT_PAGE_LANGUAGE
    logo: str | None = None
    favicon: str | None = None


UNBRANDED = Brand()


@dataclass(frozen=True, slots=True)
class PublicDay:
    """One day of a monitor, in the page's zone. ``uptime`` in percent; None without data.

    Durations in seconds; ``incidents`` counts those that touch the day.
    """

    day: date
    uptime: float | None = None
    down_s: int = 0
    maintenance_s: int = 0
    unknown_s: int = 0
    incidents: int = 0


@dataclass(frozen=True, slots=True)
class Component:
    """A monitor on a status page, under the name that the page gives it.

    ``since``: when its present state began. ``uptime`` in percent over ``days``. ``url`` and
    ``response_time`` (ms) are None unless the page shows them. ``group`` is the group's name.
    ``counts``: whether the state of the page and of the group depends on this monitor.
    """

    id: int
    name: str
    state: ComponentState
    since: datetime | None = None
    group: str | None = None
    url: str | None = None
    response_time: int | None = None
    uptime: float | None = None
    days: Sequence[PublicDay] = ()
    counts: bool = True


@dataclass(frozen=True, slots=True)
class PublicIncident:
    """An incident of a monitor on the page. ``cause``: a sentence for the public, without internal
    details. ``unwatched``: for a part of it there were no checks, so it may have been shorter.
    """

    id: int
    component: int
    started_at: datetime
    ended_at: datetime | None
    cause: str
    unwatched: bool = False


@dataclass(frozen=True, slots=True)
class PublicWindow:
    """One occurrence of a maintenance window, or a scheduled post's times.

    ``uid`` and ``sequence`` belong to its calendar entry (RFC 5545). ``components``: empty means
    all. ``cancelled``: it was deleted, and calendars must show that. ``repeats``: the occurrences
    after the first two in words, such as "and each Sunday".
    """

    uid: str
    sequence: int
    name: str
    start_at: datetime
    end_at: datetime
    components: tuple[int, ...] = ()
    description: str = ""
    updated_at: datetime | None = None
    cancelled: bool = False
    repeats: str = ""


@dataclass(frozen=True, slots=True)
class PublicPage:
    """The contents of the first page of a status page.

    ``made_at``: when these figures were read. ``posts``: open and scheduled posts, and posts that
    ended within the last 14 days, newest first. ``windows``: windows that run now or start within
    90 days, by start. ``recent_incidents``: how many incidents overlap the last 14 days.
    """

    page: StatusPage
    state: PageState
    components: Sequence[Component]
    posts: Sequence[Post]
    windows: Sequence[PublicWindow]
    made_at: datetime
    recent_incidents: int = 0


@dataclass(frozen=True, slots=True)
class PublicMonth:
    """A month of a page's history: the incidents, posts and maintenance windows that overlap it,
    newest first. ``components`` have the days of that month. ``earlier``, ``later``: whether other
    months have a history.
    """

    page: StatusPage
    year: int
    month: int
    components: Sequence[Component]
    incidents: Sequence[PublicIncident]
    posts: Sequence[Post]
    windows: Sequence[PublicWindow]
    earlier: bool
    later: bool
    made_at: datetime


@dataclass(frozen=True, slots=True)
class PageAddress:
    """How the address of a status page names it, and who may read it.

    ``password_turn`` changes with each new password. ``version`` changes with the page's settings.
    """

    id: int
    slug: str
    name: str
    domain: str | None
    visibility: str
    password_turn: int
    version: int
    brand: Brand
