"""Status pages, their posts and their subscribers (decision 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from app.records.marks import Id, Mark, TextOrDefault
from app.records.paging import DEFAULT_PAGE_SIZE


class Visibility(StrEnum):
    PUBLIC = "public"  # listed at /status
    UNLISTED = "unlisted"  # reached by its link alone
    PASSWORD = "password"  # noqa: S105 (a word, not a secret)
    CLOSED = "closed"  # for people with an account


class PageTheme(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class PageState(StrEnum):
    OPERATIONAL = "operational"
    DEGRADED = "degraded"
    PARTIAL_OUTAGE = "partial_outage"
    MAJOR_OUTAGE = "major_outage"  # at least half of the monitors that count
    MAINTENANCE = "maintenance"
    UNKNOWN = "unknown"


class ComponentState(StrEnum):
    """The confirmed state of a monitor on a status page, the worst first."""

    OUTAGE = "outage"
    DEGRADED = "degraded"
    MAINTENANCE = "maintenance"
    UNKNOWN = "unknown"
    OPERATIONAL = "operational"


class PostState(StrEnum):
    INVESTIGATING = "investigating"
    IDENTIFIED = "identified"
    MONITORING = "monitoring"
    RESOLVED = "resolved"
    # of maintenance
    SCHEDULED = "scheduled"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class PostImpact(StrEnum):
    """The impact of a post on a monitor, the mildest first."""

    NONE = "none"
    DEGRADED = "degraded"
    OUTAGE = "outage"


class SubscriberEvent(StrEnum):
    """The events that the subscribers of a page are notified of. They are no alerts, so the API
    lists no deliveries for them.
    """

    POST_PUBLISHED = "post.published"
    POST_UPDATED = "post.updated"
    CONFIRM = "subscription.confirm"  # asks the owner of an address to confirm
    KNOWN = "subscription.known"  # for a subscriber who subscribes again


MAINTENANCE_STATES = (PostState.SCHEDULED, PostState.IN_PROGRESS, PostState.COMPLETED)
ENDED_STATES = (PostState.RESOLVED, PostState.COMPLETED)
# A ``scheduled`` post is not open yet; it becomes open with ``in_progress``.
OPEN_STATES = tuple(
    state for state in PostState if state not in (*ENDED_STATES, PostState.SCHEDULED)
)

MAX_SLUG = 64
MAX_PAGE_DESCRIPTION = 1_000
MAX_DOMAIN = 253
MAX_PAGE_MONITORS = 500
MAX_GROUPS = 100
MAX_FOOTER = 255
MAX_POST_BODY = 10_000
AUTO_POST_MINUTES = (1, 60)
SUBSCRIBER_CHANNELS = ("email", "webhook")
DEFAULT_PAGE_ZONE = "UTC"
PAGE_IMAGES = ("logo", "favicon")
DEFAULT_PAGE_LANGUAGE = "en"
# The names of languages, each in that language. A page is in English if there is no translation.
PAGE_LANGUAGES: Mapping[str, str] = {
    "bg": "Български", "ca": "Català", "cs": "Čeština", "da": "Dansk", "de": "Deutsch",
    "el": "Ελληνικά", "en": "English", "eo": "Esperanto", "es": "Español", "et": "Eesti",
    "fi": "Suomi", "fr": "Français", "hr": "Hrvatski", "hu": "Magyar", "id": "Indonesia",
    "it": "Italiano", "ja": "日本語", "ko": "한국어", "lt": "Lietuvių", "lv": "Latviešu",
    "nb": "Norsk", "nl": "Nederlands", "pl": "Polski", "pt": "Português",
    "pt-BR": "Português-Brasil",
    "ro": "Română", "ru": "Русский", "sk": "Slovenčina", "sl": "Slovenščina", "sv": "Svenska",
    "tr": "Türkçe", "uk": "Українська", "vi": "Việt", "zh-Hans": "简体中文",
    "zh-Hant": "繁體中文",
}  # fmt: skip
PAGE_DAYS = 90  # that a public page shows


@dataclass(frozen=True, slots=True)
class ComponentName:
    """The name of a monitor on a status page. ``key`` is the monitor's id."""

    key: Id
    value: str


@dataclass(frozen=True, slots=True)
class Group:
    """Monitors of a status page under one heading, in order."""

    name: str
    monitors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusPage:
    """A page that shows some monitors to the public. ``monitors`` are in their order on the
    page.
    """

    id: Id
    name: str
    slug: str
    description: str | None = None
    visibility: Annotated[str, Visibility] = Visibility.PUBLIC
    domain: str | None = None
    monitors: tuple[int, ...] = ()
    names: tuple[ComponentName, ...] = ()
    groups: tuple[Group, ...] = ()
    show_urls: bool = False
    show_response_times: bool = False
    auto_post_after: int | None = None  # minutes
    zone: TextOrDefault = DEFAULT_PAGE_ZONE
    theme: Annotated[str, PageTheme] = PageTheme.SYSTEM
    accent: str | None = None  # #2b59c3
    language: str = DEFAULT_PAGE_LANGUAGE
    home_url: str | None = None
    footer: str | None = None
    # read only
    logo_link: str | None = None
    favicon_link: str | None = None
    link: TextOrDefault = ""
    password_set: bool = False
    state: Annotated[str, PageState] = PageState.UNKNOWN
    subscribers: int = 0  # confirmed ones
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None


@dataclass(frozen=True, slots=True)
class PostUpdate:
    """One state of a post, with its text."""

    id: Id
    state: Annotated[str, PostState]
    body: str
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    corrected_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MonitorImpact:
    """The impact of a post on a monitor. ``key`` is the monitor's id."""

    key: Id
    value: Annotated[str, PostImpact]


@dataclass(frozen=True, slots=True)
class Post:
    """A post on a status page. ``impact`` has an entry for each of its monitors.

    ``updates`` are in the order in which they were written. The first one has the text that the
    post was created with, which is ``body`` too; ``state`` is the state of the last one.
    """

    id: Id
    status_page_id: Id
    title: str
    state: Annotated[str, PostState]
    body: str
    monitors: tuple[int, ...] = ()
    impact: tuple[MonitorImpact, ...] = ()
    incident_id: int | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    # read only
    automatic: bool = False  # written by the page's ``auto_post_after``
    updates: tuple[PostUpdate, ...] = ()
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
    corrected_at: datetime | None = None

    @property
    def affected(self) -> tuple[int, ...]:
        """The monitors on which it has an impact; all of them if the impact does not tell."""
        impaired = tuple(entry.key for entry in self.impact if entry.value != PostImpact.NONE)
        for_all = self.state in (*MAINTENANCE_STATES, *ENDED_STATES) or self.automatic
        return impaired or (self.monitors if for_all or not self.impact else ())


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Somebody who is notified of a page's posts. ``target``: an email address or a webhook URL."""

    id: Id
    channel: str
    target: TextOrDefault
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    confirmed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PostQuery:
    """The posts of a page, newest first. ``open``: only open and scheduled posts."""

    status_page_id: int
    open: bool = False
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1


@dataclass(frozen=True, slots=True)
class SubscriberQuery:
    status_page_id: int
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1


# --- Post templates: posts to start from

MAX_TEMPLATE_NAME = 80


@dataclass(frozen=True, slots=True)
class PostTemplate:
    """A post to start from, for every status page. Names are unique, whatever their case."""

    id: Id
    name: str
    title: str
    state: Annotated[str, PostState]
    body: str
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
