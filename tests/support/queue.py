"""Helpers for tests of the queue: a key, the far end in this process, and what is on the broker."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.config import Settings
from app.engine.carriers.queue import sender
from app.engine.carriers.queue.broker import claim, listeners, make_redis, queue_of
from app.engine.carriers.queue.prober import Desk
from app.engine.carriers.queue.sender import QueueCarrier
from app.engine.checking import make_prober
from app.net.policy import Policy
from tests.lab.net import Listener
from tests.support.redis import Redis
from tests.support.service import eventually

KEY = base64.b64encode(os.urandom(32)).decode()


def queue_settings(redis_server: Redis, folder: Path) -> Settings:
    return Settings(
        instance=folder,
        database_url="sqlite://",
        secret_key="not used here",
        location="eu",
        broker_url=redis_server.url,
        batch_key=KEY,
        allow_networks="loopback",
        canaries="",
    )


@pytest.fixture
def carrier(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[QueueCarrier]:
    """The near end for a test whose settings are ``queue_settings``. Its threads wait for nothing
    for long, also at its end.
    """
    monkeypatch.setattr(sender, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(sender, "LOOK_SECONDS", 0.1)
    made = QueueCarrier(settings)
    yield made
    made.close(0)


@contextmanager
def desk(
    settings: Settings, works: Callable[[], bool] | None = None, *, sending: bool = False
) -> Iterator[Any]:
    """The far end in this process. Yields it and the messages that it makes, by list; ``sending``:
    the checkers of the place get them at once, also signs of a prober that has nothing to do.
    """
    sent: list[tuple[str, bytes]] = []
    came = threading.Event()
    policy, client = Policy.parse("loopback"), make_redis(settings.broker_url)

    def reply(to: str, sealed: bytes) -> None:
        if sending:
            client.rpush(to, sealed)
        sent.append((to, sealed))
        came.set()

    prober = make_prober(settings, lambda: policy)
    heard_by = partial(listeners, client, settings.location) if sending else tuple
    made: Any = Desk(settings, prober, reply, partial(claim, client), works, heard_by)
    made.sent, made.came = sent, came
    try:
        yield made
    finally:
        made.close(5)
        client.close()


def waiting(redis_server: Redis, location: str = "eu") -> list[bytes]:
    """The sealed batches that wait for a prober."""
    bodies = [
        json.loads(base64.b64decode(json.loads(message)["body"]))
        for message in redis_server.client.lrange(queue_of(location), 0, -1)
    ]
    return [base64.b64decode(arguments[0]) for arguments, _named, _more in bodies]


def sent_batch(redis_server: Redis) -> bytes:
    return eventually(lambda: waiting(redis_server), "a batch")[0]


def hand_over(redis_server: Redis, made: Any) -> None:
    """Put what a desk has sent on the broker."""
    for to, sealed in made.sent:
        redis_server.client.rpush(to, sealed)


def page(site: Listener) -> str:
    return f"http://127.0.0.1:{site.port}/status/200"


def next_batch(redis_server: Redis) -> bytes:
    """The next sealed batch, which leaves the queue."""
    sealed = sent_batch(redis_server)
    redis_server.client.delete(queue_of("eu"))
    return sealed


def prober_environ(redis_server: Redis, settings: Settings) -> dict[str, str]:
    return {
        "WAKEFUL_BROKER_URL": redis_server.url,
        "WAKEFUL_BATCH_KEY": KEY,
        "WAKEFUL_ALLOW_NETWORKS": "loopback",
        "WAKEFUL_CANARIES": "",
        "WAKEFUL_INSTANCE": str(settings.instance / "none"),
        "PATH": os.environ["PATH"],
    }
