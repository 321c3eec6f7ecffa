"""A real worker process that kills itself, as ``kill -9`` would, at one step of the outbox.

``step`` is ``write`` (a batch of messages to subscribers, not committed), ``claim`` (claimed and
committed, not sent), ``send`` (sent and answered, not marked), ``mark`` (marked, not committed) or
``never``. ``after``: how often the step is passed before.
"""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
import time
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

from app import create_core
from app.alerts import claims, subscribers
from app.alerts.worker import Worker
from app.commands.processes import until_stopped
from app.config import Settings
from tests.alerts.conftest import Outbox
from tests.support.command import start

SHORT_LEASE = timedelta(seconds=1)


def main(url: str, key: str, step: str, after: int) -> None:
    claims.LEASE = SHORT_LEASE  # so that the test need not wait 30 s for each crash
    settings = Settings(
        instance=Path(tempfile.gettempdir()),
        database_url=url,
        secret_key=key,
        allow_networks="loopback",
        subscriber_networks="loopback",
    )
    worker = Crashing(step, after, settings)
    until_stopped(worker.run, worker.wake)


class Crashing(Worker):
    def __init__(self, step: str, after: int, settings: Settings) -> None:
        super().__init__(create_core(settings), settings)
        self._step, self._after, self._passed = step, after, itertools.count()

    def _die(self, step: str) -> None:
        if step == self._step and next(self._passed) >= self._after:
            os.kill(os.getpid(), signal.SIGKILL)

    def _send(self, job: Any) -> None:
        self._die("claim")
        super()._send(job)
        self._die("send")

    def _announce(self) -> bool:
        write = subscribers.write_batch

        def dies(*arguments: Any) -> int:
            written = write(*arguments)
            self._die("write")
            return written

        with mock.patch.object(subscribers, "write_batch", dies):
            return super()._announce()

    def _store_outcome(self, done: Any, now: Any) -> None:
        super()._store_outcome(done, now)
        self._die("mark")


def run_worker(box: Outbox, step: str, after: int) -> BaseProcess:
    settings = box.settings
    return start(main, settings.database_url, settings.secret_key, step, after)


def ended(worker: BaseProcess, seconds: float) -> int | None:
    worker.join(seconds)
    return worker.exitcode


def killed(worker: BaseProcess) -> None:
    """Wait until the worker is dead, and until what it had claimed is free again: the next one
    sends that first, and its own crash comes later.
    """
    assert ended(worker, 180) == -9
    time.sleep(SHORT_LEASE.total_seconds())
