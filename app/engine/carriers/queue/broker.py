"""What both ends of the queue share: Celery's application, the names of queues, what batches and
outcomes are encrypted for, and who may run a batch.
"""

from __future__ import annotations

from typing import Any

import redis
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from app.config import PREFIX, SettingError, Settings
from app.i18n import _

TASK = "wakeful.checks"
# A batch that no prober has taken within this time is refused by all of them, so that a copy of it
# cannot be used later. The clocks of checker and probers may differ by as much.
FRESH_SECONDS = 30.0
# How long Redis keeps outcomes that no checker takes, and the claims of batches. By then, these are
# too old to be run.
KEPT_SECONDS = 120
# In bytes. A checker divides a batch whose sealed text is larger; a prober drops a message that is
# larger than any of these makes, even with one check of the largest size.
LARGEST_SEALED = 4 * 1024 * 1024
LARGEST_MESSAGE = 32 * 1024 * 1024
CONNECT_SECONDS = 5
# What Redis, and the line to it, raise: directly, and through Celery.
BROKER_FAULTS = (RedisError, OperationalError)


def queue_of(location: str) -> str:
    return f"checks.{location}"


def about_checks(location: str) -> str:
    """What a batch is encrypted for: one that is moved to another place cannot be read there."""
    return f"wakeful checks v1 {location}"


def about_outcomes(location: str, checker: str) -> str:
    """What outcomes are encrypted for: another checker cannot read them."""
    return f"wakeful outcomes v1 {location} {checker}"


def needed(settings: Settings) -> tuple[str, str]:
    """The address of Redis, and the key. Raises SettingError."""
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
        task_ignore_result=True,  # outcomes come back encrypted, on a list of their own
        task_acks_late=True,  # a prober without room leaves batches to others
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_enable_remote_control=False,  # it would take commands from anybody on the broker
        worker_send_task_events=False,
        # The default of Celery 6. A task lasts some milliseconds; while one waits for room, Celery
        # does not read from Redis, and so does not notice that the connection is lost.
        worker_cancel_long_running_tasks_on_connection_loss=True,
        # None of the task's arguments may reach the log.
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "socket_timeout": CONNECT_SECONDS,
            "socket_connect_timeout": CONNECT_SECONDS,
            "socket_keepalive": True,
            "health_check_interval": 10,
            # Celery keeps no copy of a message until it is done: what ends a prober would come back
            # and end the next one. The checker sends lost checks again, sooner than Celery would.
            "ack_emulation": False,
            "priority_steps": [0],
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


def claim(client: Any, batch_id: str) -> bool:
    """Whether the caller is the first to claim this batch. A prober claims it to run its checks,
    the checker to send them again. Raises RedisError.

    A batch may come late (it waited in Celery) or twice (Redis delivers again what a consumer that
    is gone had), and its checks must not run twice.
    """
    return bool(client.set(f"claimed.{batch_id}", b"", nx=True, ex=KEPT_SECONDS))
