"""Remember at which host names people use the dashboard.

Revision ID: 0028
Revises: 0027
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dashboard_hosts",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_dashboard_hosts"),
    )


def downgrade() -> None:
    op.drop_table("dashboard_hosts")
