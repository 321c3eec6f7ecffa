"""Bring a database of revision 0038 to the tables of the first version.

It takes the place of 17 migrations, whose last number it has. A database between the two is
upgraded by a version that has them (``schema.OLDER``).

Revision ID: 0055
Revises: 0038
"""

import hmac
from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from alembic import op

from app.db.contents import is_pairs
from app.db.types import Encrypted, EncryptedJson, readable
from app.rules.natural import natural_key
from app.secret_keys import keys_of

revision = "0055"
down_revision = "0038"

# SQLite makes row id aliases, and so autoincrement, out of INTEGER only.
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Byte order in PostgreSQL too: its locale would sort otherwise than SQLite does.
FOLDED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SECOND = 1000
EVER = 2**62
Span = tuple[int, int]


def upgrade() -> None:
    for table, columns in _new_columns().items():
        for column in columns:
            op.add_column(table, column)
    _make_tables()
    op.create_index("ix_api_keys_digest", "api_keys", ["digest"])
    op.create_index(
        "ix_incidents_found_late",
        "incidents",
        ["monitor_id", "ended_at"],
        sqlite_where=sa.text("found_late = 1"),
        postgresql_where=sa.text("found_late"),
    )
    op.create_index("ix_monitors_name_natural", "monitors", ["name_natural"])
    _fill_natural_names()
    _fill_lanes()
    # Status pages showed all of them: they are shown as before.
    op.execute("UPDATE maintenance_windows SET public = true, public_name = name")
    if incidents := _found_late():
        op.bulk_insert(INCIDENTS, incidents)
    op.drop_table("late_outages")


def _new_columns() -> dict[str, list[sa.Column[Any]]]:
    return {
        "contacts": [
            sa.Column("name_natural", FOLDED, nullable=False, server_default=""),
            sa.Column("time_zone", sa.String(64)),
        ],
        "incidents": [
            sa.Column("found_late", sa.Boolean(), nullable=False, server_default=sa.false()),
            sa.Column("severity", sa.String(16), nullable=False, server_default="down"),
            sa.Column("down_since", sa.BigInteger()),
        ],
        "maintenance_windows": [
            sa.Column("public", sa.Boolean(), nullable=False, server_default=sa.false()),
            sa.Column("public_name", sa.Text()),
            sa.Column("public_text", sa.Text()),
        ],
        "monitor_evidence": [sa.Column("asked", sa.Text())],
        "monitor_states": [
            sa.Column("behind_id", sa.BigInteger()),
            sa.Column("parents_asked_at", sa.BigInteger()),
        ],
        "monitors": [
            sa.Column("check_every", sa.Integer()),
            sa.Column("options", sa.JSON(none_as_null=True)),
            sa.Column("assertions", sa.Text()),
            sa.Column("slow_alert_after", sa.SmallInteger()),
            sa.Column("notes", sa.Text(), nullable=False, server_default=""),
            sa.Column("name_natural", FOLDED, nullable=False, server_default=""),
        ],
        "people": [
            sa.Column(
                "first_steps_away", sa.Boolean(), nullable=False, server_default=sa.text("false")
            )
        ],
        "post_monitors": [sa.Column("impact", sa.String(16))],
        "status_pages": [
            sa.Column("sequence_ahead", sa.Integer(), nullable=False, server_default="0"),
            sa.Column("accent", sa.String(7)),
            sa.Column("language", sa.String(8), nullable=False, server_default="en"),
            sa.Column("home_url", sa.Text()),
            sa.Column("footer", sa.Text()),
            sa.Column("logo", sa.LargeBinary()),
            sa.Column("logo_version", sa.String(16)),
            sa.Column("favicon", sa.LargeBinary()),
            sa.Column("favicon_version", sa.String(16)),
        ],
    }


