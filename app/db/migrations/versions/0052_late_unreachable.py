"""Add what assertions found in checks that were asked for, and unreachable times found late.

Revision ID: 0052
Revises: 0051
"""

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("monitor_evidence", sa.Column("asked", sa.Text()))
    op.add_column(
        "unreachable_spans",
        sa.Column("found_late", sa.Boolean(), server_default=sa.false(), nullable=False),
    )


def downgrade() -> None:
    op.drop_column("unreachable_spans", "found_late")
    op.drop_column("monitor_evidence", "asked")
