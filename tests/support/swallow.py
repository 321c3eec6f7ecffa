"""A TCP relay in front of PostgreSQL that can stop forwarding, like a lost route or a stuck pooler.

The kernel still accepts connections and acknowledges bytes, but nothing answers.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

TO_SERVER, TO_CLIENT = "to the server", "to the client"
BOTH = frozenset({TO_SERVER, TO_CLIENT})


class Relay:
    """``swallow(...)`` drops what goes in these directions, of old and new connections alike."""

    def __init__(self, directory: Path) -> None:
        self.target = str(directory / ".s.PGSQL.5432")
        self._swallowed: frozenset[str] = frozenset()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"

    def swallow(self, *directions: str) -> None:
        self._swallowed = frozenset(directions)

    def close(self) -> None:
        for tcp in (self._listener, *self._sockets):
            with suppress(OSError):
                tcp.shutdown(socket.SHUT_RDWR)
            tcp.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(self.target)
                for pair in ((client, server, TO_SERVER), (server, client, TO_CLIENT)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if direction not in self._swallowed:
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)
