"""A WSGI application on a port of its own on loopback, for those who speak HTTP to it.

``reached`` is for requests in which HTTP makes no difference: it hands them over without a
connection, for half of the time.

``@IPV6`` skips a test where loopback has no IPv6, as in many containers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import cycle
from socket import SHUT_RD
from threading import Thread
from typing import Any

import pytest
import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3 import HTTPResponse
from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler
from werkzeug.test import EnvironBuilder, run_wsgi_app

from tests.lab.net import has_ipv6

IPV6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
_PORTS = cycle(range(1, 1000))  # where ``reached`` answers: nothing listens there
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


class _Direct(HTTPAdapter):
    """Hands what ``requests`` sends to ``app``."""

    def __init__(self, app: Any) -> None:
        super().__init__()
        self.app, self.url = app, f"http://localhost:{next(_PORTS)}"

    def send(self, request: requests.PreparedRequest, **_how: Any) -> requests.Response:
        assert request.url is not None
        path, _mark, query = request.url.removeprefix(self.url).partition("?")
        environ = EnvironBuilder(
            path=path,
            query_string=query,
            method=request.method or "GET",
            headers=list(request.headers.items()),
            data=request.body,
            base_url=self.url,
        ).get_environ()
        parts, status, headers = run_wsgi_app(self.app, environ)
        code, _space, reason = status.partition(" ")
        raw = HTTPResponse(
            BytesIO(b"".join(parts)), list(headers), int(code), reason=reason, preload_content=False
        )
        return self.build_response(request, raw)


@contextmanager
def reached(app: Any) -> Iterator[str]:
    """The URL at which ``app`` answers whoever asks with ``requests`` in this process."""
    direct, real = _Direct(app), requests.Session.get_adapter

    def adapter(session: requests.Session, url: str) -> BaseAdapter:
        return direct if url.startswith(f"{direct.url}/") else real(session, url)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests.Session, "get_adapter", adapter)
        yield direct.url
