"""Add a number that grows with each change of a monitor's rollups, so that they can be cached.

Revision ID: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    version = sa.Column("sums_version", sa.Integer(), nullable=False, server_default="0")
    op.add_column("monitor_states", version)


def downgrade() -> None:
    op.drop_column("monitor_states", "sums_version")
