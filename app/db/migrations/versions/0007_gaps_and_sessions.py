"""Store the times in which nobody checked during an incident, and a row for each session.

Until now, the cookie alone held the session. Its age is not known, so everybody must log in again.

Revision ID: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("incidents", sa.Column("unwatched", sa.JSON(), nullable=True))
    op.create_table(
        "sessions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column(
            "person_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["people.id"],
            name=op.f("fk_sessions_person_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("digest", name=op.f("uq_sessions_digest")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_sessions_person_id"), "sessions", ["person_id"])
    op.drop_table("ended_sessions")
    op.drop_column("people", "session_epoch")


def downgrade() -> None:
    op.add_column(
        "people", sa.Column("session_epoch", sa.Integer(), nullable=False, server_default="0")
    )
    op.create_table(
        "ended_sessions",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_ended_sessions")),
    )
    op.drop_table("sessions")
    op.drop_column("incidents", "unwatched")
