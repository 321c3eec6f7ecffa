"""Second factors: authenticator apps, passkeys, recovery codes, and log-ins that wait for one.

Revision ID: 0022
Revises: 0021
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TABLES = (
    "authenticator_apps", "passkeys", "recovery_codes", "half_logins", "passkey_challenges",
)  # fmt: skip


def upgrade() -> None:
    _create(
        "authenticator_apps",
        _person(),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("used_step", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        key="person_id",
    )
    _create(
        "passkeys",
        sa.Column("id", ID, nullable=False),
        _person(),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("verifies", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        unique="credential",
    )
    _create(
        "recovery_codes",
        sa.Column("id", ID, nullable=False),
        _person(),
        sa.Column("digest", sa.String(length=64), nullable=False),
    )
    _create(
        "half_logins",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        _person(),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        unique="digest",
    )
    _create(
        "passkey_challenges",
        sa.Column("digest", sa.String(length=64), nullable=False),
        _person(),
        sa.Column("challenge", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        key="digest",
    )


def _create(table: str, *columns: sa.Column, key: str = "id", unique: str | None = None) -> None:
    """A table whose rows go with their person."""
    more = [sa.UniqueConstraint(unique, name=op.f(f"uq_{table}_{unique}"))] if unique else []
    op.create_table(
        table,
        *columns,
        sa.PrimaryKeyConstraint(key, name=op.f(f"pk_{table}")),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f(f"fk_{table}_person_id"), ondelete="CASCADE"
        ),
        *more,
        sqlite_autoincrement=key == "id",
    )
    if key != "person_id":
        op.create_index(op.f(f"ix_{table}_person_id"), table, ["person_id"])


def _person() -> sa.Column:
    return sa.Column("person_id", ID, nullable=False)


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
