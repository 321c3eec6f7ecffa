"""Find the stored values that cannot be read, by table, row and field, and damage of SQLite's file.

Readers get another value in place of such a value (``app.db.types``). This search runs at the
start, in ``wakeful doctor`` and for ``/readyz``. Needs an application context.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Dialect,
    LargeBinary,
    Select,
    String,
    Table,
    cast,
    exc,
    null,
    select,
    type_coerce,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

from app.db import db
from app.db.connections import primary_code
from app.db.faults import is_damage
from app.db.tables import MonitorRow, PackedHourRow, ResultRow, RollupRow, SettingRow
from app.db.types import Checked, Encrypted, Unreadable, Why, parsed
from app.i18n import N_, _
from app.records import CHECK_FIELDS, SECRET_FIELDS
from app.records.resources import BY_TABLE, MONITORS, REPORT_MAILS

ROWS_IN_MEMORY = 500
# Tables that are too large to be scanned.
UNSCANNED = {row.__tablename__ for row in (ResultRow, PackedHourRow, RollupRow)}
SAMPLED = 20  # rows of a table: enough to recognise a wrong key


# The nouns for the rows of a table, and those for columns whose name is not the noun.
_NOUNS = {
    **{table: resource.singular for table, resource in BY_TABLE.items()},
    "monitor_states": MONITORS.singular,
    "monitor_evidence": MONITORS.singular,
    "authenticator_apps": N_("authenticator app of person"),
    "heartbeat_states": N_("heartbeat"),
    "pings": N_("ping"),
    "status_page_groups": N_("group of status pages"),
    "post_updates": N_("update of a post"),
    "report_mails_sent": REPORT_MAILS.singular,
}
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "monitors": SECRET_FIELDS | CHECK_FIELDS,
    "monitor_evidence": {
        "last_good": N_("last good check kept"),
        "asked": N_("assertions of the last check asked for"),
        "failing": N_("failing checks kept"),
    },
    "deliveries": {"value": N_("target"), "facts": N_("message")},
    "subscribers": {"value": N_("target")},
    "authenticator_apps": {"secret": N_("secret")},
}


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """A value that cannot be read. ``id`` and ``name``: of its row; people gave it the name."""

    table: str
    id: Any  # of the row
    field: str
    why: Why
    name: str | None = None

    def __str__(self) -> str:
        return _("The %(what)s cannot be read, because %(why)s", what=self.what, why=_(self.why))

    @property
    def what(self) -> str:
        """Names the value, as the subject of a sentence."""
        if self.table == SettingRow.__tablename__:
            return _("setting %(name)s", name=self.id)
        words = self.field.replace("_", " ")
        noun = _NOUNS.get(self.table)
        if noun is None:
            return _(
                "%(field)s in the table %(table)s of row %(id)s",
                field=words,
                table=self.table,
                id=self.id,
            )
        row = f"{_(noun)} {self.id}"
        if self.name:
            row = f'"{self.name}" ({row})'
        field = _(_FIELDS.get(self.table, {}).get(self.field, words))
        return _("%(field)s of %(row)s", field=field, row=row)


def scan(only: Iterable[str] = ()) -> Iterator[UnreadableValue]:
    """Yield the unreadable values of all tables, or of those in ``only``. Results and their sums
    (UNSCANNED) are left out, because there are too many.
    """
    for table in db.metadata.sorted_tables:
        if table.name not in UNSCANNED and (not only or table.name in only):
            yield from _unreadable_values(table)


def key_is_wrong() -> bool:
    """Whether SECRET_KEY is not the key of this database: in a sample of rows, no value was written
    with it, and at least one with another key. A damaged value proves nothing.
    """
    sampled = [value for table, columns in encrypted() for value in _sample(table, columns)]
    whys = [value.why if isinstance(value, Unreadable) else None for value in sampled]
    return Why.OTHER_KEY in whys and not {None, Why.UNEXPECTED} & set(whys)


def encrypted() -> Iterator[tuple[Table, list[Column[Any]]]]:
    for table in db.metadata.sorted_tables:
        columns = [column for column in table.c if isinstance(column.type, Encrypted)]
        if columns:
            yield table, columns


class _Parsed(TypeDecorator[Any]):
    """Reads stored values by the ``Checked.parser`` of ``type_``, without ``Checked.replace``."""

    impl = LargeBinary
    cache_ok = True

    def __init__(self, type_: TypeEngine[Any]) -> None:
        super().__init__()
        self.type_ = type_

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        type_ = self.type_.dialect_impl(dialect)
        parse = type_.parser(dialect, coltype) if isinstance(type_, Checked) else _decode_text

        def read(stored: Any) -> Any:
            return None if stored is None else parse(stored)

        return read


def _decode_text(value: Any) -> Any:
    """Decode text, which ``_parsed`` selects as bytes."""
    return value if isinstance(value, str) else parsed(bytes.decode, bytes(value))


def _parsed(column: Column[Any]) -> ColumnElement[Any] | None:
    """The column as it is selected to be checked; None if it needs no check."""
    if isinstance(column.type, Checked):
        return type_coerce(column, _Parsed(column.type))
    if isinstance(column.type, String) and db.engine.dialect.name == "sqlite":
        # PostgreSQL accepts only text that is encoded correctly, so only SQLite is checked.
        return type_coerce(cast(column, LargeBinary), _Parsed(column.type))
    return None


def _unreadable_values(table: Table) -> Iterator[UnreadableValue]:
    columns = {column: parsed for column in table.c if (parsed := _parsed(column)) is not None}
    if not columns:
        return
    keys = list(table.primary_key.columns)
    query = _with_names(table, select(*keys, *columns.values()).select_from(table)).order_by(*keys)
    for row in db.session.execute(query.execution_options(yield_per=ROWS_IN_MEMORY)):
        id = row[0] if len(keys) == 1 else tuple(row[: len(keys)])
        *values, name = row[len(keys) :]
        for column, value in zip(columns, values, strict=True):
            if isinstance(value, Unreadable):
                yield UnreadableValue(table.name, id, column.name, value.why, name)


def _with_names(table: Table, query: Select[Any]) -> Select[Any]:
    """The query with one more column: the name by which people know the row."""
    if table.name in ("monitor_states", "monitor_evidence"):
        query = query.outerjoin(MonitorRow, MonitorRow.id == table.c.monitor_id)
        return query.add_columns(MonitorRow.name)
    resource = BY_TABLE.get(table.name)
    name = None if resource is None else resource.named_by
    return query.add_columns(table.c[name] if name in ("name", "title", "email") else null())


def _sample(table: Table, columns: list[Column[Any]]) -> Iterator[Any]:
    (key,) = table.primary_key.columns
    for column in columns:
        rows = select(column).where(column.is_not(None)).order_by(key.desc()).limit(SAMPLED)
        yield from db.session.scalars(rows)


# --- Damage of an SQLite file

FAULTS_NAMED = 5
_STEPS = 10_000  # of SQLite's virtual machine between two checks of the time


def file_faults(seconds: float) -> list[str] | None:
    """The faults that ``PRAGMA quick_check`` finds; None if it takes longer than ``seconds``."""
    until = time.monotonic() + seconds
    connection = db.session.connection()
    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        rows = connection.exec_driver_sql(f"PRAGMA quick_check({FAULTS_NAMED})").scalars().all()
    except exc.DBAPIError as fault:
        if primary_code(fault.orig) == sqlite3.SQLITE_INTERRUPT:
            return None
        if is_damage(fault):  # too damaged for quick_check to run
            return [str(fault.orig)]
        raise
    finally:
        driver.set_progress_handler(None, 0)
        db.session.rollback()
    return [line for row in rows for line in str(row).splitlines() if row != "ok"]
