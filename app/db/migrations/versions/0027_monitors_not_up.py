"""Find the monitors that are not up without reading the state of each.

Revision ID: 0027
Revises: 0026
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

NOT_UP = sa.text("verdict IS NULL OR verdict <> 'up'")
IN_WINDOW = sa.text("maintenance_start_at IS NOT NULL")
INDEXES = {
    "ix_monitor_states_not_up": ("monitor_states", "monitor_id", NOT_UP, NOT_UP),
    "ix_monitors_paused": ("monitors", "id", sa.text("paused = 1"), sa.text("paused")),
    "ix_monitors_maintenance": ("monitors", "maintenance_start_at", IN_WINDOW, IN_WINDOW),
}


def upgrade() -> None:
    for name, (table, column, on_sqlite, on_postgresql) in INDEXES.items():
        op.create_index(
            name, table, [column], sqlite_where=on_sqlite, postgresql_where=on_postgresql
        )


def downgrade() -> None:
    for name, (table, *_rest) in INDEXES.items():
        op.drop_index(name, table)
