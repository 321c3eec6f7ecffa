"""Show maintenance windows on status pages where somebody chose so.

Those from before stay as they were shown.

Revision ID: 0048
Revises: 0047
"""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

TABLE = "maintenance_windows"


def upgrade() -> None:
    op.add_column(
        TABLE, sa.Column("public", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column(TABLE, sa.Column("public_name", sa.Text(), nullable=True))
    op.add_column(TABLE, sa.Column("public_text", sa.Text(), nullable=True))
    windows = sa.table(TABLE, sa.column("name"), sa.column("public"), sa.column("public_name"))
    op.execute(windows.update().values(public=sa.true(), public_name=windows.c.name))


def downgrade() -> None:
    for name in ("public_text", "public_name", "public"):
        op.drop_column(TABLE, name)
