"""Heartbeats name the secret keys that their process has, so that no value is encrypted with a key
that a running process lacks.

Revision ID: 0021
Revises: 0020
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("heartbeats", sa.Column("keys", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("heartbeats", "keys")
