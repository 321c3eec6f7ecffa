"""Add the impact of a post on a monitor.

Revision ID: 0047
Revises: 0046
"""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("post_monitors", sa.Column("impact", sa.String(16), nullable=True))


def downgrade() -> None:
    op.drop_column("post_monitors", "impact")
