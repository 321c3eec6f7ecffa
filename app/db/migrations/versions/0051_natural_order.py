"""Store by what monitors and contacts are ordered: "Shop 2" comes before "Shop 10".

Revision ID: 0051
Revises: 0050
"""

import sqlalchemy as sa
from alembic import op

from app.rules.natural import natural_key

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None

FOLDED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    connection = op.get_bind()
    for name in ("monitors", "contacts"):
        op.add_column(name, sa.Column("name_natural", FOLDED, nullable=False, server_default=""))
        table = sa.table(name, sa.column("id"), sa.column("name"), sa.column("name_natural"))
        rows = [
            {"key": row.id, "natural": natural_key(row.name)}
            for row in connection.execute(sa.select(table.c.id, table.c.name))
        ]
        if rows:
            of_row = table.update().where(table.c.id == sa.bindparam("key"))
            connection.execute(of_row.values(name_natural=sa.bindparam("natural")), rows)
    op.create_index("ix_monitors_name_natural", "monitors", ["name_natural"])


def downgrade() -> None:
    op.drop_index("ix_monitors_name_natural", "monitors")
    for name in ("monitors", "contacts"):
        op.drop_column(name, "name_natural")
