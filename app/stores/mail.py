"""Mails that this installation sends to people about itself: invitations, recovery links, tests.
They are sent at once, in one attempt; alerts go through the outbox. Installations over a remote
store send them too, because people are always local.
"""

from __future__ import annotations

import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from flask import Flask, current_app, has_request_context, request

from app.access.settings import can_mail, with_mail
from app.alerts.channels import email
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.messages import account
from app.alerts.messages.message import Message, base_url
from app.config import Settings
from app.i18n import N_, _
from app.lasting import Lasting
from app.rules.masking import frames_of
from app.slots import LONG_WAITS

log = logging.getLogger(__name__)

BUSY = N_("Too many emails are waiting, so it was not sent.")
MAX_WAITING = 100  # mails that wait for a thread; more are dropped
STOP_SECONDS = 5.0  # at its end, the process waits this long for all waiting mails


@dataclass(frozen=True, slots=True)
class MailAnswer:
    """Whether the server accepted a mail. ``answer``: the server's answer, or why there is none."""

    ok: bool
    answer: str


def base_here(settings: Settings) -> str:
    """The base of links that a person gives to others: PUBLIC_URL, or the host of their request.
    Links that strangers can request begin with ``Mail.base``.
    """
    if settings.public_url or not has_request_context():
        return base_url(settings.public_url, settings.bind)
    # Over remote servers, the root of the request contains the server.
    root: str = request.environ.get("wakeful.root", request.root_path)
    return f"{request.host_url.rstrip('/')}{root.rstrip('/')}"


class _MailQueue:
    """Up to ``MAX_WAITING`` mails that wait for a thread. ``noun``: of these mails, for the log."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._waiting: queue.Queue[tuple[Flask, Callable[[], None]]] = queue.Queue(MAX_WAITING)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._log = Lasting(log)

    @property
    def is_full(self) -> bool:
        return self._waiting.full()

    def put(self, work: Callable[[], None]) -> None:
        """Do ``work`` in the thread, with an application context. If too many wait, it is dropped;
        this is logged once until there is room again.
        """
        app = current_app._get_current_object()  # type: ignore[attr-defined]
        try:
            self._waiting.put_nowait((app, work))
            self._log.end()
        except queue.Full:
            self._log.error(
                "%d %s wait to be mailed, and more are dropped. Is the mail server slow?",
                MAX_WAITING,
                self._noun,
            )
        with self._starting:
            # A forked child has a dead copy of the thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, daemon=True, name="mail")
                self._thread.start()

    def close(self, seconds: float) -> None:
        """Wait for unsent mails, and log how many are lost."""
        waiting = self._waiting
        with waiting.all_tasks_done:
            waiting.all_tasks_done.wait_for(lambda: not waiting.unfinished_tasks, seconds)
            lost = waiting.unfinished_tasks
        if lost:
            log.error("At the stop, %d %s were not mailed yet. They are lost.", lost, self._noun)

    def _run(self) -> None:
        while True:
            app, work = self._waiting.get()
            try:
                with app.app_context():
                    work()
            except Exception as fault:
                # The error's text may contain an address or a link.
                log.error("A mail could not be sent: %s", frames_of(fault))
            finally:
                self._waiting.task_done()


class Mail:
    """Needs an application context."""

    def __init__(
        self, settings: Settings, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._settings = settings
        self._clock = clock
        # A queue, so that the time of the answer does not show whether the address has an account.
        self.recoveries = _MailQueue("recovery links")
        # A second queue, because strangers can fill the first one.
        self.notices = _MailQueue("notices of a changed second factor")

    def close(self) -> None:
        """At the end of the process, send the waiting mails within ``STOP_SECONDS``."""
        deadline = time.monotonic() + STOP_SECONDS
        for mails in (self.notices, self.recoveries):
            mails.close(max(0.0, deadline - time.monotonic()))

    def is_set(self) -> bool:
        """Whether email can be sent."""
        return can_mail(self._settings)

    @property
    def base(self) -> str:
        """The base of links in mails. It does not depend on the request, because an attacker who
        requests somebody else's recovery link could choose the host.
        """
        return base_url(self._settings.public_url, self._settings.bind)

    def send_test(self, to: str) -> MailAnswer:
        return self._send_waited(to, account.trial(self._clock(), f"{self.base}/"))

    def send_invitation(self, to: str, link: str, inviter: str, days: int) -> MailAnswer:
        return self._send_waited(to, account.invitation(self._clock(), link, inviter, days))

    def send_recovery(self, to: str, path: str) -> None:
        """Mail a recovery link. Call this in the thread of ``recoveries``."""
        mailed = self._send(to, account.recovery(self._clock(), f"{self.base}{path}"))
        if not mailed.ok:
            log.warning("A recovery link could not be mailed: %s", mailed.answer)

    def notify_of_second_factor(self, to: str, what: str) -> None:
        """Notify somebody that their second factor changed, if email can be sent. ``what``: a
        sentence, not yet translated.
        """
        if self.is_set():
            self.notices.put(lambda: self._send_notice(to, what))

    def _send_notice(self, to: str, what: str) -> None:
        mailed = self.send_second_factor(to, what)
        if not mailed.ok:
            log.warning(
                "A notice of a changed second factor could not be mailed: %s", mailed.answer
            )

    def send_second_factor(self, to: str, what: str) -> MailAnswer:
        """``notify_of_second_factor`` for a command, which waits for the answer."""
        message = account.second_factor(self._clock(), what, f"{self.base}/profile/two-factor")
        return self._send(to, message)

    def _send_waited(self, to: str, message: Message) -> MailAnswer:
        """Send a mail while a request waits. Only a few requests may wait at once."""
        with LONG_WAITS.taken() as free:
            return self._send(to, message) if free else MailAnswer(False, _(BUSY))

    def _send(self, to: str, message: Message) -> MailAnswer:
        settings = with_mail(self._settings)
        tools = Tools(settings, settings.network())
        id = f"msg_{secrets.token_hex(16)}"
        answer = email.send(Outgoing(id, to, message, self._clock()), tools)
        return MailAnswer(answer.ok, answer.text)
