"""Better Stack: the JSON of ``/api/v2/monitors``. ``table`` reads its CSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.i18n import N_, _
from app.imports.candidates import NO_CODES, Draft, Reading, dns_url, host_and_port, ping_url
from app.imports.channels import Tool, Variables
from app.imports.values import MIN_MILLISECONDS, ImportEntry, duration_text, mapping, records_in

HTTP = ("", "status", "expected_status_code", "keyword", "keyword_absence")
# The greeting of a mail server, its usual port, and the value of Wakeful's ``starttls``.
MAIL = {
    "smtp": ("220", "25", "smtp"), "pop": ("+OK", "110", "pop3"), "imap": ("* OK", "143", "imap"),
}  # fmt: skip
TLS_PORTS = ("465", "993", "995")
WINDOW = N_("Maintenance hours dropped. Add a maintenance window.")
TOOL = Tool(
    N_("Better Stack"),
    names=["pronounceable_name"],
    kinds={"udp": "UDP", "playwright": "Playwright"},
    dropped={
        "maintenance_from": WINDOW, "maintenance_to": WINDOW, "maintenance_days": WINDOW,
        "maintenance_timezone": WINDOW,
        "monitor_group_id": N_("The monitor group is dropped: the file has only its number."),
        "regions": N_("Regions dropped: Wakeful checks from its own places."),
        "ip_version": N_("IP version dropped: Wakeful tries IPv6 and IPv4."),
        "proxy_host": N_("Proxy dropped: Wakeful checks without a proxy."),
        "required_keyword": N_("Keyword dropped. Add it as the text to find."),
    },
    # One remark on escalation covers all monitors.
    ignored=(
        "id", "last_checked_at", "created_at", "updated_at", "status", "policy_id",
        "expiration_policy_id", "team_name", "call", "sms", "email", "push", "critical_alert",
        "team_wait", "proxy_port", "remember_cookies", "port",
        "expected_status_codes", "playwright_script", "scenario_name", "http_method", "request_",
        "auth_", "checks_version", "url", "name", "heartbeat_group_id", "sort_index", "paused",
    ),
)  # fmt: skip


def recognizes(data: object) -> bool:
    return bool(_entries(data))


def _entries(data: object) -> list[Mapping[str, Any]]:
    entries = []
    for record in records_in(data, "data"):
        entry = mapping(record.get("attributes")) or record
        if record.get("type") == "heartbeat":
            name = {"pronounceable_name": entry.get("name")}
            entry = {**entry, **name, "monitor_type": "heartbeat"}
        entries.append(entry)
    return [entry for entry in entries if "pronounceable_name" in entry or "monitor_type" in entry]


def read(data: object, _variables: Variables) -> Reading:
    remarks = [_("Escalation policies are dropped. Choose contacts instead.")]
    pages = data if isinstance(data, list) else [data]
    if len(pages) == 1 and mapping(mapping(pages[0]).get("pagination")).get("next"):
        remarks.append(_("The file is one page of several. Export the other pages too."))
    return TOOL.reading(TOOL.drafts(_entries(data), _monitor), remarks)


def _monitor(draft: Draft, entry: ImportEntry) -> None:
    draft.url = entry.text("url")
    kind = entry.text("monitor_type")
    if kind == "heartbeat":
        token = draft.url.rstrip("/").rpartition("/")[2]
        draft.make_heartbeat(token, entry.number("period"), entry.number("grace"))
        draft.paused = bool(entry.text("paused_at")) or entry.text("status") == "paused"
        return
    if kind in HTTP:
        _http(draft, entry, kind)
    elif kind == "tcp":
        draft.url = host_and_port(draft.url.removeprefix("tcp://"), entry.get("port"))
    elif kind == "ping":
        draft.url = ping_url(draft.url)
    elif kind == "dns":  # the server is in its URL, the name in its body
        server = draft.url.partition("://")[2] or draft.url
        draft.url = dns_url(entry.text("request_body"), "A", server)
    elif kind in MAIL:
        _mail(draft, entry, kind)
    else:
        TOOL.refuse_kind(draft, kind)
    draft.set_interval(entry.number("check_frequency"), entry.get("check_frequency"))
    timeout = entry.number("request_timeout") or None
    # Better Stack has the time limit of a TCP check in milliseconds.
    draft.set_number(
        "timeout", timeout / 1000 if timeout and timeout >= MIN_MILLISECONDS else timeout
    )
    paused = entry.is_on("paused"), bool(entry.text("paused_at")), entry.text("status") == "paused"
    draft.paused = any(paused)
    if entry.number("confirmation_period"):
        draft.remark(
            N_("Confirmation period dropped: Wakeful rechecks before it opens an incident.")
        )
    if period := entry.number("recovery_period"):
        sentence = N_(
            "Recovery period of %(period)s dropped: a second good check ends an incident."
        )
        draft.remark(sentence, period=duration_text(period))
    if entry.is_off("remember_cookies"):
        draft.remark(N_("Wakeful keeps cookies within a chain of redirects."))


def _mail(draft: Draft, entry: ImportEntry, kind: str) -> None:
    """Make ``draft`` a check of the greeting of a mail server, or of its certificate if the port
    has TLS or the monitor has a limit for the expiry.
    """
    greeting, port, starttls = MAIL[kind]
    ports = [text.strip() for text in entry.text("port").split(",") if text.strip()] or [port]
    first_port = draft.keep_first(N_("Ports"), ports)
    days = entry.number("ssl_expiration")
    has_tls = first_port in TLS_PORTS or days is not None
    host = draft.url.partition("://")[2] or draft.url
    draft.url = host_and_port(host, first_port, "tls" if has_tls else "tcp")
    if not has_tls:
        draft.set_text(greeting)
        return
    if first_port not in TLS_PORTS:
        draft.fields["starttls"] = starttls
    draft.set_switch("verify_tls", on=not entry.is_off("verify_ssl"))
    draft.set_expiry_days("ssl_alert_days", days)


def _http(draft: Draft, entry: ImportEntry, kind: str) -> None:
    draft.set_request(entry, "http_method request_method", "request_headers", "request_body")
    if kind == "expected_status_code":
        draft.set_statuses(entry.list("expected_status_codes"))
        if not entry.list("expected_status_codes"):
            draft.refuse(NO_CODES)
    elif kind == "status":
        draft.set_statuses(["200-299"])
    # Read for every kind: a monitor that had a keyword once still has it in the file.
    keyword = entry.text("required_keyword")
    if kind.startswith("keyword"):
        draft.set_text(keyword, unwanted=kind == "keyword_absence")
    draft.set_switch("follow_redirects", on=not entry.is_off("follow_redirects"))
    draft.set_switch("verify_tls", on=not entry.is_off("verify_ssl"))
    if user := entry.text("auth_username"):
        draft.set_login(user, entry.text("auth_password"))
    draft.set_expiry_days("ssl_alert_days", entry.number("ssl_expiration"))
    draft.set_expiry_days("domain_alert_days", entry.number("domain_expiration"))
