"""Which assignments of this checker's shards are not read yet, and how far each shard has been."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """What to read next: of these shards, monitors with an id above ``after``."""

    shards: frozenset[int]
    after: int

    @property
    def is_first(self) -> bool:
        return self.after == 0


class Unread:
    """Read in pieces: otherwise no check would start before the last of ten thousand monitors is
    read, and all their rows would be in memory at once.
    """

    def __init__(self) -> None:
        self._after: dict[int, int] = {}  # the last monitor that was read, by shard

    def __bool__(self) -> bool:
        return bool(self._after)

    def add(self, numbers: Iterable[int]) -> None:
        """Read these shards, from their beginning."""
        self._after.update(dict.fromkeys(numbers, 0))

    def keep(self, owned: Collection[int]) -> None:
        """Drop all but these."""
        self._after = {shard: after for shard, after in self._after.items() if shard in owned}

    def next(self) -> Piece | None:
        """What to read now; the same again until it was done."""
        if not self._after:
            return None
        after = min(self._after.values())
        shards = frozenset(shard for shard, at in self._after.items() if at == after)
        return Piece(shards, after)

    def done(self, piece: Piece, last: int | None) -> None:
        """The piece was read up to the monitor ``last``, or to its end (None)."""
        for shard in piece.shards:
            if last is None:
                del self._after[shard]
            else:
                self._after[shard] = last
