"""The steps of the worker's turn, each kept from stopping the others.

A step that fails is logged with its cause when it begins to fail, and not again each second.
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
    def whole(self, what: str) -> Iterator[None]:
        """A step without which there is nothing: its fault is logged and goes on. That the database
        cannot be used is for the caller to tell.
        """
        try:
            yield
        except Exception as fault:
            if not unavailable(fault):
                self._tell(what, fault)
            raise
        self._failing.pop(what, None)

    @contextmanager
    def apart(self, what: str, session: AnySession | None) -> Iterator[Step]:
        """A step whose fault ends here, with all that it wrote in the transaction of ``session``.
        Without a session it has transactions of its own.

        A database that cannot be used is no fault of the step, so it goes on.
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
            self._tell(what, fault)
        else:
            self._failing.pop(what, None)

    def _tell(self, what: str, fault: Exception) -> None:
        cause = f"{type(fault).__name__}: {fault}"
        if self._failing.get(what) != cause:
            log.error("The worker could not %s.", what, exc_info=fault)
        self._failing[what] = cause
