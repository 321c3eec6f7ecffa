"""Gatus: the endpoints and alerts of its configuration (YAML), alone or in a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from app.i18n import N_, _
from app.imports import channels, gatus_conditions, yaml_text
from app.imports.candidates import (
    Draft,
    Notification,
    NotReadable,
    Reading,
    dns_url,
    limited,
    ping_url,
)
from app.imports.channels import Tool, Variables
from app.imports.values import (
    ImportEntry,
    as_list,
    cut_line,
    has_content,
    mapping,
    number,
    number_text,
    seconds,
    string,
    truth,
)
from app.imports.yaml_text import Parser, Unfilled, missing_variable
from app.records import GRACE_SECONDS, PERIOD_SECONDS
from app.rules.slugs import is_token

# The defaults of the configuration.
INTERVAL, TIMEOUT = 60, 10
FAILURES, SUCCESSES = 3, 2  # in a row, before an alert and before its end
# Sections of the configuration that concern all endpoints.
FOR_ALL = {
    "maintenance": N_("The maintenance of all endpoints is dropped. Add a maintenance window."),
    "connectivity": N_("The connectivity checker is dropped."),
    "announcements": N_("Announcements are dropped. Write them as posts of a status page."),
    "remote": N_("Endpoints of remote instances are not in the file and are dropped."),
}
TOOL = Tool(
    "Gatus",
    N_("Endpoint %(position)s"),
    kinds={
        "udp": "UDP", "sctp": "SCTP", "ssh": "SSH", "ws": "WebSocket", "wss": "WebSocket",
        "grpc": "gRPC", "grpcs": "gRPC",
    },
    dropped={
        "maintenance-windows": N_("Maintenance windows dropped. Add them under Maintenance."),
        "ui": N_("Display options (ui) dropped."),
        "extra-labels": N_("Labels (extra-labels) dropped."),
    },
    ignored=("ssh",),
)  # fmt: skip
SUITES = Tool("Gatus", N_("Suite %(position)s"), ignored=("",))
PUSHED = Tool("Gatus", N_("External endpoint %(position)s"), ignored=("token", "heartbeat"))
NO_DEADLINE = N_("Gatus expects no push by a time. Wakeful does within a year: set its period.")
NO_CLIENT = N_("Wakeful does not have the client option %(name)s, without which it cannot log in.")
_THRESHOLDS = (
    "failure-threshold", "success-threshold", "minimum-reminder-interval", "send-on-resolved",
)  # fmt: skip
_LOGINS = ("oauth2", "identity-aware-proxy", "tunnel")
# If one of these has no value, the monitor would check something else.
_NEEDED = ("url", "name", "group", "interval", "method", "headers", "body", "conditions", "dns")
_CLIENT_DROPPED = {
    "proxy-url": N_("Proxy dropped: Wakeful checks without a proxy."),
    "dns-resolver": N_("DNS resolver dropped: Wakeful asks the one of its machine."),
}
_LISTS = ("endpoints", "services", "external-endpoints", "suites")
MAX_DEPTH = 8  # of the ConfigMap or the Helm values around a configuration


def recognizes(data: object) -> bool:
    return any(True for _configuration in _configurations(data))


def _configurations(data: object) -> Iterator[Mapping[str, Any]]:
    """The configurations in ``data``: ``data`` itself, or the ones in Kubernetes objects, which may
    have them as text.
    """
    parser = Parser()

    def search(value: object, depth: int) -> Iterator[Mapping[str, Any]]:
        if isinstance(value, Mapping) and _is_configuration(value, depth):
            yield value
        elif depth < MAX_DEPTH and isinstance(value, Mapping | list):
            parts = value.values() if isinstance(value, Mapping) else value
            for part in parts:
                yield from search(part, depth + 1)
        elif isinstance(value, str) and depth and "\n" in value and "name:" in value:
            try:
                documents = parser.parse(value)
            except NotReadable:
                return
            for document in documents:
                yield from search(document, MAX_DEPTH)

    yield from search(data, 0)


def _is_configuration(configuration: Mapping[str, Any], depth: int) -> bool:
    """Whether this is a configuration. Below the top, objects of other programs may have
    ``endpoints`` too, so the entries must look like those of Gatus.
    """
    if not depth:
        return not {"endpoints", "alerting", "external-endpoints"}.isdisjoint(configuration)
    entries = [mapping(record) for key in _LISTS for record in as_list(configuration.get(key))]
    alerting = mapping(configuration.get("alerting"))
    return any("conditions" in record or "token" in record for record in entries) or any(
        "default-alert" in mapping(provider) or "webhook-url" in mapping(provider)
        for provider in alerting.values()
    )


def _merge(parts: Iterator[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge as Gatus merges files: mappings key by key, lists one after the other."""
    configuration: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            earlier = configuration.get(key)
            if isinstance(earlier, list) and isinstance(value, list):
                configuration[key] = [*earlier, *value]
            elif isinstance(earlier, Mapping) and isinstance(value, Mapping):
                configuration[key] = {**earlier, **value}
            else:
                configuration[key] = value
    return configuration


