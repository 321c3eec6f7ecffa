"""Status pages of another server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.codec import reader
from app.records import PageQuery, StatusPage
from app.stores import base
from app.stores.base import Feature
from app.stores.remote.collection import Collection

MOST_PAGES = 10  # of a hundred: more than anybody has


class StatusPages(Collection[StatusPage, PageQuery], base.StatusPages):
    path = "/status-pages"
    kind = "status page"
    feature = Feature.STATUS_PAGES

    def read(self, data: Any) -> StatusPage:
        return _page(data)

    def of_monitor(self, monitor_id: int) -> Sequence[StatusPage]:
        if Feature.STATUS_PAGES not in self.offers.known():
            return ()
        found: list[StatusPage] = []
        for number in range(1, MOST_PAGES + 1):
            page = self.list(PageQuery(per_page=100, page=number))
            found += (one for one in page.items if monitor_id in one.monitors)
            if number >= page.last_number:
                break
        return sorted(found, key=lambda page: (page.name.casefold(), page.id))


_page = reader(StatusPage, "status page")
