"""Status pages of another server."""

from __future__ import annotations

from collections.abc import Sequence

from app.records import PageQuery, StatusPage
from app.stores import base
from app.stores.base import Extent
from app.stores.remote.collection import RemoteCollection

MOST_PAGES = 10  # of a hundred: more than anybody has


class RemoteStatusPages(RemoteCollection[StatusPage, PageQuery], base.StatusPages):
    def of_monitor(self, monitor_id: int) -> Sequence[StatusPage]:
        if self.me.extent < Extent.WHOLE:
            return ()
        every = self.every(PageQuery(per_page=100), MOST_PAGES)
        pages = [page for page in every if monitor_id in page.monitors]
        return sorted(pages, key=lambda page: (page.name.casefold(), page.id))
