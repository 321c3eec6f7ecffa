"""UptimeRobot: the JSON of its API, ``getMonitors`` of version 2 and the list of version 3. The
dashboard's CSV is read by ``table``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.i18n import N_, _
from app.imports.candidates import (
    NO_TEXT_FOUND,
    TEXT_FOUND,
    Candidate,
    Draft,
    NotReadable,
    Reading,
    few,
    host_and_port,
    listed,
    mapping,
    no_kind,
    number,
    shown,
    string,
)

SOURCE = "UptimeRobot"
CONTACTS_DROPPED = N_(
    "Alert contacts are dropped: the export does not contain their addresses. Choose contacts "
    "instead."
)
KINDS = {
    "1": "http", "http": "http", "https": "http", "2": "keyword", "keyword": "keyword",
    "3": "ping", "ping": "ping", "4": "port", "port": "port", "5": "heartbeat",
    "heartbeat": "heartbeat", "dns": "dns",
}  # fmt: skip
LABELS = {"ping": "Ping", "heartbeat": N_("heartbeat"), "dns": "DNS"}
# Of the port monitors that name a service in place of a port.
PORTS = {"1": 80, "2": 443, "3": 21, "4": 25, "5": 110, "6": 143}
# As version 2 of the API numbers them.
METHODS = {
    "1": "HEAD", "2": "GET", "3": "POST", "4": "PUT", "5": "PATCH", "6": "DELETE", "7": "OPTIONS",
}  # fmt: skip


def knows(data: object) -> bool:
    return bool(_entries(data))


def _entries(data: object) -> list[Mapping[str, Any]]:
    pages = [mapping(one) for one in (data if isinstance(data, list) else [data])]
    rows = [
        mapping(one)
        for page in pages
        for key in ("monitors", "data")
        for one in listed(page.get(key))
    ]
    if not rows:
        rows = pages
    return [one for one in rows if "friendly_name" in one or "friendlyName" in one]


def read(data: object) -> Reading:
    entries = _entries(data)
    if not entries:
        raise NotReadable(_("The file has no monitors."))
    found = [_candidate(place, entry) for place, entry in enumerate(few(entries), 1)]
    remarks = [_(CONTACTS_DROPPED)] if any(_contacts(entry) for entry in entries) else []
    if missing := _missing(data, len(entries)):
        remarks.append(missing)
    return Reading(SOURCE, found, tuple(remarks))


def _contacts(entry: Mapping[str, Any]) -> object:
    return entry.get("alert_contacts") or entry.get("assignedAlertContacts")


def _missing(data: object, count: int) -> str:
    """The API answers with at most 50 at a time."""
    total = number(mapping(mapping(data).get("pagination")).get("total"))
    if total is None or total <= count:
        return ""
    return _(
        "The file has %(count)s of %(total)s monitors. Export the other pages too.",
        count=count,
        total=f"{total:g}",
    )


def _candidate(place: int, entry: Mapping[str, Any]) -> Candidate:
    def get(old: str, new: str) -> Any:
        return entry[old] if old in entry else entry.get(new)

    draft = Draft(_("Monitor %(place)s", place=place), string(get("friendly_name", "friendlyName")))
    raw = string(entry.get("type")).lower()
    kind = KINDS.get(raw, raw)
    draft.url = string(entry.get("url"))
    if kind == "port":
        port = entry.get("port") or PORTS.get(string(get("sub_type", "subType")))
        draft.url = host_and_port(draft.url, port)
    elif kind not in ("http", "keyword"):
        draft.refuse(no_kind(LABELS.get(kind, f'"{shown(raw)}"')))
    if kind == "keyword":
        keyword(
            draft,
            string(get("keyword_type", "keywordType")),
            string(get("keyword_value", "keywordValue")),
            string(get("keyword_case_type", "keywordCaseType")),
        )
    draft.interval(number(entry.get("interval")))
    draft.timeout(number(entry.get("timeout")) or None)
    if kind in ("http", "keyword"):
        _request(
            draft, entry, get("http_username", "httpUsername"), get("http_password", "httpPassword")
        )
    # 0 is paused; version 3 says it in words.
    draft.paused = string(entry.get("status")).lower() in ("0", "paused")
    draft.tags(string(mapping(tag).get("name")) or string(tag) for tag in listed(entry.get("tags")))
    return draft.done()


def keyword(draft: Draft, kind: str, value: str, case: str = "") -> None:
    """1 and "exists": the alert is raised while the text is there."""
    found = kind.lower().replace("_", " ").removeprefix("alert") in ("1", "exists", " exists")
    draft.text(TEXT_FOUND if found else NO_TEXT_FOUND, value)
    if case.lower() in ("1", "caseinsensitive", "case insensitive"):
        draft.remark(_("The keyword becomes case-sensitive."))


def _request(draft: Draft, entry: Mapping[str, Any], user: object, password: object) -> None:
    for headers in (entry.get("custom_http_headers"), entry.get("customHttpHeaders")):
        for key, value in mapping(headers).items():
            draft.pair("request_headers", string(key), string(value))
    method = string(entry.get("http_method") or entry.get("httpMethodType"))
    if method:
        draft.fields["request_method"] = METHODS.get(method, method.upper())
    if body := string(entry.get("post_value") or entry.get("postValueData")):
        draft.body(body)
    if string(user):
        draft.login(string(user), string(password))
    if entry.get("custom_http_statuses") or entry.get("successHttpResponseCodes"):
        draft.remark(_("Custom status codes dropped. Set the accepted status codes yourself."))
