"""The secret of a heartbeat's ping URL (decision 18). Pure, but for chance."""

from __future__ import annotations

import re
import uuid

from app.i18n import N_, _
from app.records import MAX_TOKEN, MIN_TOKEN

TOKEN = N_(
    "Send a UUID, or %(least)s to %(most)s of A to Z, a to z, 0 to 9, - and _.",
    least=MIN_TOKEN,
    most=MAX_TOKEN,
)
_TOKEN = re.compile(rf"[A-Za-z0-9_-]{{{MIN_TOKEN},{MAX_TOKEN}}}")


def is_token(value: str) -> bool:
    return _TOKEN.fullmatch(value) is not None


def check_token(value: str) -> str:
    """Raises ValueError with a sentence."""
    if not is_token(value):
        raise ValueError(_(TOKEN))
    return value


def make_ping_token() -> str:
    return str(uuid.uuid4())
