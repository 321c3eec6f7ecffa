"""Create the tables of a new database.

It takes the place of 38 migrations, whose last number it has: a database that they made goes on from
here, and an older one is upgraded by a version that has them (``schema.OLDER``).

Revision ID: 0038
Revises: nothing
"""

import time

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = None
branch_labels = None
depends_on = None

# SQLite makes row id aliases, and so autoincrement, out of INTEGER only.
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# Byte order in PostgreSQL too: its locale would sort otherwise than SQLite does.
FOLDED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TABLES = (
    "audit",
    "cause_codes",
    "changes",
    "contacts",
    "counters",
    "domains",
    "ended_agent_tokens",
    "heartbeats",
    "invitations",
    "left_out_failures",
    "locations",
    "maintenance_windows",
    "markers",
    "monitors",
    "people",
    "post_templates",
    "result_contexts",
    "results",
    "rollups",
    "sent_forms",
    "settings",
    "status_pages",
    "used_hosts",
    "wall_links",
    "api_keys",
    "assignments",
    "authenticator_apps",
    "cancelled_events",
    "devices",
    "half_logins",
    "incidents",
    "late_outages",
    "maintenance_window_monitors",
    "monitor_contacts",
    "monitor_evidence",
    "monitor_states",
    "passkey_challenges",
    "passkeys",
    "recoveries",
    "recovery_codes",
    "report_mails",
    "sessions",
    "shards",
    "status_page_groups",
    "status_page_monitors",
    "subscribers",
    "deliveries",
    "posts",
    "report_mails_sent",
    "post_monitors",
    "post_updates",
)


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.String(length=16), nullable=False),
        sa.Column("actor_id", ID, nullable=True),
        sa.Column("actor_name", sa.Text(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("object_kind", sa.String(length=32), nullable=True),
        sa.Column("object_id", ID, nullable=True),
        sa.Column("object_name", sa.Text(), nullable=True),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("words_folded", FOLDED, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_action_at_id", "audit", ["action", "at", "id"])
    op.create_index("ix_audit_actor", "audit", ["actor_kind", "actor_id", "at", "id"])
    op.create_index("ix_audit_actor_kind_at_id", "audit", ["actor_kind", "at", "id"])
    op.create_index("ix_audit_at_id", "audit", ["at", "id"])
    op.create_index("ix_audit_object", "audit", ["object_kind", "object_id", "at", "id"])
    op.create_index("ix_audit_object_kind_at_id", "audit", ["object_kind", "at", "id"])
    op.create_table(
        "cause_codes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cause_codes")),
        sa.UniqueConstraint("code", name=op.f("uq_cause_codes_code")),
    )
    op.create_table(
        "changes",
        sa.Column("id", ID, nullable=False),
        sa.Column("monitor_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_changes_at"), "changes", ["at"])
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
        "ended_agent_tokens",
        sa.Column("place", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("place", name=op.f("pk_ended_agent_tokens")),
    )
    op.create_index(op.f("ix_ended_agent_tokens_digest"), "ended_agent_tokens", ["digest"])
    op.create_table(
        "heartbeats",
        sa.Column("name", sa.String(length=96), nullable=False),
        sa.Column("location", sa.String(length=64), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("last_check_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.String(length=32), nullable=True),
        sa.Column("clock_offset_ms", sa.BigInteger(), nullable=True),
        sa.Column("checks_per_minute", sa.Integer(), nullable=True),
        sa.Column("keys", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_heartbeats")),
    )
    op.create_table(
        "invitations",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_folded", FOLDED, nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("digest", name=op.f("uq_invitations_digest")),
        sa.UniqueConstraint("email_folded", name=op.f("uq_invitations_email_folded")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "left_out_failures",
        sa.Column("window", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event", sa.String(length=32), nullable=False),
        sa.Column("who", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.Column("actor_kind", sa.String(length=16), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("object_name", sa.Text(), nullable=True),
        sa.Column("object_id", ID, nullable=True),
        sa.PrimaryKeyConstraint("window", "event", "who", name=op.f("pk_left_out_failures")),
    )
    op.create_table(
        "locations",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("label", sa.String(length=80), nullable=True),
        sa.Column("carrier", sa.String(length=16), server_default="local", nullable=False),
        sa.Column("created_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=True),
        sa.Column("result_at", sa.BigInteger(), nullable=True),
        sa.Column("silent_at", sa.BigInteger(), nullable=True),
        sa.Column("silent_since", sa.BigInteger(), nullable=True),
        sa.Column("token_digest", sa.String(length=64), nullable=True),
        sa.Column("public_key", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_locations")),
        sa.UniqueConstraint("name", name=op.f("uq_locations_name")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_locations_token_digest"), "locations", ["token_digest"], unique=True)
    op.create_table(
        "maintenance_windows",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("start_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        sa.Column("repeat", sa.Text(), nullable=False),
        sa.Column("repeat_until", sa.BigInteger(), nullable=True),
        sa.Column("zone", sa.String(length=64), server_default="UTC", nullable=False),
        sa.Column("tags", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_maintenance_windows")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "markers",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("link", sa.Text(), nullable=True),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_markers")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_markers_time"), "markers", ["time"])
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
        sa.Column("alert_lanes", sa.Text(), nullable=True),
        sa.Column("timeout", sa.SmallInteger(), nullable=False),
        sa.Column("accepted_statuses", sa.Text(), nullable=False),
        sa.Column("follow_redirects", sa.Boolean(), nullable=False),
        sa.Column("verify_tls", sa.Boolean(), nullable=False),
        sa.Column("slow_after", sa.Integer(), nullable=True),
        sa.Column("confirmations", sa.SmallInteger(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("remind_after", sa.SmallInteger(), nullable=True),
        sa.Column("quiet_start", sa.String(length=5), nullable=True),
        sa.Column("quiet_end", sa.String(length=5), nullable=True),
        sa.Column("quiet_zone", sa.String(length=64), server_default="UTC", nullable=False),
        sa.Column("location_rule", sa.String(length=8), server_default="majority", nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_monitors")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_monitors_maintenance",
        "monitors",
        ["maintenance_start_at"],
        sqlite_where=sa.text("maintenance_start_at IS NOT NULL"),
        postgresql_where=sa.text("maintenance_start_at IS NOT NULL"),
    )
    op.create_index(op.f("ix_monitors_name_folded"), "monitors", ["name_folded"])
    op.create_index(
        "ix_monitors_paused",
        "monitors",
        ["id"],
        sqlite_where=sa.text("paused = 1"),
        postgresql_where=sa.text("paused"),
    )
    op.create_index(op.f("ix_monitors_url_folded"), "monitors", ["url_folded"])
    op.create_table(
        "people",
        sa.Column("id", ID, nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("email_folded", FOLDED, nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("time_zone", sa.String(length=64), nullable=False),
        sa.Column("theme", sa.String(length=8), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_login_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("email_folded", name=op.f("uq_people_email_folded")),
        sqlite_autoincrement=True,
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
        sa.Column("covers_s", sa.Integer(), nullable=True),
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
        sa.Column("degraded_s", sa.Integer(), server_default="0", nullable=False),
        sa.Column("response_count", sa.Integer(), nullable=False),
        sa.Column("response_sum", sa.BigInteger(), nullable=False),
        sa.Column("response_max", sa.Integer(), nullable=True),
        sa.Column("histogram", sa.JSON(), nullable=True),
        sa.Column("phases", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("monitor_id", "period", "start", name=op.f("pk_rollups")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sent_forms",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("location", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sent_forms")),
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
        sa.Column("password_turn", sa.Integer(), server_default="0", nullable=False),
        sa.Column("domain", sa.String(length=253), nullable=True),
        sa.Column("show_urls", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "show_response_times", sa.Boolean(), server_default=sa.text("false"), nullable=False
        ),
        sa.Column("auto_post_after", sa.SmallInteger(), nullable=True),
        sa.Column("zone", sa.String(length=64), server_default="UTC", nullable=False),
        sa.Column("theme", sa.String(length=8), server_default="system", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_pages")),
        sa.UniqueConstraint("slug", name=op.f("uq_status_pages_slug")),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_status_pages_domain", "status_pages", ["domain"], unique=True)
    op.create_table(
        "used_hosts",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("person_id", ID, autoincrement=False, nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("host", "person_id", name=op.f("pk_used_hosts")),
    )
    op.create_table(
        "wall_links",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("tag", sa.Text(), nullable=True),
        sa.Column("zone", sa.String(length=64), nullable=False),
        sa.Column("server", sa.Text(), nullable=True),
        sa.Column("created_by", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wall_links")),
        sa.UniqueConstraint("digest", name=op.f("uq_wall_links_digest")),
        sqlite_autoincrement=True,
    )
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
        sa.Column("owner_id", ID, nullable=True),
        sa.Column("networks", sa.Text(), server_default="", nullable=False),
        sa.Column("tag", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["people.id"], name=op.f("fk_api_keys_owner_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("prefix", name=op.f("uq_api_keys_prefix")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_api_keys_owner_id"), "api_keys", ["owner_id"])
    op.create_table(
        "assignments",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("location_id", ID, nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=True),
        sa.Column("checked_at", sa.BigInteger(), nullable=True),
        sa.Column("verdict", sa.SmallInteger(), nullable=True),
        sa.Column("asked_at", sa.BigInteger(), nullable=True),
        sa.Column("blind", sa.Boolean(), nullable=False),
        sa.Column("failures", sa.SmallInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["locations.id"],
            name=op.f("fk_assignments_location_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_assignments_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", "location_id", name=op.f("pk_assignments")),
    )
    op.create_index(op.f("ix_assignments_location_id"), "assignments", ["location_id"])
    op.create_table(
        "authenticator_apps",
        sa.Column("person_id", ID, autoincrement=False, nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("used_step", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["people.id"],
            name=op.f("fk_authenticator_apps_person_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_authenticator_apps")),
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
        sa.ForeignKeyConstraint(
            ["status_page_id"],
            ["status_pages.id"],
            name=op.f("fk_cancelled_events_status_page_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("status_page_id", "uid", name=op.f("pk_cancelled_events")),
    )
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
    op.create_table(
        "half_logins",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_half_logins_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_half_logins")),
        sa.UniqueConstraint("digest", name=op.f("uq_half_logins_digest")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_half_logins_person_id"), "half_logins", ["person_id"])
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
        sa.Column("ending", sa.String(length=16), nullable=True),
        sa.Column("seen_by", sa.JSON(), nullable=True),
        sa.Column("reminded_at", sa.BigInteger(), nullable=True),
        sa.Column("unwatched", sa.JSON(), nullable=True),
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
    op.create_index(op.f("ix_incidents_ended_at"), "incidents", ["ended_at"])
    op.create_index("ix_incidents_monitor_started", "incidents", ["monitor_id", "started_at"])
    op.create_index(op.f("ix_incidents_started_at"), "incidents", ["started_at"])
    op.create_index(
        "uq_incidents_open",
        "incidents",
        ["monitor_id"],
        unique=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "late_outages",
        sa.Column("monitor_id", ID, autoincrement=False, nullable=False),
        sa.Column("started_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("cause_code", sa.String(length=32), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("places", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_late_outages_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", "started_at", name=op.f("pk_late_outages")),
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
        op.f("ix_maintenance_window_monitors_monitor_id"),
        "maintenance_window_monitors",
        ["monitor_id"],
    )
    op.create_table(
        "monitor_contacts",
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("contact_id", ID, nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["contact_id"],
            ["contacts.id"],
            name=op.f("fk_monitor_contacts_contact_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_monitor_contacts_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", "contact_id", name=op.f("pk_monitor_contacts")),
    )
    op.create_index(op.f("ix_monitor_contacts_contact_id"), "monitor_contacts", ["contact_id"])
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
        sa.Column("checked_at", sa.BigInteger(), nullable=True),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("cause_code", sa.String(length=32), nullable=True),
        sa.Column("cause", sa.Text(), nullable=True),
        sa.Column("response_time", sa.Integer(), nullable=True),
        sa.Column("status_since", sa.BigInteger(), nullable=True),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.SmallInteger(), nullable=False),
        sa.Column("recovering_since", sa.BigInteger(), nullable=True),
        sa.Column("unconfirmed_at", sa.BigInteger(), nullable=True),
        sa.Column("ssl_issued_at", sa.BigInteger(), nullable=True),
        sa.Column("ssl_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("ssl_fingerprint", sa.String(length=64), nullable=True),
        sa.Column("alerted_certificates", sa.Text(), nullable=True),
        sa.Column("domain", sa.Text(), nullable=True),
        sa.Column("alerted_domain_dates", sa.Text(), nullable=True),
        sa.Column("rolled_until", sa.BigInteger(), nullable=True),
        sa.Column("sums_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column("paused_at", sa.BigInteger(), nullable=True),
        sa.Column("resumed_at", sa.BigInteger(), nullable=True),
        sa.Column("judged_since", sa.BigInteger(), nullable=True),
        sa.Column("spec_since", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_monitor_states_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("monitor_id", name=op.f("pk_monitor_states")),
    )
    op.create_index(op.f("ix_monitor_states_domain"), "monitor_states", ["domain"])
    op.create_index(
        "ix_monitor_states_not_up",
        "monitor_states",
        ["monitor_id"],
        sqlite_where=sa.text("verdict IS NULL OR verdict <> 'up'"),
        postgresql_where=sa.text("verdict IS NULL OR verdict <> 'up'"),
    )
    op.create_table(
        "passkey_challenges",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("challenge", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["people.id"],
            name=op.f("fk_passkey_challenges_person_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_passkey_challenges")),
    )
    op.create_index(op.f("ix_passkey_challenges_person_id"), "passkey_challenges", ["person_id"])
    op.create_table(
        "passkeys",
        sa.Column("id", ID, nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("sign_count", sa.BigInteger(), nullable=False),
        sa.Column("verifies", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_passkeys_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_passkeys")),
        sa.UniqueConstraint("credential", name=op.f("uq_passkeys_credential")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_passkeys_person_id"), "passkeys", ["person_id"])
    op.create_table(
        "recoveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_recoveries_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recoveries")),
        sa.UniqueConstraint("digest", name=op.f("uq_recoveries_digest")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_recoveries_person_id"), "recoveries", ["person_id"])
    op.create_table(
        "recovery_codes",
        sa.Column("id", ID, nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["people.id"],
            name=op.f("fk_recovery_codes_person_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recovery_codes")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_recovery_codes_person_id"), "recovery_codes", ["person_id"])
    op.create_table(
        "report_mails",
        sa.Column("id", ID, nullable=False),
        sa.Column("contact_id", ID, nullable=False),
        sa.Column("tag", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["contact_id"],
            ["contacts.id"],
            name=op.f("fk_report_mails_contact_id_contacts"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report_mails")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_report_mails_contact_id"), "report_mails", ["contact_id"])
    op.create_table(
        "sessions",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=False),
        sa.Column("password_at", sa.BigInteger(), nullable=True),
        sa.Column("former_digest", sa.String(length=64), nullable=True),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("browser", sa.String(length=32), nullable=True),
        sa.Column("system", sa.String(length=32), nullable=True),
        sa.Column("device_id", ID, nullable=True),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_sessions_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("digest", name=op.f("uq_sessions_digest")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_sessions_former_digest"), "sessions", ["former_digest"])
    op.create_index(op.f("ix_sessions_person_id"), "sessions", ["person_id"])
    op.create_table(
        "shards",
        sa.Column("location_id", ID, nullable=False),
        sa.Column("number", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.String(length=96), nullable=True),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["location_id"],
            ["locations.id"],
            name=op.f("fk_shards_location_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("location_id", "number", name=op.f("pk_shards")),
    )
    op.create_table(
        "status_page_groups",
        sa.Column("id", ID, nullable=False),
        sa.Column("status_page_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["status_page_id"],
            ["status_pages.id"],
            name=op.f("fk_status_page_groups_status_page_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_status_page_groups")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_status_page_groups_status_page_id"), "status_page_groups", ["status_page_id"]
    )
    op.create_table(
        "status_page_monitors",
        sa.Column("status_page_id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("group_id", ID, nullable=True),
        sa.Column("group_position", sa.Integer(), nullable=True),
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
    op.create_index(
        op.f("ix_status_page_monitors_monitor_id"), "status_page_monitors", ["monitor_id"]
    )
    op.create_table(
        "subscribers",
        sa.Column("id", ID, nullable=False),
        sa.Column("status_page_id", ID, nullable=False),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("confirmed_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["status_page_id"],
            ["status_pages.id"],
            name=op.f("fk_subscribers_status_page_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subscribers")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_subscribers_page_digest", "subscribers", ["status_page_id", "digest"], unique=True
    )
    op.create_table(
        "deliveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("message_id", sa.String(length=40), nullable=False),
        sa.Column("event", sa.String(length=32), nullable=False),
        sa.Column("monitor_id", ID, nullable=True),
        sa.Column("incident_id", ID, nullable=True),
        sa.Column("subscriber_id", ID, nullable=True),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("sources", sa.Text(), nullable=True),
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
    op.create_index(op.f("ix_deliveries_covered_by"), "deliveries", ["covered_by"])
    op.create_index(op.f("ix_deliveries_created_at"), "deliveries", ["created_at"])
    op.create_index(
        "ix_deliveries_failed",
        "deliveries",
        ["lane", "id"],
        sqlite_where=sa.text("status = 'failed'"),
        postgresql_where=sa.text("status = 'failed'"),
    )
    op.create_index(op.f("ix_deliveries_incident_id"), "deliveries", ["incident_id"])
    op.create_index("ix_deliveries_lane", "deliveries", ["lane", "status"])
    op.create_index(op.f("ix_deliveries_monitor_id"), "deliveries", ["monitor_id"])
    op.create_index(
        "ix_deliveries_pending",
        "deliveries",
        ["next_attempt_at"],
        sqlite_where=sa.text("status = 'pending'"),
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(op.f("ix_deliveries_subscriber_id"), "deliveries", ["subscriber_id"])
    op.create_index(
        "ix_deliveries_waiting",
        "deliveries",
        ["monitor_id"],
        sqlite_where=sa.text("status = 'held' AND next_attempt_at IS NOT NULL"),
        postgresql_where=sa.text("status = 'held' AND next_attempt_at IS NOT NULL"),
    )
    op.create_table(
        "posts",
        sa.Column("id", ID, nullable=False),
        sa.Column("status_page_id", ID, nullable=False),
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
        sa.ForeignKeyConstraint(
            ["status_page_id"],
            ["status_pages.id"],
            name=op.f("fk_posts_status_page_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_posts")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_posts_incident_id"), "posts", ["incident_id"])
    op.create_index("ix_posts_page_created", "posts", ["status_page_id", "created_at"])
    op.create_table(
        "report_mails_sent",
        sa.Column("report_mail_id", ID, nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["report_mail_id"],
            ["report_mails.id"],
            name=op.f("fk_report_mails_sent_report_mail_id_report_mails"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("report_mail_id", "month", name=op.f("pk_report_mails_sent")),
    )
    op.create_table(
        "post_monitors",
        sa.Column("post_id", ID, nullable=False),
        sa.Column("monitor_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["monitor_id"],
            ["monitors.id"],
            name=op.f("fk_post_monitors_monitor_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name=op.f("fk_post_monitors_post_id"), ondelete="CASCADE"
        ),
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
        sa.Column("announced_to", ID, server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["post_id"], ["posts.id"], name=op.f("fk_post_updates_post_id"), ondelete="CASCADE"
        ),
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

    # Where checks run from: row 1 is always there (records.Location).
    default = {"name": "default", "carrier": "local", "created_at": time.time_ns() // 1_000_000}
    columns = [sa.column(name) for name in default]
    op.bulk_insert(sa.table("locations", *columns), [default])


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
