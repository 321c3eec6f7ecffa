"""What a prober takes of a message in the queue: the text of a batch, and nothing else. Pure.

Whoever can write to Redis can send a message of any size, with any properties and headers. Celery
and kombu act on these (time limits, an ETA, compression, other tasks), also where that ends a
prober or fills its memory. So Celery gets each batch in a message that the prober writes itself.
"""

from __future__ import annotations

import base64
import json
import uuid
from datetime import datetime
from typing import Any

from app.codec.packing import moment
from app.engine.carriers.queue.broker import LARGEST_MESSAGE, TASK

# Lists, objects and commas of a message, which has some 50. Its one long value is text. Reading
# more values would take many times the memory of the message.
MOST_MARKS = 500


class NoBatch(ValueError):
    """The message has no batch that may be run. The text says why."""


def batch_in(message: bytes, now: datetime) -> str:
    """The batch in a message of Celery's, as the sender wrote it. Raises NoBatch.

    What is not read here may differ: other versions of Celery write other headers.
    """
    if len(message) > LARGEST_MESSAGE:
        raise NoBatch(f"it has {len(message):,} bytes, and {LARGEST_MESSAGE:,} are allowed.")
    try:
        told = _parsed(message)
        headers, body = told["headers"], _parsed(base64.b64decode(told["body"]))
        task, expires = headers["task"], moment(headers.get("expires"))
    except (ValueError, TypeError, LookupError, AttributeError):
        raise NoBatch("it is not a message of a checker.") from None
    if expires is not None and expires < now:
        age = (now - expires).total_seconds()
        raise NoBatch(f"it was not taken in time: it expired {age:,.0f} s ago by our clock.")
    match body:
        case [[str(text)], *_] if task == TASK and text.isascii():
            return text
    raise NoBatch("it asks for something else than checks.")


def message_with(batch: str, queue: str) -> bytes:
    """A message of Celery's for this batch."""
    name = uuid.uuid4().hex
    return json.dumps(
        {
            "body": base64.b64encode(json.dumps([[batch], {}, {}]).encode()).decode(),
            "content-type": "application/json",
            "content-encoding": "utf-8",
            "headers": {"lang": "py", "task": TASK, "id": name},
            "properties": {
                "body_encoding": "base64",
                "delivery_tag": name,
                "delivery_info": {"exchange": "", "routing_key": queue},
            },
        }
    ).encode()


def _parsed(text: bytes) -> Any:
    """Raises ValueError."""
    if sum(map(text.count, b"[{,")) > MOST_MARKS:
        raise ValueError("too many values")
    return json.loads(text.decode())
