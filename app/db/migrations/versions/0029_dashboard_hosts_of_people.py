"""Remember the dashboard's host names for each person, within a bound of each.

Revision ID: 0029
Revises: 0028
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "used_hosts",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("person_id", ID, autoincrement=False, nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("host", "person_id", name="pk_used_hosts"),
    )
    op.execute(
        # Who used these hosts is not known. No person has the id 0.
        "INSERT INTO used_hosts (host, person_id, used_at)"
        " SELECT host, 0, used_at FROM dashboard_hosts"
    )
    op.drop_table("dashboard_hosts")


def downgrade() -> None:
    op.create_table(
        "dashboard_hosts",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_dashboard_hosts"),
    )
    op.execute(
        "INSERT INTO dashboard_hosts (host, used_at)"
        " SELECT host, max(used_at) FROM used_hosts GROUP BY host"
    )
    op.drop_table("used_hosts")
