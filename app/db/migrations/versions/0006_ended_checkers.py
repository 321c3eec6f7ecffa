"""Store with a heartbeat that its process has ended, so that it no longer counts as alive.

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("heartbeats", sa.Column("ended_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("heartbeats", "ended_at")
