"""Add when a monitor's certificate was issued: its life decides when to warn.

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


def downgrade() -> None:
    op.drop_column("monitor_states", "ssl_issued_at")
