"""The common part of both ends of the queue: Celery's application, the names in Redis, the claims
of batches, and encrypted messages. The broker is trusted for availability: somebody who can write
to it can stop checks.
"""

from __future__ import annotations

import logging
import math
import time
from datetime import datetime, timedelta
from typing import Any

import redis
from cachetools import TTLCache
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError, ResponseError

from app.codec.packing import moment
from app.codec.sealing import NONCE_BYTES, BatchKey, Forged
from app.config import PREFIX, SettingError, Settings
from app.i18n import _
from app.lasting import Lasting
from app.rules.masking import raised_at

TASK = "wakeful.checks"
# Older messages are refused, so that a copy cannot be used later. The clocks of checker and probers
# may differ by as much.
FRESH_SECONDS = 30.0
# How long Redis stores outcomes that no checker reads, and the claims of batches. After that, the
# batches are too old to be run.
RETENTION_SECONDS = 120
# In bytes. A checker divides a batch whose sealed text is larger.
MAX_SEALED = 4 * 1024 * 1024
# How often a checker notes in Redis that it listens to the probers of its place. Without a new note
# for ``LISTENED_SECONDS``, they stop sending signs of life to it. The clocks of both may differ.
LISTEN_SECONDS = 5.0
LISTENED_SECONDS = 2 * FRESH_SECONDS
CONNECT_SECONDS = 5
# The exceptions of Redis and of the connection to it: directly, and through Celery.
BROKER_FAULTS = (RedisError, OperationalError)


def queue_of(location: str) -> str:
    return f"checks.{location}"


def outcomes_of(location: str) -> str:
    """The beginning of the names of the lists that the checkers of a place read."""
    return f"outcomes.{location}."


def listeners_of(location: str) -> str:
    """The name of the sorted set of a place's checkers, ordered by their last note."""
    return f"listeners.{location}"


def note_listener(client: Any, location: str, name: str) -> None:
    """Note that a checker listens, so that idle probers of the place send signs of life to it too.
    Raises RedisError.
    """
    key, now = listeners_of(location), time.time()
    with client.pipeline() as pipe:
        pipe.zadd(key, {name: now})
        pipe.zremrangebyscore(key, "-inf", now - 2 * LISTENED_SECONDS)
        pipe.expire(key, RETENTION_SECONDS)
        pipe.execute()


def listeners(client: Any, location: str) -> list[str]:
    """The checkers of a place that listen. Raises RedisError."""
    since = time.time() - LISTENED_SECONDS
    return [name.decode() for name in client.zrangebyscore(listeners_of(location), since, "+inf")]


def broker_and_key(settings: Settings) -> tuple[str, str]:
    """The URL of Redis, and the key of batches. Raises SettingError."""
    for name, value in (("BROKER_URL", settings.broker_url), ("BATCH_KEY", settings.batch_key)):
        if value is None:
            raise SettingError(
                _("%(name)s is missing: checks go through a queue.", name=PREFIX + name)
            )
    return settings.broker_url or "", settings.batch_key or ""


def make_celery(broker_url: str) -> Celery:
    celery = Celery("wakeful", broker=broker_url, set_as_current=False)
    celery.conf.update(
        accept_content=["json"],
        task_ignore_result=True,  # outcomes are returned encrypted, through a separate list
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,  # it would take commands from anybody on the broker
        # The default of Celery 6, which otherwise warns. No task is running when Celery reads.
        worker_cancel_long_running_tasks_on_connection_loss=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "socket_timeout": CONNECT_SECONDS,
            "socket_connect_timeout": CONNECT_SECONDS,
            "socket_keepalive": True,
            "health_check_interval": 10,
            # Redis need not keep a copy of each batch that was taken, which costs a round trip: the
            # checker sends lost checks again, sooner than Celery would.
            "ack_emulation": False,
        },
    )
    return celery


def make_redis(broker_url: str) -> Any:
    return redis.Redis.from_url(
        broker_url,
        socket_timeout=2 * CONNECT_SECONDS,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_keepalive=True,
    )


def fault_of(broker_url: str) -> str | None:
    """Why Redis cannot be used; None if it answers and accepts the login. May take seconds."""
    client = make_redis(broker_url)
    try:
        client.ping()
    except (redis.RedisError, OSError, ValueError) as fault:
        return type(fault).__name__
    finally:
        client.close()
    return None


