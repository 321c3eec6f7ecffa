"""The posts of status pages and their templates, in the local database.

Each write of a post locks its page (``locked_page``), so that writers of one page wait for each
other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, select

from app.access import audit
from app.alerts.subscribers import announce
from app.db import DbSession, db, locks, writing
from app.db.statements import select_fresh
from app.db.tables import (
    IncidentRow,
    MonitorRow,
    PostMonitorRow,
    PostRow,
    PostTemplateRow,
    PostUpdateRow,
    StatusPageMonitorRow,
    StatusPageRow,
)
from app.db.types import readable, record_of
from app.errors import Invalid, NotFound, existing, no_such
from app.i18n import N_, _
from app.records import (
    ENDED_STATES,
    MonitorImpact,
    Page,
    PageQuery,
    Post,
    PostQuery,
    PostState,
    PostTemplate,
    PostUpdate,
)
from app.rules import causes
from app.rules import posts as rules
from app.rules.page_state import impact_of
from app.rules.posts import folded
from app.rules.text import TAKEN
from app.stores import base
from app.stores.base import Fields
from app.stores.local.cancelling import cancel_post, keeping_calendars, renumbering
from app.stores.local.page_members import NOT_ON_PAGE, on_page
from app.stores.local.part import (
    LocalCollection,
    LocalPart,
    fits,
    fitting,
    ids_of_page,
    locked_monitors,
)
from app.stores.local.status_pages import locked_page

OF_ANOTHER = N_("The incident %(id)s is of a monitor that is not on the page.")
NO_INCIDENT_HERE = N_("No monitor of this page has an incident with the id %(id)s.")
NOT_OF_POST = N_("The monitor %(id)s is not one of the post's monitors.")
COLUMNS = ("title", "incident_id", "starts_at", "ends_at")


class LocalPosts(LocalPart, base.Posts):
    def list(self, query: PostQuery) -> Page[Post]:
        matching = select(PostRow.id).where(PostRow.status_page_id == fitting(query.status_page_id))
        if query.open:
            matching = matching.where(PostRow.state.not_in(ENDED_STATES))
        order = (PostRow.created_at.desc(), PostRow.id.desc())
        ids, total = ids_of_page(matching, order, query.page, query.per_page)
        return Page(records_of_posts(ids), query.page, query.per_page, total)

    def get(self, page_id: int, id: int) -> Post:
        posts = records_of_posts([id]) if fits(id) else []
        if not posts or posts[0].status_page_id != page_id:
            raise NotFound("post", id)
        return posts[0]

    def create(self, page_id: int, fields: Fields) -> Post:
        now = self.now()
        with writing() as session:
            locked_page(session, page_id)
            _check(session, page_id, None, fields)
            row = PostRow(
                **{name: fields.get(name) for name in (*COLUMNS, "state")},
                status_page_id=page_id,
                automatic=False,
                created_at=now,
                updated_at=now,
            )
            session.add(row)
            session.flush()
            _set_monitors(session, row, fields.get("monitors") or ())
            _set_impact(session, row, fields.get("impact") or ())
            _add_update(session, row, fields, now)
            return self.get(page_id, row.id)

    def update(self, page_id: int, id: int, fields: Fields) -> Post:
        now = self.now()
        with writing() as session:
            row = _locked_post(session, page_id, id)
            _check(session, page_id, row, fields)
            with keeping_calendars(session, [page_id], now):
                changes = [
                    _change(row, {name: fields[name] for name in COLUMNS if name in fields}),
                    "monitors" in fields and _set_monitors(session, row, fields["monitors"] or ()),
                    _correct_first_and_last(session, row, fields, now),
                ]
                if any(changes):
                    row.corrected_at = row.updated_at = now
                if "impact" in fields and _set_impact(session, row, fields["impact"] or ()):
                    row.updated_at = now
            return self.get(page_id, id)

    def delete(self, page_id: int, id: int) -> None:
        with writing() as session:
            row = _locked_post(session, page_id, id)
            cancel_post(session, row, self.now())
            session.delete(row)

    def add_update(self, page_id: int, id: int, fields: Fields) -> Post:
        now = self.now()
        with writing() as session:
            row = _locked_post(session, page_id, id)
            _check_state(row, fields["state"])
            if fields["state"] == PostState.COMPLETED and row.starts_at and now < row.starts_at:
                cancel_post(session, row, now)  # the maintenance will not take place
            with renumbering(session, [page_id], now):
                row.state, row.updated_at = fields["state"], now
                _add_update(session, row, fields, now)
            return self.get(page_id, id)

    def correct_update(self, page_id: int, id: int, update_id: int, fields: Fields) -> Post:
        now = self.now()
        with writing() as session:
            row = _locked_post(session, page_id, id)
            updates = _updates(session, [id])
            matching = (update for update in updates if update.id == update_id)
            update = existing(next(matching, None), N_("update"), update_id)
            if "state" in fields:
                _check_state(row, fields["state"], last=update is updates[-1])
            with renumbering(session, [page_id], now):
                if _correct(update, fields, now):
                    row.state, row.updated_at = updates[-1].state, now
            return self.get(page_id, id)

    def draft(self, page_id: int, incident_id: int) -> Fields:
        incident, member = IncidentRow, StatusPageMonitorRow
        columns = incident.monitor_id, incident.cause_code, incident.started_at, incident.ended_at
        statement = (
            select(*columns, member.name, MonitorRow.name.label("own_name"), StatusPageRow.zone)
            .join(MonitorRow, MonitorRow.id == incident.monitor_id)
            .join(member, member.monitor_id == incident.monitor_id)
            .join(StatusPageRow, StatusPageRow.id == member.status_page_id)
            .where(incident.id == fitting(incident_id), member.status_page_id == fitting(page_id))
        )
        row = db.session.execute(statement).one_or_none()
        if row is None:
            raise NotFound("incident", incident_id, NO_INCIDENT_HERE)
        content = causes.draft(
            [row.name or row.own_name], row.cause_code, row.started_at, row.ended_at, zone=row.zone
        )
        return {**content, "monitors": (row.monitor_id,)}


def records_of_posts(ids: Sequence[int]) -> list[Post]:
    """The posts with these ids, in their order, in one query for each table."""
    rows = db.session.scalars(select_fresh(PostRow).where(PostRow.id.in_(ids)))
    by_id = {row.id: row for row in rows}
    monitors = _monitors(ids)
    updates: defaultdict[int, list[PostUpdate]] = defaultdict(list)
    for update in _updates(db.session, ids):
        updates[update.post_id].append(record_of(PostUpdate, update))
    return [_record(by_id[id], monitors[id], updates[id]) for id in ids if id in by_id]


def _record(
    row: PostRow, impacts: Iterable[tuple[int, str | None]], updates: Sequence[PostUpdate]
) -> Post:
    impact = tuple(
        MonitorImpact(id, impact_of(own, row.state, automatic=row.automatic)) for id, own in impacts
    )
    return record_of(
        Post,
        row,
        body=updates[0].body if updates else "",
        monitors=tuple(entry.key for entry in impact),
        impact=impact,
        starts_at=readable(row.starts_at),
        ends_at=readable(row.ends_at),
        updates=tuple(updates),
    )


def _monitors(ids: Sequence[int]) -> Mapping[int, list[tuple[int, str | None]]]:
    """The monitors of each of these posts with their stored impacts, in their order on the page."""
    monitors: defaultdict[int, list[tuple[int, str | None]]] = defaultdict(list)
    rows = db.session.execute(
        select(PostMonitorRow.post_id, PostMonitorRow.monitor_id, PostMonitorRow.impact)
        .join(PostRow, PostRow.id == PostMonitorRow.post_id)
        .join(
            StatusPageMonitorRow,
            (StatusPageMonitorRow.status_page_id == PostRow.status_page_id)
            & (StatusPageMonitorRow.monitor_id == PostMonitorRow.monitor_id),
        )
        .where(PostMonitorRow.post_id.in_(ids))
        .order_by(StatusPageMonitorRow.position, PostMonitorRow.monitor_id)
    )
    for post_id, monitor_id, impact in rows:
        monitors[post_id].append((monitor_id, impact))
    return monitors


def _updates(session: DbSession, ids: Sequence[int]) -> list[PostUpdateRow]:
    """The updates of these posts in the order in which they were written."""
    written = select_fresh(PostUpdateRow).where(PostUpdateRow.post_id.in_(ids))
    return list(session.scalars(written.order_by(PostUpdateRow.id)))


def _locked_post(session: DbSession, page_id: int, id: int) -> PostRow:
    """The post, with its page locked. Raises NotFound."""
    try:
        locked_page(session, page_id)
    except NotFound:
        raise NotFound("post", id) from None
    row = session.get(PostRow, id, populate_existing=True) if fits(id) else None
    if row is None or row.status_page_id != page_id:
        raise NotFound("post", id)
    return row


def _check(session: DbSession, page_id: int, row: PostRow | None, fields: Fields) -> None:
    """Raises Invalid if the merged post is wrong: two updates that are valid alone may be invalid
    together.
    """
    errors: dict[str, list[str]] = {}
    names = ("state", "starts_at", "ends_at")
    merged = {name: fields.get(name, getattr(row, name, None)) for name in names}
    family = rules.state_change_fault(None if row is None else row.state, merged["state"])
    if family:
        errors["state"] = [family]
    else:
        errors |= {name: [fault] for name, fault in rules.time_faults(**merged).items()}
    monitor_ids = fields.get("monitors") or ()
    page_monitors = on_page(session, page_id)
    possible = locked_monitors(session, monitor_ids) & set(page_monitors)
    if missing := [id for id in monitor_ids if id not in possible]:
        errors["monitors"] = [_(NOT_ON_PAGE, id=missing[0])]
    incident_id = fields.get("incident_id")
    if incident_id is not None and (fault := _incident_fault(session, incident_id, page_monitors)):
        errors["incident_id"] = [fault]
    if errors:
        raise Invalid(errors)


def _incident_fault(session: DbSession, id: int, page_monitors: Sequence[int]) -> str | None:
    """Why a post of a page with these monitors cannot be about this incident. The incident is
    locked: it is not deleted before the transaction ends.
    """
    statement = select(IncidentRow.monitor_id).where(IncidentRow.id == fitting(id))
    monitor_id = session.scalar(statement.with_for_update(read=True, key_share=True))
    if monitor_id is None:
        return no_such("incident", id)
    return None if monitor_id in page_monitors else _(OF_ANOTHER, id=id)


def _check_state(row: PostRow, state: str, *, last: bool = True) -> None:
    """Raises Invalid if an update of this post cannot have this state. ``last``: it is the last
    update, so the post gets the state too.
    """
    fault = rules.state_change_fault(row.state, state)
    if not fault and last and rules.time_faults(state, row.starts_at, row.ends_at):
        fault = _(rules.NO_TIMES)
    if fault:
        raise Invalid({"state": [fault]})


def _add_update(session: DbSession, row: PostRow, fields: Fields, now: datetime) -> None:
    """Write the post's newest update and notify the subscribers."""
    written = {"state": fields["state"], "body": fields["body"], "created_at": now}
    update = PostUpdateRow(post_id=row.id, **written)
    session.add(update)
    session.flush()
    announce(session, update, now)


