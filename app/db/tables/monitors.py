"""Monitors, where they are checked from, who checks them, their maintenance windows, and
registrable domains.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, SmallInteger, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column, validates

from app.db import Model
from app.db.contents import is_asked, is_check, is_checks, is_pairs, is_statuses
from app.db.tables.columns import (
    NEVER_REUSED,
    UNSEEN,
    Clock,
    Folded,
    Id,
    Numbered,
    belongs_to,
    partial_index,
    secret,
)
from app.db.types import (
    AlertDays,
    Bounded,
    Encrypted,
    EncryptedAssertions,
    EncryptedJson,
    EnteredMoment,
    KindOptions,
    Moment,
    Unreadable,
    VerdictNumber,
    Word,
)
from app.records import (
    DEFAULT_ACCEPTED_STATUSES,
    DEFAULT_QUIET_ZONE,
    DEFAULT_TIMEOUT,
    DEFAULT_WINDOW_ZONE,
    INTERVALS,
    KIND_OPTIONS,
    AlertCondition,
    Assertion,
    Carrier,
    LocationRule,
    RequestMethod,
    Verdict,
)
from app.rules.natural import natural_key
from app.rules.recurrence import ONCE, is_repeat
from app.rules.time import is_zone

# No interval and no time limit is longer, so sums of them never overflow.
AN_HOUR, A_YEAR = 3_600, 31_536_000
# The condition of the index of states that are not up. A statement must have the same words, or the
# database does not use the index.
NOT_UP = "verdict IS NULL OR verdict <> 'up'"


class MonitorRow(Numbered, Model):
    """A monitor as people configure it. Its results lead to the values of ``MonitorStateRow``, so
    that a check writes little.
    """

    __tablename__ = "monitors"
    __table_args__ = (
        # app/stores/local/states.py finds monitors that are not up by them.
        partial_index("ix_monitors_paused", "id", where="paused = 1", postgresql="paused"),
        partial_index("ix_monitors_maintenance", "maintenance_start_at",
                      where="maintenance_start_at IS NOT NULL"),
        NEVER_REUSED,
    )  # fmt: skip

    name: Mapped[str] = mapped_column(Text)
    name_folded: Mapped[str] = mapped_column(Folded, index=True)
    name_natural: Mapped[str] = mapped_column(Folded, index=True, server_default="", info=UNSEEN)
    url: Mapped[str] = mapped_column(Text)
    url_folded: Mapped[str] = mapped_column(Folded, index=True)
    # The exact seconds between checks. ``check_every``: the same, if somebody chose a value that is
    # not among the intervals of the base API.
    interval: Mapped[int] = mapped_column(Bounded(1, A_YEAR, INTERVALS[0]))
    check_every: Mapped[int | None] = mapped_column(info=UNSEEN)
    alert_condition: Mapped[str] = mapped_column(
        Word(32, AlertCondition, AlertCondition.URL_UNAVAILABLE)
    )
    alert_text_lookup: Mapped[str | None] = mapped_column(Text)
    request_method: Mapped[str] = mapped_column(Word(8, RequestMethod, RequestMethod.GET))
    # [[name, value], ...]
    request_headers: Mapped[list[list[str]] | Unreadable | None] = mapped_column(
        EncryptedJson(is_pairs)
    )
    request_auth_username: Mapped[str | None] = mapped_column(Text)
    request_auth_password: Mapped[str | Unreadable | None] = mapped_column(Encrypted)
    request_body: Mapped[str | Unreadable | None] = mapped_column(Encrypted)
    cache_buster: Mapped[int] = mapped_column(SmallInteger)
    ssl_alert_days: Mapped[int | str | None] = mapped_column(AlertDays)
    domain_alert_days: Mapped[int | None] = mapped_column(SmallInteger)
    maintenance_start_at: Mapped[datetime | None] = mapped_column(EnteredMoment)
    maintenance_end_at: Mapped[datetime | None] = mapped_column(EnteredMoment)
    # [[channel, value], ...]
    alerts: Mapped[list[list[str]] | Unreadable | None] = mapped_column(EncryptedJson(is_pairs))
    # Keyed hashes of these, each between line breaks: equal values are found without decrypting
    alert_lanes: Mapped[str | None] = mapped_column(Text, info=UNSEEN)
    # Seconds
    timeout: Mapped[int] = mapped_column(Bounded(1, AN_HOUR, DEFAULT_TIMEOUT, small=True))
    accepted_statuses: Mapped[str] = mapped_column(
        Word(None, is_statuses, DEFAULT_ACCEPTED_STATUSES)
    )
    follow_redirects: Mapped[bool]
    verify_tls: Mapped[bool]
    slow_after: Mapped[int | None]  # ms
    slow_alert_after: Mapped[int | None] = mapped_column(SmallInteger)  # minutes
    confirmations: Mapped[int] = mapped_column(Bounded(0, 32_767, 0, small=True))
    # "\nprod\napi\n": a tag is found with its line breaks
    tags: Mapped[str] = mapped_column(Text, default="")
    # Loaded only when it is read, because lists do not show it
    notes: Mapped[str] = mapped_column(
        Text, default="", server_default="", deferred=True, active_history=True
    )
    remind_after: Mapped[int | None] = mapped_column(SmallInteger)  # minutes
    quiet_start: Mapped[str | None] = mapped_column(Clock)  # HH:MM
    quiet_end: Mapped[str | None] = mapped_column(Clock)
    quiet_zone: Mapped[str] = mapped_column(
        String(64), default=DEFAULT_QUIET_ZONE, server_default=DEFAULT_QUIET_ZONE
    )
    # The rule that makes one verdict of the votes of its places
    location_rule: Mapped[str] = mapped_column(
        Word(8, LocationRule, LocationRule.MAJORITY),
        default=LocationRule.MAJORITY,
        server_default=LocationRule.MAJORITY.value,
    )
    # The fields of its kind, which are attributes of the row too (``_option``)
    options: Mapped[Mapping[str, Any] | None] = mapped_column(KindOptions)
    assertions: Mapped[tuple[Assertion, ...] | Unreadable | None] = mapped_column(
        EncryptedAssertions
    )
    paused: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)

    @validates("name", "url")
    def _fold(self, key: str, text: str) -> str:
        setattr(self, f"{key}_folded", text.casefold())
        if key == "name":
            self.name_natural = natural_key(text)
        return text


def _option(name: str, default: Any) -> property:
    """A field of ``MonitorRow`` that is kept in ``options``, unless it has its default."""

    def read(row: MonitorRow) -> Any:
        return (row.options or {}).get(name, default)

    def write(row: MonitorRow, value: Any) -> None:
        others = {key: kept for key, kept in (row.options or {}).items() if key != name}
        row.options = others if value in (None, default) else others | {name: value}

    return property(read, write)


for _name, _default in KIND_OPTIONS.items():
    setattr(MonitorRow, _name, _option(_name, _default))


class MonitorStateRow(Model):
    """The state of a monitor: its last result, and the stage of its incident (``app/judge``).

    Written often, so it is narrow, and no index covers what each check changes. Only
    ``engine/recorder`` changes the state; pause, resume and delete go through it too.
    """

    __tablename__ = "monitor_states"
    __table_args__ = (partial_index("ix_monitor_states_not_up", "monitor_id", where=NOT_UP),)

    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True)
    checked_at: Mapped[datetime | None] = mapped_column(Moment)
    verdict: Mapped[str | None] = mapped_column(Word(16, Verdict, Verdict.UNKNOWN))
    cause_code: Mapped[str | None] = mapped_column(String(32))
    cause: Mapped[str | None] = mapped_column(Text)
    response_time: Mapped[int | None]  # ms
    # The time of the last change of the verdict
    status_since: Mapped[datetime | None] = mapped_column(Moment)
    # The first failing check, while a failure is being confirmed
    failing_since: Mapped[datetime | None] = mapped_column(Moment)
    # Failing checks in a row while confirming
    failures: Mapped[int] = mapped_column(Bounded(0, 32_767, 0, small=True), default=0)
    # The first good check, while a recovery is being confirmed
    recovering_since: Mapped[datetime | None] = mapped_column(Moment)
    # A check is repeated CONFIRM_SECONDS after this time; null: none is to be repeated
    unconfirmed_at: Mapped[datetime | None] = mapped_column(Moment)
    ssl_issued_at: Mapped[datetime | None] = mapped_column(EnteredMoment)
    ssl_expires_at: Mapped[datetime | None] = mapped_column(EnteredMoment)
    ssl_fingerprint: Mapped[str | None] = mapped_column(String(64))
    # Beginnings of the fingerprints whose expiry people were notified of, with spaces between them
    alerted_certificates: Mapped[str | None] = mapped_column(Text)
    domain: Mapped[str | None] = mapped_column(Text, index=True)  # registrable domain of the URL
    # Expiry dates (2027-01-02) that people were notified of, with spaces between them
    alerted_domain_dates: Mapped[str | None] = mapped_column(Text)
    # The rollups have all results until this time
    rolled_until: Mapped[datetime | None] = mapped_column(Moment)
    # Grows with each change of this monitor's rollups
    sums_version: Mapped[int] = mapped_column(default=0, server_default="0")
    # The last pause, in which late results do not count. Null: none is stored
    paused_at: Mapped[datetime | None] = mapped_column(Moment)
    resumed_at: Mapped[datetime | None] = mapped_column(Moment)
    # When its interval, time limit, confirmations, rule, places or URL last changed: earlier late
    # results are not judged by the present values. Null: not since its creation
    judged_since: Mapped[datetime | None] = mapped_column(Moment)
    # When a field that its checks need last changed: an agent's results of earlier checks are
    # dropped. Null: not since its creation
    spec_since: Mapped[datetime | None] = mapped_column(Moment)
    # The id of the failing parent because of which it is unreachable. The open row of
    # UnreachableRow has the time since when
    behind_id: Mapped[int | None] = mapped_column(BigInteger)
    # When its parents were asked for a check, while a failure is being confirmed
    parents_asked_at: Mapped[datetime | None] = mapped_column(Moment)


class MonitorDependencyRow(Model):
    """A monitor that is reached through another one, its parent."""

    __tablename__ = "monitor_dependencies"

    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True)
    parent_id: Mapped[int] = belongs_to("monitors", primary_key=True, index=True)
    position: Mapped[int] = mapped_column(SmallInteger)


class UnreachableRow(Model):
    """A time in which a monitor was unreachable because of its parent: neither up nor down.
    ``found_late``: only late results show it.

    ``parent_id`` stays when the parent is deleted: the time was unreachable all the same.
    """

    __tablename__ = "unreachable_spans"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    monitor_id: Mapped[int] = belongs_to("monitors", index=True)
    parent_id: Mapped[int] = mapped_column(BigInteger, index=True)
    started_at: Mapped[datetime] = mapped_column(Moment)
    ended_at: Mapped[datetime | None] = mapped_column(Moment)
    found_late: Mapped[bool] = mapped_column(default=False, server_default=false())


class MonitorEvidenceRow(Model):
    """The evidence of a monitor's last good check and of the failing checks not yet confirmed."""

    __tablename__ = "monitor_evidence"

    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True)
    last_good: Mapped[Any | None] = mapped_column(EncryptedJson(is_check))
    failing: Mapped[Any | None] = mapped_column(EncryptedJson(is_checks))
    # The values that the assertions found in the last check on request of each place, because
    # results have no column for them
    asked: Mapped[Any | None] = mapped_column(EncryptedJson(is_asked))