def read(data: object, values: Variables) -> Reading:
    """``values``: the values of environment variables."""
    used: set[str] = set()
    configuration = mapping(yaml_text.fill(_merge(_configurations(data)), values, used))
    lists = {key: as_list(configuration.get(key)) for key in _LISTS}
    if not any(lists.values()):
        raise NotReadable(N_("The file has no endpoints. Gatus lists them under `endpoints:`."))
    limited([record for entries in lists.values() for record in entries])
    providers = _Providers(mapping(configuration.get("alerting")))
    endpoints = (*lists["endpoints"], *lists["services"])
    drafts = TOOL.drafts(endpoints, partial(_endpoint, providers=providers))
    drafts += PUSHED.drafts(lists["external-endpoints"], partial(_external, providers=providers))
    drafts += SUITES.drafts(lists["suites"], _suite)
    remarks = [_(sentence) for key, sentence in FOR_ALL.items() if _is_on(configuration.get(key))]
    if any("priority" in mapping(provider) for provider in providers.configured):
        remarks.append(_("Priorities of alerts are dropped."))
    return TOOL.reading(drafts, [*remarks, *yaml_text.sentences_of(used)])


def _is_on(section: object) -> bool:
    enabled = mapping(section).get("enabled")
    return has_content(section) and (enabled is None or truth(enabled))


def _suite(draft: Draft, _entry: ImportEntry) -> None:
    draft.refuse(N_("Wakeful has no checks in several steps."))


def _require(draft: Draft, entry: ImportEntry, names: Sequence[str]) -> None:
    """Refuse an entry if one of these settings needs a variable that has no value."""
    for name in names:
        draft.refuse(missing_variable(_('Setting "%(name)s"', name=name), entry.get(name)))


def _endpoint(draft: Draft, entry: ImportEntry, providers: _Providers) -> None:
    draft.url = entry.text("url")
    _require(draft, entry, _NEEDED)
    scheme = draft.url.partition("://")[0].lower()
    http = scheme in ("http", "https")
    if query := entry.mapping("dns"):
        host, colon, port = draft.url.partition(":")
        is_ipv6 = ":" in port and not host.startswith("[")
        server = (draft.url, "") if is_ipv6 or not colon else (host, port)
        name, type_ = string(query.get("query-name")), string(query.get("query-type"))
        draft.url = dns_url(name, type_, *server)
        scheme, http = "dns", False
    elif scheme == "icmp":
        draft.url = ping_url(draft.url)
    elif scheme == "starttls":  # Gatus has STARTTLS for SMTP alone
        draft.url = f"tls://{draft.url.partition('://')[2]}"
        draft.fields["starttls"] = "smtp"
    elif not http and scheme not in ("tcp", "tls"):
        TOOL.refuse_kind(draft, scheme)
    _enabled(draft, entry.get("enabled"))
    text = entry.get("interval")
    interval = seconds(text) if has_content(text) else INTERVAL
    draft.set_interval(interval, text)
    draft.add_tags([entry.text("group")])
    if http:
        _request(draft, entry)
    elif scheme in ("tcp", "tls") and entry.text("body"):
        draft.refuse(N_("Wakeful cannot send a body to a port and read the reply."))
    _client(draft, ImportEntry(entry.get("client")), http=http, tls=scheme in ("tls", "starttls"))
    gatus_conditions.add(draft, [string(text) for text in entry.list("conditions")], http=http)
    _alerts(draft, entry, providers, interval or INTERVAL)


