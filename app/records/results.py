"""One check: what it needs, its verdict and cause (decision 10), and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, TypedDict

from app.records.assertions import Assertion, CheckedAssertion
from app.records.marks import AlertDays, Mark, TextOrDefault
from app.records.monitors import (
    DEFAULT_ACCEPTED_STATUSES,
    DEFAULT_PING_COUNT,
    DEFAULT_TIMEOUT,
    KIND_OPTIONS,
    AlertCondition,
    RequestMethod,
)
from app.records.paging import DEFAULT_PAGE_SIZE
from app.records.secrets import Pair


class StatisticsRange(StrEnum):
    """How far back statistics look (decision 11)."""

    HOURS = "3h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"
    QUARTER = "90d"
    YEAR = "365d"


MAX_REPORT_MONITORS = 500
MAX_REPORT_DAYS = 366
# Limits of what a check reads (decision 3).
BODY_CAP_BYTES = 1024 * 1024  # decoded
HEADERS_CAP_BYTES = 64 * 1024
MAX_REDIRECTS = 10
EVIDENCE_BODY_BYTES = 4096
MAX_RESULT_CAUSE = 1_000  # characters: the sentence may contain the URL of a redirect


class Verdict(StrEnum):
    UP = "up"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"


# The target answers as expected. A tuple: tested for each check, and faster than a set.
GOOD_VERDICTS = (Verdict.UP, Verdict.DEGRADED)


class Cause(StrEnum):
    """Every cause code. ``HTTP_STATUS`` is a prefix: the code is ``http_status:503``."""

    DNS_NXDOMAIN = "dns_nxdomain"
    DNS_SERVFAIL = "dns_servfail"
    DNS_REFUSED = "dns_refused"
    DNS_TIMEOUT = "dns_timeout"
    DNS_NO_ADDRESS = "dns_no_address"
    DNS_NO_ANSWER = "dns_no_answer"
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
    STARTTLS_REFUSED = "starttls_refused"
    PING_TIMEOUT = "ping_timeout"
    ASSERTION_FAILED = "assertion_failed"
    UNREACHABLE = "unreachable"  # of an incident whose parent monitor is down, never of a result
    SLOW_RESPONSE = "slow_response"
    HEARTBEAT_MISSED = "heartbeat_missed"
    HEARTBEAT_FAILED = "heartbeat_failed"
    HEARTBEAT_OVERRAN = "heartbeat_overran"
    NOT_LISTENING = "not_listening"
    BLOCKED_BY_POLICY = "blocked_by_policy"
    NETWORK_DOWN = "network_down"
    CHECK_ERROR = "check_error"


class Warn(StrEnum):
    """The values of a result's ``warnings``. They never change its verdict."""

    IPV6_UNREACHABLE = "ipv6_unreachable"
    IPV4_UNREACHABLE = "ipv4_unreachable"
    REDIRECT_DOWNGRADE = "redirect_downgrade"
    BODY_CUT_AT_CAP = "body_cut_at_cap"
    TLS_EXPIRING = "tls_expiring"
    STREAM_OPEN = "stream_open"


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

    def by_phase(self) -> dict[str, int | None]:
        """The phases as a dict, for JSON. ``dataclasses.asdict`` takes ten times as long."""
        return {name: getattr(self, name) for name in PHASES}


PHASES = tuple(phase.name for phase in fields(Timings))  # in the order of a request


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """All values that one check needs; it reads no database. ``timeout`` in seconds.

    ``monitor_id`` is None for a check of unsaved fields. ``auth``: user name and password.
    """

    url: str
    monitor_id: int | None = None
    request_method: str = RequestMethod.GET
    request_headers: tuple[Pair, ...] = ()
    auth: tuple[str, str] | None = None
    request_body: str | None = None
    alert_condition: str = AlertCondition.URL_UNAVAILABLE
    alert_text_lookup: str | None = None
    assertions: tuple[Assertion, ...] = ()
    timeout: float = DEFAULT_TIMEOUT
    accepted_statuses: str = DEFAULT_ACCEPTED_STATUSES
    follow_redirects: bool = True
    verify_tls: bool = True
    cache_buster: bool = False
    slow_after: int | None = None  # ms
    ssl_alert_days: AlertDays | None = None
    fault: str | None = None  # why this check cannot be made: a stored field cannot be read
    starttls: str | None = None
    ping_count: int = DEFAULT_PING_COUNT


