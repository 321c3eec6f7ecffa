"""Add the table of packed hours. Housekeeping fills it, while everything runs.

Revision ID: 0041
Revises: 0040
"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "packed_hours",
        sa.Column("monitor_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hour", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("location_id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("results", sa.Integer(), nullable=False),
        sa.Column("packed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("monitor_id", "hour", "location_id", name="pk_packed_hours"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    from app.db.packed import COLUMNS, unpack

    connection = op.get_bind()
    hours = sa.table(
        "packed_hours", *map(sa.column, ("monitor_id", "hour", "location_id", "packed"))
    )
    results = sa.table("results", *map(sa.column, COLUMNS))
    names = [name for name in COLUMNS if name not in ("monitor_id", "location_id")]
    for monitor_id, hour, place, packed in connection.execute(sa.select(hours)).all():
        columns = unpack(bytes(packed), hour, names)
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        connection.execute(
            sa.insert(results),
            [
                row
                | {"monitor_id": monitor_id, "location_id": place}
                | {"maintenance": bool(row["maintenance"])}
                for row in rows
            ],
        )
    op.drop_table("packed_hours")
