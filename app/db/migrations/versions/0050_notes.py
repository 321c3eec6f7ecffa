"""Add the notes of monitors.

Revision ID: 0050
Revises: 0049
"""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("monitors", sa.Column("notes", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    op.drop_column("monitors", "notes")
