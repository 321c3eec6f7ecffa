"""``wakeful serve`` as a person runs it: a process of its own, with an installation of its own.

Service      forked from a process that has imported all of Wakeful (``tests.support.command``)
Installed    the installed program, which a test runs that is about how it starts
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.support.command import Running, wakeful

T = TypeVar("T")
START_SECONDS = 60


class Service:
    """A running ``wakeful serve``. ``lines`` holds all that it printed."""

    def __init__(self, instance: Path, **settings: str) -> None:
        self.instance = instance
        # Nothing of the tester's own settings may leak in.
        self.environ = {k: v for k, v in os.environ.items() if not k.startswith("WAKEFUL_")}
        self.environ |= {
            "WAKEFUL_INSTANCE": str(instance),
            "WAKEFUL_BIND": "127.0.0.1:0",
            "WAKEFUL_ALLOW_NETWORKS": "loopback",
            "PYTHONUNBUFFERED": "1",
        }
        self.environ |= {f"WAKEFUL_{name}": value for name, value in settings.items()}
        self.lines: list[str] = []
        self._fresh: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def start(self, command: str = "serve") -> None:
        self.process = self._launch(command)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _launch(self, command: str) -> Running | subprocess.Popen[str]:
        return Running([command], self.environ)

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._fresh.put(line.rstrip())
        self._fresh.put(None)

    def await_line(self, pattern: str, seconds: float = START_SECONDS) -> re.Match[str]:
        """The first printed line that matches, waited for."""
        for line in self.lines:
            if match := re.search(pattern, line):
                return match
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                line = self._fresh.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                break
            self.lines.append(line)
            if match := re.search(pattern, line):
                return match
        printed = "\n".join(self.lines)
        raise AssertionError(f"{pattern!r} was not printed. Printed:\n{printed}")

    def command(self, *words: str, input: str | None = None) -> str:
        """Run ``wakeful WORDS`` on the same installation; its standard output."""
        done = wakeful(list(words), self.environ, input or "", START_SECONDS)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def stop(self) -> int:
        """End it as Ctrl-C does; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(60)
        finally:
            self.process.kill()
            self._reader.join(5)
            if self.process.stdout:
                self.process.stdout.close()
            while not self._fresh.empty():
                self.lines += [line for line in [self._fresh.get()] if line is not None]
        return code


class Installed(Service):
    """The installed program, which imports what it needs."""

    def _launch(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [Path(sys.executable).with_name("wakeful"), command],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def eventually(look: Callable[[], T | None], what: str, seconds: float = 90) -> T:
    """What ``look`` returns once it is true: for states of a process that announces nothing."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := look():
            return value
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds} s")


def parts(service):
    """The process ids of the supervisor's children by name; ``zombies`` among them is a fault."""
    ids = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            name = (path.parent / "comm").read_text().split()
        except OSError:
            continue
        if int(fields[1]) == service.process.pid:
            if fields[0] == "Z":
                ids["zombies"] = int(path.parent.name)
            elif name[0] == "wakeful" and len(name) == 2:
                ids[name[1]] = int(path.parent.name)
    return ids
