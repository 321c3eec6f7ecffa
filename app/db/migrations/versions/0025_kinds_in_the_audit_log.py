"""Find the newest lines of one kind of actor or object without sorting all of them.

Revision ID: 0025
Revises: 0024
"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_audit_actor_kind_at_id": ["actor_kind", "at", "id"],
    "ix_audit_object_kind_at_id": ["object_kind", "at", "id"],
}


def upgrade() -> None:
    for name, columns in INDEXES.items():
        op.create_index(name, "audit", columns)


def downgrade() -> None:
    for name in INDEXES:
        op.drop_index(name, "audit")