def claim(client: Any, batch_id: str) -> bool:
    """Claim a batch; returns whether the caller is the first to do so. A prober claims it to run
    its checks, the checker to send them again. Raises RedisError.

    Without a claim, a batch that comes late, after its checks were sent again, would run them
    twice.
    """
    return bool(client.set(f"claimed.{batch_id}", b"", nx=True, ex=RETENTION_SECONDS))


log = logging.getLogger(__name__)

FAULT_SECONDS = 3_600.0
REFUSED_SECONDS = 60.0
MAX_TEXT = 200


class QueueFaults:
    """Logs the faults of one thread of the queue, without a flood.

    A broker that is out of reach, perhaps for hours, is logged once. A refused message is logged
    once a minute for each reason. Any other exception is a fault of Wakeful: it is logged with its
    trace, once an hour for each line of code.

    ``doing``: what the thread does, such as "sending batches".
    """

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._log = Lasting(log)
        self._refusals, self._faults = Lasting(log, REFUSED_SECONDS), Lasting(log, FAULT_SECONDS)

    def log_fault(self, fault: Exception) -> None:
        """Log an exception that ended a turn of the thread."""
        topic = raised_at(fault)
        if isinstance(fault, BROKER_FAULTS):
            words = _words(fault)
            self._log.error("The broker cannot be used (%s). Trying again.", words, cause=True)
        elif isinstance(fault, MessageRefused):
            self._refusals.warning("%s", fault, topic=topic, cause=True)
        else:
            self._faults.error(
                "A fault of ours while %s:", self._doing, topic=topic, cause=True, exc_info=fault
            )

    def end(self) -> None:
        """Note that the broker was used: log that it works again."""
        if self._log.end():
            log.warning("The broker works again.")


def _words(fault: Exception) -> str:
    """The class of a fault, with the text of Redis if it refuses a command."""
    cause = fault.__cause__ or fault  # kombu hides it
    name = type(cause).__name__
    return f"{name}: {str(cause)[:MAX_TEXT]}" if isinstance(cause, ResponseError) else name


# --- Messages: encrypted and authenticated, fresh, and taken once. Somebody who controls the broker
# can neither read, forge, change nor repeat one.

# Older ones are refused by their age. Both clocks may differ by FRESH_SECONDS, each way.
REMEMBERED_SECONDS = 3 * FRESH_SECONDS


def about_checks(location: str) -> str:
    """The context that a batch is encrypted for: no other place can read it."""
    return f"wakeful checks v1 {location}"


def about_outcomes(location: str, checker: str) -> str:
    """The context that outcomes are encrypted for: another checker cannot read them."""
    return f"wakeful outcomes v1 {location} {checker}"


class MessageRefused(Exception):
    """A message that is not taken. The text says why."""


class Receiver:
    """Opens the messages that were encrypted for the context ``about``. ``dated``: the key of their
    time; ``plural``: their name in sentences. For one thread only.
    """

    def __init__(self, key: BatchKey, about: str, *, dated: str, plural: str) -> None:
        self._key, self._about, self._dated, self._plural = key, about, dated, plural
        self._taken: TTLCache[bytes, bool] = TTLCache(math.inf, REMEMBERED_SECONDS)

    def open(self, sealed: bytes, now: datetime) -> tuple[Any, timedelta]:
        """The message, and by how much its time is ahead of ``now``. Raises MessageRefused."""
        try:
            message = self._key.open(sealed, self._about)
        except Forged:
            why = "not made with our BATCH_KEY, or for another place"
            raise MessageRefused(f"{self._plural} were dropped: {why}.") from None
        at = moment(message[self._dated])
        if at is None:
            raise MessageRefused(
                f"{self._plural} that do not say when they were sent were dropped."
            )
        if abs(at - now) > timedelta(seconds=FRESH_SECONDS):
            raise MessageRefused(
                f"{self._plural} are {(now - at).total_seconds():.0f} s old by our clock;"
                f" {FRESH_SECONDS:.0f} s are allowed. They were held back, or the clocks of the"
                " checker and of the prober differ."
            )
        # The nonce cannot be changed, and no two messages have the same.
        nonce = sealed[:NONCE_BYTES]
        if nonce in self._taken:
            raise MessageRefused(f"{self._plural} came a second time, and were dropped.")
        self._taken[nonce] = True
        return message, at - now
