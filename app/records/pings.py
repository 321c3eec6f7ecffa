"""Pings of heartbeats (decision 18)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from app.records.paging import DEFAULT_PAGE_SIZE

HEARTBEAT_URL = "heartbeat:"
PERIOD_SECONDS = (60, 31_536_000)
GRACE_SECONDS = (60, 31_536_000)
MAX_RUN_SECONDS = (1, 31_536_000)
DEFAULT_GRACE = 300
DEFAULT_HEARTBEAT_INTERVAL = 3600
MAX_SCHEDULE = 10  # lines
MAX_HEARTBEAT_SLUG = 100
MAX_TOKEN = 64
MIN_TOKEN = 8
MAX_PING_BODY_BYTES = 10_000
PING_DRAINED_BYTES = 64 * 1024 * 1024  # of a larger body that are read; nginx in deploy/ has it too
MAX_EXIT_STATUS = 255
DEFAULT_SCHEDULE_ZONE = "UTC"


def is_heartbeat(url: str | None) -> bool:
    """Whether a monitor with this URL is a heartbeat."""
    return (url or "").lower().startswith(HEARTBEAT_URL)


class PingKind(StrEnum):
    SUCCESS = "success"
    START = "start"
    FAIL = "fail"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Ping:
    """A stored ping. ``duration``: of the run that it ended, in ms. ``body_start``: the first line
    of its body; ``body``: the stored body, which lists leave out.
    """

    id: int
    at: datetime
    kind: Annotated[str, PingKind]
    exit_status: int | None = None
    rid: str | None = None
    duration: int | None = None
    method: str | None = None
    address: str | None = None
    body_start: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class ArrivedPing:
    """A ping as it arrives. ``took``: the duration of the run in ms, if the ping has it."""

    at: datetime
    kind: PingKind
    exit_status: int | None = None
    rid: str | None = None
    method: str = "GET"
    address: str | None = None
    body: str = ""
    took: int | None = None


@dataclass(frozen=True, slots=True)
class PingQuery:
    """The pings of a heartbeat, the newest first."""

    monitor_id: int
    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1
