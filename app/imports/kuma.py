"""Uptime Kuma: the backup (JSON) of version 1, and the list of monitors as its clients print it.
``kuma_database`` reads its database into the same form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.i18n import N_, _
from app.imports import channels
from app.imports.candidates import (
    Draft,
    Notification,
    Reading,
    dns_url,
    host_and_port,
    limited,
    ping_url,
)
from app.imports.channels import Tool, Variables
from app.imports.values import (
    NAMES,
    ImportEntry,
    as_list,
    cut_line,
    from_json,
    json_path,
    literal_pattern,
    mapping,
    record_pattern,
    records_in,
    spaced_pattern,
    string,
    truth,
)

LISTS_ON_THE_WAY = N_(
    "Uptime Kuma looks into the list on the way of a JSON path. Wakeful needs its index, as in"
    " data[0].status."
)
SEVERAL_RECORDS = N_(
    "Conditions on DNS records: one record that meets all is enough for Uptime Kuma. Wakeful holds"
    " each condition against all records."
)
ONLY_MONITORS = N_(
    "Monitors and their notifications are imported, without priorities and sounds. Status pages,"
    " incidents, maintenance, proxies, Docker hosts and API keys are not."
)
GROUPS = N_("Groups become tags: each monitor gets the names of its groups.")
TOOL = Tool(
    N_("Uptime Kuma"),
    kinds={
        "docker": "Docker",
        "steam": N_("game server"), "gamedig": N_("game server"), "mqtt": "MQTT",
        "grpc-keyword": "gRPC", "real-browser": N_("browser"),
        "tailscale-ping": N_("Tailscale Ping"), "radius": "RADIUS", "redis": "Redis",
        "sqlserver": N_("SQL Server"), "postgres": "PostgreSQL", "mysql": "MySQL",
        "mongodb": "MongoDB", "snmp": "SNMP", "rabbitmq": "RabbitMQ", "kafka-producer": "Kafka",
        "manual": N_("manual"),
    },
    dropped={
        "proxyId": N_("Proxy dropped: Wakeful checks without a proxy."),
        "ipFamily": N_("IP version dropped: Wakeful tries IPv6 and IPv4."),
        "maintenance": N_("Maintenance dropped. Add a maintenance window."),
        "conditions": N_("Conditions dropped: Uptime Kuma has none for this kind of check."),
        "retryOnlyOnStatusCodeFailure": N_(
            "Retrying only after a wrong status code is dropped: Wakeful rechecks after each"
            " failure."
        ),
    },
    # Bookkeeping, and settings of some kinds: Uptime Kuma writes them for monitors of every kind.
    ignored=(
        "id", "weight", "path", "childrenIDs", "dns_", "docker_", "packet", "push", "mqtt",
        "grpc", "radius", "database", "kafka", "rabbitmq", "snmp", "gamedig", "game", "json",
        "expectedValue", "smtp", "ws", "ping", "remote_browser", "screenshot", "oauth",
        "auth", "tls", "includeSensitiveData", "user_id", "created_date",
        "manual_status", "location", "protocol", "subtype", "ntp", "system_service",
        "response", "save", "timeout", "hostname", "port",
        "url", "method", "keyword", "invertKeyword", "maxredirects", "accepted_statuscodes",
        "httpBodyEncoding", "body", "headers", "basic_auth", "bearer",
        "groupNotifications", "expiryNotification", "domainExpiryNotification", "cacheBust",
        "ignoreTls",
    ),
)  # fmt: skip
# The backup's fields for the columns of the database that have other names.
RENAMED = {
    "ignore_tls": "ignoreTls", "upside_down": "upsideDown", "cache_bust": "cacheBust",
    "expiry_notification": "expiryNotification", "invert_keyword": "invertKeyword",
    "resend_interval": "resendInterval", "auth_method": "authMethod", "proxy_id": "proxyId",
    "http_body_encoding": "httpBodyEncoding", "json_path": "jsonPath", "ip_family": "ipFamily",
    "json_path_operator": "jsonPathOperator", "expected_value": "expectedValue",
    "retry_interval": "retryInterval", "expected_tls_alert": "expectedTlsAlert",
    "retry_only_on_status_code_failure": "retryOnlyOnStatusCodeFailure",
    "domain_expiry_notification": "domainExpiryNotification",
}  # fmt: skip
_HTTP = ("http", "keyword", "json-query")
# The protocols in which Uptime Kuma uses STARTTLS, by their ports.
_STARTTLS = {"143": "imap", "5222": "xmpp", "5269": "xmpp"}
# A pattern for the value of a record by the operator of a condition, with {} for its operand.
_RECORD_OPS = {
    "equals": "{}", "contains": ".*{}.*", "starts_with": "{}.*", "ends_with": ".*{}",
}  # fmt: skip
_JSON_OPS = {"==": "="} | {op: op for op in ("!=", "<", "<=", ">", ">=", "contains")}
_BODY_TYPES = {
    "": "application/json", "json": "application/json", "xml": "text/xml",
    "form": "application/x-www-form-urlencoded",
}  # fmt: skip
# Fields that tell monitors of Uptime Kuma from those of other tools.
_TYPICAL_FIELDS = frozenset({
    "maxretries", "retryInterval", "notificationIDList", "accepted_statuscodes", "upsideDown",
    "childrenIDs", "resendInterval", "retry_interval", "accepted_statuscodes_json",
})  # fmt: skip
_LISTS = ("monitorList", "monitors")
PUSH_GRACE = 60  # seconds: Uptime Kuma has no grace, and this is Wakeful's shortest
MAX_TAG_PART = 500  # characters: every monitor may repeat a long tag
MAX_GROUPS = 50  # levels of groups within groups


def recognizes(data: object) -> bool:
    if "monitorList" in mapping(data):
        return True
    return any(
        "type" in record and not _TYPICAL_FIELDS.isdisjoint(record)
        for record in records_in(data, *_LISTS)
    )


def read(data: object, _variables: Variables) -> Reading:
    notifications = mapping(data).get("notificationList")
    return reading_of(
        [record for record in records_in(data, *_LISTS) if "type" in record or "name" in record],
        records_in(notifications) if notifications else (),
    )


def reading_of(
    monitors: Sequence[Mapping[str, Any]], notifications: Iterable[Mapping[str, Any]]
) -> Reading:
    """``monitors`` and ``notifications`` have the fields of the backup."""
    by_id = {string(record.get("id")): _notification(record) for record in notifications}
    rows = limited(monitors)
    entries = [{RENAMED.get(key, key): value for key, value in row.items()} for row in rows]
    groups = _groups(entries)
    read_monitor = partial(_monitor, notifications=by_id, groups=groups)
    drafts = [
        TOOL.draft(number, entry, read_monitor)
        for number, entry in enumerate(entries, 1)
        if entry.get("type") != "group"
    ]
    remarks = [_(GROUPS)] if groups else []
    if any(entry.get("type") == "group" and _notification_ids(entry) for entry in entries):
        remarks.append(_("Notifications of groups are dropped: Wakeful alerts for each monitor."))
    if any(entry.get("includeSensitiveData") is False for entry in entries):
        remarks.append(
            _("The list lacks request headers, bodies and passwords: Uptime Kuma left them out.")
        )
    return TOOL.reading(drafts, [*remarks, _(ONLY_MONITORS)])


@dataclass(frozen=True, slots=True)
class _Group:
    """A group. ``names``: the names of the groups that contain it, the outermost first, and its own
    name. ``paused``: whether any of these groups is paused.
    """

    names: tuple[str, ...]
    paused: bool


def _groups(entries: Iterable[Mapping[str, Any]]) -> dict[str, _Group]:
    by_id = {string(entry.get("id")): entry for entry in entries if entry.get("type") == "group"}
    groups: dict[str, _Group] = {}
    for id in by_id:
        chain: list[Mapping[str, Any]] = []  # from the group to the outermost one
        parent = id
        while parent in by_id and len(chain) < MAX_GROUPS:  # a file may contain a cycle
            chain.append(by_id[parent])
            parent = string(by_id[parent].get("parent"))
        names = [string(entry.get("name"))[:MAX_TAG_PART] for entry in reversed(chain)]
        groups[id] = _Group(tuple(names), any(map(_is_paused, chain)))
    return groups


def _is_paused(entry: Mapping[str, Any] | ImportEntry) -> bool:
    """Whether a monitor or group is paused. Uptime Kuma sets ``forceInactive`` if a group that
    contains it is paused.
    """
    active = entry.get("active")
    return truth(entry.get("forceInactive")) or (active is not None and not truth(active))


def _monitor(
    draft: Draft,
    entry: ImportEntry,
    notifications: Mapping[str, Notification],
    groups: Mapping[str, _Group],
) -> None:
    kind = entry.text("type")
    if kind in _HTTP:
        _http(draft, entry, kind)
    elif kind == "port":
        # The certificate warning is on by default. Without it, the port is checked without TLS.
        port, warns = entry.get("port"), entry.is_on("expiryNotification")
        if _port(draft, entry, port, _STARTTLS.get(string(port), "smtp"), tls_allowed=warns):
            draft.set_warning("ssl_alert_days")
        draft.set_number("timeout", entry.number("timeout") or None)
        if entry.text("expectedTlsAlert") not in ("", "none"):
            draft.refuse(N_("Wakeful cannot check that a server answers with a TLS alert."))
    elif kind == "ping":
        draft.url = ping_url(entry.text("hostname"))
        draft.set_number("ping_count", entry.number("ping_count"))
        draft.set_number("timeout", entry.number("timeout") or None)
    elif kind == "dns":
        servers = [server.strip() for server in entry.text("dns_resolve_server").split(",")]
        draft.url = dns_url(
            entry.text("hostname"),
            entry.text("dns_resolve_type"),
            draft.keep_first(N_("DNS servers"), servers),
            entry.get("port"),
        )
        _conditions(draft, entry)
    elif kind == "smtp":
        # Without a choice of TLS, Uptime Kuma accepts a server with or without STARTTLS.
        if not _port(draft, entry, entry.get("port") or "25", "smtp"):
            draft.set_text("220", unwanted=False)
        draft.set_number("timeout", entry.number("timeout") or None)
    elif kind == "push":
        draft.make_heartbeat(
            entry.text("pushToken", "push_token"), entry.number("interval"), PUSH_GRACE
        )
    else:
        draft.url = string(entry.get("url") or entry.get("hostname"))
        TOOL.refuse_kind(draft, kind)
    if entry.is_on("upsideDown"):
        draft.refuse(N_("Wakeful has no upside-down mode (up while the check fails)."))
    if entry.is_on("domainExpiryNotification") and kind != "push":  # the default of all kinds
        draft.set_domain_warning(draft.url if kind in _HTTP else entry.text("hostname"))
    interval = entry.number("interval")
    pause, retries = entry.number("retryInterval") or interval, entry.number("maxretries")
    if kind != "push":
        draft.set_interval(interval, entry.get("interval"))
        draft.set_confirmations(retries, pause)
    resend = entry.number("resendInterval")
    draft.set_number("remind_after", resend * (interval or 60) / 60 if resend else None)
    draft.add_tags(_tags(entry))
    draft.set_notes(entry.text("description"))
    group = groups.get(entry.text("parent"))
    if group:
        draft.add_tags(group.names)
    if _is_paused(entry):
        draft.paused = True
    elif group and group.paused:
        draft.paused = True
        draft.remark(N_("It starts paused, because its group is paused."))
    for id in _notification_ids(entry):
        draft.notify(notifications.get(id) or channels.missing(id))


def _port(
    draft: Draft, entry: ImportEntry, port: object, starttls: str, *, tls_allowed: bool = True
) -> bool:
    """Make ``draft`` the check of a port. Returns whether the check uses TLS. ``starttls``: the
    protocol in which to ask for TLS.
    """
    security = entry.text("smtpSecurity", "smtp_security")
    has_tls = tls_allowed and security in ("secure", "starttls")
    draft.url = host_and_port(entry.text("hostname"), port, "tls" if has_tls else "tcp")
    if has_tls and security == "starttls":
        draft.fields["starttls"] = starttls
    return has_tls


def _http(draft: Draft, entry: ImportEntry, kind: str) -> None:
    draft.url = entry.text("url")
    draft.set_request(entry, "method", "headers")
    # The database has the list as JSON. The form refuses any other text.
    text = entry.text("accepted_statuscodes_json")
    column = from_json(text or "[]")
    codes = entry.list("accepted_statuscodes") or (column if isinstance(column, list) else [text])
    draft.set_statuses(codes or ["200-299"])
    draft.set_switch("verify_tls", on=not entry.is_on("ignoreTls"))
    draft.set_redirects(entry.number("maxredirects"))
    # The default time limit of Uptime Kuma is 80% of the interval.
    draft.set_number("timeout", entry.number("timeout") or 0.8 * (entry.number("interval") or 60))
    # Uptime Kuma does not warn of a certificate that it does not verify.
    verified = not entry.is_on("ignoreTls") and draft.url.lower().startswith("https:")
    if entry.is_on("expiryNotification") and verified:
        draft.set_warning("ssl_alert_days")
    if entry.is_on("cacheBust"):
        draft.fields["cache_buster"] = "1"
    if kind == "keyword":
        _keyword(draft, entry.text("keyword"), unwanted=entry.is_on("invertKeyword"))
    if kind == "json-query":
        _json_query(draft, entry)
    _login(draft, entry)
    if body := entry.text("body"):
        draft.set_body(body, _BODY_TYPES.get(entry.text("httpBodyEncoding"), ""))


def _keyword(draft: Draft, keyword: str, *, unwanted: bool) -> None:
    """Uptime Kuma removes the spaces from JSON before it searches for the keyword."""
    if '"' in keyword and not set(keyword).isdisjoint("{}[]:,"):
        draft.add_assertion(
            "body", "not_matches" if unwanted else "matches", spaced_pattern(keyword)
        )
    else:
        draft.set_text(keyword, unwanted=unwanted)


def _json_query(draft: Draft, entry: ImportEntry) -> None:
    """Turn a query in JSONata into an assertion. Refuse one with more than names and indices."""
    expression = entry.text("jsonPath").strip()
    path = json_path(expression, hyphens=False)
    op = _JSON_OPS.get(entry.text("jsonPathOperator") or "==")
    value = entry.text("expectedValue")
    if path is None or op is None:
        draft.refuse(
            N_(
                'The JSON query "%(query)s" is more than a path. Create the monitor with an'
                " assertion on JSON."
            ),
            query=cut_line(expression),
        )
    elif path == "$":  # a page that is no JSON is compared as a text
        if op in ("=", "!=") and value:
            op = "matches" if op == "=" else "not_matches"
            value = rf'^\s*"?{literal_pattern(value)}"?\s*$'
        draft.add_assertion("body", op, value)
    else:
        draft.add_assertion("json", op, value, path)
        # Uptime Kuma fails if there is no value, or if the value is a list or an object.
        if op in ("!=", "contains"):
            draft.add_assertion("json", "matches", r"^([^\[{]|$)", path)
        if op == "!=":
            draft.add_assertion("json", "!=", "null", path)
        draft.remark(LISTS_ON_THE_WAY)


def _conditions(draft: Draft, entry: ImportEntry) -> None:
    """Turn conditions on DNS records into assertions. Uptime Kuma leaves out the final dot of a
    name.
    """
    expressions = [mapping(item) for item in as_list(from_json(entry.get("conditions")))]
    type_ = entry.text("dns_resolve_type").upper() or "A"
    rows = [
        row for item in expressions if item.get("variable") == "record"
        for row in [_record_pattern(type_, string(item.get("operator")), string(item.get("value")))]
        if row
    ]  # fmt: skip
    links = {string(item.get("andOr")) for item in expressions[1:]}
    patterns = [pattern for op, pattern in rows if op == "matches"]
    if len(rows) < len(expressions) or (
        "or" in links and (len(links) > 1 or len(patterns) < len(rows))
    ):
        draft.refuse(N_("Its conditions are more than Wakeful's assertions on DNS records."))
    elif "or" in links:
        draft.add_assertion("answer", "matches", "|".join(patterns))
    else:
        for op, pattern in rows:
            draft.add_assertion("answer", op, pattern)
        if len(rows) > 1 or len(patterns) < len(rows):
            draft.remark(SEVERAL_RECORDS)


def _record_pattern(type_: str, operator: str, value: str) -> tuple[str, str] | None:
    """The op and the pattern of a condition on a record; None if the operator has none."""
    positive = operator.removeprefix("not_")
    if positive not in _RECORD_OPS:
        return None
    if type_ in NAMES and positive in ("equals", "ends_with"):
        literal = literal_pattern(f"{value.removesuffix('.')}.")
    else:
        literal = literal_pattern(value)
    op = "matches" if positive == operator else "not_matches"
    return op, record_pattern(type_, _RECORD_OPS[positive].format(literal))


def _login(draft: Draft, entry: ImportEntry) -> None:
    method = entry.text("authMethod")
    token = entry.text("bearer_token", "bearerToken")
    user = entry.text("basic_auth_user")
    if method == "bearer" and token:
        draft.add_pair("request_headers", "Authorization", f"Bearer {token}")
    elif method not in ("", "none", "basic"):
        sentence = N_('Wakeful has no "%(method)s" authentication, only Basic and headers.')
        draft.refuse(sentence, method=cut_line(method))
    elif method == "basic" or (user and not entry.has("authMethod")):  # an old backup has none
        draft.set_basic(user, entry.text("basic_auth_pass"))


def _tags(entry: ImportEntry) -> list[str]:
    """The tags: texts, as some clients print them, or objects with name and value."""
    tags = []
    for tag in entry.list("tags"):
        name = (string(mapping(tag).get("name")) or string(tag))[:MAX_TAG_PART]
        value = string(mapping(tag).get("value"))[:MAX_TAG_PART]
        if name:
            tags.append(f"{name}: {value}" if value else name)
    return tags


def _notification(entry: Mapping[str, Any]) -> Notification:
    settings = mapping(from_json(entry.get("config"))) or entry
    kind = string(settings.get("type"))[: channels.MAX_SETTING]
    keys = (*channels.keys("kuma", kind), *channels.OTHER_CHANNEL["kuma"])
    values = {key: string(settings.get(key)) for key in keys}
    return channels.notification("kuma", kind, values, string(entry.get("name")))


def _notification_ids(entry: Mapping[str, Any] | ImportEntry) -> list[str]:
    """The ids in ``{"1": true}``, or in ``[1]`` as clients print them."""
    ids = entry.get("notificationIDList")
    if isinstance(ids, Mapping):
        return [str(id) for id, chosen in ids.items() if truth(chosen)]
    return [string(id) for id in as_list(ids)]
