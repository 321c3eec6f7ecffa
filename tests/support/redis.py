"""A real Redis on loopback that a test can kill and start again at the same address."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine.carriers.queue.broker import make_redis

START_SECONDS = 10


class Redis:
    def __init__(self, folder: Path) -> None:
        path = shutil.which("redis-server") or shutil.which("redis-server", path="/usr/bin")
        if not path:
            pytest.skip("Redis is not installed: apt-get install redis-server")
        self.program, self.folder = path, folder
        folder.mkdir(parents=True, exist_ok=True)
        # Taken once and kept, so that a Redis that was killed comes back at its address.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = make_redis(self.url)

    def start(self) -> None:
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir"]
        self.process = subprocess.Popen(
            [self.program, *words, str(self.folder)], stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.02)  # Redis announces nothing that another process can await
            else:
                return
        raise RuntimeError("Redis did not start.")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def everything(self) -> bytes:
        """All keys and values that it holds."""
        parts: list[bytes] = []
        for key in self.client.keys("*"):
            parts += [key, self.client.dump(key) or b""]
            if self.client.type(key) == b"list":
                parts += self.client.lrange(key, 0, -1)
        return b"\n".join(parts)

    def close(self) -> None:
        self.client.close()
        self.kill()


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path / "redis")
    server.start()
    yield server
    server.close()
