"""Markers in the local database."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select

from app.db import db, writing
from app.db.markers import concerns
from app.db.tables import MarkerRow, MonitorRow
from app.db.tags import tags_of, tags_text
from app.records import Marker, MarkerQuery, Page
from app.stores.base import Collection, Fields
from app.stores.local.incidents import whole_seconds
from app.stores.local.part import Part, found_row
from app.stores.local.search import fits, ids_of_page


class Markers(Part, Collection[Marker, MarkerQuery]):
    def list(self, query: MarkerQuery) -> Page[Marker]:
        """The newest first; ``from_`` and ``to`` are included."""
        order = (MarkerRow.time.desc(), MarkerRow.id.desc())
        ids, total = ids_of_page(_matching(query), order, query.page, query.per_page)
        its = select(MarkerRow).where(MarkerRow.id.in_(ids))
        rows = db.session.scalars(its.order_by(*order)) if ids else ()
        return Page([_record(row) for row in rows], query.page, query.per_page, total)

    def get(self, id: int) -> Marker:
        return _record(found_row(db.session, MarkerRow, "marker", id))

    def create(self, fields: Fields) -> Marker:
        now = self.now()
        with writing() as session:
            row = MarkerRow(**self._columns({"time": None, **fields}))
            row.created_at = row.updated_at = now
            session.add(row)
            session.flush()
            id = row.id
        return self.get(id)

    def update(self, id: int, fields: Fields) -> Marker:
        with writing() as session:
            row = found_row(session, MarkerRow, "marker", id)
            for name, value in self._columns(fields).items():
                setattr(row, name, value)
            row.updated_at = self.now()
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            session.delete(found_row(session, MarkerRow, "marker", id))

    def _columns(self, fields: Fields) -> dict[str, Any]:
        """An empty time is now. Whole seconds survive a round trip of the API."""
        columns = whole_seconds(fields)
        if "time" in columns and columns["time"] is None:
            columns["time"] = self.now().replace(microsecond=0)
        if "tags" in columns:
            columns["tags"] = tags_text(columns["tags"] or ())
        return columns


def _record(row: MarkerRow) -> Marker:
    return Marker(
        row.id, row.name, row.time, row.link, tags_of(row.tags), row.created_at, row.updated_at
    )


def _matching(query: MarkerQuery) -> Select[Any]:
    statement = select(MarkerRow.id)
    if query.from_ is not None:
        statement = statement.where(MarkerRow.time >= query.from_)
    if query.to is not None:
        statement = statement.where(MarkerRow.time <= query.to)
    if query.monitor_id is None:
        return statement
    known = query.monitor_id if fits(query.monitor_id) else -1
    tags = db.session.scalar(select(MonitorRow.tags).where(MonitorRow.id == known))
    if tags is None:
        return statement.where(MarkerRow.id == -1)
    return statement.where(concerns(tags))
