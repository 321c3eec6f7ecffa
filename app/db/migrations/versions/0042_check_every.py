"""Add the pause between checks that is not among the intervals of the base API.

Revision ID: 0042
Revises: 0041
"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("monitors", sa.Column("check_every", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("monitors", "check_every")
