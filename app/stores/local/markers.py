"""Markers in the local database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, bindparam, select

from app.db import DbSession, db
from app.db.tables import MarkerRow, MonitorRow
from app.db.tags import concerns, tags_of, tags_text
from app.db.types import record_of
from app.records import Marker, MarkerQuery
from app.stores.base import Fields
from app.stores.local.incidents import whole_seconds
from app.stores.local.part import LocalCollection
from app.stores.local.search import fits

_MONITOR = MonitorRow.__table__.c
_TAGS = select(_MONITOR.tags).where(_MONITOR.id == bindparam("id"))


class Markers(LocalCollection[Marker, MarkerQuery]):
    @property
    def order(self) -> Sequence[Any]:
        return (MarkerRow.time.desc(), MarkerRow.id.desc())

    def columns(self, session: DbSession, id: int | None, fields: Fields) -> dict[str, Any]:
        """An empty time is now. Whole seconds survive a round trip of the API."""
        columns = whole_seconds(fields if id else {"time": None, **fields})
        if "time" in columns and columns["time"] is None:
            columns["time"] = self.now().replace(microsecond=0)
        if "tags" in columns:
            columns["tags"] = tags_text(columns["tags"] or ())
        return columns

    def record(self, row: MarkerRow) -> Marker:
        return record_of(Marker, row, tags=tags_of(row.tags))

    def matching(self, query: MarkerQuery) -> Select[Any]:
        """``from_`` and ``to`` are included."""
        statement = select(MarkerRow.id)
        if query.from_ is not None:
            statement = statement.where(MarkerRow.time >= query.from_)
        if query.to is not None:
            statement = statement.where(MarkerRow.time <= query.to)
        if query.monitor_id is None:
            return statement
        id = query.monitor_id if fits(query.monitor_id) else -1
        tags = db.session.execute(_TAGS, {"id": id}).scalar()
        if tags is None:
            return statement.where(MarkerRow.id == -1)
        return statement.where(concerns(tags))
