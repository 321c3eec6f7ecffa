"""Tools with few settings: Upptime, Kuvasz, Checkmate, healthchecks, and Prometheus' lists of
targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from app.i18n import N_, _
from app.imports import channels, yaml_text
from app.imports.candidates import Draft, Notification, Reading, host_and_port, no_kind, ping_url
from app.imports.channels import Tool, Variables
from app.imports.values import (
    ImportEntry,
    as_list,
    cut_line,
    duration_text,
    mapping,
    number_text,
    records_in,
    seconds,
    string,
    truth,
)
from app.imports.yaml_text import missing_variable
from app.records import DEFAULT_GRACE

# --- Upptime --------------------------------------------------------------------------------------

UPPTIME_CODES = ("200-208", "226", "300-308")
UPPTIME = Tool(
    "Upptime",
    N_("Site %(position)s"),
    kinds={"ws": "WebSocket"},
    dropped={
        "type": N_("Globalping dropped: Wakeful checks from its own places."),
        "location": N_("Globalping dropped: Wakeful checks from its own places."),
        "assignees": N_("Assignees dropped. Choose contacts instead."),
        "__dangerous__body_degraded": N_("A text that only degrades is dropped."),
        "__dangerous__body_degraded_if_text_missing": N_("A text that only degrades is dropped."),
    },
    ignored=("icon", "slug", "port", "showAverage"),
)


def recognizes_upptime(data: object) -> bool:
    return any("url" in mapping(site) for site in as_list(mapping(data).get("sites")))


def read_upptime(data: object, values: Variables) -> Reading:
    used: set[str] = set()
    whole = mapping(yaml_text.fill(data, values, used))
    minutes = _cron_minutes(string(mapping(whole.get("workflowSchedule")).get("uptime")))
    drafts = UPPTIME.drafts(as_list(whole.get("sites")), partial(_site, minutes=minutes))
    remarks = yaml_text.sentences_of(used)
    if as_list(whole.get("notifications")) or as_list(whole.get("assignees")):
        remarks.append(_("Notifications and assignees are dropped. Choose contacts instead."))
    return UPPTIME.reading(drafts, remarks)


def _cron_minutes(cron: str) -> int:
    """The minutes of ``*/10 * * * *``; 5 for any other line."""
    minute = cron.split(" ")[0].removeprefix("*/")
    return int(minute) if minute.isascii() and minute.isdigit() and 0 < len(minute) < 3 else 5


def _site(draft: Draft, entry: ImportEntry, minutes: int) -> None:
    for name, value in entry.record.items():
        if sentence := missing_variable(_('Setting "%(name)s"', name=cut_line(name)), value):
            draft.refuse(sentence)
    draft.url = entry.text("url")
    draft.set_interval(60 * minutes)
    check = entry.text("check")
    if check == "tcp-ping":
        draft.url = host_and_port(draft.url, entry.get("port"))
    elif check == "icmp-ping":
        draft.url = ping_url(draft.url)
    elif check == "ssl":
        draft.url = host_and_port(draft.url.partition("://")[2] or draft.url, 443, "tls")
        draft.set_warning("ssl_alert_days")
    elif check not in ("", "http"):
        UPPTIME.refuse_kind(draft, check)
    else:
        _site_request(draft, entry)
    draft.set_slow_after(entry.number("maxResponseTime"))
    draft.set_number("timeout", entry.number("requestTimeout"))


def _site_request(draft: Draft, entry: ImportEntry) -> None:
    draft.set_request(entry, "method", "headers", "body")
    draft.set_statuses(entry.list("expectedStatusCodes") or UPPTIME_CODES)
    draft.set_redirects(entry.number("maxRedirects"))
    insecure = [
        entry.is_on(f"__dangerous__{name}")
        for name in ("_insecure", "insecure", "disable_verify_peer", "disable_verify_host")
    ]
    draft.set_switch("verify_tls", on=not any(insecure))
    down = entry.text("__dangerous__body_down")
    missing = entry.text("__dangerous__body_down_if_text_missing")
    if down and missing:
        draft.remark(N_("Wakeful looks for one text: of two, one is dropped."))
    if down or missing:
        draft.set_text(missing or down, unwanted=not missing)


# --- Kuvasz ---------------------------------------------------------------------------------------

KIND = ""  # the key under which the reader adds the kind; no file has this key
KUVASZ_LISTS = {
    "http-monitors": "http", "monitors": "http", "tcp-monitors": "tcp",
    "icmp-monitors": "ping", "push-monitors": "Push", "docker-monitors": "Docker",
}  # fmt: skip
KUVASZ = Tool(
    "Kuvasz",
    dropped={
        "expected-headers": N_("Expected response headers dropped: Wakeful cannot check them."),
        "proxy": N_("Proxy dropped: Wakeful checks without a proxy."),
    },
    ignored=("latency-history", "metrics-history", "sensitive"),
)


def recognizes_kuvasz(data: object) -> bool:
    return any("uptime-check-interval" in entry for entry in _kuvasz(data))


def _kuvasz(data: object) -> list[Mapping[str, Any]]:
    """The monitors, each with its kind."""
    return [
        {**mapping(entry), KIND: kind}
        for document in (data if isinstance(data, list) else [data])
        for key, kind in KUVASZ_LISTS.items()
        for entry in as_list(mapping(document).get(key))
    ]


def read_kuvasz(data: object, _variables: Variables) -> Reading:
    notifications, global_names = _integrations(data)

    def read(draft: Draft, entry: ImportEntry) -> None:
        _kuvasz_monitor(draft, entry)
        for name in dict.fromkeys([*map(string, entry.list("integrations")), *global_names]):
            draft.notify(notifications.get(name) or channels.missing(name))

    return KUVASZ.reading(KUVASZ.drafts(_kuvasz(data), read))


def _integrations(data: object) -> tuple[dict[str, Notification], list[str]]:
    """The integrations by names such as ``slack:name``, and the names of the global ones."""
    notifications: dict[str, Notification] = {}
    global_names = []
    for document in data if isinstance(data, list) else [data]:
        for kind, integrations in mapping(mapping(document).get("integrations")).items():
            for record in map(mapping, as_list(integrations)):
                name = f"{kind}:{string(record.get('name'))}"
                if record.get("enabled") is not None and not truth(record["enabled"]):
                    notifications[name] = Notification()
                    continue
                settings = {key: string(record.get(key)) for key in channels.keys("kuvasz", kind)}
                label = string(record.get("name"))
                notifications[name] = channels.notification("kuvasz", kind, settings, label)
                if truth(record.get("global")):
                    global_names.append(name)
    return notifications, global_names


def _kuvasz_monitor(draft: Draft, entry: ImportEntry) -> None:
    kind = entry.text(KIND)
    interval = entry.number("uptime-check-interval")
    draft.set_interval(interval, entry.get("uptime-check-interval"))
    draft.paused = entry.is_off("enabled")
    failures = entry.number("failure-count-threshold")
    draft.set_confirmations(max(failures - 1, 0) if failures else None, interval)
    draft.set_slow_after(
        entry.number("response-time-threshold-millis", "latency-threshold-ms") or None
    )
    draft.url = entry.text("url", "host")
    if kind in ("tcp", "ping"):
        is_ping = kind == "ping"
        draft.url = ping_url(draft.url) if is_ping else host_and_port(draft.url, entry.get("port"))
        draft.set_number("timeout", (entry.number("timeout-ms") or 0) / 1000 or None)
    elif kind != "http":
        draft.refuse(no_kind(kind))
    else:
        _kuvasz_request(draft, entry)


def _kuvasz_request(draft: Draft, entry: ImportEntry) -> None:
    draft.set_request(entry, "request-method", "request-headers", "request-body")
    draft.set_statuses(entry.list("expected-status-codes") or ["200-299"])
    draft.set_switch("follow_redirects", on=not entry.is_off("follow-redirects"))
    if entry.is_on("force-no-cache"):
        draft.add_pair("request_headers", "Cache-Control", "no-cache")
    days = entry.number("ssl-expiry-threshold")
    if entry.is_on("ssl-check-enabled"):
        draft.set_expiry_days("ssl_alert_days", 30 if days is None else days)
    case_sensitive = entry.is_on("expected-keyword-case-sensitive")
    if text := entry.text("expected-keyword"):
        draft.set_text(text, unwanted=entry.is_on("expected-keyword-negated"))
        if not case_sensitive:
            draft.remark(N_("The keyword becomes case-sensitive."))


# --- Checkmate ------------------------------------------------------------------------------------

CHECKMATE_LISTS = ("data", "monitors")
CHECKMATE = Tool(
    "Checkmate",
    kinds={"docker": "Docker", "hardware": N_("hardware"),
           "pagespeed": "PageSpeed", "game": N_("game server")},
    dropped={"notifications": N_("Notifications dropped: the file has only their numbers.")},
    # Bookkeeping, and settings of some kinds: Checkmate writes them for monitors of every kind.
    ignored=(
        "_id", "__v", "id", "userId", "teamId", "status", "uptime", "created", "updated", "recent",
        "checks", "stats", "port", "secret", "threshold", "alertThreshold", "matchMethod", "geo",
        "cpu", "memory", "disk", "temp", "selectedDisks", "lastEvaluatedAt", "strategy", "dns",
        "grpc", "gameId", "expectedValue", "jsonPath",
    ),
)  # fmt: skip


def recognizes_checkmate(data: object) -> bool:
    rows = records_in(data, *CHECKMATE_LISTS)
    return any("isActive" in row and "url" in row and "type" in row for row in rows)


def read_checkmate(data: object, _variables: Variables) -> Reading:
    rows = [row for row in records_in(data, *CHECKMATE_LISTS) if "url" in row]
    return CHECKMATE.reading(CHECKMATE.drafts(rows, _checkmate))


def _checkmate(draft: Draft, entry: ImportEntry) -> None:
    draft.url, kind = entry.text("url"), entry.text("type")
    milliseconds = entry.number("interval")
    draft.set_interval(milliseconds and milliseconds / 1000, entry.get("interval"))
    draft.paused = entry.is_off("isActive")
    draft.add_tags([entry.text("group")])
    draft.set_notes(entry.text("description"))
    if kind == "port":
        draft.url = host_and_port(draft.url.partition("://")[2] or draft.url, entry.get("port"))
    elif kind == "ping":
        draft.url = ping_url(draft.url)
    elif kind != "http":
        CHECKMATE.refuse_kind(draft, kind)
    else:
        draft.set_statuses(["200-299", *entry.list("customUpCodes")])
        draft.set_switch("verify_tls", on=not entry.is_on("ignoreTlsErrors"))
        draft.set_request(entry, "method")
        expected, matching = entry.text("expectedValue"), entry.text("matchMethod")
        # With the switch off, the values remain from an earlier choice. Older versions lack it.
        if entry.is_off("useAdvancedMatching"):
            pass
        elif entry.text("jsonPath") or (expected and matching != "include"):
            draft.refuse(N_("Wakeful cannot compare the response, only look for a text in it."))
        elif expected:
            draft.set_text(expected)
    _checkmate_window(draft, entry)


def _checkmate_window(draft: Draft, entry: ImportEntry) -> None:
    """Checkmate calls a monitor down when a share of its newest checks has failed. The share is in
    percent, in older versions from 0 to 1.
    """
    size, share = entry.number("statusWindowSize"), entry.number("statusWindowThreshold")
    if size and share:
        failures = math.ceil(size * share / (100 if share > 1 else 1))
        draft.set_confirmations(failures - 1)
        sentence = N_(
            "Down after %(failures)s of %(size)s checks: becomes as many failures in a row."
        )
        draft.remark(sentence, failures=failures, size=number_text(size))


# --- Prometheus: targets of the blackbox exporter -------------------------------------------------

TARGETS = Tool(N_("Prometheus targets"), N_("Target %(position)s"))
# Kinds of check that Wakeful lacks, by the first word of a module's usual name (grpc_plain).
LACKING_KINDS = {"grpc": "gRPC", "unix": "Unix", "ssh": "SSH"}
OTHER_FILES = N_("Targets of the job %(job)s that are not in the file are dropped.")


def recognizes_targets(data: object) -> bool:
    return any(True for _group in _target_groups(data))


def _jobs(data: object) -> list[Mapping[str, Any]]:
    """The jobs of a configuration that use the blackbox exporter."""
    jobs = map(mapping, as_list(mapping(data).get("scrape_configs")))
    return [job for job in jobs if job.get("metrics_path") == "/probe"]


def _target_groups(data: object) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The groups of targets in a ``file_sd`` list or a configuration, each with its job."""
    defaults = mapping(mapping(data).get("global"))
    for job in ({}, *_jobs(data)):
        groups = as_list(job.get("static_configs")) if job else as_list(data)
        for group in map(mapping, groups):
            if "targets" in group:
                yield {**defaults, **job}, group


