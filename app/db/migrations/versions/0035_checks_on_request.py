"""Remember when a place was asked for a check now.

Revision ID: 0035
Revises: 0034
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("assignments", sa.Column("asked_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("assignments", "asked_at")
