"""Create the tables of the first version.

Revision ID: 0001
Revises: nothing
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite makes row id aliases, and so autoincrement, out of INTEGER only.
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Byte order in PostgreSQL too: its locale would sort otherwise than SQLite does.
FOLDED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", ID, nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scope", sa.String(length=8), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("prefix", name=op.f("uq_api_keys_prefix")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "cause_codes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cause_codes")),
        sa.UniqueConstraint("code", name=op.f("uq_cause_codes_code")),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=96), nullable=False),
        sa.Column("window", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name", "window", name=op.f("pk_counters")),
    )
    op.create_table(
        "domains",
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("asked_at", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.String(length=8), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("domain", name=op.f("pk_domains")),
    )
    op.create_table(
        "heartbeats",
        sa.Column("name", sa.String(length=96), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("last_check_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_heartbeats")),
    )
    op.create_table(
        "locations",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_locations")),
        sa.UniqueConstraint("name", name=op.f("uq_locations_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "maintenance_windows",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        sa.Column("repeat", sa.Text(), nullable=False),
        sa.Column("repeat_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_maintenance_windows")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "monitors",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_folded", FOLDED, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_folded", FOLDED, nullable=False),
        sa.Column("interval", sa.Integer(), nullable=False),
        sa.Column("alert_condition", sa.String(length=32), nullable=False),
        sa.Column("alert_text_lookup", sa.Text(), nullable=True),
        sa.Column("request_method", sa.String(length=8), nullable=False),
        sa.Column("request_headers", sa.Text(), nullable=True),
        sa.Column("request_auth_username", sa.Text(), nullable=True),
        sa.Column("request_auth_password", sa.Text(), nullable=True),
        sa.Column("request_body", sa.Text(), nullable=True),
        sa.Column("cache_buster", sa.SmallInteger(), nullable=False),
        sa.Column("ssl_alert_days", sa.SmallInteger(), nullable=True),
        sa.Column("domain_alert_days", sa.SmallInteger(), nullable=True),
        sa.Column("maintenance_start_at", sa.BigInteger(), nullable=True),
        sa.Column("maintenance_end_at", sa.BigInteger(), nullable=True),
        sa.Column("alerts", sa.Text(), nullable=True),
        sa.Column("timeout", sa.SmallInteger(), nullable=False),
        sa.Column("accepted_statuses", sa.Text(), nullable=False),
        sa.Column("follow_redirects", sa.Boolean(), nullable=False),
        sa.Column("verify_tls", sa.Boolean(), nullable=False),
        sa.Column("slow_after", sa.Integer(), nullable=True),
        sa.Column("confirmations", sa.SmallInteger(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_monitors")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_monitors_name_folded", "monitors", ["name_folded"])
    op.create_index("ix_monitors_url_folded", "monitors", ["url_folded"])

    op.create_table(
        "people",
        sa.Column("id", ID, nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_folded", FOLDED, nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("theme", sa.String(length=8), nullable=False),
        sa.Column("session_epoch", sa.Integer(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_login_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("email_folded", name=op.f("uq_people_email_folded")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "result_contexts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=32), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_result_contexts")),
        sa.UniqueConstraint("digest", name=op.f("uq_result_contexts_digest")),
    )
    op.create_table(
        "results",
        sa.Column("monitor_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("location_id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("verdict", sa.SmallInteger(), nullable=False),
        sa.Column("maintenance", sa.Boolean(), nullable=False),
        sa.Column("status_code", sa.SmallInteger(), nullable=True),
        sa.Column("response_time", sa.Integer(), nullable=True),
        sa.Column("dns", sa.Integer(), nullable=True),
        sa.Column("connect", sa.Integer(), nullable=True),
        sa.Column("tls", sa.Integer(), nullable=True),
        sa.Column("ttfb", sa.Integer(), nullable=True),
        sa.Column("download", sa.Integer(), nullable=True),
        sa.Column("context_id", sa.Integer(), nullable=True),
        sa.Column("cause_code_id", sa.SmallInteger(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("monitor_id", "at", "location_id", name=op.f("pk_results")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "rollups",
        sa.Column("monitor_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("period", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("checks", sa.Integer(), nullable=False),
        sa.Column("up_s", sa.Integer(), nullable=False),
        sa.Column("down_s", sa.Integer(), nullable=False),
        sa.Column("unknown_s", sa.Integer(), nullable=False),
        sa.Column("maintenance_s", sa.Integer(), nullable=False),
        sa.Column("response_count", sa.Integer(), nullable=False),
        sa.Column("response_sum", sa.BigInteger(), nullable=False),
        sa.Column("response_max", sa.Integer(), nullable=True),
        sa.Column("histogram", sa.JSON(), nullable=True),
        sa.Column("phases", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("monitor_id", "period", "start", name=op.f("pk_rollups")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "settings",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
    )
    op.create_table(
        "status_pages",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("slug", sa.String(length=255), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_pages")),
        sa.UniqueConstraint("slug", name=op.f("uq_status_pages_slug")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "incidents",
        sa.Column("id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("acknowledged_at", sa.BigInteger(), nullable=True),
        sa.Column("acknowledged_by", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("cause_folded", FOLDED, nullable=True),
        sa.Column("cause_code", sa.String(length=32), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("by_hand", sa.Boolean(), nullable=False),
        sa.Column("classification", sa.String(length=16), nullable=True),
        sa.Column("reminded_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_incidents_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incidents")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_incidents_ended_at", "incidents", ["ended_at"])
    op.create_index("ix_incidents_monitor_started", "incidents", ["monitor_id", "started_at"])
    op.create_index("ix_incidents_started_at", "incidents", ["started_at"])
    op.create_index(
        "uq_incidents_open",
        "incidents",
        ["monitor_id"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )

    op.create_table(
        "maintenance_window_monitors",
        sa.Column("window_id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_maintenance_window_monitors_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["window_id"],
            ["maintenance_windows.id"],
            name=op.f("fk_maintenance_window_monitors_window_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "window_id", "monitor_id", name=op.f("pk_maintenance_window_monitors")
        ),
    )
    op.create_index(
        "ix_maintenance_window_monitors_monitor_id", "maintenance_window_monitors", ["monitor_id"]
    )

    op.create_table(
        "monitor_evidence",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("last_good", sa.Text(), nullable=True),
        sa.Column("failing", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_monitor_evidence_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", name=op.f("pk_monitor_evidence")),
    )
    op.create_table(
        "monitor_states",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("next_check_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("lease_token", sa.String(length=32), nullable=True),
        sa.Column("checked_at", sa.BigInteger(), nullable=True),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("cause_code", sa.String(length=32), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("response_time", sa.Integer(), nullable=True),
        sa.Column("status_since", sa.BigInteger(), nullable=True),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.SmallInteger(), nullable=False),
        sa.Column("recovering_since", sa.BigInteger(), nullable=True),
        sa.Column("ssl_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("ssl_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("ssl_alerted", sa.String(length=64), nullable=True),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("domain_alerted", sa.BigInteger(), nullable=True),
        sa.Column("rolled_until", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_monitor_states_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", name=op.f("pk_monitor_states")),
    )
    op.create_index("ix_monitor_states_domain", "monitor_states", ["domain"])
    op.create_index("ix_monitor_states_next_check_at", "monitor_states", ["next_check_at"])

    op.create_table(
        "status_page_monitors",
        sa.Column("status_page_id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("group", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_status_page_monitors_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["status_page_id"],
            ["status_pages.id"],
            name=op.f("fk_status_page_monitors_status_page_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "status_page_id", "monitor_id", name=op.f("pk_status_page_monitors")
        ),
    )
    op.create_index("ix_status_page_monitors_monitor_id", "status_page_monitors", ["monitor_id"])

    op.create_table(
        "deliveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("message_id", sa.String(length=40), nullable=False),
        sa.Column("event", sa.String(length=32), nullable=False),
        sa.Column("monitor_id", ID, nullable=True),
        sa.Column("incident_id", ID, nullable=True),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("lane", sa.String(length=32), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attempts", sa.JSON(), nullable=False),
        sa.Column("covered_by", ID, nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("lease_token", sa.String(length=32), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("delivered_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["incident_id"],
            ["incidents.id"],
            name=op.f("fk_deliveries_incident_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_deliveries_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("message_id", name=op.f("uq_deliveries_message_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_deliveries_covered_by", "deliveries", ["covered_by"])
    op.create_index("ix_deliveries_created_at", "deliveries", ["created_at"])
    op.create_index("ix_deliveries_incident_id", "deliveries", ["incident_id"])
    op.create_index("ix_deliveries_lane", "deliveries", ["lane", "status"])
    op.create_index("ix_deliveries_monitor_id", "deliveries", ["monitor_id"])
    op.create_index(
        "ix_deliveries_pending",
        "deliveries",
        ["next_attempt_at"],
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )

    # Where checks run from: row 1 is always there (records.Location).
    op.bulk_insert(sa.table("locations", sa.column("name")), [{"name": "default"}])


def downgrade() -> None:
    for table in (
        "deliveries",
        "status_page_monitors",
        "monitor_states",
        "monitor_evidence",
        "maintenance_window_monitors",
        "incidents",
        "status_pages",
        "settings",
        "rollups",
        "results",
        "result_contexts",
        "people",
        "monitors",
        "maintenance_windows",
        "locations",
        "heartbeats",
        "domains",
        "counters",
        "cause_codes",
        "api_keys",
    ):
        op.drop_table(table)
