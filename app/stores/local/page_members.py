"""The monitors of status pages: their order, their names there, and their groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import delete, select

from app.access import audit
from app.db import DbSession, db
from app.db.statements import locked, select_fresh
from app.db.tables import (
    PostMonitorRow,
    PostRow,
    StatusPageGroupRow,
    StatusPageMonitorRow,
    StatusPageRow,
)
from app.errors import Invalid, no_such
from app.i18n import N_, _
from app.records import ComponentName, Group
from app.stores.base import Fields
from app.stores.local.part import locked_monitors

NOT_ON_PAGE = N_("The monitor %(id)s is not on the page.")
MEMBERS = ("monitors", "names", "groups")


def of_pages(ids: Sequence[int]) -> Mapping[int, dict[str, tuple[Any, ...]]]:
    """The ``MEMBERS`` of each of these pages."""
    rows = _by_page(StatusPageMonitorRow, ids, StatusPageMonitorRow.monitor_id)
    groups = _by_page(StatusPageGroupRow, ids, StatusPageGroupRow.id)
    return {id: _members(rows[id], groups[id]) for id in ids}


def _by_page(table: Any, ids: Sequence[int], id: Any) -> Mapping[int, list[Any]]:
    """The rows of each page, by position, and then by ``id``."""
    by_page = defaultdict(list)
    of_pages = select_fresh(table).where(table.status_page_id.in_(ids))
    for row in db.session.scalars(of_pages.order_by(table.position, id)):
        by_page[row.status_page_id].append(row)
    return by_page


def on_page(session: DbSession, page_id: int) -> list[int]:
    """The monitors of a page in their order."""
    member = StatusPageMonitorRow
    monitor_ids = select(member.monitor_id).where(member.status_page_id == page_id)
    return list(session.scalars(monitor_ids.order_by(member.position, member.monitor_id)))


def change(session: DbSession, page: StatusPageRow, fields: Fields) -> None:
    """Change the monitors, names and groups that ``fields`` have. The caller has locked the page.
    Raises Invalid.
    """
    if fields.keys().isdisjoint(MEMBERS):
        return
    old = of_pages([page.id])[page.id]
    _change(session, page.id, fields)
    new = of_pages([page.id])[page.id]
    changes = {name: (_audited(old[name]), _audited(new[name])) for name in MEMBERS}
    audit.note_change(session, page, changes)


def _change(session: DbSession, page_id: int, fields: Fields) -> None:
    # The monitors are locked before the rows of the page, as in a deletion of a monitor: in another
    # order, the two would wait for each other.
    monitor_ids = list(dict.fromkeys(fields.get("monitors") or ()))
    existing = locked_monitors(session, monitor_ids)
    own = locked(StatusPageMonitorRow).where(StatusPageMonitorRow.status_page_id == page_id)
    present = {row.monitor_id: row for row in session.scalars(own)}
    if "monitors" in fields:
        if missing := [id for id in monitor_ids if id not in existing]:
            raise Invalid({"monitors": [no_such("monitor", missing[0])]})
        present = _set_monitors(session, page_id, present, monitor_ids)
    if "names" in fields:
        _set_names(present, fields["names"] or ())
    if "groups" in fields:
        _set_groups(session, page_id, present, fields["groups"] or ())
    session.flush()


def _audited(members: Sequence[Any]) -> list[Any]:
    return [member if isinstance(member, int) else asdict(member) for member in members]


def _members(
    rows: Sequence[StatusPageMonitorRow], groups: Sequence[StatusPageGroupRow]
) -> dict[str, tuple[Any, ...]]:
    grouped: defaultdict[int | None, list[StatusPageMonitorRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.group_position or 0):
        grouped[row.group_id].append(row)
    names = (ComponentName(row.monitor_id, row.name) for row in rows if row.name is not None)
    grouped_ids = ([row.monitor_id for row in grouped[group.id]] for group in groups)
    return {
        "monitors": tuple(row.monitor_id for row in rows),
        "names": tuple(names),
        "groups": tuple(
            Group(group.name, tuple(ids)) for group, ids in zip(groups, grouped_ids, strict=True)
        ),
    }


def _set_monitors(
    session: DbSession,
    page_id: int,
    present: Mapping[int, StatusPageMonitorRow],
    monitors: Sequence[int],
) -> dict[int, StatusPageMonitorRow]:
    """Set the monitors of a page. Returns its rows in the order of the monitors. A monitor that
    stays keeps its name and its group.
    """
    removed = present.keys() - set(monitors)
    for id in removed:
        session.delete(present[id])
    _leave_posts(session, page_id, removed)
    rows = {}
    for position, id in enumerate(monitors):
        rows[id] = present.get(id) or StatusPageMonitorRow(status_page_id=page_id, monitor_id=id)
        rows[id].position = position
    session.add_all(rows.values())
    return rows


def _leave_posts(session: DbSession, page_id: int, removed: Iterable[int]) -> None:
    posts = select(PostRow.id).where(PostRow.status_page_id == page_id)
    session.execute(
        delete(PostMonitorRow).where(
            PostMonitorRow.post_id.in_(posts), PostMonitorRow.monitor_id.in_(list(removed))
        )
    )


def _set_names(present: Mapping[int, StatusPageMonitorRow], names: Iterable[ComponentName]) -> None:
    new_names = {name.key: name.value for name in names}
    _check_on_page(present, new_names, "names")
    for id, row in present.items():
        row.name = new_names.get(id)


def _set_groups(
    session: DbSession,
    page_id: int,
    present: Mapping[int, StatusPageMonitorRow],
    groups: Iterable[Group],
) -> None:
    session.execute(delete(StatusPageGroupRow).where(StatusPageGroupRow.status_page_id == page_id))
    for row in present.values():
        row.group_id = row.group_position = None
    for position, group in enumerate(groups):
        _check_on_page(present, group.monitors, "groups")
        new_row = StatusPageGroupRow(status_page_id=page_id, position=position, name=group.name)
        session.add(new_row)
        session.flush()
        for group_position, id in enumerate(group.monitors):
            if present[id].group_id is not None:
                raise Invalid({"groups": [_("The monitor %(id)s is in two groups.", id=id)]})
            present[id].group_id, present[id].group_position = new_row.id, group_position


def _check_on_page(present: Mapping[int, object], ids: Iterable[int], field: str) -> None:
    for id in ids:
        if id not in present:
            raise Invalid({field: [_(NOT_ON_PAGE, id=id)]})
