"""The web server as ``wakeful web`` runs it, a process of its own, with limits of a test's own."""

from __future__ import annotations

import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from flask import Flask, send_file

from app import create_app
from app.commands.serve import listen
from app.commands.web.webserver import WebServer
from app.commands.web.webworker import Limits
from app.config import Settings, read
from app.db import db
from tests.support.command import environ_of, start

SECRET_KEY = "a secret key for tests only"


@dataclass(frozen=True)
class Installation:
    """A database of its own, on SQLite, for one process after another."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "INSTANCE": str(self.folder),
            "DATABASE_URL": f"sqlite:///{self.folder}/wakeful.db",
            "SECRET_KEY": SECRET_KEY,
            "ALLOW_NETWORKS": "loopback",
            "CANARIES": "",
            "RATE_LIMIT": "0",
        }

    @contextmanager
    def app(self) -> Iterator[Flask]:
        """The application in this process, to make records with."""
        url = self.environment["DATABASE_URL"]
        app = create_app(Settings(instance=self.folder, database_url=url, secret_key=SECRET_KEY))
        try:
            yield app
        finally:
            with app.app_context():
                db.engine.dispose()


def installation(folder: Path, sqlite_template: Path) -> Installation:
    shutil.copyfile(sqlite_template, folder / "wakeful.db")
    return Installation(folder)


@dataclass(frozen=True)
class Web:
    port: int
    pid: int

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **more: Any) -> requests.Response:
        """A request on a connection of its own."""
        return requests.get(self.base + path, timeout=60, allow_redirects=False, **more)

    def post(self, path: str, fields: Any = None, **more: Any) -> requests.Response:
        return requests.post(self.base + path, fields, timeout=60, allow_redirects=False, **more)

    def connect(self, sent: bytes = b"", *, buffer: int | None = None) -> socket.socket:
        """A connection over which ``sent`` has gone; ``buffer``: what it takes unread, in bytes."""
        client = socket.socket()
        if buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.settimeout(60)
        client.connect(("127.0.0.1", self.port))
        client.sendall(sent)
        return client

    def log_in(self, email: str, password: str) -> requests.Session:
        session = requests.Session()
        fields = {"email": email, "password": password, "csrf_token": csrf(session, self.base)}
        answer = session.post(f"{self.base}/login", fields, timeout=60, allow_redirects=False)
        assert answer.status_code == 302, answer.text
        return session

    def peak_memory(self) -> int:
        """The most bytes that it had in memory since ``forget_peak``."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert match
        return int(match[1]) * 1024

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


def csrf(session: requests.Session, base: str) -> str:
    page = session.get(f"{base}/login", timeout=60).text
    match = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)
    assert match, page
    return match[1]


@contextmanager
def web_process(
    installation: Installation,
    limits: dict[str, Any] | None = None,
    file: Path | None = None,
    **settings: str,
) -> Iterator[Web]:
    """``settings`` are named as in the environment, without the prefix. With a ``file``, its
    application answers nothing but ``/healthz`` and that.
    """
    environ = environ_of(**(installation.environment | settings))
    with listen("127.0.0.1:0") as listener:
        process = start(_serve, listener, limits or {}, file, environ=environ)
        web = Web(listener.getsockname()[1], process.pid or 0)
        try:
            assert requests.get(f"{web.base}/healthz", timeout=60).status_code == 200
            yield web
        finally:
            process.terminate()
            process.join(60)


def any_gunicorn(listener: socket.socket, *words: str) -> None:
    """``gunicorn WORDS`` on a socket that is open, to be started."""
    sys.argv = ["gunicorn", *words, "--bind", f"fd://{listener.fileno()}"]
    from gunicorn.app.wsgiapp import run

    run()


class _FileServer(WebServer):
    file: Path

    def load(self) -> Flask:
        app = Flask("file")
        app.add_url_rule("/healthz", "healthz", lambda: "ok")
        app.add_url_rule("/file", "file", lambda: send_file(self.file))
        return app


def _serve(listener: socket.socket, limits: dict[str, Any], file: Path | None) -> None:
    server = (_FileServer if file else WebServer)(read(), listener.fileno(), Limits(**limits))
    if isinstance(server, _FileServer) and file:
        server.file = file
    server.run()
