"""The process that sends one message through Apprise. Reads a task, writes an outcome, both JSON.

Every connection of the process passes the audit hook, with the address that the kernel is about to
connect to: names that change their mind, redirects and services' own second hosts are judged too.
"""

from __future__ import annotations

import json
import logging
import sys
from ipaddress import ip_address
from typing import Any

from app.checks.policy import Policy


class Guard:
    """Refuses connections that policy closes, and remembers why."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.refused: str | None = None

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.exec", "os.system"):
            raise PermissionError("A message starts no programs.")
        if event in ("socket.connect", "socket.sendto"):
            self._judge(args[1])

    def _judge(self, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else None
        try:
            refusal = self.policy.refusal(str(ip_address(str(host).partition("%")[0])))
        except ValueError:
            self._refuse("Alerts go to addresses of the network only, not to local sockets.")
            return
        if refusal is not None and address[1] != 53:  # questions to the system's DNS server
            self._refuse(str(refusal).replace("To watch it", "To send there"))

    def _refuse(self, sentence: str) -> None:
        self.refused = sentence
        raise PermissionError(sentence)


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def main() -> None:
    task = json.load(sys.stdin)
    from apprise import Apprise  # here and nowhere else: it is large

    guard = Guard(Policy.parse(",".join(task["allow"])))
    log = _Lines()
    logging.getLogger("apprise").addHandler(log)
    logging.getLogger("apprise").propagate = False
    client = Apprise()
    if not client.add(task["url"]):
        _tell("permanent", "Apprise does not know this kind of URL, or something in it is missing.")
        return
    sys.addaudithook(guard)
    done = client.notify(body=task["body"], title=task["title"], notify_type=task["kind"])
    if done:
        _tell("delivered", "")
    elif guard.refused is not None:
        _tell("permanent", guard.refused)
    else:
        _tell("retry", " ".join(log.lines[-3:]))


def _tell(outcome: str, log: str) -> None:
    json.dump({"outcome": outcome, "log": log}, sys.stdout)


if __name__ == "__main__":
    main()
