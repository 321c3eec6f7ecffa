"""Add when a monitor's certificate was issued, because its life decides when to warn; and keyed
hashes of a monitor's own channels, because their values are encrypted and must be compared.

Revision ID: 0013
Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("monitor_states", sa.Column("ssl_issued_at", sa.BigInteger(), nullable=True))
    # Null: not known yet. It is filled in when somebody asks.
    op.add_column("monitors", sa.Column("alert_lanes", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("monitors", "alert_lanes")
    op.drop_column("monitor_states", "ssl_issued_at")
