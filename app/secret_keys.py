"""The secret keys of a running application: the first encrypts and signs, all decrypt and verify
(decision 15). So a new key can replace an old one while everything runs.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache

from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flask import Flask, current_app


def keys_of(app: Flask | None = None) -> tuple[str, ...]:
    """All keys, the first one first; by default those of the current application."""
    config = (app or current_app).config
    return (config["SECRET_KEY"], *(config["SECRET_KEY_FALLBACKS"] or ()))


def signing_keys(app: Flask | None = None) -> list[str]:
    """All keys in the order of itsdangerous, which signs with the last one."""
    return list(reversed(keys_of(app)))


def ciphers(purpose: bytes, keys: Sequence[str]) -> list[Fernet]:
    """A cipher for each key and this purpose. Each purpose has different ciphers: a leaked key for
    cookies must not decrypt the database.
    """
    return [Fernet(base64.urlsafe_b64encode(_derived(key, purpose))) for key in keys]


def cipher(purpose: bytes, keys: Sequence[str]) -> MultiFernet:
    return MultiFernet(ciphers(purpose, keys))


@cache
def mark_of(key: str) -> str:
    """A mark that distinguishes a key without revealing it."""
    return _derived(key, b"wakeful name of a key v1")[:4].hex()


def _derived(key: str, purpose: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=purpose).derive(key.encode())
