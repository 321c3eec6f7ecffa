"""Encrypt and authenticate messages between machines, so that nobody on the way can read or change
them.

``BatchKey``: both sides have the same key. ``seal_to``: only the owner of a private key can read
the message. Anybody can write one, so it must be sent over an authenticated connection.
"""

from __future__ import annotations

import base64
import json
import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

KEY_BYTES = 32
NONCE_BYTES = 12
# The context to which ``assigned`` of the API for agents is sealed; with the name of the place.
ABOUT_ASSIGNED = "wakeful assigned v2 {}"
WRONG_KEY = "it must be 32 random bytes in base64, such as `openssl rand -base64 32` prints."


class Forged(ValueError):
    """The text was not made with the right key, or for another purpose, or was changed."""


class BatchKey:
    """Raises ValueError for text that is not 32 bytes in base64."""

    def __init__(self, text: str) -> None:
        self._cipher = AESGCM(key_of(text))

    def seal(self, data: Any, about: str) -> bytes:
        """``data``, which JSON can carry. ``about``: what ``open`` must name to read it."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, _json(data), about.encode())

    def open(self, sealed: bytes, about: str) -> Any:
        """Raises Forged."""
        nonce, ciphertext = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        try:
            return json.loads(self._cipher.decrypt(nonce, ciphertext, about.encode()))
        except (InvalidTag, ValueError):
            raise Forged("not made with this key") from None


def key_of(text: str) -> bytes:
    """The bytes of a key in base64. Raises ValueError with a sentence."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError(WRONG_KEY)
    return key


def public_key(text: str) -> bytes:
    """The bytes of a public key in base64. Raises ValueError with a sentence, also for the few keys
    to which nothing can be sealed.
    """
    key = key_of(text)
    try:
        seal_to(key, None, "")
    except CryptoError:
        raise ValueError(WRONG_KEY) from None
    return key


def new_private_key() -> bytes:
    return bytes(PrivateKey.generate())


def public_key_of(private: bytes) -> bytes:
    return bytes(PrivateKey(private).public_key)


def seal_to(public: bytes, data: Any, about: str) -> bytes:
    """``data``, which JSON can carry, for the owner of the private key to ``public``."""
    return SealedBox(PublicKey(public)).encrypt(f"{about}\n".encode() + _json(data))


def unseal(private: bytes, sealed: bytes, about: str) -> Any:
    """The data that ``seal_to`` was given. Raises Forged."""
    try:
        return json.loads(unseal_text(private, sealed, about))
    except ValueError:
        raise Forged("not made for this key") from None


def unseal_text(private: bytes, sealed: bytes, about: str) -> bytes:
    """Like ``unseal``, but the JSON is not parsed: anybody can seal to a public key."""
    try:
        text = SealedBox(PrivateKey(private)).decrypt(sealed)
    except (CryptoError, ValueError):
        raise Forged("not made for this key") from None
    purpose, _line_end, data = text.partition(b"\n")
    if purpose != about.encode():
        raise Forged("made for another purpose")
    return data


def _json(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()
