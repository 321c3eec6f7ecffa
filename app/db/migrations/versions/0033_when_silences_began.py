"""Keep with each silent place when the last result came from it.

Revision ID: 0033
Revises: 0032
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("locations", sa.Column("silent_since", sa.BigInteger(), nullable=True))
    places = sa.table(
        "locations", *(sa.column(n) for n in ("silent_at", "silent_since", "result_at"))
    )
    # Of places that are silent now, it is what is known last.
    op.execute(
        places.update()
        .where(places.c.silent_at.is_not(None), places.c.result_at < places.c.silent_at)
        .values(silent_since=places.c.result_at)
    )


def downgrade() -> None:
    op.drop_column("locations", "silent_since")
