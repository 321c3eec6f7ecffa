"""The queue as a prober consumes it: only batches reach Celery, whatever is in Redis.

A message that ended a prober must not come back and end the next one. So Redis keeps no copy of
what was taken: the checker sends lost checks again.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from datetime import UTC, datetime
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis
from redis.exceptions import ResponseError

from app.engine.carriers.queue.messages import NoBatch, batch_in, message_with
from app.engine.carriers.queue.trouble import Tally, Trouble

PAUSE_SECONDS = 1.0  # after Redis refused to hand out messages
TELL_SECONDS = 5.0

# How many messages left the queue, for the processes that are forked from this one.
received = ctypes.c_uint64.from_buffer(mmap.mmap(-1, mmap.PAGESIZE))

_dropped = Tally(
    "A message in the queue was dropped: {reason}",
    "{count} messages in the queue were dropped. The newest: {reason}",
)
trouble = Trouble("taking batches")


class Channel(redis.Channel):
    """kombu's channel. It reads one list and writes nothing, so no other key of Redis matters."""

    do_restore = False

    def _create_client(self, asynchronous: bool = False) -> Any:
        client = super()._create_client(asynchronous)  # type: ignore[no-untyped-call]
        client.set_response_callback("BRPOP", _taken)  # before kombu reads it
        return client

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except ResponseError as fault:  # such as a key of another type; it would end the worker
            trouble.tell(fault)
            self.client.connection.disconnect()  # Redis may be another one by now
            time.sleep(PAUSE_SECONDS)
            return True

    def _size(self, _queue: str) -> int:
        """Asked when the queue is declared, and not used."""
        return 0

    def _queue_bind(self, *_binding: Any) -> None:
        """Batches are sent to the queue by its name."""


class Transport(redis.Transport):
    Channel = Channel

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        super().register_with_event_loop(connection, loop)  # type: ignore[no-untyped-call]
        loop.call_repeatedly(TELL_SECONDS, _dropped.flush)


def refuse_malformed() -> None:
    """Use ``Transport`` for all connections of this process. kombu finds a transport by the scheme
    of the broker's address, whatever else it is told.
    """
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{Transport.__module__}:{Transport.__name__}"


def _taken(answer: Any, **_options: Any) -> Any:
    """The answer of Redis to BRPOP, with a message of ours; None for one without a batch."""
    trouble.over()
    if answer is None:
        return None
    queue, message = answer
    received.value += 1
    try:
        return queue, message_with(batch_in(message, datetime.now(UTC)), queue.decode())
    except NoBatch as fault:
        _dropped.add(str(fault))
        return None
