"""``make try-places``: what people start to try places ends as a whole, whatever they press."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine.carriers.queue.broker import make_redis
from tests.support.postgres import find_binaries

ROOT = Path(__file__).parents[1]
START_SECONDS = 60
SCRIPT = ROOT / "scripts" / "try-places"
needs_servers = pytest.mark.skipif(
    find_binaries() is None or shutil.which("redis-server") is None,
    reason="PostgreSQL or Redis is not installed",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def ports() -> dict[str, int]:
    return {name: free_port() for name in ("WAKEFUL_BIND", "REDIS_PORT", "POSTGRES_PORT")}


@pytest.fixture
def trying(ports: dict[str, int], tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The script in a session of its own, as in a terminal: its process group gets Ctrl-C."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    own |= {name: str(port) for name, port in ports.items()}
    own |= {"WAKEFUL_BIND": f"127.0.0.1:{ports['WAKEFUL_BIND']}", "VENV": sys.prefix}
    # Not a pipe: servers that the script left behind would hold its other end.
    with (tmp_path / "said").open("wb") as output:
        process = subprocess.Popen([SCRIPT], env=own, stdout=output, start_new_session=True)
    yield process
    process.kill()
    process.wait()


def await_line(file: Path, words: str) -> None:
    until = time.monotonic() + START_SECONDS
    while words not in file.read_text():
        assert time.monotonic() < until, file.read_text()
        time.sleep(0.05)  # a file announces nothing that another process can await


def folder_of(port: int) -> Path:
    """The folder with the data of all of it: Redis says it."""
    client = make_redis(f"redis://127.0.0.1:{port}/0")
    (folder,) = client.config_get("dir").values()
    client.close()
    return Path(os.fsdecode(folder))


@pytest.mark.more
@pytest.mark.slow
@needs_servers
def test_a_second_ctrl_c_leaves_no_server_and_no_data_behind(trying, ports, tmp_path):
    await_line(tmp_path / "said", "Wakeful runs at")
    folder = folder_of(ports["REDIS_PORT"])
    assert folder.exists()
    os.killpg(trying.pid, signal.SIGINT)
    await_line(tmp_path / "said", "Stopping")
    os.killpg(trying.pid, signal.SIGINT)
    trying.wait(60)
    for name, port in ports.items():
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0, name
    assert not folder.exists()