def _external(draft: Draft, entry: ImportEntry, providers: _Providers) -> None:
    token, expected = entry.text("token"), mapping(entry.get("heartbeat")).get("interval")
    draft.make_heartbeat(
        token if is_token(token) else "", seconds(expected) or PERIOD_SECONDS[1], GRACE_SECONDS[0]
    )
    draft.remark(N_("Its job must call the ping URL: Gatus' own address is not offered."))
    if not has_content(expected):
        draft.remark(NO_DEADLINE)
    _enabled(draft, entry.get("enabled"))
    draft.add_tags([entry.text("group")])
    _alerts(draft, entry, providers)
    if draft.fields.pop("confirmations", "0") != "0":  # Wakeful cannot recheck a job
        draft.remark(N_("Wakeful alerts at the first failure of a job, Gatus after several."))


def _enabled(draft: Draft, value: object) -> None:
    if sentence := missing_variable(_('Setting "%(name)s"', name="enabled"), value):
        draft.remark(sentence)
        draft.paused = True
    else:
        draft.paused = string(value) != "" and not truth(value)


def _request(draft: Draft, entry: ImportEntry) -> None:
    draft.set_request(entry, "method", "headers")
    if body := entry.text("body"):
        if entry.is_on("graphql"):
            draft.refuse(N_("Wakeful has no GraphQL request bodies."))
        if "[RANDOM_STRING_LENGTH_" in body:
            draft.refuse(N_("Wakeful cannot send a random text in a request body."))
        for name in ("name", "group", "url"):
            body = body.replace(f"[ENDPOINT_{name.upper()}]", entry.text(name))
        draft.set_body(body)


def _client(draft: Draft, client: ImportEntry, *, http: bool, tls: bool) -> None:
    _require(draft, client, ("timeout", "insecure", "ignore-redirect"))
    draft.set_number("timeout", seconds(client.get("timeout")) or TIMEOUT)
    insecure, ignores = client.is_on("insecure"), client.is_on("ignore-redirect")
    if http or tls:
        draft.set_switch("verify_tls", on=not insecure)
    if http:
        draft.set_switch("follow_redirects", on=not ignores)
    for name in _LOGINS:
        if client.get(name):
            draft.refuse(NO_CLIENT, name=name)
    if mapping(client.get("tls")).get("certificate-file"):
        draft.refuse(NO_CLIENT, name="tls")
    draft.drop_unread(client, _CLIENT_DROPPED)


class _Providers:
    """The providers of alerts. Each provider is read once, because ten thousand endpoints may name
    it.
    """

    def __init__(self, alerting: Mapping[str, Any]) -> None:
        self._alerting = alerting
        self._groups: dict[str, Mapping[str, Mapping[str, Any]]] = {}
        self._read: dict[tuple[str, ...], Notification] = {}

    @property
    def configured(self) -> Iterable[object]:
        return self._alerting.values()

    def default(self, kind: str) -> Mapping[str, Any]:
        return mapping(mapping(self._alerting.get(kind)).get("default-alert"))

    def notification(self, kind: str, group: str, override: Mapping[str, Any]) -> Notification:
        """``override``: the alert's settings for its provider. They count before the provider's
        settings for the endpoint's group, which count before its settings for all groups.
        """
        provider = mapping(self._alerting.get(kind))
        if kind not in self._groups:
            groups = [mapping(settings) for settings in as_list(provider.get("overrides"))]
            # If two overrides name the group, the first counts.
            self._groups[kind] = {
                string(settings.get("group")): settings for settings in reversed(groups)
            }
        group_settings = self._groups[kind].get(group, {}) if group else {}
        settings = {
            key: _first(key, override, group_settings, provider)
            for key in (*channels.keys("gatus", kind), *channels.OTHER_CHANNEL["gatus"])
        }
        name = f"{kind} {group}" if group_settings else kind
        identity = (kind, name, *settings.values())
        if identity not in self._read:
            self._read[identity] = self._notification(kind, name, settings, provider or override)
        return self._read[identity]

    def _notification(
        self, kind: str, name: str, settings: Mapping[str, str], configured: object
    ) -> Notification:
        if sentence := missing_variable(channels.labelled(name, kind), [*settings.values()]):
            dropped = _("It is dropped.")
            return Notification(name, (), (f"{sentence} {dropped}",))
        if not configured:
            return channels.missing(name, kind)
        return channels.notification("gatus", kind, settings, name)


