"""/api/v1/me: the API key of the request (decision 11)."""

from __future__ import annotations

from flask import Response

from app.api.envelope import record_answer
from app.api.operations import Call, operation
from app.codec import json_of
from app.stores import API_LEVEL

# ``features`` in the answer is older than ``api_level`` and gets no new values. A key that is bound
# to a tag gets TAG_FEATURES, any other key FEATURES.
TAG_FEATURES = ["overview", "hours", "classify", "spans", "changes", "result_places",
                "certificates", "list_order", "certificate_life"]  # fmt: skip
FEATURES = [*TAG_FEATURES, "reports", "report_days", "report_mails", "status_pages", "contacts",
            "post_templates", "markers", "unreadable_alerts", "window_tags", "channel_setup",
            "shared_channels", "locations"]  # fmt: skip


@operation("GET", "/me", "Show the API key", "Key")
def show(call: Call) -> Response:
    """Its name, scope and expiry, and the level of this server's API."""
    if call.key is None:
        return record_answer(None)
    features = FEATURES if call.key.tag is None else TAG_FEATURES
    return record_answer({**json_of(call.key), "api_level": API_LEVEL, "features": features})
