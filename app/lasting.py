"""Log a lasting condition once: the lines about a server that is away for hours would fill the
disk.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable, MutableMapping
from typing import Any

from cachetools import TTLCache

MAX_TOPICS = 1_000


class Lasting(logging.LoggerAdapter[logging.Logger]):
    """A logger that skips a line about a ``topic`` if its ``cause`` (default: the line itself) was
    logged last, for ``seconds`` or until ``end`` is called for the topic.
    """

    def __init__(self, logger: logging.Logger, seconds: float = float("inf")) -> None:
        super().__init__(logger)
        self._logged: MutableMapping[Hashable, Hashable] = TTLCache(MAX_TOPICS, seconds)
        self._lock = threading.Lock()

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        topic = kwargs.pop("topic", None)
        cause = kwargs.pop("cause", None) or (str(msg) % args if args else str(msg))
        with self._lock:
            if self._logged.get(topic) == cause:
                return
            self._logged[topic] = cause
        super().log(level, msg, *args, **{"stacklevel": 2} | kwargs)

    def cause(self, topic: Hashable = None) -> Hashable:
        """The cause that was logged last for a topic; None if the topic has ended."""
        return self._logged.get(topic)

    def end(self, topic: Hashable = None) -> bool:
        """End a topic. Returns whether a line was logged for it."""
        with self._lock:
            return self._logged.pop(topic, None) is not None
