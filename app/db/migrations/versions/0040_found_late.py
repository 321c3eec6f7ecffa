"""Make the outages that only late results showed incidents that have ended.

They counted outside of the time of incidents alone, so what is left of each becomes an incident,
and all figures of uptime and downtime stay the same.

Revision ID: 0040
Revises: 0039
"""

from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
SECOND = 1000
EVER = 2**62
Span = tuple[int, int]

_MOMENTS = ("started_at", "ended_at", "created_at", "updated_at")
INCIDENTS = sa.table(
    "incidents",
    *(sa.column(name, sa.BigInteger()) for name in ("monitor_id", *_MOMENTS)),
    *(sa.column(name, sa.Text()) for name in ("cause", "cause_folded", "cause_code")),
    sa.column("seen_by", sa.JSON()),
    *(sa.column(name, sa.Boolean()) for name in ("by_hand", "found_late")),
)
OUTAGES = sa.table(
    "late_outages",
    *(sa.column(name) for name in ("monitor_id", "started_at", "ended_at")),
    *(sa.column(name) for name in ("cause_code", "cause", "places")),
)


def upgrade() -> None:
    op.add_column(
        "incidents",
        sa.Column("found_late", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_index(
        "ix_incidents_found_late",
        "incidents",
        ["monitor_id", "ended_at"],
        sqlite_where=sa.text("found_late = 1"),
        postgresql_where=sa.text("found_late"),
    )
    rows = _incidents()
    if rows:
        op.bulk_insert(INCIDENTS, rows)
    op.drop_table("late_outages")


def _incidents() -> list[dict[str, Any]]:
    connection = op.get_bind()
    outages = connection.execute(sa.select(OUTAGES).order_by(OUTAGES.c.started_at)).all()
    ids = sorted({outage.monitor_id for outage in outages})
    others: dict[int, list[Span]] = defaultdict(list)
    for monitor_id in ids:  # one by one: a list of thousands of ids is no statement
        spans = sa.select(INCIDENTS.c.started_at, INCIDENTS.c.ended_at)
        for start, end in connection.execute(spans.where(INCIDENTS.c.monitor_id == monitor_id)):
            others[monitor_id].append((start, EVER if end is None else end))
    named = connection.execute(sa.text("SELECT name, label FROM locations"))
    titles = {name: label or name for name, label in named}
    return [
        {
            "monitor_id": outage.monitor_id,
            "started_at": start,
            "ended_at": end,
            "created_at": end,
            "updated_at": end,
            "cause": outage.cause,
            "cause_folded": outage.cause and outage.cause.casefold(),
            "cause_code": outage.cause_code,
            "seen_by": [titles.get(name, name) for name in outage.places.split(",")],
            "by_hand": False,
            "found_late": True,
        }
        for outage in outages
        for start, end in _outside(
            (_whole(outage.started_at), _whole(outage.ended_at)),
            others[outage.monitor_id],
        )
    ]


def _whole(ms: int) -> int:
    return ms - ms % SECOND


def _outside(span: Span, others: list[Span]) -> list[Span]:
    """The parts of a span that are in none of the others."""
    parts = [span]
    for begin, end in others:
        parts = [
            part
            for start, stop in parts
            for part in ((start, min(stop, begin)), (max(start, end), stop))
        ]
    return [(start, end) for start, end in parts if start < end]


def downgrade() -> None:
    op.create_table(
        "late_outages",
        sa.Column("monitor_id", ID, autoincrement=False, nullable=False),
        sa.Column("started_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("cause_code", sa.String(32), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("places", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_late_outages_monitor_id_monitors"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", "started_at", name="pk_late_outages"),
    )
    op.drop_index("ix_incidents_found_late", "incidents")
    op.drop_column("incidents", "found_late")