def _set_monitors(session: DbSession, row: PostRow, monitors: Iterable[int]) -> bool:
    """Set the monitors of a post. Returns whether they changed."""
    id, new, member = row.id, set(monitors), PostMonitorRow
    present = set(session.scalars(select(member.monitor_id).where(member.post_id == id)))
    removed = member.monitor_id.in_(present - new)
    session.execute(delete(member).where(member.post_id == id, removed))
    session.add_all(member(post_id=id, monitor_id=monitor_id) for monitor_id in new - present)
    audit.note_change(session, row, {"monitors": (sorted(present), sorted(new))})
    return new != present


def _set_impact(session: DbSession, row: PostRow, impact: Iterable[MonitorImpact]) -> bool:
    """Set the impact on each of the post's monitors. The impact on a monitor that is not named
    follows the post's state again. Returns whether any impact changed.
    """
    session.flush()
    impact_of: dict[int, str] = {entry.key: entry.value for entry in impact}
    members = session.scalars(
        select(PostMonitorRow).where(PostMonitorRow.post_id == row.id).order_by("monitor_id")
    ).all()
    missing = impact_of.keys() - {member.monitor_id for member in members}
    if missing:
        raise Invalid({"impact": [_(NOT_OF_POST, id=min(missing))]})
    old = {member.monitor_id: member.impact for member in members}
    for member in members:
        member.impact = impact_of.get(member.monitor_id)
    new = {member.monitor_id: member.impact for member in members}
    audit.note_change(session, row, {"impact": (_shown(old), _shown(new))})
    return old != new


