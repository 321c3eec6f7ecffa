"""Remember the last token of each agent's place that has ended.

Revision ID: 0032
Revises: 0031
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "ended_agent_tokens",
        sa.Column("place", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_ended_agent_tokens")),
    )
    op.create_index(op.f("ix_ended_agent_tokens_digest"), "ended_agent_tokens", ["digest"])


def downgrade() -> None:
    op.drop_table("ended_agent_tokens")
