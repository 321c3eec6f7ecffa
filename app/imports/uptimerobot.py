"""UptimeRobot: the JSON of its API, ``getMonitors`` of version 2 and the list of version 3.
``table`` reads the dashboard's CSV.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from app.i18n import N_, _
from app.imports import channels
from app.imports.candidates import (
    NO_CODES,
    Draft,
    Notification,
    Reading,
    dns_url,
    host_and_port,
    ping_url,
)
from app.imports.channels import Tool, Variables
from app.imports.values import (
    ImportEntry,
    as_list,
    cut_line,
    duration_text,
    from_json,
    literal_pattern,
    mapping,
    number,
    records_in,
    string,
)
from app.rules.slugs import is_token

KINDS = {
    "1": "http", "http": "http", "https": "http", "api": "http", "2": "keyword",
    "keyword": "keyword", "3": "ping", "ping": "ping", "4": "port", "port": "port",
    "5": "heartbeat", "heartbeat": "heartbeat", "dns": "dns",
}  # fmt: skip
# The ports of the services that a monitor may name in place of a port.
PORTS = {"1": 80, "2": 443, "3": 21, "4": 25, "5": 110, "6": 143}
# The methods, as version 2 of the API numbers them.
METHODS = {
    "1": "HEAD", "2": "GET", "3": "POST", "4": "PUT", "5": "PATCH", "6": "DELETE", "7": "OPTIONS",
}  # fmt: skip
LOGINS = {"": "basic", "0": "", "1": "basic", "http_basic": "basic", "basic": "basic", "none": ""}
# Whether UptimeRobot alerts while the text is there, by the type of the keyword.
UNWANTED = {"1": True, "exists": True, "2": False, "not exists": False, "": False}
# The types of alert contacts, as version 2 of the API numbers them.
CONTACTS = {
    "1": "SMS", "2": "email", "3": "Twitter", "4": "Boxcar", "5": "webhook", "6": "Pushbullet",
    "7": "Zapier", "8": "SMS", "9": "Pushover", "10": "HipChat", "11": "Slack",
}  # fmt: skip
BODY_TYPES = {"0": "text/html", "1": "application/json", "raw_json": "application/json"}
KEY_VALUE = ("1", "key_value")  # the type of a body that is a form
FORM = "application/x-www-form-urlencoded"
WINDOWS = N_("Maintenance windows dropped. Add them under Maintenance.")
GROUP = N_("The group is dropped: the export has only its number.")
REGIONS = N_("Regions dropped: Wakeful checks from its own places.")
TOOL = Tool(
    "UptimeRobot",
    names=["friendly_name", "friendlyName"],
    dropped={
        "mwindows": WINDOWS, "maintenanceWindows": WINDOWS, "maintenanceWindowsIds": WINDOWS,
        "groupId": GROUP, "group_id": GROUP, "groupName": GROUP,
        "regionalData": REGIONS, "regionsToCheck": REGIONS, "region": REGIONS,
        "gracePeriod": N_("Grace period dropped: Wakeful rechecks before it opens an incident."),
        "config": N_("Settings of the monitor type (config) dropped."),
    },
    # Statistics, and settings of other kinds.
    ignored=(
        "id", "create", "status", "average_response_time", "response_times", "log", "all_time",
        "custom_uptime", "custom_down", "is_group_main", "sub_type", "subType", "current", "last",
        "stateDuration", "lastIncident", "userId", "url", "port", "http_", "http", "post",
        "custom_http", "customHttp", "keyword", "auth", "psp", "ssl", "domainExpire", "sslExpiry",
        "sslBrand", "updated", "timeout", "responseTimeThreshold",
    ),
)  # fmt: skip


def recognizes(data: object) -> bool:
    return any(map(_is_monitor, records_in(data, "monitors", "data")))


def _is_monitor(record: Mapping[str, Any]) -> bool:
    return "friendly_name" in record or "friendlyName" in record


def read(data: object, _variables: Variables) -> Reading:
    entries = [record for record in records_in(data, "monitors", "data") if _is_monitor(record)]
    notifications: dict[tuple[str, str], Notification] = {}
    drafts = TOOL.drafts(entries, partial(_monitor, notifications=notifications))
    return TOOL.reading(drafts, filter(None, [_missing(data, len(entries))]))


def _missing(data: object, count: int) -> str:
    """A remark if the list is incomplete: the API answers with at most 50 monitors at a time."""
    whole = mapping(data)
    total = number(mapping(whole.get("pagination")).get("total"))
    if total is not None and total > count:
        return _(
            "The file has %(count)s of %(total)s monitors. Export the other pages too.",
            count=count,
            total=f"{total:g}",
        )
    if string(whole.get("nextLink")):
        return _("The file is one page of several. Export the other pages too.")
    return ""


def _monitor(
    draft: Draft, entry: ImportEntry, notifications: dict[tuple[str, str], Notification]
) -> None:
    raw = entry.text("type").lower()
    kind = KINDS.get(raw, raw)
    draft.url = entry.text("url")
    if kind == "heartbeat":
        token = draft.url.rstrip("/").rpartition("/")[2]
        interval, grace = entry.number("interval"), entry.number("gracePeriod")
        draft.make_heartbeat(token if is_token(token) else "", interval, grace)
        draft.remark(
            N_("Its job must call the ping URL: UptimeRobot's own address is not offered.")
        )
    elif kind == "port":
        port = entry.get("port") or PORTS.get(entry.text("sub_type", "subType"))
        draft.url = host_and_port(draft.url, port)
    elif kind == "ping":
        draft.url = ping_url(draft.url)
    elif kind == "dns":
        _records(draft, entry)
    elif kind not in ("http", "keyword"):
        TOOL.refuse_kind(draft, kind)
    if kind == "keyword":
        keyword(
            draft,
            entry.text("keyword_type", "keywordType"),
            entry.text("keyword_value", "keywordValue"),
            entry.text("keyword_case_type", "keywordCaseType"),
        )
    if kind != "heartbeat":
        draft.set_interval(entry.number("interval"), entry.get("interval"))
        draft.set_number("timeout", entry.number("timeout") or None)
    if kind in ("http", "keyword"):
        _request(draft, entry)
    if entry.number("responseTimeThreshold") and kind != "heartbeat":
        draft.set_slow_after(entry.number("responseTimeThreshold"))
    # Version 2 has 0 for paused, version 3 the word.
    draft.paused = entry.text("status").lower() in ("0", "paused")
    draft.add_tags(
        string(mapping(tag).get("name")) or string(tag) for tag in entry.list("tags", "tagNames")
    )
    _contacts(draft, entry, notifications)


def _records(draft: Draft, entry: ImportEntry) -> None:
    """Set the record that a DNS monitor expects: ``{"dnsRecords": {"A": ["192.0.2.1"]}}``."""
    expected = mapping(entry.mapping("config").get("dnsRecords"))
    types = [string(type_) for type_, values in expected.items() if as_list(values)]
    type_ = draft.keep_first(N_("Record types"), types)
    draft.url = dns_url(draft.url.partition("://")[2] or draft.url, type_)
    values = [string(value) for value in as_list(expected.get(type_)) if string(value)]
    if value := draft.keep_first(N_("Expected records"), values):
        draft.set_text(value)


def keyword(draft: Draft, kind: str, value: str, case: str = "") -> None:
    """Set the text to find. ``kind``: 1 or "exists" to alert while the text is there."""
    words = kind.lower().replace("_", " ").removeprefix("alert").strip()
    if words not in UNWANTED:
        draft.refuse(N_('The keyword type "%(type)s" cannot be read.'), type=cut_line(kind))
    unwanted = UNWANTED.get(words, False)
    if case.lower().replace(" ", "") in ("1", "caseinsensitive") and value:
        op = "not_matches" if unwanted else "matches"
        draft.add_assertion("body", op, f"(?i){literal_pattern(value)}")
    else:
        draft.set_text(value, unwanted=unwanted)


def _request(draft: Draft, entry: ImportEntry) -> None:
    draft.set_headers(entry.get("custom_http_headers", "customHttpHeaders"))
    if method := entry.text("http_method", "httpMethodType"):
        draft.fields["request_method"] = METHODS.get(method, method.upper())
    kind = entry.text("postValueType", "post_type").lower()
    content = entry.text("post_content_type").lower() or kind
    if body := entry.get("post_value", "postValueData"):
        pairs = from_json(body) if kind in KEY_VALUE else None
        if isinstance(pairs, Mapping):
            draft.set_body(urlencode({key: string(item) for key, item in pairs.items()}), FORM)
        else:
            text = string(body) or json.dumps(body, ensure_ascii=False)
            draft.set_body(text, BODY_TYPES.get(content, ""))
    _login(draft, entry)
    if not _statuses(draft, entry):
        draft.refuse(NO_CODES)
    ssl = entry.mapping("ssl")
    ignores = entry.is_on("ignore_ssl_errors") or string(ssl.get("ignore_errors")) in ("1", "true")
    draft.set_switch("verify_tls", on=not (ignores or entry.is_off("checkSSLErrors")))
    draft.set_switch("follow_redirects", on=not entry.is_off("followRedirections"))
    config = entry.mapping("config")
    if config.get("apiAssertions"):
        draft.refuse(N_("Wakeful cannot check the assertions of an API monitor."))
    days = [day for item in as_list(config.get("sslExpirationPeriodDays")) if (day := number(item))]
    if entry.is_on("sslExpirationReminder"):
        if days:
            draft.set_expiry_days("ssl_alert_days", max(days))
        else:
            draft.set_warning("ssl_alert_days")
    silenced = entry.get("disable_domain_expire_notifications")
    if silenced is None:
        silenced = ssl.get("disable_domain_expire_notifications")
    if entry.is_on("domainExpirationReminder") or number(silenced) == 0:
        draft.set_domain_warning(draft.url)


def _login(draft: Draft, entry: ImportEntry) -> None:
    user = entry.text("http_username", "httpUsername")
    password = entry.text("http_password", "httpPassword")
    method = entry.text("http_auth_type", "authType")
    login = LOGINS.get(method.lower())
    if method.lower() == "bearer" and password:
        draft.add_pair("request_headers", "Authorization", f"Bearer {password}")
    # Version 2 of the API has the method 2 (digest) also for a monitor without a login.
    elif login is None and (method != "2" or user):
        word = "digest" if method == "2" else method.lower()
        draft.refuse(
            N_('Wakeful has no "%(method)s" authentication, only Basic and headers.'), method=word
        )
    elif login and (user or method.lower() not in ("", "1")):
        draft.set_basic(user, password)


def _statuses(draft: Draft, entry: ImportEntry) -> bool:
    """Set the accepted codes from ``["2xx", "404"]``, or from ``404:0_200:1`` of version 2, which
    adds (1) or removes (0) codes. Returns False if a code cannot be read or none is left.
    """
    codes = entry.get("successHttpResponseCodes")
    draft.set_statuses(as_list(codes) or string(codes).split(","))
    changes = entry.get("custom_http_statuses")
    if not changes:
        return True
    accepted = set(range(200, 400))
    for part in string(changes).split("_"):
        code, _colon, up = part.partition(":")
        if not (code.isascii() and code.isdigit() and len(code) == 3 and up in ("0", "1")):
            return False
        (accepted.add if up == "1" else accepted.discard)(int(code))
    draft.set_codes(accepted)
    return bool(accepted)


def _contacts(
    draft: Draft, entry: ImportEntry, notifications: dict[tuple[str, str], Notification]
) -> None:
    """Add the alert contacts. Version 2 may have their addresses; version 3 has only ids."""
    for contact in map(mapping, entry.list("alert_contacts", "assignedAlertContacts")):
        kind = CONTACTS.get(string(contact.get("type")), string(contact.get("type")))
        value = string(contact.get("value"))
        id = string(contact.get("id") or contact.get("alertContactId"))
        if (kind, value or id) not in notifications:
            notifications[kind, value or id] = _notification(kind, value, id)
        draft.notify(notifications[kind, value or id])
        if threshold := number(contact.get("threshold")):
            minutes = duration_text(60 * threshold)
            draft.remark(N_("The delay of %(delay)s before an alert is dropped."), delay=minutes)
        if recurrence := number(contact.get("recurrence")):
            draft.set_number("remind_after", recurrence)


def _notification(kind: str, value: str, id: str) -> Notification:
    if not value:
        return channels.missing(id)
    settings = dict.fromkeys(channels.keys("uptimerobot", kind), value)
    # Without a name: a contact would be named after the address.
    notification = channels.notification("uptimerobot", kind, settings, id)
    return Notification("", notification.channels, notification.remarks)
