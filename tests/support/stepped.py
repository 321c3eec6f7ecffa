"""A ``wakeful`` process whose clock a test sets, as an administrator or NTP would.

The process is a real one. Before anything of Wakeful is imported, ``time.time`` and
``datetime.now`` are replaced by ones that add what the test has written to a shared file. The
clocks that nobody can set (``time.monotonic``, the uptime) are left alone.
"""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HOME = Path(__file__).parents[2]  # nothing of the application is imported before its clock is set
_SECONDS = struct.Struct("d")


class Stepped:
    """``wakeful WORDS`` in this environment. ``ahead`` sets its clock, in seconds from the real
    one.
    """

    def __init__(self, file: Path, words: list[str], environ: Mapping[str, str]) -> None:
        file.write_bytes(_SECONDS.pack(0.0))
        self._file = file
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from tests.support import stepped; stepped.run()",
                file,
                *words,
            ],
            cwd=HOME,
            env={**environ, "PATH": os.environ["PATH"]},
        )

    def ahead(self, seconds: float) -> None:
        with self._file.open("r+b") as file:
            file.write(_SECONDS.pack(seconds))

    def end(self) -> int:
        self._process.terminate()
        try:
            return self._process.wait(60)
        finally:
            self._process.kill()


def run() -> None:
    """In the process: replace the clock, then run the command."""
    import datetime
    import time

    path, *words = sys.argv[1:]
    with open(path, "r+b") as file:
        shared = mmap.mmap(file.fileno(), _SECONDS.size)
    real = time.time

    def ahead() -> float:
        return float(_SECONDS.unpack(shared[:])[0])

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Shifted:
            return cls.fromtimestamp(real() + ahead(), tz)

    time.time = lambda: real() + ahead()
    datetime.datetime = Shifted  # type: ignore[misc]
    sys.argv = ["wakeful", *words]
    from app.commands.entry import main

    main()
