"""What is read of monitors, kept until it is another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from cachetools import LRUCache

T = TypeVar("T")


class Kept(Generic[T]):
    """Values of at most ``most`` monitors, the least used forgotten first. Safe between threads.

    A value is kept until its version is another. Of a monitor's sums that is ``sums_version``,
    which says that they were written again. It is read before them: sums that are newer than their
    version are read again, older ones would stay.
    """

    def __init__(self, most: int) -> None:
        self._kept: LRUCache[tuple[int, Hashable], tuple[Hashable, T]] = LRUCache(most)
        self._guard = threading.Lock()

    def read(
        self,
        versions: Mapping[int, Hashable],
        what: Hashable,
        fetch: Callable[[Sequence[int]], Mapping[int, T]],
    ) -> dict[int, T]:
        """The value of each monitor in ``versions``. ``what`` says which one, such as the range of
        time; ``fetch`` reads those that are not kept.
        """
        found: dict[int, T] = {}
        with self._guard:
            for id, version in versions.items():
                kept = self._kept.get((id, what))
                if kept is not None and kept[0] == version:
                    found[id] = kept[1]
        missing = [id for id in versions if id not in found]
        if not missing:
            return found
        fresh = fetch(missing)
        with self._guard:
            for id, value in fresh.items():
                self._kept[id, what] = versions[id], value
        return {**found, **fresh}
