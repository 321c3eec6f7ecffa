"""Add what monitors are reached through, and when they were unreachable because of it.

Revision ID: 0049
Revises: 0048
"""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("monitor_states", sa.Column("behind_id", sa.BigInteger()))
    op.add_column("monitor_states", sa.Column("parents_asked_at", sa.BigInteger()))
    op.create_table(
        "monitor_dependencies",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("parent_id", ID, nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("monitor_id", "parent_id", name="pk_monitor_dependencies"),
        *(
            sa.ForeignKeyConstraint(
                [name],
                ["monitors.id"],
                name=f"fk_monitor_dependencies_{name}",
                ondelete="CASCADE",
            )
            for name in ("monitor_id", "parent_id")
        ),
    )
    op.create_index("ix_monitor_dependencies_parent_id", "monitor_dependencies", ["parent_id"])
    op.create_table(
        "unreachable_spans",
        sa.Column("id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("parent_id", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_unreachable_spans"),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name="fk_unreachable_spans_monitor_id",
            ondelete="CASCADE",
        ),
    )
    for column in ("monitor_id", "parent_id"):
        op.create_index(f"ix_unreachable_spans_{column}", "unreachable_spans", [column])


def downgrade() -> None:
    op.drop_table("unreachable_spans")
    op.drop_table("monitor_dependencies")
    op.drop_column("monitor_states", "parents_asked_at")
    op.drop_column("monitor_states", "behind_id")
