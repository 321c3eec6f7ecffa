"""Whose an API key is, and the networks and the tag that it is bound to.

Revision ID: 0024
Revises: 0023
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OWNER = "fk_api_keys_owner_id"


def upgrade() -> None:
    with op.batch_alter_table("api_keys", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.add_column(sa.Column("owner_id", ID, nullable=True))
        table.add_column(sa.Column("networks", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("tag", sa.Text(), nullable=True))
        table.create_foreign_key(OWNER, "people", ["owner_id"], ["id"], ondelete="CASCADE")
    op.create_index("ix_api_keys_owner_id", "api_keys", ["owner_id"])


def downgrade() -> None:
    op.drop_index("ix_api_keys_owner_id", "api_keys")
    with op.batch_alter_table("api_keys", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_constraint(OWNER, type_="foreignkey")
        table.drop_column("tag")
        table.drop_column("networks")
        table.drop_column("owner_id")
