"""Invitations, links to set a new password, and people's names.

Revision ID: 0017
Revises: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
FOLDED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "invitations",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_folded", FOLDED, nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("digest", name=op.f("uq_invitations_digest")),
        sa.UniqueConstraint("email_folded", name=op.f("uq_invitations_email_folded")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "recoveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_recoveries_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recoveries")),
        sa.UniqueConstraint("digest", name=op.f("uq_recoveries_digest")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_recoveries_person_id"), "recoveries", ["person_id"])
    op.add_column("people", sa.Column("name", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("people", "name")
    op.drop_table("recoveries")
    op.drop_table("invitations")
