"""Monitors: choices, limits, the record and the list's parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, get_type_hints

from app.records.assertions import Assertion
from app.records.locations import DEFAULT_PLACES, LocationRule
from app.records.marks import (
    AlertDays,
    Bit,
    ClockTime,
    FixedKeys,
    Id,
    Mark,
    Percent,
    Range,
    TextOrDefault,
)
from app.records.paging import DEFAULT_PAGE_SIZE, Sort
from app.records.pings import (
    DEFAULT_GRACE,
    DEFAULT_SCHEDULE_ZONE,
    GRACE_SECONDS,
    MAX_RUN_SECONDS,
    PERIOD_SECONDS,
)
from app.records.secrets import Pair


class AlertCondition(StrEnum):
    """The condition that raises the alert (API 3; decision 3 says how it is judged)."""

    URL_UNAVAILABLE = "url_unavailable"
    URL_TEXT = "url_text"
    URL_NO_TEXT = "url_no_text"


class RequestMethod(StrEnum):
    GET = "GET"
    POST = "POST"
    HEAD = "HEAD"
    PUT = "PUT"
    DELETE = "DELETE"
    PATCH = "PATCH"
    OPTIONS = "OPTIONS"


class StartTls(StrEnum):
    """The protocol in which a check asks for TLS (decision 17)."""

    SMTP = "smtp"
    IMAP = "imap"
    POP3 = "pop3"
    FTP = "ftp"
    LDAP = "ldap"
    XMPP = "xmpp"
    POSTGRES = "postgres"
    MYSQL = "mysql"


class MonitorSearchBy(StrEnum):
    NAME = "name"
    URL = "url"
    ANY = "any"  # an addition to the base API: each word is in the name, the URL or a tag


class MonitorSortBy(StrEnum):
    ID = "id"
    NAME = "name"
    URL = "url"
    # additions to the base API
    NATURAL = "natural"  # by name, "Shop 2" before "Shop 10"
    STATE = "state"  # descending: the worst first
    RESPONSE_TIME = "response_time"
    EXPIRES_AT = "expires_at"  # the earlier of certificate and domain


INTERVALS = (60, 180, 300, 600, 900, 1800, 3600)  # seconds
CHECK_EVERY_SECONDS = (10, 86_400)
ALERT_DAYS = (0, 1, 2, 3, 7, 14, 30, 60)
AUTO = "auto"  # of ``ssl_alert_days``: computed from the lifetime of the certificate
DEFAULT_SSL_ALERT_DAYS = 14  # of a new monitor in the dashboard
CACHE_BUSTER = (0, 1)
UPTIME_RANGES = ("24h", "7d", "30d", "90d")  # of ``Monitor.uptime`` (decision 3)
# Methods whose answer has no body to search (decision 3).
METHODS_WITHOUT_TEXT = frozenset({RequestMethod.HEAD, RequestMethod.OPTIONS})
TEXT_CONDITIONS = frozenset({AlertCondition.URL_TEXT, AlertCondition.URL_NO_TEXT})
MAX_URL = 2_048
MAX_TEXT_LOOKUP = 255
MAX_HEADERS = 20
MAX_HEADER_BYTES = 4_096  # name plus value
MAX_ALERTS = 20
MAX_ALERT_VALUE = 2_048
MAX_REQUEST_BODY_BYTES = 64 * 1024
MAX_ACCEPTED_STATUSES = 255
MAX_TAGS = 20
MAX_NOTES = 10_000
MAX_TAG = 50
TIMEOUT_SECONDS = (1, 60)
SLOW_AFTER_MS = (1, 60_000)
SLOW_ALERT_AFTER_MINUTES = (0, 60)  # 0: never
CONFIRMATIONS = (0, 5)
REMIND_AFTER_MINUTES = (5, 1_440)
MAX_DEPENDS_ON = 10
PING_COUNT = (1, 10)
DEFAULT_TIMEOUT = 30
DEFAULT_PING_COUNT = 3
DEFAULT_CONFIRMATIONS = 2
DEFAULT_ACCEPTED_STATUSES = "200-399"
DEFAULT_QUIET_ZONE = "UTC"


@lru_cache(maxsize=1_000)  # a list asks for each monitor
def nearest_interval(seconds: float) -> int:
    """The nearest of ``INTERVALS``; the shorter one if two are equally near."""
    return min(INTERVALS, key=lambda interval: (abs(interval - seconds), interval))


def interval_fields(seconds: int) -> dict[str, int]:
    """The fields that set the pause between checks: ``interval`` alone, or ``check_every`` too."""
    fields = {"interval": nearest_interval(seconds)}
    return fields if seconds in INTERVALS else {**fields, "check_every": seconds}


class MonitorStatus(StrEnum):
    """The status that a monitor shows (decision 3): the first of PAUSED to UNREACHABLE that
    applies, else FAILING, else that of its last verdict.
    """

    PAUSED = "paused"
    MAINTENANCE = "maintenance"
    PENDING = "pending"
    UNREACHABLE = "unreachable"
    UP = "up"
    DEGRADED = "degraded"
    DOWN = "down"
    FAILING = "failing"  # its last check failed and is repeated; the API calls it ``down``
    UNKNOWN = "unknown"


# The most urgent first.
WORST_FIRST = (
    MonitorStatus.DOWN, MonitorStatus.FAILING, MonitorStatus.UNREACHABLE, MonitorStatus.DEGRADED,
    MonitorStatus.UNKNOWN, MonitorStatus.MAINTENANCE, MonitorStatus.PENDING, MonitorStatus.UP,
    MonitorStatus.PAUSED,
)  # fmt: skip


def counts_for_api(counts: Mapping[str, int]) -> dict[str, int]:
    """The number of monitors in each status, as the API counts them: those that are ``failing``
    count as ``down`` too.
    """
    for_api = {status.value: counts.get(status, 0) for status in MonitorStatus}
    for_api[MonitorStatus.DOWN] += for_api[MonitorStatus.FAILING]
    return for_api


@dataclass(frozen=True)  # without slots: lists copy its fields as one dict
class Monitor:
    """A monitor as stored, and its present state.

    A client can write the fields that ``app/forms/monitor.py`` has. Header values, alert values and
    ``request_body`` are not masked here: ``mask`` them before you show them. The password is not
    here. ``uptime``: percent for each of ``UPTIME_RANGES``; None without data. ``response_time`` is
    in ms. Fields that a remote server with only the base API may lack have defaults.
    """

    id: Id
    name: str
    url: str
    interval: int
    alert_condition: Annotated[str, AlertCondition] = AlertCondition.URL_UNAVAILABLE
    alert_text_lookup: str | None = None
    request_method: Annotated[str, RequestMethod] = RequestMethod.GET
    request_headers: Annotated[tuple[Pair, ...], Mark.SECRET] = ()
    request_auth_username: str | None = None
    request_auth_password_set: bool = False
    request_body: Annotated[str | None, Mark.SECRET] = None
    cache_buster: Bit = 0
    ssl_alert_days: AlertDays | None = None
    domain_alert_days: int | None = None
    maintenance_start_at: datetime | None = None
    maintenance_end_at: datetime | None = None
    alerts: Annotated[tuple[Pair, ...], Mark.SECRET, Mark.ALERTS] = ()
    # additions to the base API, optional on write
    check_every: int | None = None  # seconds between checks; None: ``interval`` has them
    timeout: int = DEFAULT_TIMEOUT  # seconds
    accepted_statuses: str = DEFAULT_ACCEPTED_STATUSES
    follow_redirects: bool = True
    verify_tls: bool = True
    slow_after: int | None = None  # ms
    slow_alert_after: int | None = None  # minutes; None or 0: slowness opens no incident
    confirmations: int = DEFAULT_CONFIRMATIONS
    tags: tuple[str, ...] = ()
    # Plain text. None in lists, which do not load it
    notes: Annotated[str | None, Mark.PROMISED, Mark.OMIT_EMPTY] = None
    remind_after: int | None = None  # minutes between reminders while unacknowledged
    quiet_start: ClockTime | None = None  # with ``quiet_end``: alerts wait until then
    quiet_end: ClockTime | None = None
    quiet_zone: str = DEFAULT_QUIET_ZONE  # IANA name of the zone of ``quiet_start``, ``quiet_end``
    locations: tuple[str, ...] = DEFAULT_PLACES  # the names of its places
    location_rule: Annotated[str, LocationRule] = LocationRule.MAJORITY
    depends_on: tuple[int, ...] = ()  # the ids of the monitors that it is reached through
    # fields that only some kinds of check have
    starttls: Annotated[str | None, StartTls, Mark.OPTION] = None
    ping_count: Annotated[int, Range(*PING_COUNT), Mark.OPTION] = DEFAULT_PING_COUNT
    assertions: Annotated[tuple[Assertion, ...], Mark.SECRET] = ()
    period: Annotated[int | None, Range(*PERIOD_SECONDS), Mark.OPTION] = None  # seconds
    schedule: Annotated[tuple[str, ...], Mark.OPTION] = ()  # cron and OnCalendar lines
    zone: Annotated[str, Mark.OPTION] = DEFAULT_SCHEDULE_ZONE  # IANA name, of the schedule
    grace: Annotated[int, Range(*GRACE_SECONDS), Mark.OPTION] = DEFAULT_GRACE  # seconds
    max_run: Annotated[int | None, Range(*MAX_RUN_SECONDS), Mark.OPTION] = None  # seconds
    slug: Annotated[str | None, Mark.OPTION] = None
    # read only
    unreadable: tuple[str, ...] = ()  # of ``SECRET_FIELDS``, ``CHECK_FIELDS``
    status: Annotated[str, MonitorStatus] = MonitorStatus.PENDING
    status_since: datetime | None = None
    cause_code: str | None = None
    cause: str | None = None
    paused: bool = False
    last_checked_at: datetime | None = None
    next_check_at: datetime | None = None
    response_time: int | None = None
    uptime: Annotated[Mapping[str, Percent | None], FixedKeys(UPTIME_RANGES)] = field(
        default_factory=dict
    )
    ssl_expires_at: datetime | None = None
    domain: str | None = None  # the registrable domain, once its expiry was looked up
    domain_expires_at: datetime | None = None
    open_incident_id: int | None = None
    behind_id: int | None = None  # the id of the monitor that makes it unreachable
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
    ssl_issued_at: datetime | None = None  # when the life of the certificate began
    # of a heartbeat
    ping_url: Annotated[str | None, Mark.SECRET] = None
    last_ping_at: datetime | None = None
    expected_at: datetime | None = None  # when the next ping is due
    running_since: datetime | None = None  # the start of the oldest run that has not ended
    # see ``app.stats.series``
    hours: Annotated[Sequence[Mapping[str, Any]], Mark.OMIT_EMPTY] = ()
    # The fields that another server did not send (``missing``), and those that it sent in a form
    # that cannot be read (``misread``): their values here are defaults, or incomplete.
    missing: Annotated[tuple[str, ...], Mark.INTERNAL] = ()
    misread: Annotated[tuple[str, ...], Mark.INTERNAL] = ()

    @property
    def true_interval(self) -> int:
        """The seconds between its checks. ``interval`` is the nearest value of the base API."""
        return self.check_every or self.interval

    @property
    def sent_secrets(self) -> Sequence[str]:
        """The names of the stored secrets that its checks send. Each of its places gets them."""
        stored = {
            "request_headers": self.request_headers,
            "request_auth_password": self.request_auth_password_set,
            "request_body": self.request_body,
        }
        return [name for name, value in stored.items() if value]


# The fields that belong to one kind of check, each with its default.
KIND_OPTIONS: Mapping[str, Any] = {
    option.name: option.default
    for option in fields(Monitor)
    if Mark.OPTION
    in getattr(get_type_hints(Monitor, include_extras=True)[option.name], "__metadata__", ())
}


@dataclass(frozen=True, slots=True)
class MonitorRef:
    """The monitor as an incident names it."""

    id: int
    name: str
    url: TextOrDefault


@dataclass(frozen=True, slots=True)
class MonitorQuery:
    """The monitor list's parameters, validated.

    Filters beyond the base API: ``state`` (the API's name for a value of ``status``), ``tag``,
    ``location`` (a place's name), ``depends_on`` (the id of a monitor on which they directly
    depend), ``bound_tag`` (the tag that a key is bound to), and ``ids`` (the matches of an earlier
    search). ``exact``: leave out of the state ``down`` the monitors whose failure is not confirmed.

    Other parameters choose which fields are read, because figures are expensive: the ranges of
    ``uptime`` (a remote server sends them all), and whether ``hours`` are added, if the store has
    them. ``brief``: leave out ``alerts``, ``locations`` and ``next_check_at``. ``status_only``,
    for a list by state: only ``id``, ``name``, ``url``, ``interval``, ``status``, ``cause`` and
    ``status_since`` are needed; other fields may have their defaults. ``counts``: the counts that
    ``overview`` has just returned for the same filters, so that they are not counted again.
    """

    search: str | None = None
    search_by: str = MonitorSearchBy.NAME
    status_page_id: int | None = None
    sort_by: str = MonitorSortBy.ID
    sort: str = Sort.DESC
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
    state: str | None = None
    exact: bool = False
    tag: str | None = None
    uptime: Collection[str] = UPTIME_RANGES
    hours: bool = False
    contact_id: int | None = None
    location: str | None = None
    depends_on: int | None = None
    bound_tag: str | None = None
    ids: tuple[int, ...] | None = None
    counts: Mapping[str, int] | None = None
    brief: bool = False
    status_only: bool = False

    @property
    def statuses(self) -> Collection[str]:
        """The values of ``status`` that ``state`` stands for; all if it is empty."""
        if self.state == MonitorStatus.DOWN and not self.exact:
            return (MonitorStatus.DOWN, MonitorStatus.FAILING)
        return (self.state,) if self.state else WORST_FIRST
