"""Count failures to log in that are no lines of the audit log yet.

Revision ID: 0026
Revises: 0025
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "left_out_failures",
        sa.Column("window", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("who", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.String(16), nullable=False),
        sa.Column("address", sa.String(64), nullable=True),
        sa.Column("object_name", sa.Text(), nullable=True),
        sa.Column("object_id", ID, nullable=True),
        sa.PrimaryKeyConstraint("window", "event", "who", name="pk_left_out_failures"),
    )


def downgrade() -> None:
    op.drop_table("left_out_failures")
