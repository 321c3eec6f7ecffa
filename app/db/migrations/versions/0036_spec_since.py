"""Remember since when a monitor checks what it checks now.

Revision ID: 0036
Revises: 0035
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("monitor_states", sa.Column("spec_since", sa.BigInteger(), nullable=True))
    # What changed before is not known: results of before the last edit stay out, as until now.
    op.execute(
        "UPDATE monitor_states SET spec_since ="
        " (SELECT updated_at FROM monitors WHERE monitors.id = monitor_states.monitor_id)"
    )


def downgrade() -> None:
    op.drop_column("monitor_states", "spec_since")
