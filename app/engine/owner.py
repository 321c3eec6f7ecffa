"""Names of checkers, from which others on the same machine see whether the process still runs.

A checker that is killed leaves its shards leased, and their monitors would not be checked until the
leases end. Its name therefore contains its process, so that another checker on the same machine
sees that it has ended. For processes on other machines, the lease decides.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import cache
from hashlib import blake2b
from pathlib import Path

from app.db import heartbeats

_START_FIELD = 22  # of /proc/PID/stat, in clock ticks since the machine's own start
_START_LIMIT = 2**32


def make_token() -> str:
    """A new token of this process: machine, process id, start time, and a random part."""
    return f"{_place()}.{os.getpid():x}.{_start(os.getpid()) or 0:x}.{secrets.token_hex(3)}"


def make_name() -> str:
    """A new name for a checker in this process."""
    return f"{heartbeats.process_name(heartbeats.CHECKER)}:{make_token()}"


def is_gone(name: str) -> bool:
    """Whether the checker of that name has certainly ended."""
    return has_ended(name.rpartition(":")[2])


def has_ended(token: str) -> bool:
    """Whether the process that made ``token`` has certainly ended."""
    parts = token.split(".")
    if len(parts) != 4 or parts[0] != _place():
        return False
    pid, start = int(parts[1], 16), int(parts[2], 16)
    now_start = _start(pid)  # a later process may have been given the same number
    return not _exists(pid) if now_start is None else now_start != start


@cache
def _place() -> str:
    """An id of the space in which process ids are unique: machine, boot and container."""
    about = [socket.gethostname(), _read("/proc/sys/kernel/random/boot_id"), _namespace()]
    return blake2b("\0".join(about).encode(), digest_size=4).hexdigest()


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _start(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; -1 for a zombie; None if unknown."""
    # The name of the program, the second field, is in brackets and may hold anything.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if not fields:
        return None
    return -1 if fields[0] in "ZX" else int(fields[_START_FIELD - 3]) % _START_LIMIT


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's, whose entry under /proc we may not be allowed to see
    return True


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
