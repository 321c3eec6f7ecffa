"""Remember the forms that were sent, so that one sent twice at once is carried out once.

Revision ID: 0037
Revises: 0036
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sent_forms",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("location", sa.Text(), nullable=True),
    )


def downgrade() -> None:
    op.drop_table("sent_forms")
