"""Read a URL: whether it may be stored, and how it is sent (decision 9).

``parse_url`` reads an http or https URL, ``take_apart`` a URL of other schemes. An IP address in an
unusual spelling (decimal, octal, hexadecimal, short, full-width digits) is read as ``inet_aton``
reads it. So the policy judges the address that curl connects to.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from string import ascii_lowercase, digits
from urllib.parse import quote, urljoin, urlsplit

import idna

from app.i18n import N_, OR, _, join_words

DEFAULT_PORTS = {"http": 80, "https": 443}
IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

_SHAPE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_AUTHORITY = re.compile(
    r"//(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?", re.DOTALL
)
# Characters that the URL standard or curl forbids in a host.
_FORBIDDEN_IN_HOST = re.compile(r"[\x00-\x20\x7f#/:<>?@\[\\\]^|%\"`{}!$&'()*+,;=]")
_LEGACY_IPV4 = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]+)){0,3}")
# Longer than any host name in any Unicode form. Normalizing a long run of combining marks takes
# quadratic time.
_MAX_HOST = 1_000
_TOO_LONG = N_("The URL's host is too long: 253 characters in all, 63 between dots.")
# The characters that browsers and urljoin strip from both ends of a Location, and remove within it.
_STRIPPED = "".join(map(chr, range(0x21)))
_REMOVED = str.maketrans("", "", "\t\r\n")
NO_HOST_NAME = N_(
    "Send a host name alone, such as status.example.com: no scheme, port or IP address."
)
_LABEL = frozenset(ascii_lowercase + digits + "-")
# Characters that stay as they are in a path or query; others are percent-encoded as UTF-8.
_SAFE = "/?:@!$&'()*+,;=-._~%[]|^{}`"


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a URL.

    ``host`` is the host as it was typed, ``ascii_host`` as it is sent: in IDNA, or an IP address
    without brackets. ``address`` is the IP address if the host is one. ``port`` is 0 if there is
    none. ``request_target`` is path and query, never empty. ``absolute``: the host was written with
    a final dot, which is not sent.
    """

    scheme: str
    host: str
    ascii_host: str
    port: int
    request_target: str
    address: str | None = None
    absolute: bool = False

    @property
    def dns_name(self) -> str:
        """The name for DNS. With a final dot, no search domain is tried."""
        return f"{self.ascii_host}." if self.absolute else self.ascii_host

    @property
    def netloc(self) -> str:
        """Host and port as a Host header writes them."""
        host = f"[{self.ascii_host}]" if ":" in self.ascii_host else self.ascii_host
        return host if self.port in (0, DEFAULT_PORTS.get(self.scheme)) else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """The origin, with the final dot: without it, the name may resolve in a search domain."""
        return (self.scheme, self.dns_name, self.port)

    @property
    def url(self) -> str:
        """The URL as it is sent, in one normalized spelling, without fragment."""
        return f"{self.scheme}://{self.netloc}{self.request_target}"

    @property
    def full_url(self) -> str:
        """``url`` with the host's final dot: read again, it is the same target."""
        return self.url.replace(f"//{self.ascii_host}", f"//{self.dns_name}", 1)


@lru_cache(maxsize=20_000)
def parse_url(text: str) -> Target:
    """Take an http or https URL apart. Raises ValueError with a sentence for any other."""
    return take_apart(text, DEFAULT_PORTS)


def scheme_of(text: str) -> str | None:
    """The scheme in lower case, known or not; None for text that does not begin with one."""
    shape = _SHAPE.fullmatch(text)
    return None if shape is None else shape["scheme"].lower()


def take_apart(text: str, ports: Mapping[str, int | None]) -> Target:
    """Take a URL apart. ``ports`` maps each accepted scheme to its default port, or to None if
    the URL must name one. Raises ValueError with a sentence.
    """
    refuse_odd_characters(text)
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise ValueError(_("The URL must start with %(schemes)s.", schemes=either(ports)))
    scheme = shape["scheme"].lower()
    if scheme not in ports:
        sentence = N_("The URL must start with %(schemes)s, not %(scheme)s:.")
        raise ValueError(_(sentence, schemes=either(ports), scheme=scheme[:20]))
    parts = _AUTHORITY.fullmatch(shape["rest"])
    if parts is None:
        sentence = N_("The URL needs two slashes and a host after %(scheme)s:.")
        raise ValueError(_(sentence, scheme=scheme))
    authority = parts["authority"]
    if "@" in authority:
        sentence = _("The URL must not contain a user name or password.")
        if scheme in DEFAULT_PORTS:
            sentence += " " + _("Use the fields for authentication.")
        raise ValueError(sentence)
    host, explicit_port = _host_and_port(authority)
    name, address = _ascii_host(host)
    port = explicit_port or ports[scheme]
    if port is None:
        sentence = N_("The URL needs a port after its host, such as %(scheme)s://example.com:25.")
        raise ValueError(_(sentence, scheme=scheme))
    path = parts["path"] or "/"
    query = "" if parts["query"] is None else "?" + parts["query"]
    return Target(
        scheme,
        host,
        name.removesuffix("."),
        port,
        quote(path + query, safe=_SAFE),
        address,
        absolute=name.endswith("."),
    )


def host_name(text: str) -> str:
    """A host name as it is sent, in lower case and IDNA. Raises ValueError with a sentence if the
    text has a port, or is an IP address or no valid name.
    """
    try:
        refuse_odd_characters(text)
        name, address = _ascii_host(text)
    except ValueError:
        raise ValueError(_(NO_HOST_NAME)) from None
    name = name.removesuffix(".")
    labels = name.split(".")
    if address or labels[-1].isdigit() or not all(map(_is_label, labels)):
        raise ValueError(_(NO_HOST_NAME))
    return name


