"""The laboratory: one object that starts listeners when a row first asks for them, and closes all.

Its methods give URLs; every name below ``lab.test`` is resolved by the lab's own name servers.
"""

from __future__ import annotations

import itertools
import shutil
import ssl
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol
from urllib.parse import quote, urlsplit

from tests.lab import content, dns, h2, http, old_tls, ping, starttls, tcp, tls
from tests.lab.ca import Certificates
from tests.lab.net import BlackHole, ClosedPort, Handler, Listener, has_ipv6

assert content  # importing it registers its routes

# Handlers that are no ssl.SSLContext around the good server.
_OLD_TLS = "no_secure_renegotiation"

_CONTEXTS: dict[str, Callable[[ssl.SSLContext], ssl.SSLContext]] = {
    "tls_1_0_only": lambda c: tls.only_version(c, ssl.TLSVersion.TLSv1),
    "tls_1_1_only": lambda c: tls.only_version(c, ssl.TLSVersion.TLSv1_1),
    "tls_1_2_only": lambda c: tls.only_version(c, ssl.TLSVersion.TLSv1_2),
    "tls_1_3_only": tls.only_tls_1_3,
    "small_dh": tls.only_small_dh,
    "sni_required": tls.named_only,
    "no_common_cipher": tls.only_rsa,
    "client_certificate_1_2": lambda c: tls.client_certificate(c, ssl.TLSVersion.TLSv1_2),
    "client_certificate_1_3": lambda c: tls.client_certificate(c, ssl.TLSVersion.TLSv1_3),
}


class Closable(Protocol):
    port: int

    def close(self) -> None: ...


