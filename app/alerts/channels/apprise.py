"""Services without a channel in Wakeful, through Apprise in a separate process.

Apprise opens its connections itself, so the network policy is enforced on every connection of that
process. Apprise has no time limit for a whole message, but a process can be ended. Loading Apprise
takes 40 MB and two seconds, so an idle process waits a minute for the next message.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from app.alerts.answers import Answer, bug, delivered, permanent, retry
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.messages.message import Tone
from app.environment import for_program
from app.i18n import _
from app.net.client import TOTAL_SECONDS
from app.rules import masking

log = logging.getLogger(__name__)

_KINDS = {Tone.BAD: "failure", Tone.GOOD: "success", Tone.WARNING: "warning", Tone.PLAIN: "info"}
_ROOT = Path(__file__).resolve().parents[3]
SECONDS = TOTAL_SECONDS + 5  # with the time to load Apprise; less than a lease
_MAX_IDLE = 2
END_SECONDS = 1.0  # in which a process deletes its files before it is killed


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    message = outgoing.message
    policy = tools.network.policy
    task = {
        "url": outgoing.value,
        "title": message.title,
        # Many services behind Apprise refuse a long text.
        "body": "\n".join(message.without_item_links().lines()),
        "kind": _KINDS[message.tone],
        "allow": [*sorted(policy.words), *(str(network) for network in policy.networks)],
    }
    child = _take()
    try:
        outcome = child.ask(task, SECONDS)
    except TimeoutError:
        child.end()
        return retry(_("The service did not answer in time."))
    except (OSError, ValueError):
        child.end()
        return retry(_("Apprise stopped without an answer."))
    _give_back(child)
    return _read(outcome, masking.secrets_in_apprise(outgoing.value))


def _read(outcome: dict[str, str], secrets: list[str]) -> Answer:
    """Apprise returns only success or failure; the reason is in its log."""
    words = masking.clean(outcome["log"], secrets)
    match outcome["outcome"]:
        case "delivered":
            return delivered(_("Apprise sent the message."))
        case "permanent":
            return permanent(words)
        case "bug":
            log.error("Sending through Apprise failed: %s", outcome["log"])
            return bug(outcome["log"].rpartition(" > ")[2])
    return retry(words or _("Apprise could not send the message and gave no reason."))


class _Child:
    """A process of apprise_child.py. It gets tasks, which contain secrets, by its standard input.
    It ends when that is closed, which the kernel does when this process is killed.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "app.alerts.channels.apprise_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            # Without Wakeful's secrets, and without a proxy, which could connect to addresses that
            # the policy forbids.
            env=for_program({}),
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, task: dict[str, Any], seconds: float) -> dict[str, str]:
        """Send a task and wait for its outcome. Raises TimeoutError, and OSError or ValueError if
        the process has ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise OSError
        stdin.write(json.dumps(task).encode() + b"\n")
        stdin.flush()
        deadline = monotonic() + seconds
        line = b""
        while not line.endswith(b"\n"):
            if not select.select([stdout], [], [], max(0.0, deadline - monotonic()))[0]:
                raise TimeoutError
            piece = os.read(stdout.fileno(), 65_536)
            if not piece:
                raise OSError
            line += piece
        outcome: dict[str, str] = json.loads(line)
        return outcome

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


# Processes that wait for the next message. A service that hangs blocks only its process.
_IDLE: queue.LifoQueue[_Child] = queue.LifoQueue(_MAX_IDLE)


def _take() -> _Child:
    with suppress(queue.Empty):
        while True:
            child = _IDLE.get_nowait()
            if child.alive:
                return child
            child.end()
    return _Child()


def _give_back(child: _Child) -> None:
    try:
        _IDLE.put_nowait(child)
    except queue.Full:
        child.end()
