"""The headers of a proxy in front of Wakeful: the address, scheme and host of the client, and the
folder of the site in which Wakeful is.

Anybody can send ``X-Forwarded-For``, so these headers are read only from the networks that
``TRUSTED_PROXIES`` names (decision 15). From everybody else they are removed.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Container, Iterable, Sequence
from typing import Any

from app.i18n import N_, _
from app.lasting import Lasting
from app.middleware import Environ, Layer
from app.rules.url import IpAddress, IpNetwork, plain_network

log = logging.getLogger(__name__)

_SEGMENT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._~-]+")


FOR, PROTO, HOST = "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO", "HTTP_X_FORWARDED_HOST"
PREFIX = "HTTP_X_FORWARDED_PREFIX"
NO_NETWORK = N_("%(part)s is neither an address nor a network (CIDR).")
EVERYBODY = N_("%(part)s trusts everybody. Name the addresses of your proxies.")
NOT_TRUSTED = (
    "A request from %s has the header X-Forwarded-For, which is ignored. If that is your proxy,"
    " set WAKEFUL_TRUSTED_PROXIES=%s. Until then, all of its visitors count as one address."
)


class Proxies(Layer):
    """``trusted``: the networks of proxies whose headers are read. ``folder``: that of PUBLIC_URL,
    such as ``/wakeful``; "" for the root. ``names``: the first segments of the paths of Wakeful.
    """

    def __init__(
        self, trusted: Sequence[IpNetwork], folder: str = "", names: Container[str] = ()
    ) -> None:
        self._trusted = tuple(trusted)
        self._folder, self._names = folder, names
        self._log = Lasting(log)

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        self.apply(environ)
        return self.inner(environ, start_response)

    def apply(self, environ: Environ) -> None:
        """Put the client's address, scheme and host in place of the proxy's, and the folder into
        ``SCRIPT_NAME``, with which every link begins.
        """
        chain, scheme, host, prefix = (
            _values(environ.pop(name, "")) for name in (FOR, PROTO, HOST, PREFIX)
        )
        peer = address_of(environ.get("REMOTE_ADDR", ""))
        if peer is None or not self._trusts(peer):
            if chain and peer is not None:
                self._warn(peer)
            self._enter(environ, self._folder)
            return
        if chain:
            environ["REMOTE_ADDR"] = str(self._client(peer, chain))
        # The nearest proxy wrote the last value. A client may have written those before it.
        if scheme and scheme[-1].lower() in ("http", "https"):
            environ["wsgi.url_scheme"] = scheme[-1].lower()
        if host:
            environ["HTTP_HOST"] = host[-1]
        folder = prefix[-1].rstrip("/") if prefix else ""
        if is_folder(folder):
            self._enter(environ, folder, is_own=folder[1:].partition("/")[0] in self._names)
        else:
            self._enter(environ, self._folder)

    def _enter(self, environ: Environ, folder: str, *, is_own: bool = False) -> None:
        """Move the folder from the path to SCRIPT_NAME. A proxy may remove it from paths, or leave
        it there. ``is_own``: the folder is named like a path of Wakeful, such as ``/status``. A
        path that begins with it is taken for that path, and is not changed.
        """
        if not folder or environ.get("SCRIPT_NAME"):  # the web server may have set it
            return
        path = environ.get("PATH_INFO", "")
        if not is_own and f"{path}/".startswith(f"{folder}/"):
            path = path[len(folder) :]
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = folder, path or "/"

    def _client(self, peer: IpAddress, chain: Sequence[str]) -> IpAddress:
        """The last address that is not a trusted proxy's. A client may invent the addresses before
        it.
        """
        client = peer
        for value in reversed(chain):
            address = address_of(value)
            if address is None:
                break
            client = address
            if not self._trusts(address):
                break
        return client

    def _trusts(self, address: IpAddress) -> bool:
        return any(address in network for network in self._trusted)

    def _warn(self, peer: IpAddress) -> None:
        """Warn once: without the setting, all visitors share the limits of one address. Only a peer
        in a private network can be the installation's proxy.
        """
        if peer.is_private or peer.is_loopback:
            self._log.warning(NOT_TRUSTED, peer, peer, cause=True)


def is_folder(path: str) -> bool:
    """Whether a path is a folder that has only one spelling, such as ``/wakeful``."""
    return path.startswith("/") and all(map(_SEGMENT.fullmatch, path[1:].split("/")))


def _values(header: str) -> list[str]:
    return [value for part in header.split(",") if (value := part.strip())]


def address_of(value: str) -> IpAddress | None:
    """The IP address of ``value``, which may have a port; None if it is not an address."""
    if value.startswith("["):
        value = value[1:].partition("]")[0]
    elif value.count(":") == 1:
        value = value.partition(":")[0]
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def networks(raw: str) -> tuple[IpNetwork, ...]:
    """The networks that ``TRUSTED_PROXIES`` names. Raises ValueError."""
    trusted = read_networks(raw)
    for network in trusted:
        if network.prefixlen == 0:
            raise ValueError(_(EVERYBODY, part=network))
    return trusted


def read_networks(raw: str) -> tuple[IpNetwork, ...]:
    """Addresses and networks (CIDR), separated by commas. An IPv4 address in IPv6 notation counts
    as IPv4, as in ``address_of``. Raises ValueError with a sentence.
    """
    return tuple(_network(part.strip()) for part in raw.split(",") if part.strip())


def _network(part: str) -> IpNetwork:
    try:
        network = ipaddress.ip_network(part, strict=False)
    except ValueError:
        raise ValueError(_(NO_NETWORK, part=repr(part))) from None
    return plain_network(network)
