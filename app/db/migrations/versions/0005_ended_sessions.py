"""Store which sessions were ended by logging out, so that copies of their cookies are refused.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ended_sessions",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_ended_sessions")),
    )


def downgrade() -> None:
    op.drop_table("ended_sessions")