def _shown(impact: Mapping[int, str | None]) -> list[str]:
    return [f"{id}: {value}" for id, value in impact.items() if value is not None]


def _correct_first_and_last(
    session: DbSession, row: PostRow, fields: Fields, now: datetime
) -> bool:
    """Correct the text of the first update and the state of the last one. Returns whether anything
    changed.
    """
    if not {"body", "state"} & fields.keys():
        return False
    updates = _updates(session, [row.id])
    changes = [
        _correct(update, {name: fields[name]}, now)
        for update, name in ((updates[0], "body"), (updates[-1], "state"))
        if name in fields
    ]
    row.state = updates[-1].state
    return any(changes)


def _correct(update: PostUpdateRow, fields: Fields, now: datetime) -> bool:
    """Correct an update, and store the time of the correction. Returns whether it changed."""
    changed = _change(update, fields)
    if changed:
        update.corrected_at = now
    return changed


def _change(row: Any, columns: Fields) -> bool:
    """Set these columns. Returns whether any value changed."""
    changed = {name: value for name, value in columns.items() if getattr(row, name) != value}
    for name, value in changed.items():
        setattr(row, name, value)
    return bool(changed)


# --- Templates ------------------------------------------------------------------------------------


class PostTemplates(LocalCollection[PostTemplate, PageQuery]):
    order = (func.lower(PostTemplateRow.name), PostTemplateRow.id)

    def columns(self, session: DbSession, id: int | None, fields: Fields) -> dict[str, Any]:
        """Raises Invalid if another template has this name. A lock keeps others from storing a name
        until the transaction ends: no index of the database ignores the case of all letters.
        """
        if "name" in fields:
            locks.take_lock(session, locks.Lock.POST_TEMPLATES)
            new_name = folded(fields["name"])
            for other, name in session.execute(select(PostTemplateRow.id, PostTemplateRow.name)):
                if other != id and folded(name) == new_name:
                    raise Invalid({"name": [_(TAKEN)]})
        return dict(fields)
