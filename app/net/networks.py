"""The special-purpose networks of the internet, each with its source, and the IPv4 addresses that
are embedded in IPv6 ones.

``ipaddress.is_global`` and ``is_private`` are not enough: they call 64:ff9b::7f00:1 (NAT64 for
127.0.0.1) global and 100.64.0.1 not private. ``word`` is the word in a setting that opens a row; if
it is None, only a network in the setting opens addresses of the row. ``sticky`` rows stay closed
even when a wider network is allowed: link-local and cloud metadata addresses hand out credentials,
so allowing 0.0.0.0/0 or ``private`` must not open them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

from app.i18n import N_
from app.rules.url import IpAddress, IpNetwork

PRIVATE = "private"
LOOPBACK = "loopback"
WORDS = (PRIVATE, LOOPBACK)


@dataclass(frozen=True, slots=True)
class Special:
    """One row: a network that is not the public internet. ``name`` reads well after "is"."""

    network: IpNetwork
    name: str
    word: str | None = None
    sticky: bool = False


def _row(cidr: str, name: str, word: str | None = None, sticky: bool = False) -> Special:
    return Special(ip_network(cidr), name, word, sticky)


# The addresses of clouds are from their user guides.
STICKY: tuple[Special, ...] = (
    _row("169.254.0.0/16", N_("a link-local or cloud metadata address"), sticky=True),  # RFC 3927
    _row("fe80::/10", N_("a link-local address"), sticky=True),  # RFC 4291 2.5.6
    _row("fd00:ec2::254/128", N_("the cloud metadata address of AWS"), sticky=True),
    _row("100.100.100.200/32", N_("the cloud metadata address of Alibaba Cloud"), sticky=True),
    _row("168.63.129.16/32", N_("the platform address of Azure"), sticky=True),
    _row("192.0.0.192/32", N_("the cloud metadata address of Oracle Cloud"), sticky=True),
)

# IPv4: IANA special-purpose address registry (RFC 6890 and updates), class D and E space.
_IPV4: tuple[Special, ...] = (
    _row("0.0.0.0/8", N_('an address of "this network"')),  # RFC 791 3.2; Linux: itself
    _row("10.0.0.0/8", N_("a private address"), PRIVATE),  # RFC 1918
    _row("100.64.0.0/10", N_("a private address (carrier NAT)"), PRIVATE),  # RFC 6598
    _row("127.0.0.0/8", N_("a loopback address"), LOOPBACK),  # RFC 1122 3.2.1.3
    _row("172.16.0.0/12", N_("a private address"), PRIVATE),  # RFC 1918
    _row("192.0.0.0/24", N_("an address for IETF protocols")),  # RFC 6890
    _row("192.0.2.0/24", N_("an address for documentation")),  # RFC 5737
    _row("192.31.196.0/24", N_("an AS112 address")),  # RFC 7535
    _row("192.52.193.0/24", N_("an AMT address")),  # RFC 7450
    _row("192.88.99.0/24", N_("a 6to4 relay address")),  # RFC 7526
    _row("192.168.0.0/16", N_("a private address"), PRIVATE),  # RFC 1918
    _row("192.175.48.0/24", N_("an AS112 address")),  # RFC 7534
    _row("198.18.0.0/15", N_("an address for benchmarks")),  # RFC 2544
    _row("198.51.100.0/24", N_("an address for documentation")),  # RFC 5737
    _row("203.0.113.0/24", N_("an address for documentation")),  # RFC 5737
    _row("224.0.0.0/4", N_("a multicast address")),  # RFC 5771
    _row("240.0.0.0/4", N_("a reserved address")),  # RFC 1112 4
    _row("255.255.255.255/32", N_("the broadcast address")),  # RFC 919
)

# IPv6: IANA special-purpose address registry; addresses outside 2000::/3 are not assigned.
_IPV6: tuple[Special, ...] = (
    _row("::/128", N_("the unspecified address")),  # RFC 4291 2.5.2
    _row("::1/128", N_("a loopback address"), LOOPBACK),  # RFC 4291 2.5.3
    _row("64:ff9b:1::/48", N_("an address for local NAT64")),  # RFC 8215
    _row("100::/64", N_("a discard-only address")),  # RFC 6666
    _row("100:0:0:1::/64", N_("a dummy address")),  # RFC 9780
    _row("2001:1::/32", N_("an address for IETF protocols")),  # RFC 2928
    _row("2001:2::/48", N_("an address for benchmarks")),  # RFC 5180
    _row("2001:3::/32", N_("an AMT address")),  # RFC 7450
    _row("2001:4:112::/48", N_("an AS112 address")),  # RFC 7535
    _row("2001:10::/28", N_("an ORCHID")),  # RFC 4843
    _row("2001:20::/28", N_("an ORCHIDv2")),  # RFC 7343
    _row("2001:30::/28", N_("a drone's identifier")),  # RFC 9374
    _row("2001:db8::/32", N_("an address for documentation")),  # RFC 3849
    _row("2620:4f:8000::/48", N_("an AS112 address")),  # RFC 7534
    _row("3ffe::/16", N_("an address of the closed 6bone")),  # RFC 3701
    _row("3fff::/20", N_("an address for documentation")),  # RFC 9637
    _row("5f00::/16", N_("a segment routing identifier")),  # RFC 9602
    _row("fc00::/7", N_("a private address"), PRIVATE),  # RFC 4193
    _row("fec0::/10", N_("a site-local address")),  # RFC 3879
    _row("ff00::/8", N_("a multicast address")),  # RFC 4291 2.7
)

SPECIAL: tuple[Special, ...] = (*_IPV4, *_IPV6)

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")  # RFC 4291 2.5.5.2
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")  # RFC 2765
_COMPATIBLE = IPv6Network("::/96")  # RFC 4291 2.5.5.1
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")  # RFC 8215
_6TO4 = IPv6Network("2002::/16")  # RFC 3056
_TEREDO = IPv6Network("2001::/32")  # RFC 4380
_LAST_32 = (_MAPPED, _TRANSLATED, _COMPATIBLE, _NAT64)
_ISATAP = (0x00005EFE, 0x02005EFE)  # RFC 5214 6.1, the upper half of the interface identifier

# IANA IPv6 address space (RFC 4291).
UNASSIGNED = Special(IPv6Network("::/0"), N_("not an assigned public address"))


def embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    """Every IPv4 address to which a packet for this IPv6 address may go; none for an ordinary
    one.
    """
    number = int(address)
    if number <= 1:  # :: and ::1 are in ::/96, but are rows of the table
        return
    low = IPv4Address(number & 0xFFFFFFFF)
    if any(address in network for network in _LAST_32) or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        yield low
    elif address in _6TO4:
        yield IPv4Address((number >> 80) & 0xFFFFFFFF)
    elif address in _TEREDO:
        yield IPv4Address((number >> 64) & 0xFFFFFFFF)  # the server
        yield IPv4Address(int(low) ^ 0xFFFFFFFF)  # the client, written inverted
    elif address in _NAT64_LOCAL:
        if int(low):
            yield low  # a /96 prefix
        # A /48 prefix: 16 bits, the empty octet "u", 16 bits, zeros (RFC 6052 2.2)
        if not number & ((1 << 40) - 1):
            yield IPv4Address(((number >> 64) & 0xFFFF) << 16 | (number >> 40) & 0xFFFF)


def special(address: IpAddress) -> Special | None:
    """The sticky row that contains the address, else the narrowest row; None for a public one."""
    for row in STICKY:
        if address in row.network:
            return row
    narrowest: Special | None = None
    for row in SPECIAL:
        if address in row.network and (
            narrowest is None or row.network.prefixlen > narrowest.network.prefixlen
        ):
            narrowest = row
    if narrowest is not None or isinstance(address, IPv4Address):
        return narrowest
    if address in _GLOBAL_UNICAST or any(address in network for network in _LAST_32):
        return None  # judged by the embedded IPv4 address
    return UNASSIGNED
