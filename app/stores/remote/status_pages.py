"""Status pages of another server, their posts, and their subscribers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.codec import MalformedData, reader
from app.codec.values import each, mapping, object_, record_id, text, whole_or_zero, word
from app.records import (
    Page,
    PageQuery,
    Post,
    PostQuery,
    PostState,
    StatusPage,
    Subscriber,
    SubscriberQuery,
)
from app.rules.natural import natural_key
from app.stores import base
from app.stores.base import Extent, Fields
from app.stores.remote.collection import RemoteCollection
from app.stores.remote.connection import ServerAnswer
from app.stores.remote.part import RemotePart, after_write

MAX_PAGES = 10  # with a hundred records each: more than anybody has


class RemoteStatusPages(RemoteCollection[StatusPage, PageQuery], base.StatusPages):
    def of_monitor(self, monitor_id: int) -> Sequence[StatusPage]:
        if self.me.extent < Extent.WHOLE:
            return ()
        every = self.every(PageQuery(per_page=100), MAX_PAGES)
        pages = [page for page in every if monitor_id in page.monitors]
        return sorted(pages, key=lambda page: (natural_key(page.name), page.id))


class RemotePosts(RemotePart, base.Posts):
    in_path = ("status_page_id",)

    def list(self, query: PostQuery) -> Page[Post]:
        id = query.status_page_id
        return self._page(_path(id), query, _post, of=("status page", id))

    def get(self, page_id: int, id: int) -> Post:
        return self._whole(id, self._read(f"{_path(page_id)}/{id}", of=("post", id)))

    def create(self, page_id: int, fields: Fields) -> Post:
        sent_fields = {name: value for name, value in fields.items() if value not in (None, ())}
        answer = self._write("POST", _path(page_id), sent_fields, of=("status page", page_id))
        with after_write():
            return self._content(answer, _post)

    def update(self, page_id: int, id: int, fields: Fields) -> Post:
        if not fields:
            return self.get(page_id, id)
        answer = self._write("PATCH", f"{_path(page_id)}/{id}", fields, of=("post", id))
        with after_write():
            return self._whole(id, answer)

    def delete(self, page_id: int, id: int) -> None:
        self._write("DELETE", f"{_path(page_id)}/{id}", of=("post", id))

    def add_update(self, page_id: int, id: int, fields: Fields) -> Post:
        self._write("POST", f"{_path(page_id)}/{id}/updates", fields, of=("post", id))
        with after_write():
            return self.get(page_id, id)

    def correct_update(self, page_id: int, id: int, update_id: int, fields: Fields) -> Post:
        if fields:
            path = f"{_path(page_id)}/{id}/updates/{update_id}"
            self._write("PATCH", path, fields, of=("update", update_id))
        with after_write():
            return self.get(page_id, id)

    def draft(self, page_id: int, incident_id: int) -> Fields:
        path, query = f"/status-pages/{page_id}/draft", [("incident_id", str(incident_id))]
        return self._get_content(path, _draft, query, of=("incident", incident_id))

    def _whole(self, id: int, answer: ServerAnswer) -> Post:
        """The post in an answer. A post with another id is refused: the next change would go to
        another post.
        """
        post = self._content(answer, _post)
        if post.id != id:
            raise self._not_understood(MalformedData("id"), answer)
        return post


def _path(page_id: int) -> str:
    return f"/status-pages/{page_id}/posts"


def _draft(data: Any) -> dict[str, Any]:
    data = object_(data, "draft")
    return {
        "title": text(data.get("title")) or "",
        "state": word(PostState, data.get("state")) or PostState.INVESTIGATING,
        "body": text(data.get("body")) or "",
        "monitors": each(data.get("monitors"), record_id),
    }


_post = reader(Post, "post")


class RemoteSubscribers(RemotePart, base.Subscribers):
    in_path = ("status_page_id",)

    def list(self, query: SubscriberQuery) -> Page[Subscriber]:
        id = query.status_page_id
        path = f"/status-pages/{id}/subscribers"
        return self._page(path, query, _subscriber, of=("status page", id))

    def clear(self, page_id: int) -> int:
        path, of = f"/status-pages/{page_id}/subscribers", ("status page", page_id)
        return whole_or_zero(mapping(self._write("DELETE", path, of=of).body).get("count"))


_subscriber = reader(Subscriber, "subscriber")
