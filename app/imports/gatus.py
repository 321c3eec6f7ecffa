"""Gatus: its configuration (YAML), the endpoints and what they alert."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.i18n import N_, _
from app.imports import channels, gatus_conditions, yaml_text
from app.imports.candidates import (
    Candidate,
    Draft,
    NotReadable,
    Reading,
    few,
    listed,
    mapping,
    no_kind,
    number,
    seconds,
    shown,
    string,
    truth,
)
from app.imports.channels import Notification

SOURCE = "Gatus"
DEFAULT_INTERVAL = 60
DEFAULT_FAILURES = 3  # in a row, before Gatus alerts
LABELS = {
    "icmp": N_("Ping (ICMP)"), "udp": "UDP", "sctp": "SCTP", "tls": "TLS",
    "starttls": "STARTTLS", "ssh": "SSH", "ws": "WebSocket", "wss": "WebSocket",
    "grpc": "gRPC", "grpcs": "gRPC",
}  # fmt: skip
EXTERNAL = N_("External endpoints are dropped: Wakeful has no push checks yet.")
SUITES = N_("Suites are dropped: Wakeful has no checks in several steps.")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]{0,99})\}|([A-Za-z_][A-Za-z0-9_]{0,99}))")


def read(text: str) -> Reading:
    whole = mapping(yaml_text.parse(text))
    endpoints = [mapping(one) for one in listed(whole.get("endpoints") or whole.get("services"))]
    if not endpoints:
        raise NotReadable(_("The file has no endpoints. Gatus lists them under `endpoints:`."))
    providers = _Providers(mapping(whole.get("alerting")))
    found = [_candidate(place, one, providers) for place, one in enumerate(few(endpoints), 1)]
    remarks = [
        _(sentence)
        for key, sentence in (("external-endpoints", EXTERNAL), ("suites", SUITES))
        if listed(whole.get(key))
    ]
    return Reading(SOURCE, found, tuple(remarks))


def _candidate(place: int, entry: Mapping[str, Any], providers: _Providers) -> Candidate:
    draft = Draft(_("Endpoint %(place)s", place=place), string(entry.get("name")))
    draft.url = _plain(draft, "URL", string(entry.get("url")), needed=True)
    scheme = draft.url.partition("://")[0].lower()
    if entry.get("dns"):
        draft.refuse(no_kind("DNS"))
    elif scheme not in ("http", "https", "tcp"):
        draft.refuse(no_kind(LABELS.get(scheme, f'"{shown(scheme)}"')))
    draft.paused = "enabled" in entry and not truth(entry["enabled"])
    draft.interval(seconds(entry.get("interval")) or DEFAULT_INTERVAL)
    if group := string(entry.get("group")):
        draft.tags([group])
    http = scheme in ("http", "https")
    if http:
        _request(draft, entry)
    _client(draft, mapping(entry.get("client")), http)
    gatus_conditions.add(draft, [string(one) for one in listed(entry.get("conditions"))], http=http)
    if entry.get("maintenance-windows"):
        draft.remark(_("Maintenance windows dropped. Add them under Maintenance."))
    _alerts(draft, entry, providers)
    return draft.done()


def _plain(draft: Draft, label: str, text: str, *, needed: bool = False) -> str:
    """``text`` with ``$$`` as ``$``; empty where it needs an environment variable, whose value is
    not in the file.
    """
    sentence = _lacks(label, text)
    if not sentence:
        return text.replace("$$", "$")
    if needed:
        draft.refuse(sentence)
        return text
    draft.remark(_dropped(sentence))
    return ""


def _dropped(sentence: str) -> str:
    dropped = _("It is dropped.")
    return f"{sentence} {dropped}"


def _lacks(label: str, text: str) -> str:
    """A sentence if ``text`` needs an environment variable; empty if not."""
    found = _VARIABLE.search(text.replace("$$", ""))
    if not found:
        return ""
    name = shown(found[1] or found[2])
    return _(
        "%(what)s needs the environment variable %(name)s, which is not in the file.",
        what=label,
        name=name,
    )


def _request(draft: Draft, entry: Mapping[str, Any]) -> None:
    if method := string(entry.get("method")):
        draft.fields["request_method"] = method.upper()
    for key, value in mapping(entry.get("headers")).items():
        if text := _plain(draft, _("The header %(name)s", name=shown(key)), string(value)):
            draft.pair("request_headers", string(key), text)
    if body := string(entry.get("body")):
        if truth(entry.get("graphql")):
            draft.refuse(_("Wakeful has no GraphQL request bodies."))
        elif text := _plain(draft, _("The request body"), body):
            draft.body(text)


def _client(draft: Draft, client: Mapping[str, Any], http: bool) -> None:
    draft.timeout(seconds(client.get("timeout")))
    if http:
        draft.fields["verify_tls"] = "false" if truth(client.get("insecure")) else "true"
        redirects = not truth(client.get("ignore-redirect"))
        draft.fields["follow_redirects"] = "true" if redirects else "false"
    for name in ("proxy-url", "dns-resolver", "oauth2", "identity-aware-proxy", "tls", "tunnel"):
        if client.get(name):
            draft.remark(_("Client option %(name)s dropped: Wakeful does not have it.", name=name))


class _Providers:
    """What alerts of each kind use. Each is read once: ten thousand endpoints may name it."""

    def __init__(self, alerting: Mapping[str, Any]) -> None:
        self._alerting = alerting
        self._settings: dict[str, Mapping[str, str]] = {}
        self._read: dict[tuple[str, ...], Notification] = {}

    def default(self, kind: str) -> Mapping[str, Any]:
        return mapping(mapping(self._alerting.get(kind)).get("default-alert"))

    def notification(self, kind: str, own: Mapping[str, Any]) -> Notification:
        """``own``: the settings that an endpoint has in place of the provider's."""
        if kind not in self._settings:
            self._settings[kind] = _settings(kind, mapping(self._alerting.get(kind)))
        settings = {
            key: _short(own.get(key)) or shared for key, shared in self._settings[kind].items()
        }
        place = (kind, *settings.values())
        if place not in self._read:
            self._read[place] = _notification(kind, settings)
        return self._read[place]


def _settings(kind: str, provider: Mapping[str, Any]) -> Mapping[str, str]:
    return {key: _short(provider.get(key)) for key in channels.keys("gatus", kind)}


def _short(value: object) -> str:
    return string(value)[: channels.MOST_SETTING + 1]


def _notification(kind: str, settings: Mapping[str, str]) -> Notification:
    lacking = [_lacks(_("Alert %(kind)s", kind=shown(kind)), text) for text in settings.values()]
    if any(lacking):
        return Notification((), [_dropped(sentence) for sentence in lacking if sentence])
    plain = {key: text.replace("$$", "$") for key, text in settings.items()}
    return channels.notification("gatus", kind, plain, kind)


def _alerts(draft: Draft, entry: Mapping[str, Any], providers: _Providers) -> None:
    failures: list[float] = []
    for alert in map(mapping, listed(entry.get("alerts"))):
        kind = string(alert.get("type"))
        default = providers.default(kind)
        if not truth(alert.get("enabled", default.get("enabled", "true"))):
            continue
        providers.notification(kind, mapping(alert.get("provider-override"))).add_to(draft)
        threshold = alert.get("failure-threshold", default.get("failure-threshold"))
        failures.append(number(threshold) or DEFAULT_FAILURES)
    if failures:
        draft.confirmations(min(failures) - 1)
