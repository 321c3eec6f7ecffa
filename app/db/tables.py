"""Every table. Migrations under ``migrations/`` are what really makes them; a test holds the two
together.

Times are ``Moment`` (milliseconds). Columns that hold secrets are ``Encrypted``; where one cannot
be read, it holds ``Unreadable``. ``*_folded`` columns hold the case-folded text that searches and
orders use, because SQLite's own ``lower`` knows only ASCII.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, SmallInteger, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model, db
from app.db.contents import (
    is_attempts,
    is_check,
    is_checks,
    is_context,
    is_evidence,
    is_facts,
    is_gaps,
    is_histogram,
    is_pairs,
    is_phases,
    is_role,
)
from app.db.types import (
    Bounded,
    CheckedJson,
    Encrypted,
    EncryptedJson,
    Moment,
    NamedMoment,
    Unreadable,
    Word,
)
from app.records import (
    DEFAULT_QUIET_ZONE,
    DEFAULT_TIMEOUT,
    DEFAULT_WINDOW_ZONE,
    INTERVALS,
    Role,
)
from app.rules.time import is_zone

# SQLite only makes rowid aliases, and so autoincrement, out of INTEGER; PostgreSQL needs the 64
# bits said.
Id = BigInteger().with_variant(db.Integer(), "sqlite")
NEVER_REUSED = {"sqlite_autoincrement": True}  # an id is never given out twice (decisions.md 1)
# No interval and no time limit is longer, so reckoning with them never overflows.
AN_HOUR, A_YEAR = 3_600, 31_536_000
# Byte order in PostgreSQL too: its locale would sort names otherwise than SQLite does.
Folded = Text().with_variant(Text(collation="C"), "postgresql")


class MonitorRow(Model):
    """What people configure.

    What the engine knows of it is in ``MonitorStateRow``, so that a check writes little.
    """

    __tablename__ = "monitors"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    name_folded: Mapped[str] = mapped_column(Folded, index=True)
    url: Mapped[str] = mapped_column(Text)
    url_folded: Mapped[str] = mapped_column(Folded, index=True)
    interval: Mapped[int] = mapped_column(Bounded(1, A_YEAR, INTERVALS[0]))  # seconds
    alert_condition: Mapped[str] = mapped_column(String(32))
    alert_text_lookup: Mapped[str | None] = mapped_column(Text)
    request_method: Mapped[str] = mapped_column(String(8))
    # [[name, value], ...]
    request_headers: Mapped[list[list[str]] | Unreadable | None] = mapped_column(
        EncryptedJson(is_pairs)
    )
    request_auth_username: Mapped[str | None] = mapped_column(Text)
    request_auth_password: Mapped[str | Unreadable | None] = mapped_column(Encrypted)
    request_body: Mapped[str | Unreadable | None] = mapped_column(Encrypted)
    cache_buster: Mapped[int] = mapped_column(SmallInteger)
    ssl_alert_days: Mapped[int | None] = mapped_column(SmallInteger)
    domain_alert_days: Mapped[int | None] = mapped_column(SmallInteger)
    maintenance_start_at: Mapped[datetime | None] = mapped_column(NamedMoment)
    maintenance_end_at: Mapped[datetime | None] = mapped_column(NamedMoment)
    # [[channel, value], ...]
    alerts: Mapped[list[list[str]] | Unreadable | None] = mapped_column(EncryptedJson(is_pairs))
    # Seconds
    timeout: Mapped[int] = mapped_column(Bounded(1, AN_HOUR, DEFAULT_TIMEOUT, small=True))
    accepted_statuses: Mapped[str] = mapped_column(Text)
    follow_redirects: Mapped[bool]
    verify_tls: Mapped[bool]
    slow_after: Mapped[int | None]  # ms
    confirmations: Mapped[int] = mapped_column(Bounded(0, 32_767, 0, small=True))
    # "\nprod\napi\n": a tag is found with its line breaks
    tags: Mapped[str] = mapped_column(Text, default="")
    remind_after: Mapped[int | None] = mapped_column(SmallInteger)  # minutes
    quiet_start: Mapped[str | None] = mapped_column(String(5))  # HH:MM
    quiet_end: Mapped[str | None] = mapped_column(String(5))
    quiet_zone: Mapped[str] = mapped_column(
        String(64), default=DEFAULT_QUIET_ZONE, server_default=DEFAULT_QUIET_ZONE
    )
    paused: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class MonitorStateRow(Model):
    """What the engine knows of a monitor: its last result, and where the state machine stands.

    Written once a check, so it is narrow and only its key is indexed. Only ``engine/recorder``
    changes the state; pause, resume and delete go through it too.
    """

    __tablename__ = "monitor_states"

    monitor_id: Mapped[int] = mapped_column(
        Id, ForeignKey("monitors.id", ondelete="CASCADE"), primary_key=True
    )
    checked_at: Mapped[datetime | None] = mapped_column(Moment)
    verdict: Mapped[str | None] = mapped_column(String(16))
    cause_code: Mapped[str | None] = mapped_column(String(32))
    cause: Mapped[str | None] = mapped_column(Text)
    response_time: Mapped[int | None]  # ms
    # Since when the verdict is what it is
    status_since: Mapped[datetime | None] = mapped_column(Moment)
    # First failing check, until confirmed or cancelled
    failing_since: Mapped[datetime | None] = mapped_column(Moment)
    # Failing checks in a row while confirming
    failures: Mapped[int] = mapped_column(Bounded(0, 32_767, 0, small=True), default=0)
    # First good check, until confirmed
    recovering_since: Mapped[datetime | None] = mapped_column(Moment)
    # When the check was recorded that is to be repeated after CONFIRM_SECONDS; null: none is
    unconfirmed_at: Mapped[datetime | None] = mapped_column(Moment)
    ssl_expires_at: Mapped[datetime | None] = mapped_column(NamedMoment)
    ssl_fingerprint: Mapped[str | None] = mapped_column(String(64))
    # Fingerprint that people were told of
    ssl_alerted: Mapped[str | None] = mapped_column(String(64))
    domain: Mapped[str | None] = mapped_column(Text, index=True)  # registrable domain of the URL
    # Expiry date that people were told of
    domain_alerted: Mapped[datetime | None] = mapped_column(NamedMoment)
    # Rollups are right before this moment
    rolled_until: Mapped[datetime | None] = mapped_column(Moment)


class MonitorEvidenceRow(Model):
    """The evidence of a monitor's last good check and of the failing checks not yet confirmed."""

    __tablename__ = "monitor_evidence"

    monitor_id: Mapped[int] = mapped_column(
        Id, ForeignKey("monitors.id", ondelete="CASCADE"), primary_key=True
    )
    last_good: Mapped[Any | None] = mapped_column(EncryptedJson(is_check))
    failing: Mapped[Any | None] = mapped_column(EncryptedJson(is_checks))


