"""The words that every room speaks: enums, limits and frozen records.

Nothing here knows Flask, SQLAlchemy or the clock. Times are aware ``datetime`` in UTC, durations
say their unit in the name. The enums and limits are the only place where interface.md's choices are
written down; forms, API, OpenAPI document and templates read them from here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, IntEnum, StrEnum, auto
from typing import Annotated, Any, Generic, TypedDict, TypeVar

T = TypeVar("T")

# --- Choices of interface.md ----------------------------------------------------------------------


class AlertCondition(StrEnum):
    """What raises the alert (interface.md 2.1; decisions.md 3 says how it is judged)."""

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


class Channel(StrEnum):
    """How an alert reaches people. ``apprise`` is our addition (decisions.md 5)."""

    EMAIL = "email"
    WEBHOOK = "webhook"
    SLACK = "slack"
    TEAMS = "teams"
    DISCORD = "discord"
    FLOCK = "flock"
    TELEGRAM = "telegram"
    SMS = "sms"
    APPRISE = "apprise"


class Sort(StrEnum):
    DESC = "desc"
    ASC = "asc"


class MonitorSearchBy(StrEnum):
    NAME = "name"
    URL = "url"


class MonitorSortBy(StrEnum):
    ID = "id"
    NAME = "name"
    URL = "url"


class IncidentSearchBy(StrEnum):
    """``url`` is interface.md's documented default:

    it matches the monitor's name or URL (decisions.md 4).
    """

    MONITOR = "monitor"
    CAUSE = "cause"
    URL = "url"


class IncidentSortBy(StrEnum):
    STARTED_AT = "started_at"
    ENDED_AT = "ended_at"


class Classification(StrEnum):
    """What an incident turned out to be; it corrects the figures (an addition of ours)."""

    MAINTENANCE = "maintenance"  # its time counts neither as up nor as down
    FALSE_ALARM = "false_alarm"  # its time counts as up


class IncidentStatus(StrEnum):
    UNRESOLVED = "unresolved"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class StatisticsRange(StrEnum):
    """How far back statistics look (decisions.md 11)."""

    HOURS = "3h"  # an addition of ours
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"
    QUARTER = "90d"
    YEAR = "365d"


INTERVALS = (60, 180, 300, 600, 900, 1800, 3600)  # seconds
ALERT_DAYS = (0, 1, 2, 3, 7, 14, 30, 60)
PAGE_SIZES = (10, 25, 50, 100)
CACHE_BUSTER = (0, 1)
UPTIME_RANGES = ("24h", "7d", "30d", "90d")  # those that a monitor carries (decisions.md 3)

# Methods whose answer has no body to search (decisions.md 3).
METHODS_WITHOUT_TEXT = frozenset({RequestMethod.HEAD, RequestMethod.OPTIONS})
TEXT_CONDITIONS = frozenset({AlertCondition.URL_TEXT, AlertCondition.URL_NO_TEXT})

# --- Limits (decisions.md 7): characters are code points, sizes are UTF-8 bytes -------------------

MAX_URL = 2_048
MAX_NAME = 255
MAX_CAUSE = 255
MAX_COMMENT = 10_000
MAX_TEXT_LOOKUP = 255
MAX_HEADERS = 20
MAX_HEADER_BYTES = 4_096  # name plus value
MAX_ALERTS = 20
MAX_ALERT_VALUE = 2_048
MAX_REQUEST_BODY_BYTES = 64 * 1024
MIN_PASSWORD = 8
MAX_CREDENTIAL = 255
MAX_ACCEPTED_STATUSES = 255
MAX_TAGS = 20
MAX_TAG = 50
MAX_SEARCH = 255
MAX_BODY_BYTES = 1024 * 1024  # an API request's body; more is 413
# A form of the dashboard: a million characters of addresses, three bytes each where encoded.
MAX_FORM_BYTES = 4 * 1024 * 1024
# A window may name ten thousand monitors; more fields than that nobody fills in.
MOST_FIELDS = 20_000
MAX_ID = 2**63 - 1  # what the database can hold; a larger id names no record

TIMEOUT_SECONDS = (1, 60)
SLOW_AFTER_MS = (1, 60_000)
CONFIRMATIONS = (0, 5)
REMIND_AFTER_MINUTES = (5, 1_440)

DEFAULT_TIMEOUT = 30
DEFAULT_CONFIRMATIONS = 2
DEFAULT_ACCEPTED_STATUSES = "200-399"
DEFAULT_QUIET_ZONE = "UTC"
DEFAULT_WINDOW_ZONE = "UTC"
DEFAULT_PAGE_SIZE = 10
MAX_REPORT_MONITORS = 500
MAX_REPORT_DAYS = 366

# What a check may read (decisions.md 3).
BODY_CAP_BYTES = 1024 * 1024  # decoded
HEADERS_CAP_BYTES = 64 * 1024
MAX_REDIRECTS = 5
CLOCK_SKEW_SECONDS = 60  # a time typed as "now" may be this far in the future
EVIDENCE_BODY_BYTES = 4096

# --- Verdicts and causes (decisions.md 10) --------------------------------------------------------


class Verdict(StrEnum):
    UP = "up"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


class MonitorStatus(StrEnum):
    """What a monitor shows, in the order in which they are tried (decisions.md 3)."""

    PAUSED = "paused"
    MAINTENANCE = "maintenance"
    PENDING = "pending"
    UP = "up"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


class Cause(StrEnum):
    """Every cause code. ``HTTP_STATUS`` is a prefix: the code is ``http_status:503``."""

    DNS_NXDOMAIN = "dns_nxdomain"
    DNS_SERVFAIL = "dns_servfail"
    DNS_REFUSED = "dns_refused"
    DNS_TIMEOUT = "dns_timeout"
    DNS_NO_ADDRESS = "dns_no_address"
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_RESET = "connection_reset"
    HOST_UNREACHABLE = "host_unreachable"
    TIMEOUT_CONNECT = "timeout:connect"
    TLS_EXPIRED = "tls_expired"
    TLS_NOT_YET_VALID = "tls_not_yet_valid"
    TLS_SELF_SIGNED = "tls_self_signed"
    TLS_UNTRUSTED = "tls_untrusted"
    TLS_INCOMPLETE_CHAIN = "tls_incomplete_chain"
    TLS_HOSTNAME = "tls_hostname"
    TLS_PROTOCOL = "tls_protocol"
    TLS_HANDSHAKE = "tls_handshake"
    TIMEOUT_TLS = "timeout:tls"
    HTTP_STATUS = "http_status"
    EMPTY_RESPONSE = "empty_response"
    INVALID_HTTP = "invalid_http"
    HEADERS_TOO_LARGE = "headers_too_large"
    BODY_TRUNCATED = "body_truncated"
    REDIRECT_LOOP = "redirect_loop"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    REDIRECT_BLOCKED = "redirect_blocked"
    TIMEOUT_TTFB = "timeout:ttfb"
    TIMEOUT_BODY = "timeout:body"
    TEXT_MISSING = "text_missing"
    TEXT_FOUND = "text_found"
    SLOW_RESPONSE = "slow_response"
    BLOCKED_BY_POLICY = "blocked_by_policy"
    NETWORK_DOWN = "network_down"
    CHECK_ERROR = "check_error"


class Warn(StrEnum):
    """Warnings kept with a result; they never change its verdict.

    A result's ``warnings`` holds these words.
    """

    IPV6_UNREACHABLE = "ipv6_unreachable"
    IPV4_UNREACHABLE = "ipv4_unreachable"
    REDIRECT_DOWNGRADE = "redirect_downgrade"
    BODY_CUT_AT_CAP = "body_cut_at_cap"
    TLS_EXPIRING = "tls_expiring"


# --- Alerts and access ----------------------------------------------------------------------------


class Event(StrEnum):
    """What people are told about (decisions.md 5)."""

    INCIDENT_OPENED = "incident.opened"
    INCIDENT_ACKNOWLEDGED = "incident.acknowledged"  # webhook only
    INCIDENT_RESOLVED = "incident.resolved"
    INCIDENT_REMINDER = "incident.reminder"  # ours: off unless the monitor asks for reminders
    INCIDENTS_OPENED = "incidents.opened"  # a burst told in one message
    INCIDENTS_RESOLVED = "incidents.resolved"
    INCIDENTS_DIGEST = "incidents.digest"  # what quiet hours held back, in one message
    CERTIFICATE_EXPIRING = "certificate.expiring"
    DOMAIN_EXPIRING = "domain.expiring"
    TEST = "test"


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    HELD = "held"


class Scope(StrEnum):
    READ = "read"
    WRITE = "write"


class Role(StrEnum):
    """A person's role. Each includes the rights of those after it."""

    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"


