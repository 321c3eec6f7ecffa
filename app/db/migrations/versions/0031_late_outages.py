"""Store the outages that only results show that came late.

Revision ID: 0031
Revises: 0030
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "late_outages",
        sa.Column("monitor_id", ID, autoincrement=False, nullable=False),
        sa.Column("started_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("cause_code", sa.String(32), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("places", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_late_outages_monitor_id_monitors"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", "started_at", name="pk_late_outages"),
    )


def downgrade() -> None:
    op.drop_table("late_outages")
