"""Add reminders and quiet hours to monitors, and indexes of waiting and of failed deliveries.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

WAITING = sa.text("status = 'held' AND next_attempt_at IS NOT NULL")
FAILED = sa.text("status = 'failed'")


def upgrade() -> None:
    for column in (
        sa.Column("remind_after", sa.SmallInteger(), nullable=True),
        sa.Column("quiet_start", sa.String(length=5), nullable=True),
        sa.Column("quiet_end", sa.String(length=5), nullable=True),
        sa.Column("quiet_zone", sa.String(length=64), server_default="UTC", nullable=False),
    ):
        op.add_column("monitors", column)
    op.create_index(
        "ix_deliveries_waiting",
        "deliveries",
        ["monitor_id"],
        sqlite_where=WAITING,
        postgresql_where=WAITING,
    )
    op.create_index(
        "ix_deliveries_failed",
        "deliveries",
        ["lane", "id"],
        sqlite_where=FAILED,
        postgresql_where=FAILED,
    )


def downgrade() -> None:
    op.drop_index("ix_deliveries_failed", "deliveries")
    op.drop_index("ix_deliveries_waiting", "deliveries")
    for name in ("quiet_zone", "quiet_end", "quiet_start", "remind_after"):
        op.drop_column("monitors", name)
