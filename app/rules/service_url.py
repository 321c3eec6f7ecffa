"""URLs of services in settings: ``scheme://user:password@host:port/path?query``.

No sentence repeats a part of the URL, because any part may contain a password.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from app.i18n import N_, _
from app.rules.url import either, is_ip_address, parse_url, scheme_of, take_apart

ESCAPED = N_(
    "In a user name and a password, write / ? # @ : and % as %2F %3F %23 %40 %3A and %25."
)  # its percent signs are single, because it is used without values


@dataclass(frozen=True, slots=True)
class Service:
    """``host`` is without brackets. ``port`` is None and ``path`` is empty if the URL has none."""

    scheme: str
    host: str
    port: int | None
    user: str | None
    password: str | None = field(repr=False)
    path: str
    query: Mapping[str, str]


def take_apart_service(text: str, *schemes: str) -> Service:
    """Raises ValueError with a sentence."""
    scheme = scheme_of(text)
    if scheme not in schemes or not text[len(scheme) :].startswith("://"):
        raise ValueError(_("it must start with %(schemes)s.", schemes=either(schemes)))
    before_hash, _hash, fragment = text[len(scheme) + 3 :].partition("#")
    before_query, _mark, query = before_hash.partition("?")
    authority, slash, path = before_query.partition("/")
    login, at, host = authority.rpartition("@")
    try:
        if fragment or "@" in path:
            raise ValueError(_("its host or port cannot be read."))
        target = take_apart(f"{scheme}://{host}", {scheme: 0})
    except ValueError as fault:
        raise ValueError(f"{fault} {_(ESCAPED)}") from None
    user, colon, password = login.partition(":")
    return Service(
        scheme,
        target.host.strip("[]").lower(),
        target.port or None,
        unescaped(user) if at and user else None,
        unescaped(password) if colon else None,
        f"{slash}{path}".rstrip("/"),
        parameters(query),
    )


def parameters(query: str) -> dict[str, str]:
    """Each parameter of a query, empty ones too. Raises ValueError."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict")
    except ValueError:
        raise ValueError(_("what stands after ? cannot be read.")) from None
    if len(dict(pairs)) < len(pairs):
        raise ValueError(_("a parameter after ? stands there twice."))
    return dict(pairs)


def unescaped(text: str) -> str:
    """Raises ValueError."""
    try:
        plain = unquote(text, errors="strict")
    except ValueError:
        raise ValueError(_(ESCAPED)) from None
    if any(unicodedata.category(mark) == "Cc" for mark in plain):
        raise ValueError(_("a user name or a password has control characters."))
    return plain


def plain_url(text: str) -> str:
    """An http or https URL. Raises ValueError with a sentence."""
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise ValueError(_("it must not contain a user name or a password."))
    parse_url(text)
    return text


def base_url(text: str) -> str:
    """An http or https URL that paths are added to. Raises ValueError with a sentence."""
    plain_url(text)
    if "?" in text or "#" in text:
        raise ValueError(_("it must end with a host, a port or a path: nothing with ? or #."))
    return text.rstrip("/")


# Kubernetes and Docker set variables (links) for the other services of a container. For a service
# named ``wakeful`` or ``wakeful-web``, their names begin like the settings of Wakeful.
#
# The values are compared too: with a ``_PORT`` of 8000 the variable is an unknown setting, with
# tcp://10.0.0.1:8000 it is a link.

_LINK = re.compile(
    r"(?P<service>.{,255}?)_(?:"  # the longest name in Docker and Kubernetes
    r"(?P<host>SERVICE_HOST)|(?P<port>SERVICE_PORT(?:_[A-Z0-9_]+)?)|"
    r"PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:START|END))?"
    r"(?P<part>_PROTO|_PORT(?:_START|_END)?|_ADDR)?)?|"
    r"(?P<name>NAME)|(?P<env>ENV_.+))"
)
_URL = re.compile(r"(?:tcp|udp|sctp)://(?P<host>\[[^\[\]]+\]|[^:\[\]]+):(?P<port>[0-9]+)")
_CONTAINERS = re.compile(r"(?:/[\w.-]+)+/[\w.-]+")  # NAME of Docker: /this_container/its_alias
_PROTOCOLS = frozenset({"tcp", "udp", "sctp"})


def is_link(name: str, environ: Mapping[str, str]) -> bool:
    """Whether the variable is a link to a service."""
    link = _LINK.fullmatch(name)
    if link is None:
        return False
    value, service = environ[name], link["service"]
    if link["host"]:
        return is_ip_address(value)
    if link["port"]:  # a number alone could be a setting
        return _is_port(value) and is_ip_address(environ.get(f"{service}_SERVICE_HOST", ""))
    if link["name"] or link["env"]:  # ENV_ has any variable of the other container
        return bool(_CONTAINERS.fullmatch(environ.get(f"{service}_NAME", "")))
    part = link["part"]
    if part is None:
        url = _URL.fullmatch(value)
        return url is not None and is_ip_address(url["host"].strip("[]")) and _is_port(url["port"])
    if part == "_PROTO":
        return value in _PROTOCOLS
    return is_ip_address(value) if part == "_ADDR" else _is_port(value)


def _is_port(value: str) -> bool:
    return value.isascii() and value.isdigit() and 1 <= int(value[:6]) <= 65_535