class Lab:
    """Use as a context manager. Thread safe: rows run beside each other."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wakeful-lab-"))
        self.certificates = Certificates(self.folder)
        self.ca_bundle = str(self.certificates.bundle)
        self.dns = dns.DnsServers()
        self._parts: dict[str, list[Closable]] = {}
        self._lock = threading.RLock()
        self._numbers = itertools.count()
        self.has_ipv6 = has_ipv6()
        self._played = ping.played()
        self._played.__enter__()

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._played.__exit__(None, None, None)
        for parts in self._parts.values():
            for part in parts:
                part.close()
        self.dns.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def fresh(self, stem: str) -> str:
        """A name of which nothing is known yet: its sequence of DNS answers begins now."""
        return f"{stem}-{next(self._numbers)}.lab.test"

    def rebinding(self) -> str:
        """A redirect back to the same name, which by then has an address that policy forbids."""
        host = self.fresh("rebinding")
        return self.http(f"/to/302?url={quote(self.other(host=host), safe='')}", host)

    # --- URLs ---------------------------------------------------------------------------------

    def http(self, path: str = "/good", host: str = "good.lab.test") -> str:
        """The well-made web server of http.py and content.py, on 127.0.0.1 and ::1."""
        return f"http://{host}:{self._both_families('http', http.serve)}{path}"

    def other(self, path: str = "/good", host: str = "good.lab.test") -> str:
        """The same server on another port: another origin."""
        return f"http://{host}:{self._both_families('other', http.serve)}{path}"

    def https(self, kind: str = "valid", path: str = "/good", host: str = "good.lab.test") -> str:
        """The same server behind a certificate of a kind of ca.py, or a context named above."""
        return f"https://{host}:{self._both_families(f'https {kind}', self._tls(kind))}{path}"

    def h2(self, fault: str) -> str:
        """An HTTP/2 server with a fault of h2.py."""
        context = self.certificates.context("valid", alpn=("h2",))
        handler = tls.over_tls(context, h2.HANDLERS[fault])
        return f"https://good.lab.test:{self._server(fault, lambda: Listener(handler))}/"

    def tcp(self, fault: str) -> str:
        """A listener with a fault of tcp.py."""
        return f"http://good.lab.test:{self._server(fault, lambda: Listener(tcp.HANDLERS[fault]))}/"

    def tls(self, fault: str) -> str:
        """A listener with a fault of tls.py."""
        handler = tls.HANDLERS[fault]
        return f"https://good.lab.test:{self._server(fault, lambda: Listener(handler))}/"

    def tcp_over_tls(self, fault: str) -> str:
        """A fault of tcp.py behind a good handshake."""
        handler = tls.over_tls(self.certificates.context(), tcp.HANDLERS[fault])
        return f"https://good.lab.test:{self._server(f'{fault} tls', lambda: Listener(handler))}/"

    def closed(self, host: str = "good.lab.test", scheme: str = "http") -> str:
        """A port that refuses."""
        return f"{scheme}://{host}:{self._server('closed', ClosedPort)}/"

    def black_hole(self, host: str = "good.lab.test") -> str:
        """A port that never answers a SYN."""
        return f"http://{host}:{self._server('black hole', BlackHole)}/"

    def port(self, place: str, *args: str, **words: str) -> str:
        """The port of another method's URL, as ``tcp://``."""
        return f"tcp://{urlsplit(getattr(self, place)(*args, **words)).netloc}"

    def secure(self, place: str, *args: str, **words: str) -> str:
        """The port of another method's URL, as ``tls://``."""
        return f"tls://{urlsplit(getattr(self, place)(*args, **words)).netloc}"

    def record(self, label: str, server: str = "") -> str:
        """The A records of a name, asked of the lab's servers or of a named one."""
        return f"dns:{server}/{label}.lab.test" if server else f"dns:{label}.lab.test"

    def ping(self, host: str = "good.lab.test") -> str:
        return f"ping://{host}"

    def starttls(self, protocol: str, kind: str = "valid", *, refuses: bool = False) -> str:
        """A server of this protocol that starts TLS, with a certificate of a kind of ca.py."""
        handler = starttls.serving(protocol, self.certificates.context(kind), refuses=refuses)
        name = f"starttls {protocol} {kind} {refuses}"
        return f"tls://good.lab.test:{self._server(name, lambda: Listener(handler))}"

    def dual(self, v4: str, v6: str, path: str = "/good") -> str:
        """A name with both families, each ``open``, ``closed`` or ``dropped`` on the same port."""
        with self._lock:
            name = f"dual {v4} {v6}"
            if name not in self._parts:
                self._parts[name] = self._pair(_MAKERS[v4], _MAKERS[v6])
            return f"http://dual.lab.test:{self._parts[name][0].port}{path}"

    def connections(self) -> int:
        """How many connections the well-made servers have taken so far."""
        listeners = [p for parts in self._parts.values() for p in parts if isinstance(p, Listener)]
        return sum(listener.connections for listener in listeners)

    # --- Starting things ----------------------------------------------------------------------

    def _tls(self, kind: str) -> Handler:
        if kind == "sni":
            others = self.certificates.context("wrong_host")
            return tls.over_tls(tls.by_name(self.certificates.context(), others), http.serve)
        if kind == _OLD_TLS:
            pem = self.certificates.path("rsa").read_bytes()
            return old_tls.without_secure_renegotiation(pem)
        change = _CONTEXTS.get(kind)
        with_rsa = change is tls.only_small_dh
        context = self.certificates.context("rsa" if with_rsa else "valid" if change else kind)
        return tls.over_tls(change(context) if change else context, http.serve)

    def _server(self, name: str, make: Callable[[], Closable]) -> int:
        with self._lock:
            if name not in self._parts:
                self._parts[name] = [make()]
            return self._parts[name][0].port

    def _both_families(self, name: str, handler: Handler) -> int:
        with self._lock:
            if name not in self._parts:

                def make(address: str, port: int) -> Closable:
                    return Listener(handler, address, port)

                self._parts[name] = self._pair(make, make)
            return self._parts[name][0].port

    def _pair(self, v4: Maker, v6: Maker) -> list[Closable]:
        """Something on 127.0.0.1 and, where there is IPv6, something on ::1 on the same port."""
        if not self.has_ipv6:
            return [v4("127.0.0.1", 0)]
        for _ in range(20):
            first = v4("127.0.0.1", 0)
            try:
                return [first, v6("::1", first.port)]
            except OSError:  # the port is taken in the other family
                first.close()
        raise RuntimeError("No port is free in both families.")


Maker = Callable[[str, int], Closable]


def _open(address: str, port: int) -> Closable:
    return Listener(http.serve, address, port)


_MAKERS: dict[str, Maker] = {"open": _open, "closed": ClosedPort, "dropped": BlackHole}