def read_targets(data: object, _variables: Variables) -> Reading:
    targets = [
        {"job": job, "labels": mapping(group.get("labels")), "target": target}
        for job, group in _target_groups(data)
        for target in as_list(group["targets"])
    ]
    remarks = [_("The modules of the blackbox exporter are not in the file and are dropped.")]
    remarks += [
        _(OTHER_FILES, job=cut_line(string(job.get("job_name"))))
        for job in _jobs(data)
        if any(key.endswith("_sd_configs") for key in job)
    ]
    return TARGETS.reading(TARGETS.drafts(targets, _target), remarks)


def _target(draft: Draft, entry: ImportEntry) -> None:
    draft.url, job, labels = entry.text("target"), entry.mapping("job"), entry.mapping("labels")
    prober = _prober(job, labels)
    if prober == "icmp":
        draft.url = ping_url(draft.url)
    elif prober == "dns":
        draft.refuse(N_("The name that it asks DNS for is in a module, which is not in the file."))
    elif prober in LACKING_KINDS:
        draft.refuse(no_kind(LACKING_KINDS[prober]))
    elif "://" not in draft.url:
        draft.refuse(
            N_("It has no scheme. Write what to check before it: http://, https:// or tcp://.")
        )
    interval = job.get("scrape_interval")
    draft.set_interval(seconds(interval), interval)
    draft.add_tags(
        f"{key}: {string(value)}"
        for key, value in labels.items()
        if not string(key).startswith("__")
    )


