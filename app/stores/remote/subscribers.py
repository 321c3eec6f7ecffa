"""Who subscribed to status pages of another server."""

from __future__ import annotations

from collections.abc import Mapping

from app.codec import reader
from app.codec.values import length
from app.records import Page, Subscriber, SubscriberQuery
from app.stores import base
from app.stores.remote.part import RemotePart, parameters


class RemoteSubscribers(RemotePart, base.Subscribers):
    def list(self, query: SubscriberQuery) -> Page[Subscriber]:
        sent = parameters(query, leave=("status_page_id",))
        id = query.status_page_id
        return self._page(_path(id), query, _subscriber, sent=sent, kind="status page", id=id)

    def clear(self, page_id: int) -> int:
        body = self._write("DELETE", _path(page_id), kind="status page", id=page_id).body
        return length(body.get("count")) if isinstance(body, Mapping) else 0


def _path(page_id: int) -> str:
    return f"/status-pages/{page_id}/subscribers"


_subscriber = reader(Subscriber, "subscriber")
