"""The kinds: how something is checked. The scheme of a monitor's URL decides its kind.

A new kind is a folder beside ``http`` and a row here; CONTRIBUTING.md lists what else it needs.
Forms, the OpenAPI document and the pages read from its row which of a monitor's fields it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import lru_cache
from typing import Any

from app.i18n import N_, _
from app.records import HEARTBEAT_URL, Assertion, AssertionSource, CheckSpec, Monitor, is_heartbeat
from app.rules import dns_url
from app.rules.url import DEFAULT_PORTS, Target, parse_url, scheme_of, take_apart

# Fields of the monitor that every kind has but the heartbeat, which is not checked.
CHECKED_FIELDS = frozenset(
    {"check_every", "timeout", "confirmations", "domain_alert_days", "locations", "location_rule"}
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One way to check something.

    ``name`` is the word that the API returns; ``label`` and ``address`` (an example URL) are for
    people. ``read`` takes a URL apart, or raises ValueError with a sentence. ``fields`` are the
    fields of the monitor that this kind has and others may lack. ``phases`` are the
    ``records.Timings`` that it measures, ``sources`` the sources that its assertions may have.
    ``check`` is the dotted name of its ``RunningCheck``: forms and pages import the kinds, and must
    not load curl and OpenSSL. It is None for heartbeats, which call Wakeful.
    """

    name: str
    label: str
    address: str
    schemes: Sequence[str]
    read: Callable[[str], Target]
    fields: frozenset[str]
    phases: Sequence[str]
    sources: frozenset[AssertionSource]
    check: str | None

    def __post_init__(self) -> None:
        if self.check is not None:
            object.__setattr__(self, "fields", self.fields | CHECKED_FIELDS)


HTTP = Kind(
    name="http",
    label="HTTP",
    address="https://example.com",
    schemes=tuple(DEFAULT_PORTS),
    read=parse_url,
    fields=frozenset(
        {
            "alert_condition", "alert_text_lookup", "request_method", "request_headers",
            "request_auth_username", "request_auth_password", "request_body", "cache_buster",
            "accepted_statuses", "follow_redirects", "verify_tls", "ssl_alert_days", "assertions",
        }
    ),
    phases=("dns", "connect", "tls", "ttfb", "download"),
    sources=frozenset(
        {
            AssertionSource.STATUS, AssertionSource.HEADER, AssertionSource.BODY,
            AssertionSource.JSON, AssertionSource.SIZE, AssertionSource.RESPONSE_TIME,
            AssertionSource.CERTIFICATE_DAYS, AssertionSource.URL,
        }
    ),
    check="app.checks.http.checks:HttpCheck",
)  # fmt: skip


def _reader_of_port(scheme: str, example: str) -> Callable[[str], Target]:
    """A function that takes ``scheme://host:port`` apart. ``example``: such a URL for the error."""

    def read(text: str) -> Target:
        target = take_apart(text, {scheme: None})
        if target.request_target != "/" or "#" in text:
            sentence = N_("A %(scheme)s:// URL ends with its port, as %(example)s.")
            raise ValueError(_(sentence, scheme=scheme, example=example))
        return target

    return read


TCP = Kind(
    name="tcp",
    label="TCP",
    address="tcp://example.com:25",
    schemes=("tcp",),
    read=_reader_of_port("tcp", "tcp://example.com:25"),
    fields=frozenset({"alert_condition", "alert_text_lookup", "assertions"}),
    phases=("dns", "connect", "ttfb", "download"),
    sources=frozenset({AssertionSource.BANNER, AssertionSource.RESPONSE_TIME}),
    check="app.checks.tcp.checks:TcpCheck",
)

TLS = Kind(
    name="tls",
    label="TLS",
    address="tls://example.com:443",
    schemes=("tls",),
    read=_reader_of_port("tls", "tls://example.com:443"),
    fields=frozenset({"starttls", "verify_tls", "ssl_alert_days", "assertions"}),
    phases=("dns", "connect", "tls"),
    sources=frozenset({AssertionSource.CERTIFICATE_DAYS, AssertionSource.RESPONSE_TIME}),
    check="app.checks.tls.checks:TlsCheck",
)


def _read_ping(text: str) -> Target:
    """Take ``ping://host`` apart. Raises ValueError with a sentence."""
    target = take_apart(text, {"ping": 0})
    if target.port or target.request_target != "/" or "#" in text:
        raise ValueError(_("A ping:// URL is a host alone, as ping://example.com."))
    return target


PING = Kind(
    name="ping",
    label="Ping",
    address="ping://example.com",
    schemes=("ping",),
    read=_read_ping,
    fields=frozenset({"ping_count", "assertions"}),
    phases=("dns", "ttfb"),
    sources=frozenset({AssertionSource.LOSS, AssertionSource.RESPONSE_TIME}),
    check="app.checks.ping.checks:PingCheck",
)

DNS = Kind(
    name="dns",
    label="DNS",
    address="dns:example.com?type=MX",
    schemes=("dns",),
    read=dns_url.read,
    fields=frozenset({"alert_condition", "alert_text_lookup", "assertions"}),
    phases=("dns", "ttfb"),
    sources=frozenset({AssertionSource.ANSWER, AssertionSource.RESPONSE_TIME}),
    check="app.checks.dns.checks:DnsCheck",
)