class PlaceRow(Numbered, Model):
    """A place that checks run from. Row 1 always exists; a checker creates the row of its place.

    The reports of its processes are in their signs of life. The times here are those of processes
    whose signs are deleted (``app/db/places.py``).
    """

    __tablename__ = "locations"

    name: Mapped[str] = mapped_column(String(64), unique=True)
    label: Mapped[str | None] = mapped_column(String(80))
    carrier: Mapped[str] = mapped_column(
        Word(16, Carrier, Carrier.LOCAL), default=Carrier.LOCAL, server_default=Carrier.LOCAL.value
    )
    created_at: Mapped[datetime] = mapped_column(Moment, server_default="0")
    # The last sign of life of its processes, and when a check from it was last recorded
    seen_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    result_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    # When people were notified of its silence; null: not notified, or notified of its return since
    silent_at: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    # When the last result before that silence was recorded
    silent_since: Mapped[datetime | None] = mapped_column(Moment, info=UNSEEN)
    # SHA-256 of an agent's token: it has 192 random bits
    token_digest: Mapped[str | None] = mapped_column(
        String(64), index=True, unique=True, info=secret("token")
    )
    # The agent's own X25519 key, to which the secrets of its monitors are sealed; base64
    public_key: Mapped[str | None] = mapped_column(String(64))


