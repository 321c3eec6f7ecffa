"""Add posts and subscribers of status pages, and the settings that the first tables lacked.

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for column in (
        sa.Column("password_turn", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("domain", sa.String(length=253), nullable=True),
        sa.Column("show_urls", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column(
            "show_response_times", sa.Boolean(), nullable=False, server_default=sa.text("false")
        ),
        sa.Column("auto_post_after", sa.SmallInteger(), nullable=True),
        sa.Column("zone", sa.String(length=64), nullable=False, server_default="UTC"),
        sa.Column("theme", sa.String(length=8), nullable=False, server_default="system"),
    ):
        op.add_column("status_pages", column)
    op.create_index("uq_status_pages_domain", "status_pages", ["domain"], unique=True)
    op.drop_column("status_page_monitors", "group")  # nothing ever wrote it
    for column in (
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("group_id", ID, nullable=True),
        sa.Column("group_position", sa.Integer(), nullable=True),
    ):
        op.add_column("status_page_monitors", column)
    _of_page(
        "status_page_groups",
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
    )
    op.create_index(
        op.f("ix_status_page_groups_status_page_id"), "status_page_groups", ["status_page_id"]
    )
    _posts()
    _of_page(
        "subscribers",
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("confirmed_at", sa.BigInteger(), nullable=True),
    )
    op.create_index(
        "uq_subscribers_page_digest", "subscribers", ["status_page_id", "digest"], unique=True
    )
    op.create_table(
        "cancelled_events",
        sa.Column("status_page_id", ID, nullable=False),
        sa.Column("uid", sa.String(length=128), nullable=False),
        sa.Column("sequence", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        sa.Column("cancelled_at", sa.BigInteger(), nullable=False),
        _page("cancelled_events"),
        sa.PrimaryKeyConstraint("status_page_id", "uid", name=op.f("pk_cancelled_events")),
    )
    # Whom a message of a page's post goes to; null: it is an alert
    op.add_column("deliveries", sa.Column("subscriber_id", ID, nullable=True))
    op.create_index(op.f("ix_deliveries_subscriber_id"), "deliveries", ["subscriber_id"])


def _posts() -> None:
    _of_page(
        "posts",
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("incident_id", ID, nullable=True),
        sa.Column("starts_at", sa.BigInteger(), nullable=True),
        sa.Column("ends_at", sa.BigInteger(), nullable=True),
        sa.Column("automatic", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("corrected_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["incident_id"],
            ["incidents.id"],
            name=op.f("fk_posts_incident_id"),
            ondelete="SET NULL",
        ),
    )
    op.create_index("ix_posts_page_created", "posts", ["status_page_id", "created_at"])
    op.create_index(op.f("ix_posts_incident_id"), "posts", ["incident_id"])
    op.create_table(
        "post_monitors",
        sa.Column("post_id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        _reference("post_monitors", "post_id", "posts"),
        _reference("post_monitors", "monitor_id", "monitors"),
        sa.PrimaryKeyConstraint("post_id", "monitor_id", name=op.f("pk_post_monitors")),
    )
    op.create_index(op.f("ix_post_monitors_monitor_id"), "post_monitors", ["monitor_id"])
    op.create_table(
        "post_updates",
        sa.Column("id", ID, nullable=False),
        sa.Column("post_id", ID, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("corrected_at", sa.BigInteger(), nullable=True),
        sa.Column("announced_at", sa.BigInteger(), nullable=True),
        sa.Column("announced_to", ID, nullable=False, server_default="0"),
        _reference("post_updates", "post_id", "posts"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_post_updates")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_post_updates_post_id"), "post_updates", ["post_id"])
    op.create_index(
        "ix_post_updates_unannounced",
        "post_updates",
        ["id"],
        sqlite_where=sa.text("announced_at IS NULL"),
        postgresql_where=sa.text("announced_at IS NULL"),
    )
    op.create_table(
        "post_templates",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_post_templates")),
        sqlite_autoincrement=True,
    )


def _of_page(table: str, *more: sa.Column | sa.Constraint) -> None:
    """Create a table of rows that go with their page."""
    op.create_table(
        table,
        sa.Column("id", ID, nullable=False),
        sa.Column("status_page_id", ID, nullable=False),
        *more,
        _page(table),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
        sqlite_autoincrement=True,
    )


def _page(table: str) -> sa.ForeignKeyConstraint:
    return _reference(table, "status_page_id", "status_pages")


def _reference(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{other}.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE"
    )


def downgrade() -> None:
    op.drop_index("ix_deliveries_subscriber_id", "deliveries")
    op.execute("DELETE FROM deliveries WHERE subscriber_id IS NOT NULL")
    op.drop_column("deliveries", "subscriber_id")
    for table in (
        "cancelled_events",
        "subscribers",
        "post_templates",
        "post_updates",
        "post_monitors",
        "posts",
        "status_page_groups",
    ):
        op.drop_table(table)
    for name in ("group_position", "group_id", "name"):
        op.drop_column("status_page_monitors", name)
    op.add_column("status_page_monitors", sa.Column("group", sa.Text(), nullable=True))
    op.drop_index("uq_status_pages_domain", "status_pages")
    for name in (
        "theme",
        "zone",
        "auto_post_after",
        "show_response_times",
        "show_urls",
        "domain",
        "password_turn",
    ):
        op.drop_column("status_pages", name)