def _prober(job: Mapping[str, Any], labels: Mapping[str, Any]) -> str:
    """The first word of the module's name, which usually names the kind of check."""
    default = next(iter(as_list(mapping(job.get("params")).get("module"))), "")
    module = string(labels.get("__param_module") or labels.get("module") or default)
    return module.lower().replace("-", "_").partition("_")[0]


# --- healthchecks ---------------------------------------------------------------------------------
#
# The JSON of ``/api/v3/checks/``. Jobs go on calling the same UUIDs.

CHANNELS_DROPPED = N_("Integrations are dropped: the file has only their ids. Choose contacts.")
NO_UUID = N_(
    "The file has no UUID of it, so its ping URL is new. Export with a key that may write."
)
STAYS_PAUSED = N_("It stays paused when it is called, until somebody resumes it.")
KEYWORDS = N_("Keywords in the body are dropped: exit statuses and /fail say what has failed.")
HEALTHCHECKS = Tool(
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


def recognizes_healthchecks(data: object) -> bool:
    return any("grace" in row and "n_pings" in row for row in records_in(data, "checks"))


def read_healthchecks(data: object, _variables: Variables) -> Reading:
    rows = [row for row in records_in(data, "checks") if "grace" in row]
    remarks = [_(CHANNELS_DROPPED)] if any(row.get("channels") for row in rows) else []
    # Empty settings and switches that are off get no remark.
    rows = [{key: row[key] for key in row if row[key] not in ("", None, False)} for row in rows]
    return HEALTHCHECKS.reading(HEALTHCHECKS.drafts(rows, _check), remarks)


def _check(draft: Draft, entry: ImportEntry) -> None:
    slug = entry.text("slug")
    draft.name = draft.name or slug
    token = entry.text("uuid") or entry.text("ping_url").rstrip("/").rpartition("/")[2]
    draft.make_heartbeat(token, entry.number("timeout"), entry.number("grace"))
    draft.set_notes(entry.text("desc"))
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
    draft.add_tags(entry.text("tags").split())
    draft.paused = entry.text("status") == "paused"
    if draft.paused and not entry.is_on("manual_resume"):
        draft.remark(STAYS_PAUSED)
    if entry.number("grace") is None:
        draft.remark(N_("Grace becomes %(grace)s."), grace=duration_text(DEFAULT_GRACE))
