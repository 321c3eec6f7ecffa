"""Store what people see of their sessions, and the browsers in which they have logged in before.

Revision ID: 0020
Revises: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COLUMNS = (
    ("password_at", sa.BigInteger()),
    ("address", sa.String(length=64)),
    ("browser", sa.String(length=32)),
    ("system", sa.String(length=32)),
    ("device_id", ID),
)


def upgrade() -> None:
    for name, kind in COLUMNS:
        op.add_column("sessions", sa.Column(name, kind, nullable=True))
    op.create_table(
        "devices",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_devices_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_devices")),
        sa.UniqueConstraint("digest", "person_id", name=op.f("uq_devices_digest_person_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_devices_person_id"), "devices", ["person_id"])


def downgrade() -> None:
    op.drop_table("devices")
    for name, _kind in reversed(COLUMNS):
        op.drop_column("sessions", name)
