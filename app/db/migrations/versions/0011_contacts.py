"""Contacts, and for which of them a delivery is.

Revision ID: 0011
Revises: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
FOLDED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "contacts",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_folded", FOLDED, nullable=False),
        sa.Column("channels", sa.Text(), nullable=True),
        sa.Column("quiet_start", sa.String(length=5), nullable=True),
        sa.Column("quiet_end", sa.String(length=5), nullable=True),
        sa.Column("quiet_zone", sa.String(length=64), nullable=False),
        sa.Column("is_default", sa.Boolean(), nullable=False),
        sa.Column("min_severity", sa.String(length=8), nullable=False),
        sa.Column("acknowledgements", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contacts")),
        sa.UniqueConstraint("name_folded", name=op.f("uq_contacts_name_folded")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "monitor_contacts",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("contact_id", ID, nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_monitor_contacts_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["contact_id"],
            ["contacts.id"],
            name=op.f("fk_monitor_contacts_contact_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", "contact_id", name=op.f("pk_monitor_contacts")),
    )
    op.create_index(op.f("ix_monitor_contacts_contact_id"), "monitor_contacts", ["contact_id"])
    op.add_column("deliveries", sa.Column("sources", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("deliveries", "sources")
    op.drop_table("monitor_contacts")
    op.drop_table("contacts")