class LocationRow(Model):
    """Where checks run from. Row 1 is always there; a checker makes the row of its own place."""

    __tablename__ = "locations"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    label: Mapped[str | None] = mapped_column(String(80))
    carrier: Mapped[str] = mapped_column(String(16), default="local", server_default="local")
    created_at: Mapped[datetime] = mapped_column(Moment)


class AssignmentRow(Model):
    """What is checked from where, and what the schedule must know of it after a restart.

    ``turn`` changes with each recorded check and with each change that makes a check on its way
    worthless: only a check that was started at the present turn is recorded. That no slot of the
    schedule is recorded twice rests on it.
    """

    __tablename__ = "assignments"

    monitor_id: Mapped[int] = mapped_column(
        Id, ForeignKey("monitors.id", ondelete="CASCADE"), primary_key=True
    )
    location_id: Mapped[int] = mapped_column(
        Id, ForeignKey("locations.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    turn: Mapped[int] = mapped_column(BigInteger)
    # The last moment of the monitor's grid that was done; null: a check is due at once
    slot: Mapped[datetime | None] = mapped_column(Moment)
    checked_at: Mapped[datetime | None] = mapped_column(Moment)
    # What this place saw last, its vote: see journal.VERDICT_NUMBERS
    verdict: Mapped[int | None] = mapped_column(SmallInteger)
    # The last check here could not tell, because this place's own network failed
    blind: Mapped[bool] = mapped_column(default=False)


class ShardRow(Model):
    """A part of a place's monitors, and the checker that checks them (``app/engine/shards.py``).

    ``token`` grows with each owner. The recorder compares it: what an earlier owner brings is
    dropped. ``until`` is when the ownership ends, or ended, unless it is renewed.
    """

    __tablename__ = "shards"

    location_id: Mapped[int] = mapped_column(
        Id, ForeignKey("locations.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    owner: Mapped[str | None] = mapped_column(String(96))
    until: Mapped[datetime | None] = mapped_column(Moment)
    token: Mapped[int] = mapped_column(BigInteger, default=0)


class ChangeRow(Model):
    """A monitor that checkers have to read again. Numbers become visible in their order
    (``app/db/changes.py``).
    """

    __tablename__ = "changes"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    monitor_id: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime] = mapped_column(Moment, index=True)


class CauseCodeRow(Model):
    """Cause codes as small numbers, so that a result row stays narrow (``http_status:503`` has a
    row of its own).
    """

    __tablename__ = "cause_codes"

    id: Mapped[int] = mapped_column(primary_key=True)
    code: Mapped[str] = mapped_column(String(32), unique=True)


class ResultContextRow(Model):
    """What stays the same check after check (address, HTTP version, redirects, warnings), kept once
    for many results.
    """

    __tablename__ = "result_contexts"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(32), unique=True)
    data: Mapped[Any] = mapped_column(CheckedJson(is_context, dict))


class ResultRow(Model):
    """One check. Keyed by monitor and time without a row id: 90 days of one monitor lie together
    and read in one go.

    Hundreds of millions of rows: nothing is stored twice, times are milliseconds, and ``cause`` is
    only there when the check was not up.
    """

    __tablename__ = "results"
    __table_args__ = ({"sqlite_with_rowid": False},)

    monitor_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    # ms since 1970
    at: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    location_id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    verdict: Mapped[int] = mapped_column(SmallInteger)  # see journal.VERDICT_NUMBERS
    maintenance: Mapped[bool]
    # How long it stands for its monitor at most, see app/stats; 0 does not count, because it was
    # paused. Null: not kept yet when it was recorded, so as long as the present interval says.
    covers_s: Mapped[int | None]
    status_code: Mapped[int | None] = mapped_column(SmallInteger)
    response_time: Mapped[int | None]
    dns: Mapped[int | None]
    connect: Mapped[int | None]
    tls: Mapped[int | None]
    ttfb: Mapped[int | None]
    download: Mapped[int | None]
    context_id: Mapped[int | None]
    cause_code_id: Mapped[int | None] = mapped_column(SmallInteger)
    cause: Mapped[str | None] = mapped_column(Text)


class RollupRow(Model):
    """Results of one hour (``period`` 3600) or one UTC day (86400), summed; see
    ``app/stats/rollup.py``.

    Seconds of the period by what they counted as; ``histogram`` counts response times in fixed
    buckets.
    """

    __tablename__ = "rollups"
    __table_args__ = ({"sqlite_with_rowid": False},)

    monitor_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    period: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    # s since 1970
    start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    checks: Mapped[int]
    up_s: Mapped[int]
    down_s: Mapped[int]
    unknown_s: Mapped[int]
    maintenance_s: Mapped[int]
    response_count: Mapped[int]
    response_sum: Mapped[int] = mapped_column(BigInteger)  # ms
    response_max: Mapped[int | None]
    histogram: Mapped[Any | None] = mapped_column(CheckedJson(is_histogram, dict))
    # sums of dns, connect, tls, ttfb, download in ms
    phases: Mapped[Any | None] = mapped_column(CheckedJson(is_phases, list))


class IncidentRow(Model):
    __tablename__ = "incidents"
    __table_args__ = (
        # The guard behind "at most one open incident per monitor": no race between processes gets
        # past it.
        Index(
            "uq_incidents_open",
            "monitor_id",
            unique=True,
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
        Index("ix_incidents_monitor_started", "monitor_id", "started_at"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    monitor_id: Mapped[int] = mapped_column(Id, ForeignKey("monitors.id", ondelete="CASCADE"))
    started_at: Mapped[datetime] = mapped_column(Moment, index=True)
    acknowledged_at: Mapped[datetime | None] = mapped_column(Moment)
    acknowledged_by: Mapped[str | None] = mapped_column(Text)
    ended_at: Mapped[datetime | None] = mapped_column(Moment, index=True)
    cause: Mapped[str | None] = mapped_column(Text)
    cause_folded: Mapped[str | None] = mapped_column(Folded)
    cause_code: Mapped[str | None] = mapped_column(String(32))
    comment: Mapped[str | None] = mapped_column(Text)
    evidence: Mapped[Any | None] = mapped_column(EncryptedJson(is_evidence), deferred=True)
    by_hand: Mapped[bool] = mapped_column(default=False)
    # null, "maintenance", "false_alarm"
    classification: Mapped[str | None] = mapped_column(String(16))
    reminded_at: Mapped[datetime | None] = mapped_column(Moment)
    # [{"from": time, "to": time}, ...]: meanwhile nothing was watched
    unwatched: Mapped[Any | None] = mapped_column(CheckedJson(is_gaps, list, none_as_null=True))
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class DeliveryRow(Model):
    """The outbox and the delivery log in one: a message to one channel value, with its attempts."""

    __tablename__ = "deliveries"
    __table_args__ = (
        Index("ix_deliveries_pending", "next_attempt_at", sqlite_where=text("status = 'pending'"),
              postgresql_where=text("status = 'pending'")),
        Index("ix_deliveries_lane", "lane", "status"),
        # What waits for the end of quiet hours, and what failed for good: few among many rows.
        Index("ix_deliveries_waiting", "monitor_id",
              sqlite_where=text("status = 'held' AND next_attempt_at IS NOT NULL"),
              postgresql_where=text("status = 'held' AND next_attempt_at IS NOT NULL")),
        Index("ix_deliveries_failed", "lane", "id", sqlite_where=text("status = 'failed'"),
              postgresql_where=text("status = 'failed'")),
        NEVER_REUSED,
    )  # fmt: skip

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    message_id: Mapped[str] = mapped_column(String(40), unique=True)  # the same on every attempt
    event: Mapped[str] = mapped_column(String(32))
    monitor_id: Mapped[int | None] = mapped_column(
        Id, ForeignKey("monitors.id", ondelete="CASCADE"), index=True
    )
    incident_id: Mapped[int | None] = mapped_column(
        Id, ForeignKey("incidents.id", ondelete="CASCADE"), index=True
    )
    channel: Mapped[str] = mapped_column(String(16))
    value: Mapped[str | Unreadable] = mapped_column(Encrypted)
    lane: Mapped[str] = mapped_column(String(32))  # keyed hash of channel and value
    # What the message says, as it was when it was written
    facts: Mapped[Any] = mapped_column(EncryptedJson(is_facts))
    status: Mapped[str] = mapped_column(String(16))
    reason: Mapped[str | None] = mapped_column(Text)
    attempts: Mapped[Any] = mapped_column(CheckedJson(is_attempts, list), default=list)
    # The grouped message that tells this one
    covered_by: Mapped[int | None] = mapped_column(Id, index=True)
    lease_until: Mapped[datetime | None] = mapped_column(Moment)
    lease_token: Mapped[str | None] = mapped_column(String(32))
    created_at: Mapped[datetime] = mapped_column(Moment, index=True)
    next_attempt_at: Mapped[datetime | None] = mapped_column(Moment)
    delivered_at: Mapped[datetime | None] = mapped_column(Moment)


class DomainRow(Model):
    """A registrable domain's expiry, asked at most once a day however many monitors share it."""

    __tablename__ = "domains"

    domain: Mapped[str] = mapped_column(Text, primary_key=True)
    expires_at: Mapped[datetime | None] = mapped_column(NamedMoment)
    asked_at: Mapped[datetime | None] = mapped_column(Moment)
    source: Mapped[str | None] = mapped_column(String(8))
    note: Mapped[str | None] = mapped_column(Text)


class MaintenanceWindowRow(Model):
    __tablename__ = "maintenance_windows"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    start_at: Mapped[datetime] = mapped_column(NamedMoment)
    end_at: Mapped[datetime] = mapped_column(NamedMoment)
    repeat: Mapped[str] = mapped_column(Text, default="none")
    repeat_until: Mapped[datetime | None] = mapped_column(NamedMoment)
    zone: Mapped[str] = mapped_column(
        String(64), default=DEFAULT_WINDOW_ZONE, server_default=DEFAULT_WINDOW_ZONE
    )
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class MaintenanceWindowMonitorRow(Model):
    __tablename__ = "maintenance_window_monitors"

    window_id: Mapped[int] = mapped_column(
        Id, ForeignKey("maintenance_windows.id", ondelete="CASCADE"), primary_key=True
    )
    monitor_id: Mapped[int] = mapped_column(
        Id, ForeignKey("monitors.id", ondelete="CASCADE"), primary_key=True, index=True
    )


class StatusPageRow(Model):
    __tablename__ = "status_pages"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    slug: Mapped[str] = mapped_column(String(255), unique=True)
    description: Mapped[str | None] = mapped_column(Text)
    visibility: Mapped[str] = mapped_column(String(16), default="public")
    password_hash: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class StatusPageMonitorRow(Model):
    __tablename__ = "status_page_monitors"

    status_page_id: Mapped[int] = mapped_column(
        Id, ForeignKey("status_pages.id", ondelete="CASCADE"), primary_key=True
    )
    monitor_id: Mapped[int] = mapped_column(
        Id, ForeignKey("monitors.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    position: Mapped[int]
    group: Mapped[str | None] = mapped_column(Text)


class PersonRow(Model):
    __tablename__ = "people"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    email: Mapped[str] = mapped_column(Text)
    email_folded: Mapped[str] = mapped_column(Folded, unique=True)
    password_hash: Mapped[str] = mapped_column(Text)
    # The least role, where it cannot be read
    role: Mapped[str] = mapped_column(Word(16, is_role, Role.VIEWER))
    time_zone: Mapped[str] = mapped_column(Word(64, is_zone, "UTC"), default="UTC")
    theme: Mapped[str] = mapped_column(String(8), default="auto")
    disabled: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = mapped_column(Moment)
    last_login_at: Mapped[datetime | None] = mapped_column(Moment)


class ApiKeyRow(Model):
    __tablename__ = "api_keys"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    prefix: Mapped[str] = mapped_column(String(16), unique=True)
    # SHA-256 of the whole key: it has 128 random bits or more
    digest: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(Text)
    scope: Mapped[str] = mapped_column(String(8))
    created_at: Mapped[datetime] = mapped_column(Moment)
    expires_at: Mapped[datetime | None] = mapped_column(NamedMoment)
    last_used_at: Mapped[datetime | None] = mapped_column(Moment)
    revoked_at: Mapped[datetime | None] = mapped_column(Moment)


class SessionRow(Model):
    """A browser in which a person is logged in. Without its row, a cookie is nothing."""

    __tablename__ = "sessions"
    __table_args__ = (NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    # SHA-256 of the token in the cookie: it has 192 random bits
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    person_id: Mapped[int] = mapped_column(
        Id, ForeignKey("people.id", ondelete="CASCADE"), index=True
    )
    created_at: Mapped[datetime] = mapped_column(Moment)
    last_used_at: Mapped[datetime] = mapped_column(Moment)


class CounterRow(Model):
    """Counts within a time window (requests of a key, failed logins), shared by all processes."""

    __tablename__ = "counters"

    name: Mapped[str] = mapped_column(String(96), primary_key=True)
    # s since 1970
    window: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    count: Mapped[int]


class SettingRow(Model):
    """What is set on the settings page or made once by the service (webhook secret, set-up token,
    notices).
    """

    __tablename__ = "settings"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str | Unreadable | None] = mapped_column(Encrypted)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class HeartbeatRow(Model):
    """When a process was last known to be alive, and what it did last. ``/readyz`` reads it."""

    __tablename__ = "heartbeats"

    # "checker:hostname:token of the process"
    name: Mapped[str] = mapped_column(String(96), primary_key=True)
    location: Mapped[str | None] = mapped_column(String(64))  # where a checker checks from
    at: Mapped[datetime] = mapped_column(Moment)
    last_check_at: Mapped[datetime | None] = mapped_column(Moment)
    ended_at: Mapped[datetime | None] = mapped_column(Moment)  # where it was seen to end
