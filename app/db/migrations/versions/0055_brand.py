"""Add what brands a status page: colour, language, link home, a line of its own, images.

Revision ID: 0055
Revises: 0054
"""

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0054"
branch_labels = None
depends_on = None

TABLE = "status_pages"


def upgrade() -> None:
    columns = [
        sa.Column("accent", sa.String(7)),
        sa.Column("language", sa.String(8), nullable=False, server_default="en"),
        sa.Column("home_url", sa.Text()),
        sa.Column("footer", sa.Text()),
        sa.Column("logo", sa.LargeBinary()),
        sa.Column("logo_version", sa.String(16)),
        sa.Column("favicon", sa.LargeBinary()),
        sa.Column("favicon_version", sa.String(16)),
    ]
    for column in columns:
        op.add_column(TABLE, column)


def downgrade() -> None:
    for image in ("favicon", "logo"):
        op.drop_column(TABLE, f"{image}_version")
        op.drop_column(TABLE, image)
    for name in ("footer", "home_url", "language", "accent"):
        op.drop_column(TABLE, name)
