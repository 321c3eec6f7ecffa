"""Names and DNS servers of this machine: /etc/hosts, /etc/resolv.conf, ``localhost`` and
``DNS_SERVERS``.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from app.i18n import N_, _

_STAT_SECONDS = 5.0  # the pause before a file is examined again for changes
_LOCALHOST = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class DnsServer:
    """One DNS server; ``address`` is an IP address."""

    address: str
    port: int = 53

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return host if self.port == 53 else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class SystemConfig:
    """The DNS servers, and how a short name is completed."""

    servers: tuple[DnsServer, ...]
    search: tuple[str, ...] = ()
    ndots: int = 1

    def names(self, host: str) -> tuple[str, ...]:
        """The names to look up, in the order of the C library. A name with a final dot is absolute:
        it is not looked up below a search domain, where anybody may have it.
        """
        if host.endswith("."):
            return (host,)
        qualified = tuple(
            f"{host}.{domain}" for domain in self.search if len(host) + len(domain) < 253
        )
        return (host, *qualified) if host.count(".") >= self.ndots else (*qualified, host)


def parse_servers(text: str) -> tuple[DnsServer, ...]:
    """Read ``127.0.0.1:5353, [::1]:53, 9.9.9.9``. Raises ValueError with a sentence."""
    return tuple(_server(part.strip()) for part in text.split(",") if part.strip())


def _server(part: str) -> DnsServer:
    host, port = part, "53"
    if part.startswith("["):
        host, bracket, suffix = part[1:].partition("]")
        port = "53" if bracket and not suffix else suffix[1:] if suffix.startswith(":") else "none"
    elif part.count(":") == 1:
        host, _colon, port = part.partition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else 0
    try:
        address = str(ip_address(host))
    except ValueError:
        number, address = 0, ""
    if not 1 <= number <= 65_535:
        sentence = N_(
            "%(part)s is not a DNS server. Write an IP address and a port, such as 127.0.0.1:53."
        )
        raise ValueError(_(sentence, part=repr(part)))
    return DnsServer(address, number)


def read_resolv_conf(text: str) -> SystemConfig:
    """Read /etc/resolv.conf. If it names no server, 127.0.0.1 is used, as in the C library."""
    servers: list[DnsServer] = []
    search: tuple[str, ...] = ()
    ndots = 1
    for line in text.splitlines():
        word, *values = line.split() or [""]
        if word == "nameserver" and values:
            try:
                servers.append(DnsServer(str(ip_address(values[0]))))
            except ValueError:
                continue
        elif word in ("search", "domain"):
            search = tuple(domain.strip(".").lower() for domain in values if domain.strip("."))
        elif word == "options":
            for option in values:
                name, _colon, value = option.partition(":")
                if name == "ndots" and value.isdigit():
                    ndots = min(int(value), 15)
    return SystemConfig(tuple(servers) or (DnsServer("127.0.0.1"),), search, ndots)


def read_hosts(text: str) -> dict[str, tuple[str, ...]]:
    """Read /etc/hosts: addresses by lower-case name, in the file's order, without duplicates."""
    by_name: dict[str, list[str]] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        try:
            plain = str(ip_address(address.partition("%")[0]))
        except ValueError:
            continue
        for name in names:
            addresses = by_name.setdefault(name.lower().rstrip("."), [])
            if plain not in addresses:
                addresses.append(plain)
    return {name: tuple(addresses) for name, addresses in by_name.items()}


class _File:
    """A file that is read again when it has changed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._examined_at = float("-inf")
        self._stamp: tuple[int, int] | None = None

    def read_if_changed(self) -> str | None:
        """The text of the file; None if it has not changed since it was last read, or was examined
        a moment ago.
        """
        now = time.monotonic()
        if now - self._examined_at < _STAT_SECONDS:
            return None
        is_first = self._examined_at == float("-inf")
        self._examined_at = now
        try:
            stat = os.stat(self.path)
            stamp: tuple[int, int] | None = (stat.st_mtime_ns, stat.st_size)
            if stamp == self._stamp:
                return None
            self._stamp = stamp
            return Path(self.path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            self._stamp = None
            return "" if is_first else None


class SystemNames:
    """The machine's files, read again every few seconds: a DHCP lease changes them while the server
    runs.
    """

    def __init__(
        self,
        servers: tuple[DnsServer, ...] = (),
        hosts: str = "/etc/hosts",
        resolv_conf: str = "/etc/resolv.conf",
    ) -> None:
        self._hosts_file = _File(hosts)
        self._resolv_file = _File(resolv_conf)
        self._hosts: dict[str, tuple[str, ...]] = {}
        self._fixed = SystemConfig(servers) if servers else None
        self._config = SystemConfig((DnsServer("127.0.0.1"),))

    def local(self, host: str) -> tuple[str, ...] | None:
        """The addresses of a name in /etc/hosts or of ``localhost``; None if DNS must be asked."""
        text = self._hosts_file.read_if_changed()
        if text is not None:
            self._hosts = read_hosts(text)
        host = host.removesuffix(".")
        addresses = self._hosts.get(host)
        if addresses is None and (host == "localhost" or host.endswith(".localhost")):
            return _LOCALHOST  # RFC 6761 6.3: DNS is never asked for it
        return addresses

    def config(self) -> SystemConfig:
        if self._fixed is not None:
            return self._fixed
        text = self._resolv_file.read_if_changed()
        if text is not None:
            self._config = read_resolv_conf(text)
        return self._config
