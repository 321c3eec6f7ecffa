"""URLs of DNS monitors: ``dns:[//SERVER[:PORT]/]NAME[?type=TYPE]`` (RFC 4501)."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote

from app.i18n import _
from app.rules.url import Target, ascii_host, refuse_odd_characters, take_apart

TYPES = ("A", "AAAA", "CNAME", "MX", "NS", "TXT", "SRV", "CAA", "SOA", "PTR")
PORT = 53

_SHAPE = re.compile(
    r"dns:(?://(?P<server>[^/?#]*+)/?|/)?(?P<name>[^/?#]*+)(?:\?(?P<query>[^#]*))?", re.IGNORECASE
)
# A slash is part of the names that RFC 2317 gives to small reverse zones.
_LABEL = re.compile(r"[a-z0-9_*/-]{1,63}")
_MAX_NAME = 253


@dataclass(frozen=True, slots=True)
class DnsTarget(Target):
    """``ascii_host`` is the requested name. ``server``: the name server in the URL; None for the
    name servers of the installation.
    """

    rdtype: str = "A"
    server: Target | None = None

    @property
    def url(self) -> str:
        server = "" if self.server is None else f"//{self.server.netloc}/"
        return f"dns:{server}{self.ascii_host}?type={self.rdtype}"


def read(text: str) -> DnsTarget:
    """Take a dns: URL apart. Raises ValueError with a sentence."""
    refuse_odd_characters(text)
    parts = _SHAPE.fullmatch(text)
    if parts is None:
        raise ValueError(_("A dns: URL is a name and its type, as dns:example.org?type=MX."))
    server = parts["server"] or None
    server_target = None if server is None else take_apart(f"dns://{server}", {"dns": PORT})
    rdtype = _type(parts["query"] or "")
    name = _name(unquote(parts["name"]), rdtype)
    return DnsTarget(
        scheme="dns",
        host=unquote(parts["name"]),
        ascii_host=name,
        port=PORT if server_target is None else server_target.port,
        request_target="/",
        absolute=True,
        rdtype=rdtype,
        server=server_target,
    )


def _type(query: str) -> str:
    """The requested type. RFC 4501 has a semicolon between parts, people write ``&``."""
    values: dict[str, str] = {}
    for part in filter(None, re.split("[;&]", query)):
        key, _equals, value = part.partition("=")
        if key.lower() not in ("type", "class") or key.lower() in values:
            raise ValueError(_("After the question mark, name a type alone, such as ?type=MX."))
        values[key.lower()] = value.upper()
    if values.get("class", "IN") != "IN":
        raise ValueError(_("Only the class IN can be checked. Leave the class out."))
    rdtype = values.get("type", "A")
    if rdtype not in TYPES:
        raise ValueError(_("The type is one of these: %(types)s.", types=", ".join(TYPES)))
    return rdtype


def _name(name: str, rdtype: str) -> str:
    """The name to ask for, without a final dot. For the type PTR, an IP address becomes its reverse
    name.
    """
    if name == ".":
        return name
    if rdtype == "PTR":
        with suppress(ValueError):
            return ip_address(name).reverse_pointer
    plain = ascii_host(name.removesuffix("."))
    if len(plain) > _MAX_NAME or not all(map(_LABEL.fullmatch, plain.split("."))):
        raise ValueError(_("The URL needs a name that DNS can have, as dns:example.org?type=MX."))
    return plain
