"""Remember every certificate and every expiry date that was alerted, and name domains again.

Domains below a private suffix (shop.co.ua) had the suffix for their domain. The next round of
chores names them.

Revision ID: 0038
Revises: 0037
"""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGINNING = 16  # of a fingerprint
STATES = sa.table(
    "monitor_states",
    sa.column("monitor_id", sa.BigInteger()),
    sa.column("domain", sa.Text()),
    sa.column("ssl_alerted", sa.String(64)),
    sa.column("domain_alerted", sa.BigInteger()),
    sa.column("alerted_certificates", sa.Text()),
    sa.column("alerted_domain_dates", sa.Text()),
)


def upgrade() -> None:
    op.add_column("monitor_states", sa.Column("alerted_certificates", sa.Text(), nullable=True))
    op.add_column("monitor_states", sa.Column("alerted_domain_dates", sa.Text(), nullable=True))
    connection, old = op.get_bind(), STATES.c
    rows = connection.execute(
        sa.select(old.monitor_id, old.ssl_alerted, old.domain_alerted).where(
            sa.or_(old.ssl_alerted.is_not(None), old.domain_alerted.is_not(None))
        )
    ).all()
    for id, certificates, moment in rows:
        connection.execute(
            sa.update(STATES)
            .where(old.monitor_id == id)
            .values(
                alerted_certificates=_marks(certificates),
                alerted_domain_dates=None if moment is None else _date(moment),
            )
        )
    connection.execute(sa.update(STATES).where(old.domain != "").values(domain=None))
    op.drop_column("monitor_states", "ssl_alerted")
    op.drop_column("monitor_states", "domain_alerted")


def _marks(column: str | None) -> str | None:
    if column is None:
        return None
    return " ".join(column[start : start + BEGINNING] for start in range(0, len(column), BEGINNING))


def _date(moment: int) -> str | None:
    try:
        return f"{EPOCH + timedelta(milliseconds=moment):%Y-%m-%d}"
    except (OverflowError, TypeError):  # a damaged value
        return None


def downgrade() -> None:
    op.add_column("monitor_states", sa.Column("ssl_alerted", sa.String(length=64), nullable=True))
    op.add_column("monitor_states", sa.Column("domain_alerted", sa.BigInteger(), nullable=True))
    op.drop_column("monitor_states", "alerted_certificates")
    op.drop_column("monitor_states", "alerted_domain_dates")
