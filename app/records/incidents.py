"""Incidents: choices, the record and the list's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from app.records.marks import Id, Mark
from app.records.monitors import MonitorRef
from app.records.paging import DEFAULT_PAGE_SIZE, Sort

MAX_VISITOR_NAME = 80  # of somebody who acknowledges without an account


class IncidentSearchBy(StrEnum):
    """``url`` is the default: it matches the monitor's name or URL (decision 4)."""

    MONITOR = "monitor"
    CAUSE = "cause"
    URL = "url"


class IncidentSortBy(StrEnum):
    STARTED_AT = "started_at"
    ENDED_AT = "ended_at"


class IncidentSeverity(StrEnum):
    """How bad an incident is (decision 19). A degraded one becomes down when checks fail."""

    DOWN = "down"
    DEGRADED = "degraded"  # slow for ``slow_alert_after`` minutes; this is not downtime


class Classification(StrEnum):
    """The class of an incident, which corrects the figures (extension)."""

    MAINTENANCE = "maintenance"  # its time counts neither as up nor as down
    FALSE_ALARM = "false_alarm"  # its time counts as up


class Ending(StrEnum):
    """The reason why an incident ended (extension)."""

    RECOVERED = "recovered"  # checks were good again
    SILENCE = "silence"  # the places that saw the failure fell silent
    CHANGED = "changed"  # the monitor was changed: with its present rule and places, it is not down
    PERSON = "person"
    PAUSE = "pause"


class IncidentStatus(StrEnum):
    UNRESOLVED = "unresolved"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


OPEN_STATUSES = (IncidentStatus.UNRESOLVED, IncidentStatus.ACKNOWLEDGED)


class ChangeKind(StrEnum):
    """The parts of a check that are compared between a failing check and an earlier good one."""

    ADDRESS = "address"
    CERTIFICATE = "certificate"
    STATUS = "status"
    REDIRECT = "redirect"
    HEADER = "header"
    BODY = "body"
    SPEED = "speed"


MAX_CAUSE = 255
MAX_COMMENT = 10_000
CLOCK_SKEW_SECONDS = 60  # a time typed as "now" may be this far in the future


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the failing check and an earlier good one, as ``text`` and as its two
    values; see ``app/rules/what_changed.py``.
    """

    what: Annotated[str, ChangeKind]
    text: str
    before: str | None = None
    now: str | None = None


@dataclass(frozen=True)  # without slots, as Monitor
class Incident:
    """A period in which a monitor is down or slow. ``ended_at`` is None while it is open.
    ``duration``: whole seconds so far.
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
    # additions to the base API
    severity: Annotated[str, IncidentSeverity] = IncidentSeverity.DOWN
    # When an incident that began as degraded became down; None for any other
    down_since: datetime | None = None
    acknowledged_by: str | None = None
    by_hand: bool = False
    found_late: bool = False  # only results that came late show it; nobody was alerted
    classification: Annotated[str | None, Classification] = None
    ending: Annotated[str | None, Ending] = None
    # The titles of the places that saw the failure; empty if the monitor has one place.
    seen_by: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()  # ``evidence``, if the stored one cannot be read
    changes: tuple[Change, ...] = ()  # since the last good check whose evidence is stored
    # The ids of the monitors that were unreachable because of it, in the order in which they failed
    affected: tuple[int, ...] = ()
    # Gaps without checks, from and to. With a gap, the duration is an upper limit.
    unwatched: Annotated[tuple[tuple[datetime, datetime], ...], Mark.SPANS] = ()
    created_at: Annotated[datetime | None, Mark.PROMISED] = None
    updated_at: Annotated[datetime | None, Mark.PROMISED] = None
    # as in ``Monitor``
    missing: Annotated[tuple[str, ...], Mark.INTERNAL] = ()
    misread: Annotated[tuple[str, ...], Mark.INTERNAL] = ()

    @property
    def is_open(self) -> bool:
        """Whether it is open. A remote server may send the status ``resolved`` without the time."""
        return self.ended_at is None and self.status != IncidentStatus.RESOLVED


@dataclass(frozen=True, slots=True)
class IncidentQuery:
    """The incident list's parameters, validated. ``brief`` may leave out ``evidence`` (which is
    long), other fields that only the page of an incident shows, and ``affected`` of incidents that
    have ended. ``bound_tag``: the tag that a key is bound to; it filters too. ``counted``: whether
    ``total`` must be right. Counting reads each incident, and not every list shows the number.
    """

    search: str | None = None
    search_by: str | None = None
    monitor_id: int | None = None
    status: str | None = None
    sort_by: str = IncidentSortBy.ENDED_AT
    sort: str = Sort.DESC
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
    brief: bool = False
    bound_tag: str | None = None
    counted: bool = True
    severity: str | None = None