class Notice(StrEnum):
    """What stands on every page while it holds: names of rows of the ``settings`` table."""

    NETWORK_DOWN = "notice.network_down"  # the value: since when
    DEMO = "notice.demo"


class Location(IntEnum):
    """Row ids of the ``locations`` table that always exist."""

    DEFAULT = 1


DEFAULT_LOCATIONS = ("default",)  # names, of a monitor that names none
MAX_LOCATIONS = 50  # of one monitor
MAX_LOCATION = 64  # characters of a name


# --- Masking (decisions.md 3) ---------------------------------------------------------------------

MASK = "••••"

# The fields of a monitor that are kept encrypted, and so may be unreadable, as people call them.
SECRET_FIELDS = {
    "request_headers": "request headers",
    "request_auth_password": "password",
    "request_body": "request body",
    "alerts": "alerts",
}


def words_of(fields: Sequence[str]) -> str:
    """``request headers and alerts``, of those fields."""
    *others, last = [SECRET_FIELDS.get(name, name) for name in fields] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def mask(secret: str) -> str:
    """What may be shown of a secret:

    the mask, and its last four characters when it is longer than twelve.
    """
    return MASK + (secret[-4:] if len(secret) > 12 else "")


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of ``request_headers`` or ``alerts``."""

    key: str
    value: str

    def masked(self) -> Pair:
        return Pair(self.key, mask(self.value))


# --- What a field's annotation says beyond its type -----------------------------------------------


class Mark(Enum):
    """How a field becomes JSON and comes back from it, where its type alone does not say so.

    ``app/codec`` reads the records' annotations: types, these marks, ``Keys``, and the ``StrEnum``
    whose words a text is one of.
    """

    # of a value
    ID = auto()  # from 1 to MAX_ID
    BIT = auto()  # 0 or 1; read from anything that says yes or no
    PERCENT = auto()
    CLOCK_TIME = auto()  # HH:MM
    TIME_TEXT = auto()  # a time that is text here too
    MAY_LACK = auto()  # text that other servers may not have: then the default, or the empty text
    SPANS = auto()  # pairs of times, from and to
    # of a field
    PROMISED = auto()  # None only where another server did not say it: ours always has it
    SECRET = auto()  # masked for a key that may only read
    WHERE_ASKED_FOR = auto()  # left out of the JSON where it is empty
    INTERNAL = auto()  # not in the JSON


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that a mapping always has."""

    names: tuple[str, ...]


