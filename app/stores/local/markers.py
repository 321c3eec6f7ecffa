"""Markers in the local database."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, select

from app.db import DbSession, rollups
from app.db.tables import MarkerRow
from app.db.tags import concerns, tags_of, tags_text
from app.db.types import record_of
from app.records import Marker, MarkerQuery, Page
from app.stores.base import Fields
from app.stores.local.incidents import whole_seconds
from app.stores.local.part import LocalCollection, PageStatements, fits, page_statements

_ORDER = MarkerRow.time.desc(), MarkerRow.id.desc()
_TIME = MarkerRow.time.type


class Markers(LocalCollection[Marker, MarkerQuery]):
    order = _ORDER

    def columns(self, session: DbSession, id: int | None, fields: Fields) -> dict[str, Any]:
        """An empty time means now. Times have whole seconds, so that the API returns the stored
        value.
        """
        columns = whole_seconds(fields if id else {"time": None, **fields})
        if "time" in columns and columns["time"] is None:
            columns["time"] = self.now().replace(microsecond=0)
        if "tags" in columns:
            columns["tags"] = tags_text(columns["tags"] or ())
        return columns

    def record(self, row: MarkerRow) -> Marker:
        return record_of(Marker, row, tags=tags_of(row.tags))

    def list(self, query: MarkerQuery) -> Page[Marker]:
        """``from_`` and ``to`` are included."""
        tags = None
        if query.monitor_id is not None:
            monitor = rollups.monitor_of(query.monitor_id) if fits(query.monitor_id) else None
            if monitor is None:
                return Page([], query.page, query.per_page, 0)
            tags = monitor.tags
        limits = {"first": query.from_, "last": query.to}
        times = {name: time for name, time in limits.items() if time is not None}
        statements = _statements(tags, frozenset(times), query.page, query.per_page)
        ids, total = statements.read(values=times)
        return Page(self.records(ids) if ids else [], query.page, query.per_page, total)


@lru_cache(maxsize=64)  # built once: each page of a monitor asks for those of its chart
def _statements(
    tags: str | None, times: frozenset[str], page: int, per_page: int
) -> PageStatements:
    """The statements for a page of the markers that concern a monitor with these ``tags``, or of
    all markers without ``tags``. ``times``: the parameters among ``first`` and ``last`` that the
    query has.
    """
    matching = select(MarkerRow.id)
    if "first" in times:
        matching = matching.where(MarkerRow.time >= bindparam("first", type_=_TIME))
    if "last" in times:
        matching = matching.where(MarkerRow.time <= bindparam("last", type_=_TIME))
    if tags is not None:
        matching = matching.where(concerns(tags))
    return page_statements(matching, _ORDER, page, per_page)
