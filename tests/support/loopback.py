"""A WSGI application on a port of its own on loopback, for those who speak HTTP to it.

``@IPV6`` skips a test where loopback has no IPv6, as in many containers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RD
from threading import Thread
from typing import Any

import pytest
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from tests.lab.net import has_ipv6

IPV6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
POLL_SECONDS = 0.02  # how long the server takes to notice that it is to stop


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Say nothing: a test's own output is what matters."""


class _Server(ThreadedWSGIServer):
    """Its end waits for the requests on their way: one that outlives its application fails in a
    way that no test has asked for, and leaves what it has opened open.
    """

    daemon_threads = False
    block_on_close = True

    def __init__(self, app: Any) -> None:
        super().__init__("127.0.0.1", 0, app, _Quiet)
        self._connections: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        for connection in list(self._connections):
            with suppress(OSError):  # gone meanwhile
                connection.shutdown(SHUT_RD)  # one that is kept alive waits for more otherwise
        super().server_close()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The URL at which ``app`` answers, without a slash at its end."""
    server = _Server(app)
    thread = Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