# The fields of one kind that a check needs.
CHECK_OPTIONS = frozenset(KIND_OPTIONS).intersection(field.name for field in fields(CheckSpec))


@dataclass(frozen=True, slots=True)
class Result:
    """The record of one check, never changed afterwards (decision 11).

    ``response_time`` in ms, from the start of the look-up to the last byte read. ``id`` is None
    until the result is stored. ``redirects``: the URLs that were followed, in order.
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
    location: TextOrDefault = "default"
    maintenance: bool = False
    # Not stored: a check on request returns them, and evidence has them
    assertions: Annotated[tuple[CheckedAssertion, ...], Mark.OMIT_EMPTY] = ()

    @property
    def is_good(self) -> bool:
        """Whether the verdict is up or degraded."""
        return self.verdict in GOOD_VERDICTS

    @property
    def was_made(self) -> bool:
        """Whether the check was made; False if the policy prevented it."""
        return self.cause_code != Cause.BLOCKED_BY_POLICY


@dataclass(frozen=True, slots=True)
class PlaceChecked:
    """The answer of one place to a check on request: its result, or why there is none."""

    name: str
    label: str | None = None
    result: Result | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CheckedNow(Result):
    """The answer to a check on request: the worst result, and the answer of each place.

    The worst is ``down``, then ``degraded``, ``up``, ``unknown``; of equal results, the first one.
    ``places`` is empty if another server does not send it.
    """

    places: Sequence[PlaceChecked] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a check as the prober returns it: the result with its evidence.

    ``evidence`` is ready for JSON, without secrets (each kind in app/checks lists its fields).
    Every check that is not ``up`` has it. A check that is ``up`` has it if its answer has changed,
    and every ten minutes. ``ssl_issued_at``, ``ssl_expires_at``, ``ssl_fingerprint`` and
    ``ssl_host`` are about the certificate that expires first in a chain of redirects. ``matched``:
    the text to find with the text around it, for a check before saving. ``conclusive``: the failure
    needs no confirmation, such as a heartbeat's. ``since``: when the failure began, if that was
    before the check.
    """

    result: Result
    evidence: Mapping[str, Any] | None = None
    ssl_issued_at: datetime | None = None
    ssl_expires_at: datetime | None = None
    ssl_fingerprint: str | None = None  # SHA-256 of the leaf, hex
    ssl_host: str | None = None  # the host that sent the certificate
    answered: bool = False  # the target sent at least one byte, such as a certificate
    matched: str | None = None
    conclusive: bool = False
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """A monitor's results, newest first, between two times.

    ``changes``: only the first result, and results whose verdict or cause differs from the previous
    one of the same place. ``location``: only results of the place with this name.
    """

    monitor_id: int
    from_: datetime | None = None
    to: datetime | None = None
    verdict: str | None = None
    changes: bool = False
    location: str | None = None
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1


@dataclass(frozen=True, slots=True)
class SlowAlerts:
    """How often a monitor would have alerted because it is slow. ``since``: the start of the time
    that was examined; ``last_at``: the start of the last incident.
    """

    since: datetime
    count: int
    last_at: datetime | None = None


SLOW_ALERTS_DAYS = 30  # that a preview examines


class Certificate(TypedDict):
    subject: str | None
    issuer: str | None
    not_before: str | None
    not_after: str | None
    sha256: str | None
    names: Sequence[str]  # the host names that it is valid for


@dataclass(frozen=True, slots=True)
class CertificateChain:
    """The certificates that a target sent last, its own first. A value in them is None if it could
    not be read. ``seen_at`` is None if no certificate is stored.
    """

    seen_at: datetime | None = None
    certificates: Sequence[Certificate] = ()