class AssignmentRow(Model):
    """A monitor that is checked from a place, and the state that the schedule needs after a
    restart.

    ``generation`` rises with each recorded check, and with each change that invalidates running
    checks. Only a check that was started at the present generation is recorded, so that no
    scheduled check is recorded twice.
    """

    __tablename__ = "assignments"

    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True)
    location_id: Mapped[int] = belongs_to("locations", primary_key=True, index=True)
    generation: Mapped[int] = mapped_column("turn", BigInteger)
    # The scheduled time of the last check; null: a check is due at once
    scheduled_at: Mapped[datetime | None] = mapped_column("slot", Moment)
    checked_at: Mapped[datetime | None] = mapped_column(Moment)
    # The verdict of the newest check here: the vote of the place
    verdict: Mapped[Verdict | None] = mapped_column(VerdictNumber)
    # When somebody last asked for a check here ("check now")
    asked_at: Mapped[datetime | None] = mapped_column(Moment)
    # Whether the last check here failed because of the place's network
    blind: Mapped[bool] = mapped_column(default=False)
    # Failing checks in a row here
    failures: Mapped[int] = mapped_column(
        Bounded(0, 32_767, 0, small=True), default=0, server_default="0"
    )


class ShardRow(Model):
    """A part of a place's monitors, and the checker that checks them
    (``app/engine/own_shards.py``).

    ``token`` grows with each owner. The recorder compares it: results of an earlier owner are
    dropped. ``until`` is when the ownership ends unless it is renewed.
    """

    __tablename__ = "shards"

    location_id: Mapped[int] = belongs_to("locations", primary_key=True)
    number: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    owner: Mapped[str | None] = mapped_column(String(96))
    until: Mapped[datetime | None] = mapped_column(Moment)
    token: Mapped[int] = mapped_column(BigInteger, default=0)


