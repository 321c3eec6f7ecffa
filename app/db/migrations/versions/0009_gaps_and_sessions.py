"""Times in which an incident was not watched.

Revision ID: 0009
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("incidents", sa.Column("unwatched", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("incidents", "unwatched")
