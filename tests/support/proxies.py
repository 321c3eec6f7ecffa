"""The proxies of deploy/ in front of a web server of the test: their files, ports and processes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

DEPLOY = Path(__file__).parents[2] / "deploy"
START_SECONDS = 60

NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/wakeful.conf;
}}
"""


@dataclass(frozen=True)
class Ports:
    """``http`` redirects pages to ``https``, which leads to ``web``."""

    http: int
    https: int
    web: int


Command = list[str]


def certified(folder: Path, name: str) -> trustme.CA:
    """The authority of the certificate of this name, which is in the folder as the files expect."""
    authority = trustme.CA()
    leaf = authority.issue_cert(name)
    leaf.private_key_pem.write_to_path(folder / "privkey.pem")
    for part in leaf.cert_chain_pems:
        part.write_to_path(folder / "fullchain.pem", append=True)
    return authority


def caddy(folder: Path, text: str) -> Command:
    """Caddy with these sites, which asks nobody for a certificate."""
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("caddy is not installed: apt-get install caddy")
    options = f"admin off\nauto_https off\ndefault_bind 127.0.0.1\nstorage file_system {folder}"
    (folder / "Caddyfile").write_text(f"{{\n{options}\n}}\n{text}")
    return [program, "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]


@contextmanager
def running(command: Command, ports: Ports, folder: Path) -> Iterator[None]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
        try:
            _await(ports.https, process, folder)
            yield
        finally:
            process.terminate()
            process.wait(60)


def _await(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)  # neither program tells another process that it listens
        else:
            return
    raise AssertionError((folder / "log").read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
