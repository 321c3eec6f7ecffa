"""A real nginx on loopback that a test can stop and start again at the same address."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

START_SECONDS = 60

CONFIG = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    default_type text/html;
    server {{
        listen 127.0.0.1:{port};
        root {folder}/pages;
    }}
}}
"""


def program() -> str:
    """The path of nginx; skips the test in plain words if it is not installed."""
    path = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not path:
        pytest.skip("nginx is not installed: apt-get install nginx-light")
    return path


class Nginx:
    """One nginx with the given pages: ``Nginx(folder, {"index.html": "..."})``."""

    def __init__(self, folder: Path, pages: dict[str, str]) -> None:
        self.program = program()
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        (folder / "pages").mkdir(parents=True)
        for name, text in pages.items():
            (folder / "pages" / name).write_text(text)
        # Taken once and kept, so that a stopped nginx comes back where its monitor expects it.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=self.port))

    def url(self, page: str = "index.html") -> str:
        return f"http://127.0.0.1:{self.port}/{page}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.program, "-c", str(self.folder / "nginx.conf"), "-p", str(self.folder)],
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(
                    0.02
                )  # nginx has no event for "listening" that another process can await
            else:
                return
        raise RuntimeError(f"nginx did not start: {(self.folder / 'error.log').read_text()}")

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(60)
            self.process = None