def _make_tables() -> None:
    # Housekeeping fills it, while everything runs.
    op.create_table(
        "packed_hours",
        sa.Column("monitor_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hour", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("location_id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("results", sa.Integer(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("monitor_id", "hour", "location_id", name="pk_packed_hours"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "heartbeat_states",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("slug", sa.String(100)),
        sa.Column("last_ping_at", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("expected_at", sa.BigInteger()),
        sa.Column("unknown_until", sa.BigInteger()),
        sa.Column("runs", sa.JSON(), nullable=False),
        sa.Column("fault_code", sa.String(32)),
        sa.Column("fault", sa.Text()),
        sa.Column("fault_since", sa.BigInteger()),
        sa.Column("result_at", sa.BigInteger()),
        sa.Column("due_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("monitor_id", name="pk_heartbeat_states"),
        _of_monitor("heartbeat_states"),
        sa.UniqueConstraint("token_hash", name="uq_heartbeat_states_token_hash"),
    )
    op.create_index("ix_heartbeat_states_slug", "heartbeat_states", ["slug"])
    op.create_index("ix_heartbeat_states_due_at", "heartbeat_states", ["due_at"])
    op.create_table(
        "pings",
        sa.Column("id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("exit_status", sa.BigInteger()),
        sa.Column("rid", sa.String(36)),
        sa.Column("duration", sa.BigInteger()),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("address", sa.String(64)),
        sa.Column("body", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_pings"),
        _of_monitor("pings"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_pings_monitor_id_id", "pings", ["monitor_id", "id"])
    op.create_index("ix_pings_at", "pings", ["at"])
    op.create_table(
        "monitor_dependencies",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("parent_id", ID, nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("monitor_id", "parent_id", name="pk_monitor_dependencies"),
        _of_monitor("monitor_dependencies"),
        _of_monitor("monitor_dependencies", "parent_id"),
    )
    op.create_index("ix_monitor_dependencies_parent_id", "monitor_dependencies", ["parent_id"])
    op.create_table(
        "unreachable_spans",
        sa.Column("id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("parent_id", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("found_late", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("id", name="pk_unreachable_spans"),
        _of_monitor("unreachable_spans"),
    )
    for column in ("monitor_id", "parent_id"):
        op.create_index(f"ix_unreachable_spans_{column}", "unreachable_spans", [column])


def _of_monitor(table: str, column: str = "monitor_id") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], ["monitors.id"], name=f"fk_{table}_{column}", ondelete="CASCADE"
    )


def _fill_natural_names() -> None:
    connection = op.get_bind()
    for name in ("monitors", "contacts"):
        table = sa.table(name, sa.column("id"), sa.column("name"), sa.column("name_natural"))
        rows = [
            {"key": row.id, "natural": natural_key(row.name)}
            for row in connection.execute(sa.select(table.c.id, table.c.name))
        ]
        if rows:
            of_row = table.update().where(table.c.id == sa.bindparam("key"))
            connection.execute(of_row.values(name_natural=sa.bindparam("natural")), rows)


def _fill_lanes() -> None:
    """The lanes of monitors' own channels, as ``app/alerts/outbox.py`` writes them: revision 0038
    has them of monitors that were stored, or whose channels somebody looked at, since there is a
    column for them.
    """
    connection = op.get_bind()
    settings = sa.table("settings", sa.column("name"), sa.column("value", Encrypted()))
    stored = sa.select(settings.c.value).where(settings.c.name == "hash_key")
    key = (readable(connection.scalar(stored)) or keys_of()[-1]).encode()
    alerts, lanes = sa.column("alerts", EncryptedJson(is_pairs)), sa.column("alert_lanes")
    table = sa.table("monitors", sa.column("id"), alerts, lanes)
    lacking = sa.select(table.c.id, alerts).where(alerts.is_not(None), lanes.is_(None))
    for id, pairs in connection.execute(lacking).all():
        texts = ("\0".join(["alert lane", *pair]).encode() for pair in readable(pairs) or ())
        names = dict.fromkeys(hmac.new(key, text, "sha256").hexdigest()[:32] for text in texts)
        lane_text = "\n".join(["", *names, ""]) if names else ""
        connection.execute(table.update().where(table.c.id == id).values(alert_lanes=lane_text))


# --- Outages that only late results showed become incidents that have ended. They counted outside
# of the time of incidents alone, so what is left of each becomes an incident, and all figures stay.

_TIMES = ("started_at", "ended_at", "created_at", "updated_at")
INCIDENTS = sa.table(
    "incidents",
    *(sa.column(name, sa.BigInteger()) for name in ("monitor_id", *_TIMES)),
    *(sa.column(name, sa.Text()) for name in ("cause", "cause_folded", "cause_code")),
    sa.column("seen_by", sa.JSON()),
    *(sa.column(name, sa.Boolean()) for name in ("by_hand", "found_late")),
)
OUTAGES = sa.table(
    "late_outages",
    *map(sa.column, ("monitor_id", "started_at", "ended_at", "cause_code", "cause", "places")),
)


def _found_late() -> list[dict[str, Any]]:
    connection = op.get_bind()
    outages = connection.execute(sa.select(OUTAGES).order_by(OUTAGES.c.started_at)).all()
    others: dict[int, list[Span]] = defaultdict(list)
    # One by one: a list of thousands of ids is no statement.
    for monitor_id in {outage.monitor_id for outage in outages}:
        spans = sa.select(INCIDENTS.c.started_at, INCIDENTS.c.ended_at)
        for start, end in connection.execute(spans.where(INCIDENTS.c.monitor_id == monitor_id)):
            others[monitor_id].append((start, EVER if end is None else end))
    labels = connection.execute(sa.text("SELECT name, label FROM locations"))
    titles = {name: label or name for name, label in labels}
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
            (_whole(outage.started_at), _whole(outage.ended_at)), others[outage.monitor_id]
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
