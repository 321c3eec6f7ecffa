"""Add the alert for slowness, and the severity of incidents.

Revision ID: 0046
Revises: 0045
"""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("monitors", sa.Column("slow_alert_after", sa.SmallInteger(), nullable=True))
    op.add_column(
        "incidents", sa.Column("severity", sa.String(16), server_default="down", nullable=False)
    )
    op.add_column("incidents", sa.Column("down_since", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("incidents", "down_since")
    op.drop_column("incidents", "severity")
    op.drop_column("monitors", "slow_alert_after")
