"""The process that sends messages through Apprise. It reads tasks and writes outcomes, as JSON, one
a line.

An audit hook judges every connection and datagram of the process by the address that the kernel is
about to send to: also redirects, further hosts of a service, and names whose address changes. The
hook also keeps an Apprise URL from local files. While a task is served, the process may read only
``READABLE`` and its folder for temporary files, and write only that folder and /dev/null.
"""

from __future__ import annotations

import json
import logging
import os
import re
import select
import signal
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from app.alerts.answers import Acceptance, status_meaning
from app.i18n import _
from app.net.policy import Policy
from app.rules.masking import frames_of

IDLE_SECONDS = 60.0  # after which the process ends, to free its memory


# Paths that Python may open while a task is served: modules that are imported late, and the files
# of its name resolution and TLS.
READABLE = (
    sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parents[3] / "app"), "/etc/hosts",
    "/etc/resolv.conf", "/etc/mime.types", "/etc/ssl", "/usr/share/zoneinfo", "/dev/null",
    "/dev/urandom",
)  # fmt: skip


PROGRAMS = frozenset({
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn",
    "subprocess.Popen",
})  # fmt: skip
SENDS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
READS = frozenset({"open", "os.listdir", "os.scandir"})
# The audit events of Python that touch files, with the number of paths that each names first.
FILES = dict.fromkeys(READS, 1) | {
    "os.chmod": 1, "os.chown": 1, "os.link": 2, "os.mkdir": 1, "os.remove": 1, "os.rename": 2,
    "os.rmdir": 1, "os.symlink": 2, "os.truncate": 1, "os.utime": 1,
}  # fmt: skip


def _writes(mode: object, flags: object) -> bool:
    """Whether a file is opened to write; ``os.open`` has flags and no mode."""
    if isinstance(mode, str):
        return not set(mode).isdisjoint("wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


class Guard:
    """The audit hook. It refuses connections that the policy forbids, programs, and local files,
    and remembers why.
    """

    def __init__(self) -> None:
        self.policy = Policy()
        self.refused: str | None = None
        self.serving = False
        # Only this process has it: the system's temporary folder has files of other programs.
        self.folder = os.path.realpath(tempfile.gettempdir())

    def begin(self, policy: Policy) -> None:
        self.policy = policy
        self.refused = None
        self.serving = True

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if event in PROGRAMS:
            raise PermissionError(_("Apprise URLs cannot start programs."))
        # Without an address, the data goes to the peer of the socket, whose address was judged.
        if event in SENDS and args[1] is not None:
            self._judge(args[1])
        if self.serving and event in FILES:
            writes = event not in READS or (event == "open" and _writes(args[1], args[2]))
            for name in args[: FILES[event]]:
                if isinstance(name, (str, bytes)):
                    self._judge_file(name, writes=writes)

    def _judge_file(self, name: str | bytes, *, writes: bool) -> None:
        path = Path(os.path.realpath(os.fsdecode(name)))
        roots = (self.folder, "/dev/null") if writes else (self.folder, *READABLE)
        if not any(path.is_relative_to(root) for root in roots):
            self._refuse(_("An Apprise URL cannot read local files, such as a template or a key."))

    def _judge(self, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else None
        try:
            refusal = self.policy.refusal(str(ip_address(str(host).partition("%")[0])))
        except ValueError:
            self._refuse(_("Alerts cannot go to local sockets, only to network addresses."))
            return
        if refusal is not None:  # DNS queries of the C library do not pass here
            self._refuse(str(refusal))

    def _refuse(self, sentence: str) -> None:
        self.refused = sentence
        raise PermissionError(sentence)


class _Lines(logging.Handler):
    """The log lines of Apprise. ``bug``: where a service raised an exception, which Apprise does
    not log.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.begin()

    def begin(self) -> None:
        self.lines: list[str] = []
        self.bug: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        fault = sys.exc_info()[1]
        if fault is not None and "raised an exception" in str(record.msg):
            self.bug = frames_of(fault)


# Apprise's modules of services that only reach this machine, without an address to judge.
LOCAL_SERVICES = frozenset({"blink1", "dbus", "glib", "gnome", "macosx", "syslog", "windows"})


def main() -> None:
    """Serve tasks from standard input, one a line, until none comes for IDLE_SECONDS."""
    from apprise import Apprise  # here and nowhere else: it is large
    from apprise.manager_attachment import AttachmentManager

    sys.dont_write_bytecode = True
    guard = Guard()
    sys.addaudithook(guard)
    log = _Lines()
    logging.getLogger("apprise").addHandler(log)
    logging.getLogger("apprise").propagate = False
    Apprise.instantiate("json://localhost")  # loads every service, which takes a second
    # Apprise reads a template or key that a URL names as an attachment. Without file attachments,
    # the answer is the same whether a file exists or not.
    attachments: Any = AttachmentManager  # typed in part only
    attachments().remove("file")
    try:
        while select.select([sys.stdin], [], [], IDLE_SECONDS)[0]:
            line = sys.stdin.buffer.readline()
            if not line:
                return
            log.begin()
            print(json.dumps(_answer(json.loads(line), guard, log)), flush=True)
    finally:
        guard.serving = False  # the folder is deleted now


def _answer(task: dict[str, Any], guard: Guard, log: _Lines) -> dict[str, str]:
    try:
        return serve(task, guard, log)
    except Exception as fault:
        if guard.refused is not None:
            return _outcome("permanent", guard.refused)
        return _outcome("bug", frames_of(fault))


def serve(task: dict[str, Any], guard: Guard, log: _Lines) -> dict[str, str]:
    from apprise import Apprise

    client = Apprise()
    guard.begin(Policy.parse(",".join(task["allow"])))
    # Several URLs may be there, with commas between them: each is judged.
    accepted = client.add(task["url"])
    for service in client:
        if type(service).__module__.rpartition(".")[2] in LOCAL_SERVICES:
            name = str(service.service_name)
            sentence = _("%(name)s reaches this machine only. Use another service.", name=name)
            return _outcome("permanent", sentence)
    if not accepted:
        unknown = _(
            "Apprise does not know this kind of URL, or it is incomplete or names a local file."
        )
        return _outcome("permanent", guard.refused or unknown)
    is_sent = client.notify(body=task["body"], title=task["title"], notify_type=task["kind"])
    if is_sent:
        return _outcome("delivered", "")
    if guard.refused is not None:
        return _outcome("permanent", guard.refused)
    if log.bug is not None:
        return _outcome("bug", log.bug)
    outcome = "permanent" if refused_for_good(log.lines) else "retry"
    return _outcome(outcome, " ".join(log.lines[-3:]))


# The status of an answer, as Apprise writes it at the end of a line.
_STATUS = re.compile(r"\berror=(\d{3})\b")


def refused_for_good(lines: list[str]) -> bool:
    """Whether every line of the log has the status of a permanent refusal. A URL may name several
    targets, and another attempt may reach a target whose line has no status.
    """
    statuses = [int(match[1]) if (match := _STATUS.search(line)) else 0 for line in lines]
    return bool(statuses) and all(
        status >= 300 and status_meaning(status) is Acceptance.PERMANENT for status in statuses
    )


def _outcome(outcome: str, log: str) -> dict[str, str]:
    return {"outcome": outcome, "log": log}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_signal: sys.exit())
    # Its parent may be killed, so the process itself deletes what services wrote.
    with tempfile.TemporaryDirectory(prefix="wakeful-apprise-") as own_folder:
        os.environ.update(TMPDIR=own_folder, HOME=own_folder)
        tempfile.tempdir = own_folder
        main()
