"""The program that ``wakeful serve`` becomes once its parts run. It waits for a signal and takes
4 MB; the modules of the supervisor, which needs none of them until a part ends, would take 20 MB
more.

It runs without the installed packages: ``python -I -S resting.py PIDS COMMAND...``. When one of the
children PIDS ends, COMMAND makes it the supervisor again. exec keeps the process, its children, its
files and the blocked signals.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
STOP_SECONDS = 15.0  # a process that has not ended by then is killed
END_POLL_SECONDS = 0.02
KILLED = "A part of the service did not stop in time and was killed."


def stop(pids: Iterable[int]) -> bool:
    """Ask these children to stop, and kill those that do not. Returns whether all stopped."""
    running = set(pids)
    _send(running, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while (running := set(filter(_runs, running))) and time.monotonic() < deadline:
        time.sleep(END_POLL_SECONDS)
    _send(running, signal.SIGKILL)
    for pid in running:
        os.waitpid(pid, 0)
    return not running


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _runs(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:  # it was waited for already
        return False


def _rest(pids: str, *command: str) -> None:
    with suppress(OSError), open("/proc/self/comm", "w") as name:
        name.write("wakeful")
    if signal.sigwait(WATCHED) == signal.SIGCHLD:
        os.execv(command[0], command)  # noqa: S606 - the supervisor's own
    if not stop(map(int, pids.split(","))):
        sys.stderr.write(f"{KILLED}\n")


if __name__ == "__main__":
    _rest(*sys.argv[1:])
