"""All other services, through Apprise, in a process of its own.

Apprise opens its connections itself, so network policy can only be enforced by judging every
connection of a process. It has no overall time limit, which a process can be given. And it takes
some 40 MB and two seconds to load, so an idle process waits a minute for the next message.
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
SECONDS = TOTAL_SECONDS + 5  # loading counts in; still below the lease
_MAX_IDLE = 2
END_SECONDS = 1.0  # to delete its files; then it is killed


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    message = outgoing.message
    policy = tools.network.policy
    task = {
        "url": outgoing.value,
        "title": message.title,
        # Many services behind it take little text, and refuse what is longer.
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
    """A process of apprise_child.py. It gets tasks by its standard input, because they hold
    secrets, and ends when that is closed, which the kernel does when this process is killed.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "app.alerts.channels.apprise_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            # The environment has no secrets of Wakeful, and no proxy, which would connect to
            # addresses that the policy cannot judge.
            env=for_program({}),
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, task: dict[str, Any], seconds: float) -> dict[str, str]:
        """Raises TimeoutError, and OSError or ValueError when the process has gone."""
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
