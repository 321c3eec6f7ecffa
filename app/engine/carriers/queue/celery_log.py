"""What Celery says of itself, in the words of this log: that the broker is away is said once.

Celery logs each try to connect, for hours if need be, with an address that has a masked password
also where there is none. At a stop it prints lines for whoever sits at a terminal.
"""

from __future__ import annotations

import logging

from celery.apps import worker
from celery.worker.consumer import consumer
from kombu.exceptions import OperationalError

from app.engine.carriers.queue.trouble import Trouble

_LOST = (consumer.CONNECTION_ERROR, consumer.CONNECTION_RETRY)


class _Once(logging.Filter):
    """For the logger of Celery's consumer: tells ``trouble`` of its lines about the connection.
    All other lines pass as they are.
    """

    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self._trouble = trouble

    def filter(self, record: logging.LogRecord) -> bool:
        arguments = record.args if isinstance(record.args, tuple) else ()
        if record.msg not in _LOST and not any(one in _LOST for one in arguments):
            return True
        self._trouble.tell(_as_broker_fault(arguments))
        return False


def say_once(trouble: Trouble) -> None:
    """Log troubles of Celery's connection as ``trouble`` does; to be called before the worker
    starts. Whoever reads from the broker calls its ``over``.
    """
    consumer.logger.addFilter(_Once(trouble))
    worker.safe_say = _say_nothing


def _as_broker_fault(arguments: tuple[object, ...]) -> OperationalError:
    """One of the faults that the log calls so: what is raised may be any error of a socket."""
    fault = OperationalError()
    fault.__cause__ = next((one for one in arguments if isinstance(one, Exception)), None)
    return fault


def _say_nothing(*_arguments: object) -> None:
    pass
