"""The heartbeat: each minute, the checker calls a URL of another service, as long as checks are
made and alerts are sent. That service tells people when the calls stop, which Wakeful cannot do
when its machine is off.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from flask import Flask
from sqlalchemy.exc import SQLAlchemyError

from app.access.settings import Policies
from app.config import Settings
from app.db import db, faults, liveness, patience
from app.db.settings import is_notice_set
from app.i18n import N_, _
from app.lasting import Lasting
from app.net.client import Blocked, ConnectionFailed
from app.records import Notice
from app.rules.masking import frames_of
from app.rules.url import parse_url
from app.stores.health import WORKER_SILENT, alerts_stuck, health

log = logging.getLogger(__name__)

# The first call comes after this time too, so a checker that dies at each start calls nothing.
EVERY_SECONDS = 60.0
PATIENCE_SECONDS = 5.0  # for each question to the database
STOP_SECONDS = 1.0  # how long the end of the process waits for a call

NETWORK_DOWN = N_("Wakeful's own network does not work.")
ALERTS_STUCK = N_("An alert has waited for 15 minutes, and none was delivered meanwhile.")


def why_withheld(now: datetime) -> str | None:
    """Why no heartbeat may be sent now; None if all is well. Needs an application context."""
    state = health(now, count_unreadable=False)
    if state.faults:
        return state.faults[0]
    # Without a worker the installation counts as ready, but no alert is sent.
    if liveness.signs_of(liveness.WORKER, now).silent:
        return _(WORKER_SILENT)
    if is_notice_set(Notice.NETWORK_DOWN):
        return _(NETWORK_DOWN)
    return _(ALERTS_STUCK) if alerts_stuck(now) else None


class Heartbeat:
    """Sends the heartbeat. ``settings.heartbeat_url`` must be set. Log lines name only its host,
    because the rest is a secret.
    """

    def __init__(
        self,
        app: Flask,
        settings: Settings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.app = app
        self._settings = settings
        self._clock = clock
        self._url = settings.heartbeat_url or ""
        self._host = parse_url(self._url).host
        self._policies = Policies(settings)
        self._log = Lasting(log)

    def run(self, stop: threading.Event) -> None:
        """Send a heartbeat every EVERY_SECONDS until ``stop`` is set."""
        while not stop.wait(EVERY_SECONDS):
            self.send()

    def send(self) -> bool:
        """Call the URL if all is well; returns whether it was accepted. Never raises."""
        try:
            with self.app.app_context():
                reason = self._withheld()
            reason = reason or self._call()
        except Exception as fault:
            # The error's text may contain the URL.
            reason = _("A bug in Wakeful: %(fault)s.", fault=frames_of(fault))
        self._report(reason)
        return reason is None

    def _withheld(self) -> str | None:
        try:
            with patience(PATIENCE_SECONDS):
                reason = why_withheld(self._clock())
                if reason is None:
                    self._policies.refresh()
            return reason
        except SQLAlchemyError as fault:
            return str(faults.public_cause(fault))
        finally:
            db.session.rollback()

    def _call(self) -> str | None:
        """Why the call failed; None if it was accepted."""
        try:
            answer = self._settings.network(self._policies.current()).get(self._url)
        except (Blocked, ConnectionFailed) as fault:
            return str(fault)
        if 200 <= answer.status < 300:
            return None
        return _("%(host)s answered %(status)s.", host=self._host, status=answer.status)

    def _report(self, reason: str | None) -> None:
        """Log each change once, not each minute."""
        if reason is None:
            self._log.info("Heartbeat: %s accepts it.", self._host)
        else:
            self._log.warning("Heartbeat: %s", reason)


@contextmanager
def sending(app: Flask, settings: Settings) -> Iterator[None]:
    """Send heartbeats from a thread inside the block, if WAKEFUL_HEARTBEAT_URL is set."""
    if settings.heartbeat_url is None:
        yield
        return
    stop = threading.Event()
    heartbeat = Heartbeat(app, settings)
    thread = threading.Thread(target=heartbeat.run, args=(stop,), name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(STOP_SECONDS)