Id = Annotated[int, Mark.ID]
Bit = Annotated[int, Mark.BIT]
Percent = Annotated[float, Mark.PERCENT]
ClockTime = Annotated[str, Mark.CLOCK_TIME]
TimeText = Annotated[str, Mark.TIME_TEXT]
TextOrNone = Annotated[str, Mark.MAY_LACK]


# --- Records: their JSON has the fields in this order ---------------------------------------------


@dataclass(frozen=True, slots=True)
class Monitor:
    """What is watched, as stored, plus what is known of it now.

    Those that ``app/forms/monitor.py`` has too are accepted on write. Header values, alert values
    and ``request_body`` are here in the clear; whoever shows them masks them first (``mask``). The
    password never is. ``uptime`` is in percent for each of ``24h``, ``7d``, ``30d``, ``90d``; None
    without data. ``response_time`` in ms. Fields that a bare remote server may lack have defaults.
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
    ssl_alert_days: int | None = None
    domain_alert_days: int | None = None
    maintenance_start_at: datetime | None = None
    maintenance_end_at: datetime | None = None
    alerts: Annotated[tuple[Pair, ...], Mark.SECRET] = ()
    # of our own, optional on write
    timeout: int = DEFAULT_TIMEOUT  # seconds
    accepted_statuses: str = DEFAULT_ACCEPTED_STATUSES
    follow_redirects: bool = True
    verify_tls: bool = True
    slow_after: int | None = None  # ms
    confirmations: int = DEFAULT_CONFIRMATIONS
    tags: tuple[str, ...] = ()
    remind_after: int | None = None  # minutes between reminders while unacknowledged
    quiet_start: ClockTime | None = None  # with ``quiet_end``: alerts wait until then
    quiet_end: ClockTime | None = None
    quiet_zone: str = DEFAULT_QUIET_ZONE  # IANA name of the zone of those two
    locations: tuple[str, ...] = DEFAULT_LOCATIONS  # where it is checked from, by name
    # read only
    unreadable: tuple[str, ...] = ()  # of ``SECRET_FIELDS``: what cannot be read reads as empty
    status: Annotated[str, MonitorStatus] = MonitorStatus.PENDING
    status_since: datetime | None = None
    cause_code: str | None = None
    cause: str | None = None
    paused: bool = False
    last_checked_at: datetime | None = None
    next_check_at: datetime | None = None
    response_time: int | None = None
    uptime: Annotated[Mapping[str, Percent | None], Keys(UPTIME_RANGES)] = field(
        default_factory=dict
    )
    ssl_expires_at: datetime | None = None
    domain: str | None = None  # the registrable one, once it is looked at
    domain_expires_at: datetime | None = None
    open_incident_id: int | None = None
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
    # see ``app.stats.strip``
    hours: Annotated[Sequence[Mapping[str, Any]], Mark.WHERE_ASKED_FOR] = ()


@dataclass(frozen=True, slots=True)
class MonitorRef:
    """The monitor as an incident names it."""

    id: int
    name: str
    url: TextOrNone


@dataclass(frozen=True, slots=True)
class Incident:
    """A period of trouble.

    Open means ``ended_at`` is None. ``duration`` in whole seconds so far.
    """

    id: Id
    monitor_id: Id
    monitor: Annotated[MonitorRef | None, Mark.PROMISED] = field(default=None, kw_only=True)
    status: Annotated[str, IncidentStatus] = field(default=IncidentStatus.UNRESOLVED, kw_only=True)
    started_at: datetime
    acknowledged_at: datetime | None = None
    ended_at: datetime | None = None
    duration: Annotated[int | None, Mark.PROMISED] = None
    cause: str | None = None
    cause_code: str | None = None
    comment: str | None = None
    evidence: Mapping[str, Any] | None = None
    # additions of ours
    acknowledged_by: str | None = None
    by_hand: bool = False
    classification: Annotated[str | None, Classification] = None
    unreadable: tuple[str, ...] = ()  # ``evidence``, where what is stored cannot be read
    # From when to when nothing was watched: of an incident that has some, the duration is a limit.
    unwatched: Annotated[tuple[tuple[datetime, datetime], ...], Mark.SPANS] = ()
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None


class Certificate(TypedDict):
    """What is told of a certificate."""

    subject: str | None
    issuer: str | None
    not_before: str | None
    not_after: str | None
    sha256: str | None
    names: Sequence[str]  # that it is for


@dataclass(frozen=True, slots=True)
class CertificateChain:
    """The certificates that a target sent last, its own first, as ``app.checks.http.evidence`` has
    them, with None for what could not be read.

    ``seen_at`` is None, and there are no certificates, where none is known.
    """

    seen_at: datetime | None = None
    certificates: Sequence[Certificate] = ()


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds spent in each phase, summed over redirects; None for a phase that was not
    reached.
    """

    dns: int | None = None
    connect: int | None = None
    tls: int | None = None
    ttfb: int | None = None
    download: int | None = None


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """All that one check needs to know, and nothing of the database. Text is as typed; ``timeout``
    in seconds.

    ``monitor_id`` is None for a check of unsaved fields. ``auth`` is (username, password).
    """

    url: str
    monitor_id: int | None = None
    request_method: str = RequestMethod.GET
    request_headers: tuple[Pair, ...] = ()
    auth: tuple[str, str] | None = None
    request_body: str | None = None
    alert_condition: str = AlertCondition.URL_UNAVAILABLE
    alert_text_lookup: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    accepted_statuses: str = DEFAULT_ACCEPTED_STATUSES
    follow_redirects: bool = True
    verify_tls: bool = True
    cache_buster: bool = False
    slow_after: int | None = None  # ms
    ssl_alert_days: int | None = None
    fault: str | None = None  # why this check cannot be made: a stored field cannot be read


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one check, never changed afterwards (decisions.md 11).

    ``response_time`` in ms, from the start of the look-up to the last byte read. ``id`` is None
    until recorded. ``redirects`` are the URLs that were followed, in order, without user data
    beyond what the target sent.
    """

    id: str | None = field(default=None, kw_only=True)
    monitor_id: int | None = field(default=None, kw_only=True)
    checked_at: datetime
    verdict: Verdict
    cause_code: str | None = None
    cause: str | None = None
    status_code: int | None = None
    response_time: int | None = None
    timings: Timings = Timings()
    ip: str | None = None
    http_version: str | None = None  # "1.0", "1.1", "2"
    redirects: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    location: TextOrNone = "default"
    maintenance: bool = False

    @property
    def is_good(self) -> bool:
        """Up or degraded: the target answers as it should."""
        return self.verdict in (Verdict.UP, Verdict.DEGRADED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the prober hands back: the result, and what only a recorder or a curious person needs.

    ``evidence`` is JSON-ready and redacted (each kind in app/checks says what is in it). There
    is some for every check that is not up, and for the last good one. ``ssl_expires_at``,
    ``ssl_fingerprint`` and ``ssl_host`` are those of the hops' certificate that ends first.
    ``matched`` is the piece of the body around the looked-up text, for "test before saving".
    """

    result: Result
    evidence: Mapping[str, Any] | None = None
    ssl_expires_at: datetime | None = None
    ssl_fingerprint: str | None = None  # SHA-256 of the leaf, hex
    ssl_host: str | None = None  # who sent it: a host that redirects, or the last
    answered: bool = False  # some byte of an answer, even a certificate, came from the target
    matched: str | None = None


