"""Which tables the audit log records, and which of their columns it shows.

Every table is either here or in ``NOT_RECORDED`` with the reason, and every column of a recorded
one is shown, a secret or bookkeeping: tests/stores/test_audit.py names what is undecided. A secret
is recorded as ``CHANGED``, never with its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import object_session

from app.db import Model, tables
from app.db.tags import tags_of
from app.records import ObjectKind, Thing
from app.rules import smtp

CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Table:
    """``name``: how a row is called in the log. ``unseen``: columns that follow from others, or
    that Wakeful keeps for itself. ``part``: a row is a part of the object with this ``id``, so a
    new one is a change of that.
    """

    kind: ObjectKind
    shown: tuple[str, ...]
    secret: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    name: Callable[[Any], str | None] = lambda row: row.name
    id: Callable[[Any], int | None] = lambda row: row.id
    part: bool = False

    def thing(self, row: Any) -> Thing:
        return Thing(self.kind, self.id(row), self.name(row))


# Columns that say nothing in any table.
ALWAYS_UNSEEN = ("id", "created_at", "updated_at")
# How people call columns, where it is not their name.
CALLED = {"password_hash": "password", "token_digest": "token", "owner_id": "owner"}


def _title_of_post(update: Any) -> str | None:
    session = object_session(update)
    post = session and session.get(tables.PostRow, update.post_id)
    return post.title if post else None


TABLES: Mapping[type[Model], Table] = {
    tables.MonitorRow: Table(
        ObjectKind.MONITOR,
        shown=(
            "name",
            "url",
            "interval",
            "alert_condition",
            "alert_text_lookup",
            "request_method",
            "request_auth_username",
            "cache_buster",
            "ssl_alert_days",
            "domain_alert_days",
            "maintenance_start_at",
            "maintenance_end_at",
            "timeout",
            "accepted_statuses",
            "follow_redirects",
            "verify_tls",
            "slow_after",
            "confirmations",
            "tags",
            "remind_after",
            "quiet_start",
            "quiet_end",
            "quiet_zone",
            "location_rule",
            "paused",
        ),
        secret=("request_headers", "request_auth_password", "request_body", "alerts"),
        unseen=("name_folded", "url_folded", "alert_lanes"),
    ),
    tables.IncidentRow: Table(
        ObjectKind.INCIDENT,
        shown=(
            "monitor_id",
            "started_at",
            "acknowledged_at",
            "acknowledged_by",
            "ended_at",
            "cause",
            "comment",
            "classification",
        ),
        unseen=(
            "cause_folded",
            "cause_code",
            "evidence",
            "by_hand",
            "found_late",
            "ending",
            "seen_by",
            "reminded_at",
            "unwatched",
        ),
        name=lambda row: row.cause,
    ),
    tables.ContactRow: Table(
        ObjectKind.CONTACT,
        shown=(
            "name",
            "quiet_start",
            "quiet_end",
            "quiet_zone",
            "default",
            "min_severity",
            "acknowledgements",
        ),
        secret=("channels",),
        unseen=("name_folded",),
    ),
    tables.StatusPageRow: Table(
        ObjectKind.STATUS_PAGE,
        shown=(
            "name",
            "slug",
            "description",
            "visibility",
            "domain",
            "show_urls",
            "show_response_times",
            "auto_post_after",
            "zone",
            "theme",
        ),
        secret=("password_hash",),
        unseen=("password_turn", "sequence_ahead"),
    ),
    tables.PostRow: Table(
        ObjectKind.POST,
        shown=("status_page_id", "title", "state", "incident_id", "starts_at", "ends_at"),
        unseen=("automatic", "corrected_at"),
        name=lambda row: row.title,
    ),
    tables.PostUpdateRow: Table(
        ObjectKind.POST,
        shown=("state", "body"),
        unseen=("post_id", "corrected_at", "announced_at", "announced_to"),
        name=_title_of_post,
        id=lambda row: row.post_id,
        part=True,
    ),
    tables.PostTemplateRow: Table(
        ObjectKind.POST_TEMPLATE, shown=("name", "title", "state", "body")
    ),
    tables.MaintenanceWindowRow: Table(
        ObjectKind.WINDOW,
        shown=("name", "start_at", "end_at", "repeat", "repeat_until", "zone", "tags"),
    ),
    tables.MarkerRow: Table(ObjectKind.MARKER, shown=("name", "link", "tags", "time")),
    tables.ReportMailRow: Table(
        ObjectKind.REPORT_MAIL, shown=("contact_id", "tag"), name=lambda row: row.tag
    ),
    tables.LocationRow: Table(
        ObjectKind.LOCATION,
        shown=("name", "label", "carrier", "public_key"),
        secret=("token_digest",),
        unseen=("seen_at", "result_at", "silent_at", "silent_since"),
    ),
    tables.PersonRow: Table(
        ObjectKind.PERSON,
        shown=("email", "name", "role", "disabled", "time_zone", "theme"),
        secret=("password_hash",),
        unseen=("email_folded", "last_login_at", "second_factor"),
        name=lambda row: row.email,
    ),
    tables.ApiKeyRow: Table(
        ObjectKind.KEY,
        shown=("name", "scope", "expires_at", "revoked_at", "owner_id", "networks", "tag"),
        unseen=("prefix", "digest", "last_used_at"),
        name=lambda row: f"{row.name} ({row.prefix})",
    ),
    tables.WallLinkRow: Table(
        ObjectKind.WALL_LINK,
        shown=("name", "tag", "zone", "server"),
        unseen=("digest", "created_by", "last_used_at"),
    ),
}


def value_of(row: Any, column: str, value: Any) -> Any:
    """The value of a row's column as the log shows it. An owner is shown by email address: a number
    says nothing once the person is deleted.
    """
    if column == "owner_id" and value is not None:
        session = object_session(row)
        owner = session and session.get(tables.PersonRow, value)
        return owner.email if owner else value
    return tags_of(value or "") if column == "tags" else value


def _plain_setting(old: str | None, new: str | None) -> dict[str, Any]:
    return {"value": (old, new)}


def _secret_setting(old: str | None, new: str | None) -> dict[str, Any]:
    return {} if old == new else {"value": CHANGED}


def _mail_server(old: str | None, new: str | None) -> dict[str, Any]:
    """Which server, as whom; that the password changed, where the server stays."""
    before, after = _server(old), _server(new)
    names = ("host", "port", "tls", "user", "sender")
    changes: dict[str, Any] = {
        name: (getattr(before, name, None), getattr(after, name, None)) for name in names
    }
    if getattr(before, "password", None) != getattr(after, "password", None):
        changes["password"] = CHANGED
    return changes


def _server(url: str | None) -> smtp.Server | None:
    try:
        return None if url is None else smtp.parse(url)
    except ValueError:
        return None


# The settings that people change, and what is recorded of a change. Others are Wakeful's own.
SETTINGS: Mapping[str, Callable[[str | None, str | None], dict[str, Any]]] = {
    "allow_networks": _plain_setting,
    "smtp_url": _mail_server,
    "webhook_secret": _secret_setting,
    "webhook_secret_shown": _secret_setting,
}

_PARTS = "part of another object, whose line has it"
_ENGINE = "what checks and the engine record"
_OTHERS = "noted where it is written"

# Why nothing is recorded of the rows of a table.
NOT_RECORDED: Mapping[str, str] = {
    "audit": "the log itself",
    "monitor_contacts": _PARTS,
    "status_page_groups": _PARTS,
    "status_page_monitors": _PARTS,
    "post_monitors": _PARTS,
    "maintenance_window_monitors": _PARTS,
    "assignments": _PARTS,
    "monitor_states": _ENGINE,
    "monitor_evidence": _ENGINE,
    "results": _ENGINE,
    "result_contexts": _ENGINE,
    "rollups": _ENGINE,
    "cause_codes": _ENGINE,
    "changes": _ENGINE,
    "shards": _ENGINE,
    "heartbeats": _ENGINE,
    "domains": _ENGINE,
    "report_mails_sent": _ENGINE,
    "cancelled_events": "what calendars of status pages are told, after a change that has a line",
    "counters": "counts of requests",
    "sent_forms": "bookkeeping of requests",
    "left_out_failures": "they become lines",
    "used_hosts": "where people log in",
    "ended_agent_tokens": "the change of the place has a line",
    "deliveries": _OTHERS,
    "invitations": _OTHERS,
    "settings": _OTHERS,
    "recoveries": _OTHERS,
    "sessions": _OTHERS,
    "authenticator_apps": _OTHERS,
    "passkeys": _OTHERS,
    "recovery_codes": _OTHERS,
    "half_logins": "log-ins that wait for the second factor; the login is noted",
    "passkey_challenges": "what a passkey is to sign",
    "devices": "browsers that people have logged in with before",
    "subscribers": "they confirm and end their subscriptions; who clears a page's is noted",
}
