"""Run the steps of the worker's turn so that one that fails does not stop the others.

A failing step is logged when it begins to fail or its cause changes, not each second.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from app.db import AnySession, db
from app.db.faults import passes, unavailable

log = logging.getLogger(__name__)


@dataclass
class Step:
    failed: bool = False


class Steps:
    def __init__(self) -> None:
        self._failing: dict[str, str] = {}

    @contextmanager
    def required(self, what: str) -> Iterator[None]:
        """A step that the others need: its exception is logged and raised. That the database cannot
        be used is left for the caller to log.
        """
        try:
            yield
        except Exception as fault:
            if not unavailable(fault):
                self._log(what, fault)
            raise
        self._failing.pop(what, None)

    @contextmanager
    def isolated(self, what: str, session: AnySession | None) -> Iterator[Step]:
        """A step whose exception is logged and ends here. What it wrote in the transaction of
        ``session`` is rolled back. Without a session, it has transactions of its own.

        A database that cannot be used is not the step's fault, so that exception is raised.
        """
        step = Step()
        try:
            with nullcontext() if session is None else session.begin_nested():
                yield step
        except Exception as fault:
            if session is None:
                db.session.rollback()
            if passes(fault):
                raise
            step.failed = True
            self._log(what, fault)
        else:
            self._failing.pop(what, None)

    def _log(self, what: str, fault: Exception) -> None:
        cause = f"{type(fault).__name__}: {fault}"
        if self._failing.get(what) != cause:
            log.error("The worker could not %s.", what, exc_info=fault)
        self._failing[what] = cause
