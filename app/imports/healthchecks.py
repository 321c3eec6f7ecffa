"""healthchecks: the JSON of ``/api/v3/checks/``. Jobs go on calling the same UUIDs."""

from __future__ import annotations

from app.i18n import N_, _
from app.imports.candidates import Draft, Reading
from app.imports.tool import Tool, Variables
from app.imports.values import ImportEntry, records, span
from app.records import DEFAULT_GRACE

CHANNELS_DROPPED = N_("Integrations are dropped: the file has only their ids. Choose contacts.")
NO_UUID = N_(
    "The file has no UUID of it, so its ping URL is new. Export with a key that may write."
)
STAYS_PAUSED = N_("It stays paused when it is called, until somebody resumes it.")
KEYWORDS = N_("Keywords in the body are dropped: exit statuses and /fail say what has failed.")
TOOL = Tool(
    "healthchecks",
    N_("Check %(position)s"),
    dropped={
        "methods": N_("The filter of methods is dropped: any method is a ping."),
        **dict.fromkeys(
            ("start_kw", "success_kw", "failure_kw", "subject", "subject_fail"), KEYWORDS
        ),
    },
    ignored=(
        "n_pings", "status", "started", "last_", "next_ping", "unique_key", "update_url",
        "pause_url", "resume_url", "badge_url", "channels", "filter_", "uuid", "ping_url",
        "req_", "timeout", "schedule", "tz", "manual_resume",
    ),
)  # fmt: skip


def recognizes(data: object) -> bool:
    return any("grace" in row and "n_pings" in row for row in records(data, "checks"))


def read(data: object, _variables: Variables) -> Reading:
    rows = [row for row in records(data, "checks") if "grace" in row]
    remarks = [_(CHANNELS_DROPPED)] if any(row.get("channels") for row in rows) else []
    # Without empty settings and switches that are off.
    rows = [{key: row[key] for key in row if row[key] not in ("", None, False)} for row in rows]
    return TOOL.reading(TOOL.drafts(rows, _check), remarks)


def _check(draft: Draft, entry: ImportEntry) -> None:
    slug = entry.text("slug")
    draft.name = draft.name or slug
    token = entry.text("uuid") or entry.text("ping_url").rstrip("/").rpartition("/")[2]
    draft.heartbeat(token, entry.number("timeout"), entry.number("grace"))
    draft.notes(entry.text("desc"))
    # In healthchecks, a run that has started may take as long as the grace.
    if grace := draft.fields.get("grace"):
        draft.fields["max_run"] = grace
    if not token:
        draft.remark(NO_UUID)
    lines = tuple(line.strip() for line in entry.text("schedule").splitlines() if line.strip())
    if lines:
        draft.fields.pop("period", None)
        draft.fields |= {"schedule": lines, "zone": entry.text("tz") or "UTC"}
    if slug:
        draft.fields["slug"] = slug
    draft.tags(entry.text("tags").split())
    draft.paused = entry.text("status") == "paused"
    if draft.paused and not entry.is_on("manual_resume"):
        draft.remark(STAYS_PAUSED)
    if entry.number("grace") is None:
        draft.remark(N_("Grace becomes %(grace)s."), grace=span(DEFAULT_GRACE))
