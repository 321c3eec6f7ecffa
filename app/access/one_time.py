"""Tokens of links that work once. The link has the token; only its hash is stored."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_BYTES = 24  # 192 bits


def make_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
