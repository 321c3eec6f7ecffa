"""Places as a resource: their agents' tokens, what their processes report, and the rule of monitors.

Revision ID: 0018
Revises: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

LOCATIONS = (
    ("seen_at", sa.BigInteger()),
    ("result_at", sa.BigInteger()),
    ("silent_at", sa.BigInteger()),
    ("token_digest", sa.String(length=64)),
    ("public_key", sa.String(length=64)),
)
HEARTBEATS = (
    ("version", sa.String(length=32)),
    ("clock_offset_ms", sa.BigInteger()),
    ("checks_per_minute", sa.Integer()),
)


def upgrade() -> None:
    for name, kind in LOCATIONS:
        op.add_column("locations", sa.Column(name, kind, nullable=True))
    op.create_index(op.f("ix_locations_token_digest"), "locations", ["token_digest"], unique=True)
    for name, kind in HEARTBEATS:
        op.add_column("heartbeats", sa.Column(name, kind, nullable=True))
    rule = sa.Column("location_rule", sa.String(8), nullable=False, server_default="majority")
    op.add_column("monitors", rule)
    failures = sa.Column("failures", sa.SmallInteger(), nullable=False, server_default="0")
    op.add_column("assignments", failures)


def downgrade() -> None:
    op.drop_column("assignments", "failures")
    op.drop_column("monitors", "location_rule")
    for name, _kind in HEARTBEATS:
        op.drop_column("heartbeats", name)
    op.drop_index(op.f("ix_locations_token_digest"), "locations")
    for name, _kind in LOCATIONS:
        op.drop_column("locations", name)
