"""/api/v1/status-pages/{id}/subscribers (decisions.md 12): people confirm themselves, so nothing
adds one.
"""

from __future__ import annotations

from flask import Response

from app.api.call import Call
from app.api.envelope import cleared, paged
from app.api.operations import operation
from app.codec import json_of
from app.forms import binding
from app.forms.queries import PageForm
from app.records import Scope

SUBSCRIBERS = "/status-pages/{id}/subscribers"


@operation(
    "GET", SUBSCRIBERS, "List a page's subscribers", "Subscriber",
    paged=True, query=PageForm, scope=Scope.WRITE,
)  # fmt: skip
def list_(call: Call) -> Response:
    """People who confirmed their address. Needs a key of scope `write`."""
    call.store.status_pages.get(call.id)
    page = call.store.subscribers.list(binding.subscriber_query(call.id, call.query))
    return paged(page, json_of, call.query)


@operation("DELETE", SUBSCRIBERS, "Delete all subscribers of a page", "Cleared")
def clear(call: Call) -> Response:
    """Also those who have not confirmed yet. Nobody is notified."""
    call.store.status_pages.get(call.id)
    call.without_input()
    return cleared("subscribers", call.id, call.store.subscribers.clear(call.id))
