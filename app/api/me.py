"""/api/v1/me: the key that asks (decisions.md 11)."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import one
from app.api.operations import operation
from app.codec import json_of
from app.stores import API_LEVEL, offered_to


@operation("GET", "/me", "Show the API key", "Key")
def show(call: Call) -> Response:
    """Its name, scope and expiry, and what this server offers."""
    call.without_input()
    if call.key is None:
        return one(None)
    level = {"api_level": API_LEVEL, "features": offered_to(call.key)}
    return one({**json_of(call.key), **level})
