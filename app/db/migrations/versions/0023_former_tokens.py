"""Store the token that a session had until its person typed the password again.

Revision ID: 0023
Revises: 0022
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("former_digest", sa.String(length=64), nullable=True))
    op.create_index(op.f("ix_sessions_former_digest"), "sessions", ["former_digest"])


def downgrade() -> None:
    op.drop_index(op.f("ix_sessions_former_digest"), "sessions")
    op.drop_column("sessions", "former_digest")
