"""Better Stack: the JSON of ``/api/v2/monitors``. A CSV is read by ``table``."""

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
    truth,
)

SOURCE = N_("Better Stack")
POLICIES_DROPPED = N_("Escalation policies are dropped. Choose contacts instead.")
MORE_PAGES = N_("The file is one page of several. Export the other pages too.")
LABELS = {
    "ping": "Ping", "udp": "UDP", "dns": "DNS", "smtp": "SMTP", "pop": "POP3", "imap": "IMAP",
    "playwright": "Playwright",
}  # fmt: skip
HTTP = ("", "status", "expected_status_code", "keyword", "keyword_absence")


def knows(data: object) -> bool:
    return bool(_entries(data))


def _pages(data: object) -> list[Mapping[str, Any]]:
    return [mapping(one) for one in (data if isinstance(data, list) else [data])]


def _entries(data: object) -> list[Mapping[str, Any]]:
    pages = _pages(data)
    rows = [mapping(one) for page in pages for one in listed(page.get("data"))] or pages
    found = [mapping(one.get("attributes")) or one for one in rows]
    return [one for one in found if "pronounceable_name" in one or "monitor_type" in one]


def read(data: object) -> Reading:
    entries = _entries(data)
    if not entries:
        raise NotReadable(_("The file has no monitors."))
    found = [_candidate(place, entry) for place, entry in enumerate(few(entries), 1)]
    remarks = [_(POLICIES_DROPPED)]
    pages = _pages(data)
    if len(pages) == 1 and mapping(pages[0].get("pagination")).get("next"):
        remarks.append(_(MORE_PAGES))
    return Reading(_(SOURCE), found, tuple(remarks))


def _candidate(place: int, entry: Mapping[str, Any]) -> Candidate:
    name = string(entry.get("pronounceable_name"))
    draft = Draft(_("Monitor %(place)s", place=place), name, string(entry.get("url")))
    kind = string(entry.get("monitor_type"))
    if kind in HTTP:
        _http(draft, entry, kind)
    elif kind == "tcp":
        draft.url = host_and_port(draft.url.removeprefix("tcp://"), entry.get("port"))
    else:
        draft.refuse(no_kind(LABELS.get(kind, f'"{shown(kind)}"')))
    draft.interval(number(entry.get("check_frequency")))
    timeout = number(entry.get("request_timeout"))
    # Of TCP it is in milliseconds.
    draft.timeout(timeout / 1000 if timeout and timeout >= 500 else timeout or None)
    draft.paused = truth(entry.get("paused"))
    if entry.get("maintenance_from"):
        draft.remark(_("Maintenance hours dropped. Add a maintenance window."))
    if number(entry.get("confirmation_period")):
        draft.remark(
            _("Confirmation period dropped: Wakeful rechecks before it opens an incident.")
        )
    return draft.done()


def _http(draft: Draft, entry: Mapping[str, Any], kind: str) -> None:
    if method := string(entry.get("http_method") or entry.get("request_method")):
        draft.fields["request_method"] = method.upper()
    codes = [string(code) for code in listed(entry.get("expected_status_codes"))]
    if kind == "expected_status_code" and codes:
        draft.fields["accepted_statuses"] = ",".join(codes)
    elif kind == "status":
        draft.fields["accepted_statuses"] = "200-299"
    if kind.startswith("keyword"):
        condition = TEXT_FOUND if kind == "keyword_absence" else NO_TEXT_FOUND
        draft.text(condition, string(entry.get("required_keyword")))
    for switch, name in (("follow_redirects", "follow_redirects"), ("verify_ssl", "verify_tls")):
        if entry.get(switch) is not None:
            draft.fields[name] = "true" if truth(entry[switch]) else "false"
    for header in map(mapping, listed(entry.get("request_headers"))):
        draft.pair("request_headers", string(header.get("name")), string(header.get("value")))
    if body := string(entry.get("request_body")):
        draft.body(body)
    if user := string(entry.get("auth_username")):
        draft.login(user, string(entry.get("auth_password")))
    draft.expiry("ssl_alert_days", N_("Certificate expiry"), number(entry.get("ssl_expiration")))
    draft.expiry("domain_alert_days", N_("Domain expiry"), number(entry.get("domain_expiration")))