class ChangeRow(Numbered, Model):
    """A monitor that checkers have to read again. Numbers become visible in their order
    (``app/db/changes.py``).
    """

    __tablename__ = "changes"

    monitor_id: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime] = mapped_column(Moment, index=True)


# --- domains


class DomainRow(Model):
    """The expiry of a registrable domain, which several monitors may share."""

    __tablename__ = "domains"

    domain: Mapped[str] = mapped_column(Text, primary_key=True)
    expires_at: Mapped[datetime | None] = mapped_column(EnteredMoment)
    asked_at: Mapped[datetime | None] = mapped_column(Moment)
    source: Mapped[str | None] = mapped_column(String(8))
    note: Mapped[str | None] = mapped_column(Text)


class MaintenanceWindowRow(Numbered, Model):
    __tablename__ = "maintenance_windows"

    name: Mapped[str] = mapped_column(Text)
    start_at: Mapped[datetime] = mapped_column(EnteredMoment)
    end_at: Mapped[datetime] = mapped_column(EnteredMoment)
    repeat: Mapped[str] = mapped_column(Word(None, is_repeat, ONCE), default=ONCE)
    repeat_until: Mapped[datetime | None] = mapped_column(EnteredMoment)
    zone: Mapped[str] = mapped_column(
        Word(64, is_zone, DEFAULT_WINDOW_ZONE),
        default=DEFAULT_WINDOW_ZONE,
        server_default=DEFAULT_WINDOW_ZONE,
    )
    # Tags like those of a monitor: "\nprod\napi\n". The window applies to the monitors that have
    # one of them now.
    tags: Mapped[str] = mapped_column(Text, default="", server_default="")
    public: Mapped[bool] = mapped_column(default=False, server_default=false())
    public_name: Mapped[str | None] = mapped_column(Text)
    public_text: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Moment)
    updated_at: Mapped[datetime] = mapped_column(Moment)


class MaintenanceWindowMonitorRow(Model):
    __tablename__ = "maintenance_window_monitors"

    window_id: Mapped[int] = belongs_to("maintenance_windows", primary_key=True)
    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True, index=True)
