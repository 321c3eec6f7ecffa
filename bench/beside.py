"""The reference that the engine is measured beside, Prometheus' blackbox_exporter; the target,
nginx on loopback over HTTP and HTTPS; and what processes take.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import trustme

from bench.checks import NGINX, PAGE

ADDRESS = "127.0.0.1"
PROBES_AT_ONCE = 10
_SCHEDULER_CLOCK = 2  # of a process, from <linux/posix-timers.h>
_MODULES = """
modules:
  http_2xx:
    prober: http
    timeout: 30s
    http: {{ tls_config: {{ ca_file: {authority} }} }}
"""


@contextmanager
def target(folder: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """nginx in a process of its own: its URLs by scheme, and the authority of its certificate."""
    folder.chmod(0o755)
    authority = trustme.CA()
    leaf = authority.create_child_ca().issue_cert(ADDRESS)
    (folder / "chain.pem").write_bytes(b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
    (folder / "key.pem").write_bytes(leaf.private_key_pem.bytes())
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    ports = free_port(), free_port()
    config = NGINX.format(folder=folder, http=ports[0], https=ports[1], page=PAGE)
    (folder / "nginx.conf").write_text(config)
    program = _program("nginx")
    with _running([program, "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]):
        _answers(ports[1])
        urls = {
            scheme: f"{scheme}://{ADDRESS}:{port}/"
            for scheme, port in zip(("http", "https"), ports, strict=True)
        }
        yield urls, folder / "authority.pem"


class Blackbox:
    """blackbox_exporter, asked for probes over its own HTTP interface, as Prometheus asks it."""

    def __init__(self, program: str, folder: Path, authority: Path) -> None:
        self.port = free_port()
        config = folder / "blackbox.yml"
        config.write_text(_MODULES.format(authority=authority))
        self.process = subprocess.Popen(
            [program, f"--config.file={config}", f"--web.listen-address={ADDRESS}:{self.port}"],
            stderr=subprocess.DEVNULL,
        )
        _answers(self.port)

    @staticmethod
    def program() -> str | None:
        """Where it is installed: ``apt-get install prometheus-blackbox-exporter``."""
        named = os.environ.get("BLACKBOX_EXPORTER")
        return (
            named
            or shutil.which("prometheus-blackbox-exporter")
            or shutil.which("blackbox_exporter")
        )

    def run(self, url: str, checks: int, seconds: float = 0.0) -> float:
        """The CPU seconds that its process takes for so many probes: spread over ``seconds``, or
        flat out.
        """
        path = f"/probe?module=http_2xx&target={quote(url, safe='')}"
        began, before = time.monotonic(), cpu_of(self.process.pid)
        pause = seconds / checks

        def probes(first: int) -> None:
            connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=60)
            for number in range(first, checks, PROBES_AT_ONCE):
                time.sleep(max(0.0, began + number * pause - time.monotonic()))
                connection.request("GET", path)
                if b"probe_success 1" not in connection.getresponse().read():
                    raise SystemExit("A probe of blackbox_exporter failed: figures mean nothing.")
            connection.close()

        with ThreadPoolExecutor(PROBES_AT_ONCE) as pool:
            list(pool.map(probes, range(PROBES_AT_ONCE)))
        return cpu_of(self.process.pid) - before

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)


def environment() -> dict[str, str]:
    """What a part of Wakeful inherits: nothing of the settings of whoever measures may leak in."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}


def processes(pid: int) -> list[int]:
    """A process and those that it has started, and so on."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *chain.from_iterable(processes(int(child)) for child in children)]


def cpu_of(pid: int) -> float:
    """The CPU seconds that a process has used, as its clock counts them: to the nanosecond, where
    the 10 ms of /proc would hide what a process at rest takes.
    """
    return time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)


def cpu_of_all(pid: int) -> float:
    """The CPU seconds that a process and those that it has started have used."""
    return sum(map(cpu_of, processes(pid)))


def pss_of(pid: int) -> float:
    """The memory of a process in MB, with its share of what it shares with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


@contextmanager
def _running(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.terminate()
        process.wait(10)


def _answers(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex((ADDRESS, port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"Nothing listens on port {port}.")


def _program(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if path is None:
        raise SystemExit(f"{name} is not installed.")
    return path


def free_port() -> int:
    with socket.socket() as one:
        one.bind((ADDRESS, 0))
        return int(one.getsockname()[1])
