"""The monitors of a status page, as people know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from app.i18n import _
from app.records import MonitorQuery, MonitorRef, StatusPage
from app.stores import current_store

PAGE, PAGES = 100, 5  # a status page has at most 500 monitors


def known(page: StatusPage) -> Mapping[int, MonitorRef]:
    """The monitors that are stored as the page's, by their ids."""
    return {} if not page.monitors else _found(MonitorQuery(status_page_id=page.id))


def tagged(tag: str) -> Mapping[int, MonitorRef]:
    """The monitors with this tag, by name."""
    return _found(MonitorQuery(tag=tag))


def _found(query: MonitorQuery) -> dict[int, MonitorRef]:
    query = replace(query, sort_by="name", sort="asc", per_page=PAGE, uptime=())
    monitors = current_store().monitors.every(query, PAGES)
    return {one.id: MonitorRef(one.id, one.name, one.url) for one in monitors}


def names_on(page: StatusPage) -> dict[int, str]:
    """What the page calls its monitors, in their order."""
    refs, own = known(page), {one.key: one.value for one in page.names}
    return {
        id: own.get(id) or (refs[id].name if id in refs else _("Monitor %(id)s", id=id))
        for id in page.monitors
    }
