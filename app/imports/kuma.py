"""Uptime Kuma: the backup (JSON) of version 1. ``kuma_database`` reads its database into the same
form.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.i18n import N_, _
from app.imports import channels
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
from app.imports.channels import Notification

SOURCE = N_("Uptime Kuma")
RETRY_PAUSE = N_("Retry intervals are dropped: WAKEFUL_CONFIRM_SECONDS sets one for all monitors.")
GROUPS = N_("Groups become tags: each monitor gets the name of its group.")
LABELS = {
    "ping": "Ping", "dns": "DNS", "push": "Push", "docker": "Docker", "steam": N_("game server"),
    "gamedig": N_("game server"), "mqtt": "MQTT", "json-query": N_("JSON query"),
    "grpc-keyword": "gRPC", "real-browser": N_("browser"), "tailscale-ping": N_("Tailscale Ping"),
    "radius": "RADIUS", "redis": "Redis", "sqlserver": N_("SQL Server"), "postgres": "PostgreSQL",
    "mysql": "MySQL", "mongodb": "MongoDB", "snmp": "SNMP", "rabbitmq": "RabbitMQ",
    "kafka-producer": "Kafka", "manual": N_("manual"),
}  # fmt: skip
_BODY_TYPES = {
    "": "application/json",
    "json": "application/json",
    "xml": "text/xml",
    "form": "application/x-www-form-urlencoded",
}
MOST_TAG = 500  # characters that are looked at: one tag may be that of every monitor
# Uptime Kuma warns of a certificate at 7, 14 and 21 days unless its settings say otherwise.
WARN_DAYS = 14


def knows(data: object) -> bool:
    return isinstance(mapping(data).get("monitorList"), list)


def read(data: object) -> Reading:
    whole = mapping(data)
    return candidates_of(
        listed(whole.get("monitorList")), map(mapping, listed(whole.get("notificationList")))
    )


def candidates_of(
    monitors: Sequence[object], notifications: Iterable[Mapping[str, Any]]
) -> Reading:
    """``monitors`` and ``notifications`` as the backup has them."""
    known = {string(one.get("id")): _notification(one) for one in notifications}
    entries = [mapping(one) for one in few(monitors)]
    if not entries:
        raise NotReadable(_("The file has no monitors."))
    groups = {
        string(one.get("id")): string(one.get("name"))[:MOST_TAG]
        for one in entries
        if one.get("type") == "group"
    }
    found = [
        _candidate(place, entry, known, groups)
        for place, entry in enumerate(entries, 1)
        if entry.get("type") != "group"
    ]
    remarks = [_(GROUPS)] if groups else []
    if any(number(entry.get("maxretries")) for entry in entries):
        remarks.append(_(RETRY_PAUSE))
    return Reading(_(SOURCE), found, tuple(remarks))


def _candidate(
    place: int,
    entry: Mapping[str, Any],
    notifications: Mapping[str, Notification],
    groups: Mapping[str, str],
) -> Candidate:
    draft = Draft(_("Monitor %(place)s", place=place), string(entry.get("name")))
    kind = string(entry.get("type"))
    if kind in ("http", "keyword"):
        _http(draft, entry)
    elif kind == "port":
        draft.url = host_and_port(string(entry.get("hostname")), entry.get("port"))
    else:
        draft.url = string(entry.get("url") or entry.get("hostname"))
        draft.refuse(no_kind(LABELS.get(kind, f'"{shown(kind)}"')))
    if truth(entry.get("upsideDown")):
        draft.refuse(_("Wakeful has no upside-down mode (up while the check fails)."))
    draft.paused = "active" in entry and not truth(entry["active"])
    draft.interval(number(entry.get("interval")))
    draft.confirmations(number(entry.get("maxretries")))
    resend = number(entry.get("resendInterval"))
    draft.remind_after(resend and resend * (number(entry.get("interval")) or 60) / 60)
    draft.tags(_tags(entry))
    if (parent := string(entry.get("parent"))) in groups:
        draft.tags([groups[parent]])
    if entry.get("proxyId"):
        draft.remark(_("Proxy dropped: Wakeful checks without a proxy."))
    _notifications(draft, entry, notifications)
    return draft.done()


def _http(draft: Draft, entry: Mapping[str, Any]) -> None:
    draft.url = string(entry.get("url"))
    method = string(entry.get("method")).upper()
    if method:
        draft.fields["request_method"] = method
    if codes := [string(code) for code in listed(entry.get("accepted_statuscodes"))]:
        draft.fields["accepted_statuses"] = ",".join(codes)
    draft.fields["verify_tls"] = "false" if truth(entry.get("ignoreTls")) else "true"
    redirects = number(entry.get("maxredirects"))
    draft.fields["follow_redirects"] = "false" if redirects == 0 else "true"
    draft.timeout(number(entry.get("timeout")) or None)
    if truth(entry.get("expiryNotification")) and draft.url.lower().startswith("https:"):
        draft.fields["ssl_alert_days"] = str(WARN_DAYS)
        draft.remark(
            _(
                "Certificate warning: once, %(days)s days before it expires.",
                days=WARN_DAYS,
            )
        )
    if entry.get("type") == "keyword":
        inverted = truth(entry.get("invertKeyword"))
        draft.text(TEXT_FOUND if inverted else NO_TEXT_FOUND, string(entry.get("keyword")))
    _headers(draft, entry.get("headers"))
    if body := string(entry.get("body")):
        draft.body(body, _BODY_TYPES.get(string(entry.get("httpBodyEncoding")), ""))
    _login(draft, entry)


def _headers(draft: Draft, text: object) -> None:
    headers = text if isinstance(text, Mapping) else _object(text)
    if headers is None:
        draft.refuse(_("The request headers are not valid JSON."))
        return
    for key, value in headers.items():
        draft.pair("request_headers", string(key), string(value))


def _object(text: object) -> Mapping[str, Any] | None:
    """The JSON object that ``text`` is; an empty one for no text."""
    if not string(text).strip():
        return {}
    try:
        found = json.loads(string(text))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def _login(draft: Draft, entry: Mapping[str, Any]) -> None:
    method = string(entry.get("authMethod"))
    if method not in ("", "basic"):
        draft.refuse(
            _('Wakeful has no "%(method)s" authentication, only Basic.', method=shown(method))
        )
    elif user := string(entry.get("basic_auth_user")):
        draft.login(user, string(entry.get("basic_auth_pass")))


def _tags(entry: Mapping[str, Any]) -> list[str]:
    tags = [mapping(one) for one in listed(entry.get("tags"))]
    return [
        f"{name}: {value}" if (value := string(one.get("value"))[:MOST_TAG]) else name
        for one in tags
        if (name := string(one.get("name"))[:MOST_TAG])
    ]


def _notification(entry: Mapping[str, Any]) -> Notification:
    config = entry.get("config")
    found = mapping(config if isinstance(config, Mapping) else _object(config))
    kind = string(found.get("type"))[: channels.MOST_SETTING]
    settings = {key: string(found.get(key)) for key in channels.keys("kuma", kind)}
    return channels.notification("kuma", kind, settings, string(entry.get("name")))


def _notifications(
    draft: Draft, entry: Mapping[str, Any], notifications: Mapping[str, Notification]
) -> None:
    for id, chosen in mapping(entry.get("notificationIDList")).items():
        one = notifications.get(str(id))
        if one is not None and truth(chosen):
            one.add_to(draft)
