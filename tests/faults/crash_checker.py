"""A real checker process that kills itself, as ``kill -9`` would, at one step of a failing check.

``step`` is ``checking`` (the target has answered), ``checked`` (it came back, nothing is written),
``recording`` (all is written, not committed), ``recorded`` (committed, nothing follows from it) or
``never``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from app import create_core
from app.commands.processes import until_stopped
from app.config import Settings
from app.engine import recorder
from app.engine.checker import Checker, in_process
from app.engine.recorder import results
from app.records import Verdict


def main(url: str, key: str, folder: str, step: str) -> None:
    settings = Settings(
        instance=Path(folder),
        database_url=url,
        secret_key=key,
        allow_networks="loopback",
        canaries="",
        confirm_seconds=0.1,
    )
    checker = Checker(create_core(settings), settings, carrier=Carrier)
    Carrier.step = step
    record = recorder.record_claimed
    write = results.assigned.write

    def recorded(batch: Sequence[Any], *arguments: Any, **options: Any) -> Any:
        fails = any(outcome.result.verdict is Verdict.DOWN for _claim, outcome in batch)
        die(step == "checked" and fails)
        stood = record(batch, *arguments, **options)
        die(step == "recorded" and fails)
        return stood

    def written(*arguments: Any) -> None:
        write(*arguments)
        die(step == "recording")

    with (
        mock.patch.object(recorder, "record_claimed", recorded),
        mock.patch.object(results.assigned, "write", written),
    ):
        until_stopped(checker.run, checker.checks.wake)


class Carrier:
    step = "never"

    def __init__(self, *arguments: Any) -> None:
        self.prober = in_process(*arguments)
        self.close = self.prober.close

    def submit(self, spec: Any, done: Callable[[Any], None]) -> None:
        self.prober.submit(spec, lambda outcome: self._came_back(done, outcome))

    def _came_back(self, done: Callable[[Any], None], outcome: Any) -> None:
        die(self.step == "checking")
        done(outcome)


def die(now: bool) -> None:
    if now:
        os.kill(os.getpid(), signal.SIGKILL)
