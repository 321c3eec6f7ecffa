"""Add assignments (which monitor is checked from which place), shards, and the change feed.

Until now, each monitor's state held the time of its next check and the lease of its checker. Now the
time is computed from the last check, and each checker owns shards of its place.

Each monitor is assigned to the places that have checked it: those that made at least 3 of its last
10 results, so that a single check on request does not count. Only their checkers are known to run. A
monitor without results is assigned to the place of most others, or to the default place.

Revision ID: 0008
Revises: 0007
"""

import math
import time
from collections import Counter
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
VERDICTS = {"up": 0, "degraded": 1, "down": 2, "unknown": 3}
DEFAULT_PLACE = 1
LOOKED_AT, LEAST = 10, 3  # results
CONFIRM_MS = 10_000
AT_ONCE = 1000  # rows


def upgrade() -> None:
    now = round(time.time() * 1000)
    _places(now)
    _tables()
    op.add_column("monitor_states", sa.Column("unconfirmed_at", sa.BigInteger(), nullable=True))
    _assign()
    op.drop_index("ix_monitor_states_next_check_at", "monitor_states")
    for name in ("next_check_at", "lease_until", "lease_token"):
        op.drop_column("monitor_states", name)
    op.add_column("heartbeats", sa.Column("location", sa.String(length=64), nullable=True))


def _places(now: int) -> None:
    op.add_column("locations", sa.Column("label", sa.String(length=80), nullable=True))
    op.add_column(
        "locations",
        sa.Column("carrier", sa.String(length=16), nullable=False, server_default="local"),
    )
    op.add_column(
        "locations",
        sa.Column("created_at", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.execute(sa.text("UPDATE locations SET created_at = :now").bindparams(now=now))


def _tables() -> None:
    op.create_table(
        "assignments",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("location_id", ID, nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=True),
        sa.Column("checked_at", sa.BigInteger(), nullable=True),
        sa.Column("verdict", sa.SmallInteger(), nullable=True),
        sa.Column("blind", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_assignments_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["locations.id"],
            name=op.f("fk_assignments_location_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", "location_id", name=op.f("pk_assignments")),
    )
    op.create_index(op.f("ix_assignments_location_id"), "assignments", ["location_id"])
    op.create_table(
        "shards",
        sa.Column("location_id", ID, nullable=False),
        sa.Column("number", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.String(length=96), nullable=True),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["locations.id"],
            name=op.f("fk_shards_location_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("location_id", "number", name=op.f("pk_shards")),
    )
    op.create_table(
        "changes",
        sa.Column("id", ID, nullable=False),
        sa.Column("monitor_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_changes_at"), "changes", ["at"])


def _assign() -> None:
    """Give each monitor its places, the last moment of its grid that was done, and what it waits
    for. What was due stays due; what was not is not checked before its time.
    """
    connection = op.get_bind()
    now = round(time.time() * 1000)
    monitors = connection.execute(
        sa.text(
            "SELECT m.id, m.interval, s.next_check_at, s.checked_at, s.verdict, s.cause_code,"
            " s.failing_since, s.recovering_since FROM monitors m"
            " LEFT JOIN monitor_states s ON s.monitor_id = m.id ORDER BY m.id"
        )
    ).all()
    places = {row.id: _checked_from(connection, row.id) for row in monitors}
    usual = Counter(found[0] for found in places.values() if found).most_common(1)
    elsewhere = [usual[0][0] if usual else DEFAULT_PLACE]
    rows, doubts = [], []
    for row in monitors:
        slot, unconfirmed = _stands(row, now)
        found = places[row.id] or elsewhere
        rows += [
            {
                "monitor_id": row.id,
                "location_id": place,
                "turn": 0,
                "slot": slot,
                "checked_at": row.checked_at,
                # Of several places it is not known which of them saw what the monitor shows.
                "verdict": VERDICTS.get(row.verdict) if len(found) == 1 else None,
                "blind": row.cause_code == "network_down",
            }
            for place in found
        ]
        if unconfirmed is not None:
            doubts.append({"of": row.id, "at": unconfirmed})
    for start in range(0, len(rows), AT_ONCE):
        op.bulk_insert(_ASSIGNMENTS, rows[start : start + AT_ONCE])
    if doubts:
        connection.execute(
            sa.text("UPDATE monitor_states SET unconfirmed_at = :at WHERE monitor_id = :of"), doubts
        )


_ASSIGNMENTS = sa.table(
    "assignments",
    sa.column("monitor_id"),
    sa.column("location_id"),
    sa.column("turn"),
    sa.column("slot"),
    sa.column("checked_at"),
    sa.column("verdict"),
    sa.column("blind", sa.Boolean()),
)


def _checked_from(connection: Any, monitor_id: int) -> list[int]:
    """The places that checked this monitor lately, the busiest first."""
    counted = connection.execute(
        sa.text(
            "SELECT location_id, count(*) AS made FROM (SELECT location_id FROM results"
            " WHERE monitor_id = :of ORDER BY at DESC LIMIT :most) AS newest GROUP BY location_id"
        ),
        {"of": monitor_id, "most": LOOKED_AT},
    ).all()
    total = sum(made for _place, made in counted)
    least = min(LEAST, math.ceil(total / 2))
    busiest = sorted(counted, key=lambda row: (-row.made, row.location_id))
    return [place for place, made in busiest if made >= least]


def _stands(row: Any, now: int) -> tuple[int | None, int | None]:
    """The slot that counts as done (None: due at once), and since when a result is unconfirmed."""
    if row.checked_at is None or row.next_check_at is None or row.next_check_at <= now:
        return None, None
    slot = _slot(row.id, row.interval, row.checked_at)
    waits = row.failing_since is not None or row.recovering_since is not None
    if not waits or row.verdict == "unknown":
        return slot, None
    if row.next_check_at == _slot(row.id, row.interval, row.next_check_at):
        return slot, None  # in its place in the schedule, and no sooner
    return slot, max(row.next_check_at - CONFIRM_MS, row.checked_at + 1)


def _slot(monitor_id: int, interval: int, at: int) -> int:
    """The last moment of the monitor's grid that is not after ``at``; in ms. As
    app/engine/schedule.py had it when this was written.
    """
    number = int.from_bytes(blake2b(str(monitor_id).encode(), digest_size=8).digest(), "big")
    offset = number / 2**64 * interval
    turn = math.floor((at / 1000 - offset) / interval) + 1
    while (moment := round(round(turn * interval + offset, 3) * 1000)) > at:
        turn -= 1
    return moment


def downgrade() -> None:
    op.drop_column("heartbeats", "location")
    for column in (
        sa.Column("next_check_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("lease_token", sa.String(length=32), nullable=True),
    ):
        op.add_column("monitor_states", column)
    op.drop_column("monitor_states", "unconfirmed_at")
    op.create_index("ix_monitor_states_next_check_at", "monitor_states", ["next_check_at"])
    op.execute(
        sa.text(
            "UPDATE monitor_states SET next_check_at = :now WHERE monitor_id IN"
            " (SELECT id FROM monitors WHERE NOT paused)"
        ).bindparams(now=round(time.time() * 1000))
    )
    for table in ("changes", "shards", "assignments"):
        op.drop_table(table)
    for name in ("label", "carrier", "created_at"):
        op.drop_column("locations", name)