class Attempt(TypedDict):
    """One attempt to send a message."""

    at: Annotated[TimeText | None, Mark.PROMISED]
    ok: bool
    answer: str | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one channel, with its attempts (decisions.md 11). ``target`` is masked."""

    id: Id
    event: Annotated[str, Event]
    monitor_id: int | None
    incident_id: int | None
    channel: Annotated[str, Channel]
    target: TextOrNone
    status: Annotated[str, DeliveryStatus]
    reason: str | None = None
    attempts: tuple[Attempt, ...] = ()
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None
    covers: tuple[int, ...] = ()
    unreadable: tuple[str, ...] = ()  # ``target``, ``message``: stored so that nobody can read it


@dataclass(frozen=True, slots=True)
class MaintenanceWindow:
    """A planned quiet time for some monitors (none listed: all).

    ``repeat`` is a word or a cron line, on the clocks of ``zone`` (an IANA name).
    """

    id: Id
    name: TextOrNone
    start_at: datetime
    end_at: datetime
    monitors: tuple[int, ...] = ()
    repeat: TextOrNone = "none"
    repeat_until: datetime | None = None
    zone: TextOrNone = DEFAULT_WINDOW_ZONE
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as shown; the secret part is not kept."""

    id: Annotated[int, Mark.INTERNAL]
    prefix: Annotated[str, Mark.INTERNAL]
    name: str
    scope: Annotated[str, Scope]
    created_at: Annotated[datetime, Mark.INTERNAL]
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: Annotated[datetime | None, Mark.INTERNAL] = None


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may log in. ``time_zone`` is an IANA name."""

    id: int
    email: str
    role: str
    time_zone: str = "UTC"
    created_at: datetime | None = None
    last_login_at: datetime | None = None
    disabled: bool = False
    theme: str = "auto"  # auto, light, dark


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. ``total`` counts all that match; ``number`` starts at 1. ``more``: there
    may be others, of which a server that knows no pages says nothing.
    """

    items: Sequence[T]
    number: int
    per_page: int
    total: int
    more: bool = False

    @property
    def last_number(self) -> int:
        return max(1, -(-self.total // self.per_page))


# --- Queries --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which page of a list that has no other parameters."""

    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1


@dataclass(frozen=True, slots=True)
class MonitorQuery:
    """The monitor list's parameters, checked.

    ``state`` and ``tag`` are filters of our own. The rest says how much of each monitor is looked
    at, because figures cost most: which ranges of ``uptime`` (a remote server sends them all), and
    whether ``hours`` are added, where the store offers them.
    """

    search: str | None = None
    search_by: str = MonitorSearchBy.NAME
    status_page_id: int | None = None
    sort_by: str = MonitorSortBy.ID
    sort: str = Sort.DESC
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
    state: str | None = None
    tag: str | None = None
    uptime: Collection[str] = UPTIME_RANGES
    hours: bool = False


@dataclass(frozen=True, slots=True)
class IncidentQuery:
    """The incident list's parameters, checked. ``brief`` leaves out ``evidence``, which is long."""

    search: str | None = None
    search_by: str | None = None
    monitor_id: int | None = None
    status: str | None = None
    sort_by: str = IncidentSortBy.ENDED_AT
    sort: str = Sort.DESC
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
    brief: bool = False


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """A monitor's results, newest first, between two times."""

    monitor_id: int
    from_: datetime | None = None
    to: datetime | None = None
    verdict: str | None = None
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1


@dataclass(frozen=True, slots=True)
class DeliveryQuery:
    monitor_id: int | None = None
    incident_id: int | None = None
    channel: str | None = None
    status: str | None = None
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