def _read_heartbeat(text: str) -> Target:
    """Take ``heartbeat:`` apart. Raises ValueError with a sentence."""
    if text.lower() != HEARTBEAT_URL:
        raise ValueError(_("The URL of a heartbeat is heartbeat: and no more."))
    return Target(HEARTBEAT_URL.removesuffix(":"), "", "", 0, "/")


HEARTBEAT = Kind(
    name="heartbeat",
    label=N_("Heartbeat"),
    address=HEARTBEAT_URL,
    schemes=(HEARTBEAT_URL.removesuffix(":"),),
    read=_read_heartbeat,
    fields=frozenset({"period", "schedule", "zone", "grace", "max_run", "slug"}),
    phases=(),
    sources=frozenset(),
    check=None,
)

KINDS = (HTTP, TCP, TLS, PING, DNS, HEARTBEAT)

_BY_SCHEME = {scheme: kind for kind in KINDS for scheme in kind.schemes}
# Every field that some kind has and another may lack, in alphabetical order.
FIELDS = tuple(sorted(frozenset[str]().union(*(kind.fields for kind in KINDS))))
NOT_OF_KIND = N_(
    "Monitors of the kind %(kind)s do not have this field. Leave it empty or at its default."
)


def kind_of(url: str) -> Kind | None:
    """The kind of a URL, by its scheme alone; None for an unknown scheme."""
    return _BY_SCHEME.get(scheme_of(url) or "")


@lru_cache(maxsize=20_000)
def read_url(url: str) -> tuple[Kind, Target]:
    """Take the URL of a monitor apart as its kind does. Raises ValueError with a sentence."""
    kind = kind_of(url)
    if kind is not None:
        return kind, kind.read(url)
    schemes = (
        scheme if "://" in kind.address else f"{scheme}:" for scheme, kind in _BY_SCHEME.items()
    )
    take_apart(url, dict.fromkeys(schemes))
    raise ValueError(_("The scheme of the URL is not supported."))


def sends_secrets_elsewhere(stored: Any, changes: Mapping[str, Any]) -> bool:
    """Whether ``changes`` to the ``stored`` monitor would send its secrets to another server, or to
    a server that is no longer verified (decision 15): another scheme, host or port, or
    ``verify_tls`` turned off. A URL of another kind does not count, because its checks do not send
    the stored secrets (``fields_of_other_kinds``).
    """
    verified = getattr(stored, "verify_tls", True)
    if verified and not changes.get("verify_tls", verified):
        return True
    url = changes.get("url", stored.url)
    if url == stored.url:
        return False
    try:
        (kind, old), (other, new) = read_url(stored.url), read_url(url)
    except ValueError:
        return True
    return kind is other and old.origin != new.origin


def turns_into_or_from_heartbeat(stored: str, url: str) -> bool:
    """Whether a monitor would become a heartbeat by its new ``url``, or stop being one."""
    return is_heartbeat(stored) != is_heartbeat(url)


def kinds_with(field: str) -> tuple[str, ...]:
    """The names of the kinds whose monitors have this field."""
    return tuple(kind.name for kind in KINDS if field in kind.fields or field not in FIELDS)


def fields_of_other_kinds(url: str, values: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """The fields with a value that the monitor's kind does not have, each with a sentence. Empty
    and default values do not count (decision 3).
    """
    kind = kind_of(url)
    if kind is None:
        return ()
    faults = [
        (name, _(NOT_OF_KIND, kind=kind.name))
        for name, value in values.items()
        if name in FIELDS and name not in kind.fields and not _is_default(name, value)
    ]
    assertions = values.get("assertions")
    if "assertions" not in dict(faults) and isinstance(assertions, tuple):  # else unreadable
        faults += _foreign_sources(kind, assertions)
    return faults


def _foreign_sources(kind: Kind, assertions: Sequence[Assertion]) -> Iterator[tuple[str, str]]:
    for index, assertion in enumerate(assertions):
        if assertion.source not in kind.sources:
            sentence = _(
                "Monitors of the kind %(kind)s have these sources: %(words)s.",
                kind=kind.name,
                words=", ".join(word for word in AssertionSource if word in kind.sources),
            )
            yield f"assertions.{index}.source", sentence


def _is_default(name: str, value: Any) -> bool:
    field = Monitor.__dataclass_fields__.get(name)
    default = None if field is None or field.default is MISSING else field.default
    return value in (None, "", (), []) or value == default


# Places are rows of another table.
_COLUMNS = tuple(name for name in FIELDS if name != "locations")


def _rule(url: str, *values: Any) -> Sequence[tuple[str, str]]:
    return fields_of_other_kinds(url, dict(zip(_COLUMNS, values, strict=True)))


# Like the rules of ``app.rules.cross_field``: the fields that it reads, and the rule itself.
RULE = (("url", *_COLUMNS), _rule)


def spec_of(fields: Mapping[str, Any], password: str | None) -> CheckSpec:
    """The spec of a check of these monitor fields; missing ones have their defaults."""
    values = {
        name: fields[name]
        for name in CheckSpec.__dataclass_fields__
        if fields.get(name) is not None and name != "monitor_id"
    }
    user = fields.get("request_auth_username")
    if user is not None:
        values["auth"] = (user, password or "")
    values["cache_buster"] = bool(fields.get("cache_buster"))
    return CheckSpec(**values)
