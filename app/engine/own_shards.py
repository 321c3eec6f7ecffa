"""The shards of a place that this checker owns. It takes its fair share of them, renews the leases,
and releases them.

Every few seconds (``pause``) it gives a sign of life, counts the live checkers, releases the shards
beyond its share and takes free ones up to its share. A checker that is stopped releases its shards.
If it is killed, its leases are not renewed: checkers on the same machine see at once that its
process has ended, those on other machines take the shards when the leases have ended. Needs an
application context.

The leases are rows of the database, because their token fences the recorder in the same
transaction; locks of Redis or ZooKeeper would be a second truth beside the database.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from app.db import journal, liveness, shards, writing
from app.db.shards import LEASE, Shard
from app.version import __version__

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
ALONE_LOOK_SECONDS = 5.0  # while no other checker of the place waits for its part
# A checker whose last sign of life is older than this, or further in the future, counts as dead.
ALIVE = timedelta(seconds=15)
# How long a checker that was alone in its place starts checks while the database cannot be used.
ALONE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class ShardChanges:
    """``gained``: the shards whose assignments must be read, with their tokens by number. ``lost``:
    the shards that this checker lost. A shard that it has again with a new token is in both.
    """

    gained: Mapping[int, int]
    lost: frozenset[int]


def fair_share(name: str, alive: Collection[str], owned: Mapping[str, int], count: int) -> int:
    """How many of ``count`` shards the checker ``name`` should own. The remainder of the division
    goes to those that own most, so that no shard moves without need.
    """
    order = sorted(alive, key=lambda checker: (-owned.get(checker, 0), checker))
    share, remainder = divmod(count, len(order))
    return share + (order.index(name) < remainder)


class OwnShards:
    def __init__(self, name: str, location: str) -> None:
        self.name = name
        self.location = location
        self.tokens: dict[int, int] = {}  # token by number
        self._renewed = float("-inf")
        self._alone = False  # whether no other checker of the place was alive at the last look

    @property
    def place(self) -> int:
        """The row id of the place, which is created if it is missing."""
        return journal.place_id(self.location)

    @property
    def pause(self) -> float:
        """The seconds until the next look."""
        return ALONE_LOOK_SECONDS if self._alone else LOOK_SECONDS

    def lapsed(self, clock: float) -> bool:
        """Whether the lease has ended, so that others may own the shards. ``clock``: monotonic."""
        return clock - self._renewed > LEASE.total_seconds()

    def may_start(self, clock: float) -> bool:
        """Whether checks may start. When the lease has lapsed, another checker takes the shards and
        makes the checks. If there was no other, checks go on for ``ALONE_SECONDS``: their results
        count if the token is still own_tokens when they are recorded.
        """
        limit = ALONE_SECONDS if self._alone else LEASE.total_seconds()
        return clock - self._renewed <= limit

    def look(
        self, now: datetime, clock: float, last_check_at: datetime | None = None, rate: int = 0
    ) -> ShardChanges:
        """Renew, release and take shards; returns what changed. ``rate``: checks a minute.

        A shard that nobody took while the lease had lapsed is kept with its token, so that the
        checks made since are recorded. It counts as gained, because changes may have been missed.
        """
        place, earlier_tokens, lapsed = self.place, dict(self.tokens), self.lapsed(clock)
        with writing() as session:
            self._write_sign(now, last_check_at, checks_per_minute=rate)
            of_place = shards.read(place)
            if len(of_place) < shards.count():
                shards.make(place)
                of_place = shards.read(place)
            own_tokens = {
                shard.number: shard.token for shard in of_place if shard.owner == self.name
            }
            numbers = {
                number for number in own_tokens if earlier_tokens.get(number) == own_tokens[number]
            }
            alive, owned = self._live_checkers(of_place, now)
            part = fair_share(self.name, alive, owned, len(of_place))
            beyond = set(sorted(numbers)[part:])
            numbers -= beyond
            if beyond_share := own_tokens.keys() - numbers:
                shards.release(session, place, beyond_share, self.name, now)
            renewed = shards.renew(session, place, self.name, now + LEASE)
            # After a lapse, another checker may have taken one since it was read.
            numbers = {
                number for number in numbers if renewed.get(number) == earlier_tokens[number]
            }
            free = [
                shard
                for shard in of_place
                if shard.number not in numbers | beyond and self._is_free(shard, now)
            ][: part - len(numbers)]
            new_tokens = shards.take(session, place, free, self.name, now + LEASE) if free else {}
        lost = frozenset(self.tokens) - numbers
        self.tokens = {number: earlier_tokens[number] for number in numbers} | new_tokens
        self._renewed, self._alone = clock, len(alive) == 1
        return ShardChanges(dict(self.tokens) if lapsed else new_tokens, lost)

    def release_all(self, now: datetime, last_check_at: datetime | None) -> None:
        """Release all shards, and store that this checker has ended."""
        place = self.place
        with writing() as session:
            shards.release(session, place, range(shards.count()), self.name, now)
            self._write_sign(now, last_check_at, ended_at=now)
        self.tokens = {}

    def _write_sign(self, now: datetime, last_check_at: datetime | None, **facts: Any) -> None:
        """Store a sign of life of this checker."""
        facts |= {"location": self.location, "version": __version__}
        liveness.write(self.name, now, last_check_at, **facts)

    def _is_free(self, shard: Shard, now: datetime) -> bool:
        if shard.owner == self.name:
            # This checker took it in a transaction whose commit seemed to fail.
            return True
        return not shard.is_owned(now) or is_gone(shard.owner or "")

    def _live_checkers(
        self, of_place: Sequence[Shard], now: datetime
    ) -> tuple[Collection[str], Mapping[str, int]]:
        """The names of the live checkers, this one included, and how many shards each owns."""
        names = liveness.names_alive(self.location, now, ALIVE)
        alive = {name for name in names if not is_gone(name)} | {self.name}
        return alive, Counter(shard.owner for shard in of_place if shard.owner is not None)


# --- The assignments that are not read yet


@dataclass(frozen=True, slots=True)
class Piece:
    """The monitors to read next: those of these ``shards`` with an id above ``after_id``."""

    shards: frozenset[int]
    after_id: int  # 0 for the first piece


class UnreadShards:
    """The shards whose assignments are not read yet. They are read in pieces: otherwise no check
    would start before the last of ten thousand monitors is read, and all their rows would be in
    memory together.
    """

    def __init__(self) -> None:
        self._last_read: dict[int, int] = {}  # the last monitor that was read, by shard

    def __bool__(self) -> bool:
        return bool(self._last_read)

    def add(self, numbers: Iterable[int]) -> None:
        """Add shards, or begin to read them again."""
        self._last_read.update(dict.fromkeys(numbers, 0))

    def keep(self, owned: Collection[int]) -> None:
        """Drop all shards but the ``owned`` ones."""
        self._last_read = {shard: id for shard, id in self._last_read.items() if shard in owned}

    def next(self) -> Piece | None:
        """The piece to read now; the same one until ``done`` is called with it."""
        if not self._last_read:
            return None
        after_id = min(self._last_read.values())
        shards = frozenset(shard for shard, id in self._last_read.items() if id == after_id)
        return Piece(shards, after_id)

    def done(self, piece: Piece, last: int | None) -> None:
        """Note that the piece was read up to the monitor ``last``, or to its end (None)."""
        for shard in piece.shards:
            if last is None:
                self._last_read.pop(shard, None)
            else:
                self._last_read[shard] = last


# --- Names of checkers
#
# A checker that is killed leaves its shards leased, and their monitors would not be checked until
# the leases end. Its name therefore contains its process, so that another checker on the same
# machine sees that it has ended. For processes on other machines, the lease decides.

_START_FIELD = 22  # of /proc/PID/stat, in clock ticks since the machine's own start
_START_LIMIT = 2**32


def make_token() -> str:
    """A new token of this process: machine, process id, start time, and a random part."""
    return f"{_process_space()}.{os.getpid():x}.{_start(os.getpid()) or 0:x}.{secrets.token_hex(3)}"


def make_name() -> str:
    """A new name for a checker in this process."""
    return f"{liveness.process_name(liveness.CHECKER)}:{make_token()}"


def is_gone(name: str) -> bool:
    """Whether the checker of this name has certainly ended."""
    return has_ended(name.rpartition(":")[2])


def has_ended(token: str) -> bool:
    """Whether the process that made ``token`` has certainly ended."""
    parts = token.split(".")
    if len(parts) != 4 or parts[0] != _process_space():
        return False
    pid, start = int(parts[1], 16), int(parts[2], 16)
    now_start = _start(pid)  # a later process may have been given the same number
    return not _exists(pid) if now_start is None else now_start != start


@cache
def _process_space() -> str:
    """An id of the space in which process ids are unique: machine, boot and container."""
    namespace = ""
    with suppress(OSError):
        namespace = os.readlink("/proc/self/ns/pid")
    about = [socket.gethostname(), _read("/proc/sys/kernel/random/boot_id"), namespace]
    return blake2b("\0".join(about).encode(), digest_size=4).hexdigest()


def _start(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; -1 for a zombie; None if unknown."""
    # The second field, the name of the program in brackets, may contain any character.
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