@lru_cache(maxsize=1_000)
def host_of(header: str) -> str | None:
    """The host that a Host header names, without its port, in one spelling (``Target.ascii_host``).
    None for a header that is empty or that no browser sends.
    """
    if not header.isascii() or any(mark in header for mark in "/?#"):
        return None
    try:
        return take_apart(f"http://{header}", DEFAULT_PORTS).ascii_host
    except ValueError:
        return None


def _is_label(label: str) -> bool:
    return label[0] != "-" and label[-1] != "-" and _LABEL.issuperset(label)


def either(schemes: Iterable[str]) -> str:
    """``schemes`` in a sentence: ``http:// or https://``. A scheme with a colon, such as ``dns:``,
    gets no slashes.
    """
    return join_words((scheme if ":" in scheme else f"{scheme}://" for scheme in schemes), OR)


def join(base: Target, location: str) -> Target:
    """The target of a ``Location`` header, absolute or relative. Raises ValueError with a sentence.

    Spaces and non-ASCII characters, which servers send unescaped, are encoded as browsers do.
    Otherwise this is as strict as ``parse_url``.
    """
    # Not cached: a server may send another URL, of any length, each time.
    tidy = location.strip(_STRIPPED).translate(_REMOVED).replace(" ", "%20")
    if tidy.startswith("//"):
        tidy = f"{base.scheme}:{tidy}"
    elif not _SHAPE.fullmatch(tidy):  # urljoin would read http:///path as a path on this host
        tidy = urljoin(base.url, tidy)
    target = take_apart(tidy, DEFAULT_PORTS)
    if base.absolute and target.ascii_host == base.ascii_host:
        return replace(target, absolute=True)  # the server does not see the dot, so it sends none
    return target


def refuse_odd_characters(text: str) -> None:
    if "\\" in text:
        raise ValueError(_("The URL must not contain a backslash."))
    for character in text:
        if character.isspace():
            raise ValueError(_("The URL must not contain white space. Write %20 for a space."))
        if unicodedata.category(character) in ("Cc", "Cs"):
            raise ValueError(_("The URL must not contain control characters."))


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            sentence = N_("The URL's IPv6 address must be in brackets, such as [2001:db8::1].")
            raise ValueError(_(sentence))
        return f"[{host}]", _port(port[1:])
    host, _colon, port = authority.partition(":")
    if ":" in port:
        raise ValueError(_("The URL's port must be a number. An IPv6 address must be in brackets."))
    return host, _port(port)


def _port(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:7]) <= 65_535:
        raise ValueError(_("The URL's port must be a number from 1 to 65535."))
    return int(text)


def _ascii_host(host: str) -> tuple[str, str | None]:
    """The host in ASCII, with its final dot if it has one, and the IP address if it is one."""
    if not host or host == "[]":
        raise ValueError(_("The URL needs a host, such as https://example.com."))
    if len(host) > _MAX_HOST:
        raise ValueError(_(_TOO_LONG))
    if "%" in host:
        raise ValueError(_("The URL's host must not be percent-encoded."))
    if host.startswith("["):
        try:
            address = str(IPv6Address(host[1:-1]))
        except ValueError:
            raise ValueError(_("The URL's IPv6 address cannot be read.")) from None
        return address, address
    name = ascii_host(host)
    if _FORBIDDEN_IN_HOST.search(name):
        sentence = N_("The URL's host contains characters that are not allowed in host names.")
        raise ValueError(_(sentence))
    bare = name[:-1] if name.endswith(".") else name
    if not bare or bare.startswith(".") or ".." in name:
        raise ValueError(_("The URL's host has an empty part between its dots."))
    if legacy := _legacy_ipv4(bare):
        return legacy, legacy
    if len(bare) > 253 or any(len(label) > 63 for label in bare.split(".")):
        raise ValueError(_(_TOO_LONG))
    return name, None


def ascii_host(host: str) -> str:
    """A host name as it is sent: IDNA, in lower case. Raises ValueError with a sentence."""
    if host.isascii():
        return host.lower()
    # NFKC first: it turns full-width and circled digits and the ideographic full stop into
    # characters that inet_aton reads.
    plain = unicodedata.normalize("NFKC", host).replace("\u3002", ".").lower()
    if plain.isascii():
        return plain
    try:
        return idna.encode(plain, uts46=True, transitional=False).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise ValueError(_("The URL's host is not a valid international host name.")) from None


def _legacy_ipv4(host: str) -> str | None:
    """Read dotted, short, decimal, octal and hexadecimal IPv4 as the C library does; None for a
    name.
    """
    if not _LEGACY_IPV4.fullmatch(host):
        return None
    try:
        return str(IPv4Address(socket.inet_aton(host)))
    except OSError:
        return None


def is_ip_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


# --- Links from pages of Wakeful to other pages

NO_LINK = N_("This is not a URL. Enter one such as https://example.com/page.")


def is_link(text: str) -> bool:
    """Whether this is an http or https URL: ``javascript:`` would run code on a page of Wakeful."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def check_link(text: str) -> None:
    if not is_link(text):
        raise ValueError(_(NO_LINK))


def plain_network(network: IpNetwork) -> IpNetwork:
    """An IPv4 network that is written as IPv6 (::ffff:10.0.0.0/104), as IPv4."""
    start = network.network_address
    mapped = start.ipv4_mapped if isinstance(start, IPv6Address) else None
    if mapped is None or network.prefixlen < 96:
        return network
    return IPv4Network((mapped, network.prefixlen - 96))
