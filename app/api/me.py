"""/api/v1/me: the key that asks (decisions.md 11)."""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import one
from app.api.operations import operation
from app.codec import json_of
from app.stores import offered_to


@operation("GET", "/me", "Show the API key", "Key")
def show(call: Call) -> Response:
    call.without_input()
    return one({**json_of(call.key), "features": offered_to(call.key)} if call.key else None)
