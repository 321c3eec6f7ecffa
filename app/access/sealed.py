"""Data that a page carries to its next request, which the person who sends it may not read or
change: an import's passwords must not stand in a page's source.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from cryptography.fernet import InvalidToken, MultiFernet

from app.errors import Denied
from app.i18n import N_, _
from app.secret_keys import cipher, keys_of

LIFETIME_SECONDS = 24 * 3600
LOST = N_("This page is too old, or it is not complete. Start again.")


def seal(data: Any, purpose: str) -> str:
    """``data``, which JSON can carry, as text. Needs an application context."""
    packed = zlib.compress(json.dumps(data, separators=(",", ":")).encode())
    return _fernet(purpose).encrypt(packed).decode()


def unseal(text: str, purpose: str) -> Any:
    """What ``seal`` was given. Raises Denied with a sentence for anything else."""
    try:
        packed = _fernet(purpose).decrypt(text.encode(), ttl=LIFETIME_SECONDS)
    except (InvalidToken, ValueError):
        raise Denied(_(LOST)) from None
    return json.loads(zlib.decompress(packed))


def _fernet(purpose: str) -> MultiFernet:
    return cipher(f"wakeful sealed v1 {purpose}".encode(), keys_of())
