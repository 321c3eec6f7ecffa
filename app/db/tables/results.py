"""Results, and their sums by hour and day; heartbeats and their pings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, LargeBinary, SmallInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.db import Model
from app.db.contents import is_context, is_histogram, is_phases, is_runs
from app.db.tables.columns import NEVER_REUSED, Numbered, belongs_to
from app.db.types import CheckedJson, Encrypted, Moment, Unreadable, VerdictNumber, Word
from app.records import MAX_HEARTBEAT_SLUG, PingKind, Verdict


class CauseCodeRow(Model):
    """A cause code, such as ``http_status:503``, with a small number, so that result rows are
    narrow.
    """

    __tablename__ = "cause_codes"

    id: Mapped[int] = mapped_column(primary_key=True)
    code: Mapped[str] = mapped_column(String(32), unique=True)


class ResultContextRow(Model):
    """Values that usually stay the same from check to check (address, HTTP version, redirects,
    warnings), stored once for many results.
    """

    __tablename__ = "result_contexts"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(32), unique=True)
    data: Mapped[Any] = mapped_column(CheckedJson(is_context, dict))


class ResultRow(Model):
    """One check. The table has no row id and is ordered by its key, so that the results of a
    monitor lie together.

    There may be hundreds of millions of rows: repeated values are stored once, times are
    milliseconds, and ``cause`` is null if the check was up.
    """

    __tablename__ = "results"
    __table_args__ = ({"sqlite_with_rowid": False},)

    monitor_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    # ms since 1970
    at: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    location_id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    verdict: Mapped[Verdict] = mapped_column(VerdictNumber)
    maintenance: Mapped[bool]
    # For how many seconds the result counts at most (app/stats/cover.py). 0: not at all, as in a
    # pause. Null: as the present interval says (of an older version)
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


class PackedHourRow(Model):
    """The results of an hour of a monitor and a place in one value; see ``app/db/packed.py``."""

    __tablename__ = "packed_hours"
    __table_args__ = ({"sqlite_with_rowid": False},)

    monitor_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    # hours since 1970
    hour: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    location_id: Mapped[int] = mapped_column(SmallInteger, primary_key=True, autoincrement=False)
    results: Mapped[int]  # how many
    packed: Mapped[bytes] = mapped_column(LargeBinary)


class RollupRow(Model):
    """The sums of the results of one hour (``period`` 3600) or one UTC day (86400); see
    ``app/db/rollups``. ``histogram`` counts response times in fixed buckets
    (``app/stats/tally.py``).
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
    # Part of up_s; 0 in hours that were summed before revision 0015
    degraded_s: Mapped[int] = mapped_column(default=0, server_default="0")
    response_count: Mapped[int]
    response_sum: Mapped[int] = mapped_column(BigInteger)  # ms
    response_max: Mapped[int | None]
    histogram: Mapped[Any | None] = mapped_column(CheckedJson(is_histogram, dict))
    # sums of dns, connect, tls, ttfb, download in ms
    phases: Mapped[Any | None] = mapped_column(CheckedJson(is_phases, list))


class HeartbeatStateRow(Model):
    """The state of a heartbeat for ``app/judge/heartbeat``, and its secret."""

    __tablename__ = "heartbeat_states"

    monitor_id: Mapped[int] = belongs_to("monitors", primary_key=True)
    token: Mapped[str | Unreadable] = mapped_column(Encrypted)
    # A keyed hash, by which the heartbeat of a ping is found
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    slug: Mapped[str | None] = mapped_column(String(MAX_HEARTBEAT_SLUG), index=True)
    last_ping_at: Mapped[datetime | None] = mapped_column(Moment)
    # The last success or failure since watching began
    ended_at: Mapped[datetime | None] = mapped_column(Moment)
    expected_at: Mapped[datetime | None] = mapped_column(Moment)
    unknown_until: Mapped[datetime | None] = mapped_column(Moment)
    # [[run id, start in ms, until in ms], ...]
    runs: Mapped[Any] = mapped_column(CheckedJson(is_runs, list))
    fault_code: Mapped[str | None] = mapped_column(String(32))
    fault: Mapped[str | None] = mapped_column(Text)
    fault_since: Mapped[datetime | None] = mapped_column(Moment)
    # The time of its last result, and when the next one is due without a ping
    result_at: Mapped[datetime | None] = mapped_column(Moment)
    due_at: Mapped[datetime | None] = mapped_column(Moment, index=True)


class PingRow(Numbered, Model):
    __tablename__ = "pings"
    __table_args__ = (Index("ix_pings_monitor_id_id", "monitor_id", "id"), NEVER_REUSED)

    monitor_id: Mapped[int] = belongs_to("monitors")
    at: Mapped[datetime] = mapped_column(Moment, index=True)
    kind: Mapped[str] = mapped_column(Word(8, PingKind, PingKind.LOG))
    exit_status: Mapped[int | None] = mapped_column(BigInteger)
    rid: Mapped[str | None] = mapped_column(String(36))
    duration: Mapped[int | None] = mapped_column(BigInteger)  # ms
    method: Mapped[str] = mapped_column(String(16))
    address: Mapped[str | None] = mapped_column(String(64))
    body: Mapped[str | Unreadable | None] = mapped_column(Encrypted)
