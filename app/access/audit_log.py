"""Read, export and expire the audit log. Nothing here changes a line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, and_, delete, or_, select

from app.access import audit
from app.access.audit import TABLES
from app.db import db, writing
from app.db.tables import AuditRow
from app.records import (
    AUDIT_DAYS,
    MAX_ID,
    Action,
    Actor,
    ActorKind,
    AuditedObject,
    AuditLine,
    AuditPage,
    AuditQuery,
)
from app.records import ObjectKind as Kind

RETENTION = timedelta(days=AUDIT_DAYS)
# Lines that one request searches for a word. No index finds a part of a word on both databases, so
# a page says how far back it has searched, and a link continues the search.
MAX_SEARCHED = 50_000
FORGOTTEN_PER_TRANSACTION = 5_000
EXPORTED_PER_STATEMENT = 500


class AuditLog:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock

    def record(
        self,
        action: Action,
        audited: AuditedObject | None = None,
        changes: audit.Changes | None = None,
    ) -> None:
        """Write a line about something that changes no row, such as an export."""
        with writing() as session:
            audit.note(session, action, audited, changes)

    def page(self, query: AuditQuery) -> AuditPage:
        """The lines that match a query, the newest first."""
        statement = _matching(query)
        until = None
        if query.search:
            until = _searched_until(statement)
            if until is not None:
                statement = statement.where(_not_older(until))
            statement = statement.where(_has_words(query.search))
        rows = list(
            db.session.scalars(statement.order_by(*_NEWEST_FIRST).limit(query.per_page + 1))
        )
        has_more = len(rows) > query.per_page
        lines = [_record(row) for row in rows[: query.per_page]]
        if has_more:
            return AuditPage(lines, (lines[-1].at, lines[-1].id))
        return AuditPage(lines, until, None if until is None else until[0])

    def names(self, objects: Collection[tuple[Kind, int]]) -> Mapping[tuple[Kind, int], str]:
        """The names of these objects. A deleted object has the last name in the log."""
        names: dict[tuple[Kind, int], str] = {}
        for kind in {kind for kind, _id in objects}:
            ids = [id for kind_, id in objects if kind_ == kind and 0 <= id <= MAX_ID]
            for row_class, table in TABLES.items():
                if table.kind == kind and not table.is_part:
                    rows = db.session.scalars(select(row_class).where(row_class.id.in_(ids)))
                    stored = [table.object_of(row) for row in rows]
                    names |= {(kind, each.id or 0): each.name for each in stored if each.name}
            # Only deleted objects are looked up in the log: others may have thousands of lines.
            deleted = [id for id in ids if (kind, id) not in names]
            names_in_log = (
                select(AuditRow.object_id, AuditRow.object_name)
                .where(AuditRow.object_kind == kind, AuditRow.object_id.in_(deleted))
                .where(AuditRow.object_name.is_not(None))
                .order_by(AuditRow.id)
            )
            named = db.session.execute(names_in_log)
            names |= {(kind, id): name for id, name in named if id and name}
        return names

    def authors(self, kind: Kind, ids: Collection[int]) -> Mapping[int, str]:
        """The names of the people and keys that created these objects, as far as the log says."""
        creations = (
            select(AuditRow.object_id, AuditRow.actor_name)
            .where(AuditRow.object_kind == kind, AuditRow.object_id.in_(ids))
            .where(AuditRow.action == Action.CREATED, AuditRow.actor_kind != ActorKind.WAKEFUL)
            .order_by(AuditRow.id)
        )
        rows = db.session.execute(creations) if ids else ()
        return {id: name for id, name in rows if id and name}

    def lines(self, query: AuditQuery) -> Iterator[AuditLine]:
        """All lines that match a query, the newest first. They are read in parts, because a million
        lines need too much memory.
        """
        part = replace(query, per_page=EXPORTED_PER_STATEMENT)
        while True:
            page = self.page(part)
            # An open transaction would keep the database from removing old versions of rows while
            # somebody reads slowly.
            db.session.rollback()
            yield from page.lines
            if page.older is None:
                return
            part = replace(part, before=page.older)

    def forget_old(self) -> None:
        """Delete lines that are older than 400 days. The engine's housekeeping calls it."""
        old = select(AuditRow.id).where(AuditRow.at < self.clock() - RETENTION)
        while True:
            with writing() as session:
                ids = list(session.scalars(old.limit(FORGOTTEN_PER_TRANSACTION)))
                session.execute(delete(AuditRow).where(AuditRow.id.in_(ids)))
            if len(ids) < FORGOTTEN_PER_TRANSACTION:
                return


_NEWEST_FIRST = (AuditRow.at.desc(), AuditRow.id.desc())


def _matching(query: AuditQuery) -> Select[Any]:
    statement = select(AuditRow)
    for column, value in (
        (AuditRow.actor_kind, query.actor_kind),
        (AuditRow.actor_id, query.actor_id),
        (AuditRow.action, query.action),
        (AuditRow.object_kind, query.object_kind),
        (AuditRow.object_id, query.object_id),
    ):
        if value is not None:
            fits = not isinstance(value, int) or 0 <= value <= MAX_ID
            statement = statement.where(column == (value if fits else -1))
    if query.start is not None:
        statement = statement.where(AuditRow.at >= query.start)
    if query.end is not None:
        statement = statement.where(AuditRow.at <= query.end)
    if query.before is not None:
        at, id = query.before
        older = or_(AuditRow.at < at, and_(AuditRow.at == at, AuditRow.id < id))
        # The first condition follows from the second, and lets the database start in the index.
        statement = statement.where(AuditRow.at <= at, older)
    return statement


def _searched_until(statement: Select[Any]) -> tuple[datetime, int] | None:
    """The last line that a search reads; None if it reads all of them."""
    query = statement.with_only_columns(AuditRow.at, AuditRow.id).order_by(*_NEWEST_FIRST)
    row = db.session.execute(query.offset(MAX_SEARCHED - 1).limit(1)).first()
    return None if row is None else (row.at, row.id)


def _not_older(oldest: tuple[datetime, int]) -> Any:
    at, id = oldest
    newer = or_(AuditRow.at > at, and_(AuditRow.at == at, AuditRow.id >= id))
    return and_(AuditRow.at >= at, newer)


def _has_words(search: str) -> Any:
    """SQL condition: each word of a search is in the names or the address of a line."""
    words = search.casefold().split()
    return and_(*(AuditRow.words_folded.contains(word, autoescape=True) for word in words))


def _record(row: AuditRow) -> AuditLine:
    audited = None
    if row.object_kind in set(Kind):
        audited = AuditedObject(Kind(row.object_kind), row.object_id, row.object_name)
    actor = Actor(ActorKind(row.actor_kind), row.actor_name, row.actor_id, row.address)
    return AuditLine(row.id, row.at, actor, row.action, audited, row.changes)
