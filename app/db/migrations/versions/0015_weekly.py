"""Maintenance windows by tag, links to the wall, and the degraded part of an hour.

Revision ID: 0015
Revises: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    degraded = sa.Column("degraded_s", sa.Integer(), nullable=False, server_default="0")
    op.add_column("rollups", degraded)
    tags = sa.Column("tags", sa.Text(), nullable=False, server_default="")
    op.add_column("maintenance_windows", tags)
    op.create_table(
        "wall_links",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("tag", sa.Text(), nullable=True),
        sa.Column("zone", sa.String(length=64), nullable=False),
        sa.Column("server", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wall_links")),
        sa.UniqueConstraint("digest", name=op.f("uq_wall_links_digest")),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("wall_links")
    op.drop_column("maintenance_windows", "tags")
    op.drop_column("rollups", "degraded_s")
