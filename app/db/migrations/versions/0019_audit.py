"""The audit log.

Revision ID: 0019
Revises: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
FOLDED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
INDEXES = {
    "ix_audit_at_id": ["at", "id"],
    "ix_audit_action_at_id": ["action", "at", "id"],
    "ix_audit_actor": ["actor_kind", "actor_id", "at", "id"],
    "ix_audit_object": ["object_kind", "object_id", "at", "id"],
}


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.String(length=16), nullable=False),
        sa.Column("actor_id", ID, nullable=True),
        sa.Column("actor_name", sa.Text(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("object_kind", sa.String(length=32), nullable=True),
        sa.Column("object_id", ID, nullable=True),
        sa.Column("object_name", sa.Text(), nullable=True),
        sa.Column("changes", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("words_folded", FOLDED, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    for name, columns in INDEXES.items():
        op.create_index(name, "audit", columns)


def downgrade() -> None:
    op.drop_table("audit")
