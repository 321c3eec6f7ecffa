"""Remember the last pause of a monitor, and since when it is judged by its present rule.

Revision ID: 0034
Revises: 0033
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

COLUMNS = ("paused_at", "resumed_at", "judged_since")


def upgrade() -> None:
    for name in COLUMNS:
        op.add_column("monitor_states", sa.Column(name, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_column("monitor_states", name)
