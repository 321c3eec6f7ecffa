"""A malformed message in the queue does not end a prober.

Each class here reads a message at another depth, where it would raise through Celery's loop and end
the worker. A message that was not acknowledged would be delivered again, and end the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from celery.worker.consumer import Consumer as CeleryConsumer
from kombu.transport import TRANSPORT_ALIASES, redis

log = logging.getLogger(__name__)

# What reading a message raises that has not the form of one: its text, and kombu's types in it.
_ODD = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


class Taker(CeleryConsumer):  # type: ignore[misc]  # Celery ships no types
    """Celery's consumer; rejects a message whose body is not in Celery's form."""

    def create_task_handler(self, *arguments: Any, **more: Any) -> Callable[[Any], None]:
        handle = super().create_task_handler(*arguments, **more)

        def received(message: Any) -> None:
            try:
                handle(message)
            except _ODD as fault:
                _tell(fault)
                message.reject()

        return received


class Channel(redis.Channel):
    """kombu's channel; drops what is no message at all, such as text that is not JSON."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except _ODD as fault:
            _tell(fault)  # it has left the queue
            return True


class Transport(redis.Transport):
    Channel = Channel


def refuse_malformed() -> None:
    """Use ``Transport`` for all connections of this process. kombu finds a transport by the scheme
    of the broker's address, whatever else it is told.
    """
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{Transport.__module__}:{Transport.__name__}"


def _tell(fault: Exception) -> None:
    log.error("A message in the queue is no batch: %s", type(fault).__name__)
