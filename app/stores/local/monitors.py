"""Monitors in the local database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, replace
from dataclasses import fields as dataclass_fields
from typing import Any, NamedTuple

from sqlalchemy import func, or_, select

from app.access import audit
from app.alerts.outbox import lanes_text
from app.checks.kinds import RULE as KINDS_RULE
from app.checks.kinds import sends_secrets_elsewhere
from app.config import Settings
from app.db import DbSession, assignments, db, dependencies, latest, writing
from app.db.locks import Lock, take_lock
from app.db.tables import MonitorDependencyRow, MonitorRow
from app.db.tags import notes_of, tagged, tags_of, tags_text
from app.db.types import Replaced, Unreadable, is_same
from app.engine import recorder
from app.errors import Invalid, NotFound, no_such
from app.i18n import N_, _
from app.records import (
    CONTACT,
    DEFAULT_PLACES,
    KIND_OPTIONS,
    SENT_SECRETS,
    UPTIME_RANGES,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSortBy,
    Page,
    Sort,
    is_heartbeat,
    nearest_interval,
)
from app.rules.cross_field import RULES
from app.rules.natural import natural_key
from app.rules.text import TAKEN
from app.stores import base, same_url
from app.stores.base import Fields
from app.stores.local import contacts, heartbeats, monitor_lists, states
from app.stores.local.cancelling import keeping_calendars, pages_showing
from app.stores.local.locations import names_of, places_of, titles_of_places
from app.stores.local.monitor_records import MonitorRecords, newest_change, status_columns
from app.stores.local.part import (
    LocalPart,
    fits,
    get_monitor,
    has_words,
    in_tags,
    lock_monitor,
    locked_monitors,
    ordered,
    require_monitor,
)
from app.stores.local.windows import active_windows

# A change of these fields may begin or end the maintenance of a monitor.
MAINTENANCE_FIELDS = {"maintenance_start_at", "maintenance_end_at", "tags"}
MAX_OF_ONE_URL = 20
MAX_TAGGED = 500  # sets of tags that a search for tags looks through
ENTER_AGAIN = N_("The stored password cannot be read. Enter it again, or remove it.")
# The defaults of a new monitor. Other columns are required, or null.
DEFAULTS: Mapping[str, Any] = {
    field.name: field.default
    for field in dataclass_fields(Monitor)
    if field.name in MonitorRow.__table__.columns and field.default not in (MISSING, None)
}
# Fields without a column of the same name: a pause, and fields that are stored in other tables.
NO_COLUMNS = ("pause", "locations", "depends_on", "heartbeat_token")
PAIRS = ("request_headers", "alerts")


class _NewMonitor(NamedTuple):
    row: MonitorRow
    fields: Fields
    places: Collection[int]
    contacts: Mapping[int, int]  # the index of each in the alerts, by id
    token: str | None  # of a heartbeat


class LocalMonitors(LocalPart, base.Monitors):
    def __init__(self, store: base.Store, settings: Settings) -> None:
        super().__init__(store)
        self._records = MonitorRecords(settings)
        self._tag_counts: tuple[int, Mapping[str, int]] | None = None

    def list(self, query: MonitorQuery) -> Page[Monitor]:
        now, query = self.now(), monitor_lists.searched(query)
        windows = active_windows(now)
        parameters = {"now": now, "until": latest.last_moment(now)}
        if query.sort_by == MonitorSortBy.STATE:
            matching = monitor_lists.matching(query)
            in_states = states.during(tuple(windows))
            counts = query.counts
            if counts is None:
                counts = in_states.counts(matching, parameters)
            columns = status_columns(tuple(windows)) if query.status_only else ()
            rows, total = in_states.page_by_state(matching, query, counts, parameters, columns)
            if query.status_only:
                monitors = self._records.with_status(rows, windows, now)
                return Page(monitors, query.page, query.per_page, total)
            ids = [row.id for row in rows]
        else:
            count = None
            if query.state and query.counts is not None:
                count = sum(query.counts.get(state, 0) for state in query.statuses)
            is_few = count is None or count <= states.FEW_IN_STATE
            # These parts of a query choose the fields of each monitor, not the monitors.
            cached = replace(
                query, counts=None, uptime=(), hours=False, brief=False, status_only=False
            )
            statements = monitor_lists.statements(cached, tuple(windows), is_few=is_few)
            ids, total = statements.read(count, parameters)
        monitors = self._records.records(
            ids, windows, now, ranges=query.uptime, hours=query.hours, brief=query.brief
        )
        return Page(monitors, query.page, query.per_page, total)

    def get(self, id: int) -> Monitor:
        now = self.now()
        windows = active_windows(now)
        records = self._records.records([id], windows, now, notes=True) if fits(id) else []
        if not records:
            raise NotFound("monitor", id)
        return records[0]

    def notes(self, id: int) -> str:
        return notes_of(db.session, [id]).get(id, "")

    def require(self, id: int) -> None:
        require_monitor(id)

    def refs(
        self, *, ids: Sequence[int] | None = None, search: str | None = None, limit: int = 500
    ) -> Sequence[MonitorRef]:
        statement = select(MonitorRow.id, MonitorRow.name, MonitorRow.url)
        if ids is not None:
            statement = statement.where(MonitorRow.id.in_([id for id in ids if fits(id)]))
        if search:
            columns = (MonitorRow.name_folded, MonitorRow.url_folded)
            statement = statement.where(has_words(search, *columns))
        order = ordered(Sort.ASC, *monitor_lists.SORT_COLUMNS[MonitorSortBy.NATURAL])
        rows = db.session.execute(statement.order_by(*order).limit(limit))
        return [MonitorRef(*row) for row in rows]

    def children(self, id: int, per_page: int = 20) -> Page[MonitorRef]:
        statement = (
            select(MonitorRow.id, MonitorRow.name, MonitorRow.url, func.count().over())
            .join(MonitorDependencyRow, MonitorDependencyRow.monitor_id == MonitorRow.id)
            .where(MonitorDependencyRow.parent_id == id)
            .order_by(*ordered(Sort.ASC, *monitor_lists.SORT_COLUMNS[MonitorSortBy.NATURAL]))
            .limit(per_page)
        )
        rows = db.session.execute(statement).all()
        refs = [MonitorRef(id, name, url) for id, name, url, _total in rows]
        return Page(refs, 1, per_page, rows[0][-1] if rows else 0)

    def watching(self, url: str) -> Sequence[MonitorRef]:
        statement = (
            select(MonitorRow.id, MonitorRow.name, MonitorRow.url)
            .where(MonitorRow.url_folded.in_(same_url.spellings(url)))
            .order_by(MonitorRow.id)
            .limit(MAX_OF_ONE_URL)
        )
        refs = (MonitorRef(*row) for row in db.session.execute(statement))
        return [ref for ref in refs if same_url.is_same(ref.url, url)]

    def tags(self, search: str, limit: int = 10) -> Sequence[str]:
        folded = search.casefold()
        statement = select(MonitorRow.tags).where(
            MonitorRow.tags != "", in_tags(search, MonitorRow.tags)
        )
        tag_sets = db.session.scalars(statement.distinct().limit(MAX_TAGGED))
        tags = {tag for text in tag_sets for tag in tags_of(text) if folded in tag.casefold()}
        return sorted(tags, key=natural_key)[:limit]

    def count(self, tags: Sequence[str], ids: Sequence[int] = ()) -> int:
        condition = or_(tagged(tags), MonitorRow.id.in_([id for id in ids if fits(id)]))
        return db.session.scalar(select(func.count(MonitorRow.id)).where(condition)) or 0

    def tag_counts(self, query: MonitorQuery = base.EVERY_MONITOR) -> Mapping[str, int]:
        query = monitor_lists.searched(query)
        matching = monitor_lists.matching(replace(query, tag=None))
        if query.state or matching.whereclause is not None:
            return monitor_lists.tag_counts(matching, query, self.now())
        # The counts of all monitors are cached until a monitor changes.
        version = newest_change()
        if self._tag_counts is None or self._tag_counts[0] != version:
            self._tag_counts = version, monitor_lists.tag_counts(matching, query, self.now())
        return self._tag_counts[1]

    def create(self, fields: Fields, *, secrets_from: int | None = None) -> Monitor:
        with writing() as session:
            fields = {**DEFAULTS, **fields}
            if secrets_from is not None:
                _take_password(session, fields, secrets_from)
            (answer,) = self._create(session, [fields])
        if isinstance(answer, Invalid):
            raise answer
        return self._new_records([answer])[answer]

    def create_many(self, several: Sequence[Fields]) -> Sequence[Monitor | Invalid]:
        with writing() as session:
            answers = self._create(session, [{**DEFAULTS, **fields} for fields in several])
        monitors = self._new_records([id for id in answers if not isinstance(id, Invalid)])
        return [answer if isinstance(answer, Invalid) else monitors[answer] for answer in answers]

    def _create(self, session: DbSession, several: Sequence[Fields]) -> Sequence[int | Invalid]:
        """Store these monitors. Returns the id or the fault of each."""
        now = self.now()
        names = {name for fields in several for name in _places_in(fields)}
        by_name, find = assignments.places(names), contacts.contact_finder(session)
        answers: list[_NewMonitor | Invalid] = []
        tokens: set[str | None] = set()
        for fields in several:
            try:
                places, token = places_of(_places_in(fields), by_name), None
                if is_heartbeat(fields["url"]):
                    token = heartbeats.new_token(session, fields.get("heartbeat_token"))
                    if token in tokens:
                        raise Invalid({"heartbeat_token": [_(TAKEN)]})
                    places, fields = [], heartbeats.with_slug(fields)
                check_parents(session, None, fields.get("depends_on") or ())
                members = contacts.positions_of(find, fields.get("alerts") or ())
            except Invalid as fault:
                answers.append(fault)
                continue
            tokens.add(token)
            row = MonitorRow(**_columns(fields), created_at=now, updated_at=now)
            answers.append(_NewMonitor(row, fields, places, members, token))
        created = [answer for answer in answers if isinstance(answer, _NewMonitor)]
        recorder.add_monitors(session, [(new.row, new.places) for new in created], now)
        contacts.store_members(session, {new.row.id: new.contacts for new in created}, {})
        for new in created:
            if new.token is not None:
                heartbeats.add_heartbeat(session, new.row, new.token)
            elif locations := new.fields.get("locations"):
                audit.note_change(session, new.row, {"locations": (None, sorted(locations))})
            if parents := new.fields.get("depends_on"):
                set_parents(session, new.row, parents)
        return [answer if isinstance(answer, Invalid) else answer.row.id for answer in answers]

    def _new_records(self, ids: Sequence[int]) -> dict[int, Monitor]:
        """The records of new monitors, by id. They have no figures: nothing was recorded yet."""
        now = self.now()
        uptime = dict.fromkeys(UPTIME_RANGES)
        monitors = self._records.records(ids, active_windows(now), now, ranges=(), notes=True)
        return {monitor.id: replace(monitor, uptime=uptime) for monitor in monitors}

    def update(self, id: int, fields: Fields) -> Monitor:
        """Row, contacts, parents and places, and by engine/recorder/monitors.py state and schedule,
        in one transaction.
        """
        now = self.now()
        with writing() as session:
            row = lock_monitor(session, id)
            if sends_secrets_elsewhere(row, fields):
                # Otherwise a person who may change the URL would learn the secrets (decision 15).
                fields = {**dict.fromkeys(SENT_SECRETS), **fields}
            pages = set() if MAINTENANCE_FIELDS.isdisjoint(fields) else pages_showing(session, [id])
            with keeping_calendars(session, pages, now):
                changed = _change(row, _columns(fields, row))
                row.updated_at = now
                session.flush()
            _check_rules_of_several_fields(session, row, changed)
            if "alerts" in fields:
                contacts.set_contacts(session, id, fields["alerts"] or ())
            parents = fields.get("depends_on") or ()
            if "depends_on" in fields and set_parents(session, row, parents):
                changed.add("depends_on")
            recorder.apply_changes(session, row, changed, now)
            rules_changed = bool(recorder.FIELDS_OF_RULES & changed)
            if "locations" in fields and not is_heartbeat(row.url):
                place_names = fields["locations"] or DEFAULT_PLACES
                places = places_of(place_names, assignments.places(place_names))
                old = names_of(session, id)
                # Rows of another table; the session logs the columns of the monitor.
                audit.note_change(session, row, {"locations": (old, sorted(place_names))})
                rules_changed |= recorder.set_places(session, id, places, now)
            if fields.get("pause"):
                recorder.pause(session, id, now)
            elif fields.get("pause") is not None:
                recorder.resume(session, id, now)
            if rules_changed:
                # By the new rules, the newest results of its places may lead to another state.
                recorder.judge_votes_again(session, row, now)
        return self.get(id)

    def delete(self, id: int) -> None:
        with writing() as session:
            audit.note_deletion(session, lock_monitor(session, id))
            with keeping_calendars(session, pages_showing(session, [id]), self.now()):
                recorder.delete_monitor(session, id, self.now())

    def locations(self) -> Mapping[str, str]:
        return titles_of_places()

    def overview(self, query: MonitorQuery = base.EVERY_MONITOR) -> Mapping[str, int]:
        now = self.now()
        in_states = states.during(tuple(active_windows(now)))
        return in_states.counts(monitor_lists.matching(monitor_lists.searched(query)), {"now": now})


def _places_in(fields: Fields) -> Sequence[str]:
    return fields.get("locations") or DEFAULT_PLACES


def _take_password(session: DbSession, columns: dict[str, Any], source: int) -> None:
    """Copy the password of the cloned monitor, unless the clone would send it to another server.
    Raises Invalid if it cannot be read.
    """
    if not columns.get("request_auth_username") or "request_auth_password" in columns:
        return
    monitor = get_monitor(session, source)
    password = monitor.request_auth_password
    if sends_secrets_elsewhere(monitor, columns):
        return
    if isinstance(password, Unreadable):
        raise Invalid({"request_auth_password": [_(ENTER_AGAIN)]})
    columns["request_auth_password"] = password


def _check_rules_of_several_fields(session: DbSession, row: MonitorRow, changed: set[str]) -> None:
    """Raises Invalid if the changed fields contradict those that another update has stored since
    the form was validated.
    """
    errors = {
        name: [sentence]
        for names, rule in (KINDS_RULE, *RULES)
        if not changed.isdisjoint(names)
        for name, sentence in rule(*(getattr(row, name) for name in names))
    }
    if errors:
        raise Invalid(errors)


def _change(row: MonitorRow, columns: Mapping[str, Any]) -> set[str]:
    """Set these columns; returns the names of those whose values changed."""
    changed = {name for name, value in columns.items() if not is_same(getattr(row, name), value)}
    options: Any = row.options
    if isinstance(options, Replaced) and (names := KIND_OPTIONS.keys() & columns):
        row.options = {}
        changed |= names
    for name in changed:
        setattr(row, name, columns[name])
    return changed


def _columns(fields: Mapping[str, Any], row: MonitorRow | None = None) -> dict[str, Any]:
    """The fields of a form as columns of ``MonitorRow``, without ``NO_COLUMNS``. ``row``: the
    row that the fields change.
    """
    columns = {name: value for name, value in fields.items() if name not in NO_COLUMNS}
    if not columns.keys().isdisjoint(("interval", "check_every")):
        columns["check_every"] = every = columns.get("check_every")
        stored_interval = nearest_interval(row.interval) if row else None
        columns["interval"] = every or columns.get("interval") or stored_interval
    for name in PAIRS:
        if name in columns:
            # Contacts among the alerts are rows of another table.
            contact = CONTACT if name == "alerts" else None
            own_pairs = (pair for pair in columns[name] or () if pair.key != contact)
            columns[name] = [[pair.key, pair.value] for pair in own_pairs] or None
    if "assertions" in columns:
        columns["assertions"] = columns["assertions"] or None
    if "alerts" in columns:
        columns["alert_lanes"] = lanes_text(columns["alerts"] or ())
    if "tags" in columns:
        columns["tags"] = tags_text(columns["tags"] or ())
    return columns


# --- The monitors that a monitor depends on (decision 20) -----------------------------------------


def set_parents(session: DbSession, row: MonitorRow, parents: Sequence[int]) -> bool:
    """Set the monitors through which a monitor is reached. Returns whether they changed. Raises
    Invalid.
    """
    old = dependencies.parents(session, [row.id]).get(row.id, [])
    check_parents(session, row.id, parents)
    if list(parents) == old:
        return False
    dependencies.replace_parents(session, row.id, parents)
    # Rows of another table; the session logs the columns of the monitor.
    audit.note_change(session, row, {"depends_on": (old or None, [*parents] or None)})
    return True


def check_parents(session: DbSession, monitor_id: int | None, parents: Sequence[int]) -> None:
    """Raise Invalid if one of the parents is not stored, or is reached through the monitor itself.
    Until the transaction ends, nobody else adds a dependency or deletes one of the parents.
    """
    if not parents:
        return
    take_lock(session, Lock.DEPENDENCIES)
    existing = locked_monitors(session, parents)
    above = {} if monitor_id is None else dependencies.above(session, list(existing))
    for position, id in enumerate(parents):
        fault = None
        if id == monitor_id:
            fault = _("A monitor cannot be reached through itself.")
        elif id not in existing:
            fault = no_such("monitor", id)
        elif monitor_id in above.get(id, ()):
            fault = _("Monitor %(id)s is itself reached through this one.", id=id)
        if fault:
            raise Invalid({f"depends_on.{position}": [fault]})