def _first(key: str, *sources: Mapping[str, Any]) -> str:
    """The setting of the first source that has it. A long one is cut."""
    values = (source.get(key) for source in sources)
    texts = (value if isinstance(value, Unfilled) else string(value) for value in values)
    value = next(filter(None, texts), "")
    return value if isinstance(value, Unfilled) else value[: channels.MAX_SETTING + 1]


def _alerts(
    draft: Draft, entry: ImportEntry, providers: _Providers, interval: float | None = None
) -> None:
    """``interval``: seconds between checks; None for an external endpoint, which is pushed."""
    with_channel: list[Mapping[str, Any]] = []
    without_channel: list[Mapping[str, Any]] = []
    for alert in map(mapping, entry.list("alerts")):
        kind = string(alert.get("type"))
        settings = {key: value for key, value in alert.items() if value is not None}
        merged = {**providers.default(kind), **settings}
        enabled = merged.get("enabled")
        if sentence := missing_variable(
            _('"enabled" of the alert %(kind)s', kind=cut_line(kind)), enabled
        ):
            kept_anyway = _("It is kept.")
            draft.remark(f"{sentence} {kept_anyway}")
        elif string(enabled) and not truth(enabled):
            continue
        thresholds = {key: merged.get(key) for key in _THRESHOLDS}
        if sentence := missing_variable(_("The alert %(kind)s", kind=cut_line(kind)), thresholds):
            usual = _("What Gatus does without it counts.")
            draft.remark(f"{sentence} {usual}")
        override = mapping(alert.get("provider-override"))
        notification = providers.notification(kind, entry.text("group"), override)
        draft.notify(notification)
        (with_channel if notification.channels else without_channel).append(merged)
    # If no alert has a channel of Wakeful, the thresholds count for the contact that a person
    # chooses instead.
    if alerts := with_channel or without_channel:
        _thresholds(draft, alerts, interval)


def _thresholds(draft: Draft, alerts: Sequence[Mapping[str, Any]], interval: float | None) -> None:
    """Set the thresholds and the reminder. Wakeful has one of each for all channels of a
    monitor.
    """
    failures = sorted({number(alert.get("failure-threshold")) or FAILURES for alert in alerts})
    draft.set_confirmations(failures[0] - 1, interval)
    if failures[1:]:
        thresholds = ", ".join(map(number_text, failures))
        sentence = N_("Failure thresholds %(thresholds)s: %(first)s counts for all alerts.")
        draft.remark(sentence, thresholds=thresholds, first=number_text(failures[0]))
    successes = {number(alert.get("success-threshold")) or SUCCESSES for alert in alerts}
    if successes != {SUCCESSES}:
        draft.remark(
            N_("Success threshold %(thresholds)s dropped: a second good check ends an incident."),
            thresholds=", ".join(map(number_text, sorted(successes))),
        )
    if not all(truth(alert.get("send-on-resolved")) for alert in alerts):
        draft.remark(N_("Wakeful also alerts when an incident ends (send-on-resolved)."))
    reminders = {seconds(alert.get("minimum-reminder-interval")) or 0 for alert in alerts}
    if reminders != {0}:
        draft.set_number("remind_after", min(filter(None, reminders)) / 60)
        if len(reminders) > 1:
            draft.remark(N_("The reminders go to all alerts of the monitor."))
    if any(string(alert.get("description")) for alert in alerts):
        draft.remark(N_("Alert descriptions dropped: Wakeful's messages name the cause."))
