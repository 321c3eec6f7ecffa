"""Add the tables of heartbeats and of their pings, and find keys by their digests.

Revision ID: 0045
Revises: 0044
"""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
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
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name="fk_heartbeat_states_monitor_id",
            ondelete="CASCADE",
        ),
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
        sa.ForeignKeyConstraint(
            ["monitor_id"], ["monitors.id"], name="fk_pings_monitor_id", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_pings_monitor_id_id", "pings", ["monitor_id", "id"])
    op.create_index("ix_pings_at", "pings", ["at"])
    op.create_index("ix_api_keys_digest", "api_keys", ["digest"])  # of ping keys


def downgrade() -> None:
    op.drop_index("ix_api_keys_digest", "api_keys")
    op.drop_table("pings")
    op.drop_table("heartbeat_states")
