"""Store with each result the time that it covers, so that a change of the monitor's interval does not
change the statistics of the past.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("results", sa.Column("covers_s", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("results", "covers_s")
