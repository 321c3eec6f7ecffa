"""Status pages as the public sees them, read from the database."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import pairwise
from time import monotonic, sleep
from typing import Any

from flask import Flask
from sqlalchemy import or_, select
from sqlalchemy.exc import SQLAlchemyError

from app.access import passwords
from app.access.settings import can_mail
from app.access.tokens import Purpose, read_subscription
from app.alerts.messages.message import base_url
from app.config import Settings
from app.db import db, latest, patience, rollups, written
from app.db.faults import unavailable
from app.db.tables import (
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    PostRow,
    StatusPageGroupRow,
    StatusPageMonitorRow,
    StatusPageRow,
    UnreachableRow,
)
from app.db.tags import tags_of
from app.db.types import record_of, to_ms
from app.db.windows import own_window
from app.errors import NotFound, Unavailable
from app.i18n import N_, _
from app.records import (
    ENDED_STATES,
    OPEN_STATES,
    PAGE_DAYS,
    SUBSCRIBER_CHANNELS,
    Brand,
    Cause,
    Channel,
    Component,
    ComponentState,
    Group,
    PageAddress,
    PageState,
    Post,
    PublicDay,
    PublicIncident,
    PublicMonth,
    PublicPage,
    StatusPage,
    Visibility,
)
from app.rules.causes import public_cause
from app.rules.natural import natural_key
from app.rules.page_state import page_link, page_state, state_by_post, worst
from app.rules.recurrence import applies_to, in_maintenance
from app.rules.time import zone_of
from app.stats.cover import overlap
from app.stats.tally import BEHIND, NO_OUTAGE, outage_times, percent
from app.stores.local.page_states import BEHIND_SINCE, EXCUSED, CountedState, counted_states_of
from app.stores.local.part import get_row
from app.stores.local.posts import records_of_posts
from app.stores.local.public_windows import windows_of
from app.stores.local.status_pages import link_of
from app.stores.local.subscribers import Subscribing
from app.stores.local.windows import active_windows

PATIENCE_SECONDS = 3.0  # readers get a cached answer after this
# Seconds that each sign-up takes. More is written for a new target than for a stored one, so the
# time would show a stranger who has subscribed.
SIGN_UP_TAKES = 0.1
RECENT = timedelta(days=14)  # how long a page shows a post after its end
AHEAD = timedelta(days=90)  # how far ahead a page shows maintenance


# SQLite always reads a whole transaction from one snapshot.
_SNAPSHOT: Mapping[str, dict[str, Any]] = {
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
    "sqlite": {},
}


@contextmanager
def _in_snapshot() -> Iterator[None]:
    """``_bounded``, with one snapshot of the database. Otherwise a page could show a monitor before
    a change and the posts after it.
    """
    with _bounded():
        db.session.rollback()  # an earlier transaction has an earlier snapshot
        db.session.connection(execution_options=_SNAPSHOT[db.engine.dialect.name])
        yield


@contextmanager
def _bounded() -> Iterator[None]:
    """Give the database a limited time. Raises Unavailable if it cannot answer, and leaves no
    transaction open.
    """
    try:
        with patience(PATIENCE_SECONDS):
            yield
    except SQLAlchemyError as fault:
        if (error := unavailable(fault)) is None:
            raise
        raise error from None
    finally:
        db.session.remove()


# Columns of a page that everybody may see.
_SHOWN = (
    "id", "name", "slug", "description", "visibility", "domain", "show_urls", "show_response_times",
    "zone", "theme", "home_url", "footer", "created_at", "updated_at",
)  # fmt: skip


class PublicPages:
    """The data that the public may read or change; ``app/pages`` uses no other store. Methods raise
    ``NotFound`` for a page that does not exist, and ``Unavailable`` if the database cannot answer.
    The caller decides by ``PageAddress.visibility`` who may see a page. Methods that read the
    database need an application context.
    """

    def __init__(
        self, settings: Settings, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._base = base_url(settings.public_url, settings.bind)
        self._clock = clock
        self._subscribing = Subscribing(settings, clock)
        self._day_cache = rollups.CachedDays()
        self._settings = settings
        self._mails = False

    @property
    def channels(self) -> Sequence[str]:
        """The kinds of channel, of ``Channel``, by which people may subscribe."""
        # While the database cannot answer, the form has the same channels as before.
        with suppress(Unavailable), _in_snapshot():
            self._mails = can_mail(self._settings)
        return tuple(
            channel for channel in SUBSCRIBER_CHANNELS if channel != Channel.EMAIL or self._mails
        )

    def on_write(self, app: Flask, call: Callable[[Flask], None]) -> None:
        """Call ``call``, which must be a method, after each write of this process."""
        written.connect(call, app)

    def addresses(self) -> Sequence[PageAddress]:
        """The addresses of all pages."""
        with _in_snapshot():
            rows = db.session.execute(_ADDRESSES)
            return [PageAddress(*row[:6], to_ms(row[6]), Brand(*row[7:])) for row in rows]

    def link(self, address: PageAddress) -> str:
        """The URL of a page, for messages. Reads nothing from the database."""
        return page_link(self._base.rstrip("/"), address.slug, address.domain)

    def public_pages(self) -> Sequence[StatusPage]:
        """The public pages, by name."""
        with _in_snapshot():
            public = select(StatusPageRow).where(StatusPageRow.visibility == Visibility.PUBLIC)
            pages = [self._record(row) for row in db.session.scalars(public)]
        return sorted(pages, key=lambda page: (natural_key(page.name), page.id))

    def page(self, id: int) -> PublicPage:
        """The front of a page."""
        with _in_snapshot():
            now = self._clock()
            row = _page_row(id)
            today = now.astimezone(zone_of(row.zone)).date()
            days = [today - timedelta(days=ago) for ago in reversed(range(PAGE_DAYS))]
            monitors = _page_monitors(id, now)
            posts = _posts(id, _current(now))
            ids = [monitor.id for monitor in monitors]
            incidents = _incidents(ids, now - RECENT, now)
            _apply_impact(monitors, posts, incidents)
            states = [monitor.state for monitor in monitors if monitor.counts]
            open_posts = [post.state for post in posts if post.state in OPEN_STATES]
            state = page_state(states, open_posts)
            return PublicPage(
                page=self._record(row, monitors, state=state),
                state=state,
                components=self._components(row, monitors, days, now),
                posts=posts,
                windows=windows_of(id, ids, now, now + AHEAD),
                made_at=now,
                recent_incidents=len(incidents),
            )

    def month(self, id: int, year: int, month: int) -> PublicMonth:
        """A month of a page's past, in the page's zone."""
        with _in_snapshot():
            now = self._clock()
            row = _page_row(id)
            zone = zone_of(row.zone)
            monitors = _page_monitors(id, now)
            first, next_first = date(year, month, 1), _next_month(year, month)
            start, end = _midnight(first, zone), _midnight(next_first, zone)
            oldest = min([row.created_at, *(monitor.created_at for monitor in monitors)])
            if end <= oldest or start > now:
                raise NotFound(N_("month"), f"{year:04}-{month:02}")
            days = [first + timedelta(days=day) for day in range((next_first - first).days)]
            past = [day for day in days if _midnight(day, zone) <= now]
            ids = [monitor.id for monitor in monitors]
            windows = windows_of(id, ids, start, min(end, now))
            return PublicMonth(
                page=self._record(row, monitors),
                year=year,
                month=month,
                components=self._components(row, monitors, past, now),
                incidents=_incidents(ids, start, end),
                posts=_posts(id, _touching(start, end)),
                windows=windows[::-1],
                earlier=oldest < start,
                later=end <= now,
                made_at=now,
            )

    def image(self, id: int, name: str) -> bytes:
        """The bytes of an image of a page, one of ``PAGE_IMAGES``."""
        with _bounded():
            column = getattr(StatusPageRow, name)
            data: bytes | None = db.session.scalar(select(column).where(StatusPageRow.id == id))
        if data is None:
            raise NotFound(N_("image"), name)
        return data

    def password_fits(self, id: int, password: str) -> bool:
        """Whether this password opens the page. For a page without a password, the answer takes as
        long.
        """
        with _bounded():
            of_page = StatusPageRow.id == id, StatusPageRow.visibility == Visibility.PASSWORD
            hash_ = db.session.scalar(select(StatusPageRow.password_hash).where(*of_page))
        return passwords.matches(hash_, password)

    def subscribe(self, id: int, channel: str, target: str, *, address: str | None) -> None:
        """Send a confirmation link to an email address, or a token to a webhook, which must return
        it. Neither the answer nor its time shows whether somebody subscribed before. Raises Invalid
        with the field's name, and Throttled after too many sign-ups from the client's ``address``.
        """
        began = monotonic()
        with _bounded():
            self._subscribing.subscribe(id, channel, target, address=address)
        sleep(max(0.0, began + SIGN_UP_TAKES - monotonic()))

    def page_of_token(self, purpose: Purpose, token: str) -> int | None:
        """The id of the page for which a link was sent; None for a token that Wakeful did not make
        or that has expired. Reads nothing from the database.
        """
        subscription = read_subscription(purpose, token, self._clock())
        return None if subscription is None else subscription.page_id

    def confirm(self, token: str) -> StatusPage:
        """Confirm a subscription. Raises NotFound for a token that Wakeful did not make or that has
        expired.
        """
        with _bounded():
            return self._subscribing.confirm(token)

    def unsubscribe(self, token: str) -> StatusPage:
        """End a subscription. It is no error if it has ended already."""
        with _bounded():
            return self._subscribing.unsubscribe(token)

    def _record(
        self,
        row: StatusPageRow,
        monitors: Sequence[_PageMonitor] = (),
        state: PageState = PageState.UNKNOWN,
    ) -> StatusPage:
        """The record of a page, without the fields that only its owner sees."""
        groups: dict[str, list[int]] = {}
        for monitor in monitors:
            if monitor.group is not None:
                groups.setdefault(monitor.group, []).append(monitor.id)
        return StatusPage(
            **{name: getattr(row, name) for name in _SHOWN},
            monitors=tuple(monitor.id for monitor in monitors),
            groups=tuple(Group(name, tuple(ids)) for name, ids in groups.items()),
            link=link_of(row, self._base),
            password_set=row.password_hash is not None,
            state=state,
        )

    def _components(
        self,
        row: StatusPageRow,
        monitors: Sequence[_PageMonitor],
        days: Sequence[date],
        now: datetime,
    ) -> list[Component]:
        figures = self._days([monitor.id for monitor in monitors], days, zone_of(row.zone), now)
        return [
            record_of(
                Component,
                monitor,
                url=monitor.url if row.show_urls else None,
                response_time=monitor.response_time if row.show_response_times else None,
                uptime=figures[monitor.id][0],
                days=figures[monitor.id][1],
            )
            for monitor in monitors
        ]

    def _days(
        self, ids: Sequence[int], days: Sequence[date], zone: tzinfo, now: datetime
    ) -> dict[int, tuple[float | None, Sequence[PublicDay]]]:
        """By monitor, the uptime over ``days``, and the figures of each day."""
        midnights = [to_ms(_midnight(day, zone)) for day in (*days, days[-1] + timedelta(days=1))]
        days_by_monitor = self._day_cache.read(ids, days, midnights, now)
        incidents = rollups.incidents_between(ids, midnights[0], midnights[-1])
        figures = {}
        for id in ids:
            cached = days_by_monitor[id]
            up, down, *_others = map(
                sum, zip(*cached.seconds, *cached.unsummed.values(), strict=True)
            )
            counts = _incident_counts(midnights, incidents[id], to_ms(now))
            unreachable = _unreachable(midnights, incidents[id], to_ms(now))
            figures[id] = percent(up, down), _public_days(days, cached, counts, unreachable)
        return figures


class _PageMonitor:
    """A monitor of a page, also with fields that the page does not show."""

    __slots__ = (
        "counts", "created_at", "group", "id", "name", "response_time", "since", "state", "url",
    )  # fmt: skip

    def __init__(self, row: Any, counted_state: CountedState) -> None:
        self.id: int = row.id
        self.name: str = row.own_name or row.name
        self.group: str | None = row.group
        self.url: str = row.url
        self.created_at: datetime = row.created_at
        self.response_time: int | None = row.response_time
        self.counts, self.state = counted_state.counts, counted_state.state
        self.since: datetime | None = {
            ComponentState.OUTAGE: row.down_since or row.started_at or row.behind_since,
            ComponentState.DEGRADED: row.started_at or row.status_since,
            ComponentState.UNKNOWN: row.status_since if self.counts else None,
        }.get(self.state)


def _page_row(id: int) -> StatusPageRow:
    return get_row(db.session, StatusPageRow, "status page", id, reload=False)


_ADDRESSES = select(
    StatusPageRow.id, StatusPageRow.slug, StatusPageRow.name, StatusPageRow.domain,
    StatusPageRow.visibility, StatusPageRow.password_turn, StatusPageRow.updated_at,
    StatusPageRow.theme, StatusPageRow.accent, StatusPageRow.language, StatusPageRow.logo_version,
    StatusPageRow.favicon_version,
).order_by(StatusPageRow.id)  # fmt: skip
_PAGE_MONITORS = (
    select(
        MonitorRow.id, MonitorRow.name, MonitorRow.url, MonitorRow.tags, MonitorRow.paused,
        MonitorRow.interval, MonitorRow.created_at, MonitorRow.maintenance_start_at,
        MonitorRow.maintenance_end_at, MonitorStateRow.verdict, MonitorStateRow.checked_at,
        MonitorStateRow.status_since, MonitorStateRow.response_time, BEHIND_SINCE,
        IncidentRow.started_at, IncidentRow.down_since, IncidentRow.severity,
        IncidentRow.classification, StatusPageMonitorRow.name.label("own_name"),
        StatusPageGroupRow.name.label("group"),
    )
    .select_from(StatusPageMonitorRow)
    .join(MonitorRow, MonitorRow.id == StatusPageMonitorRow.monitor_id)
    .join(MonitorStateRow, MonitorStateRow.monitor_id == MonitorRow.id)
    .outerjoin(
        IncidentRow, (IncidentRow.monitor_id == MonitorRow.id) & IncidentRow.ended_at.is_(None)
    )
    .outerjoin(
        StatusPageGroupRow,
        (StatusPageGroupRow.id == StatusPageMonitorRow.group_id)
        & (StatusPageGroupRow.status_page_id == StatusPageMonitorRow.status_page_id),
    )
    # Monitors without a group come before the groups.
    .order_by(
        StatusPageGroupRow.id.is_not(None), StatusPageGroupRow.position, StatusPageGroupRow.id,
        StatusPageMonitorRow.group_position, StatusPageMonitorRow.position, MonitorRow.id,
    )
)  # fmt: skip


def _page_monitors(page_id: int, now: datetime) -> list[_PageMonitor]:
    """The monitors of a page, in its order."""
    rows = db.session.execute(
        _PAGE_MONITORS.where(StatusPageMonitorRow.status_page_id == page_id)
    ).all()
    windows = active_windows(now) if rows else []
    newest = latest.of_monitors([row.id for row in rows], now)

    def is_in_maintenance(row: Any) -> bool:
        own = [window for window in windows if applies_to(window, row.id, tags_of(row.tags))]
        return in_maintenance(now, own_window(row), own)

    states = counted_states_of(rows, is_in_maintenance)
    monitors = [_PageMonitor(row, states[row.id]) for row in rows]
    for monitor in monitors:
        if monitor.id in newest:
            monitor.response_time = newest[monitor.id][1]
    return monitors


def _apply_impact(
    monitors: Sequence[_PageMonitor], posts: Sequence[Post], incidents: Sequence[PublicIncident]
) -> None:
    """Give each monitor the worst state of the open posts about it, if its checks do not have a
    worse one. If checks and a post have the same state, it began at the earlier of the two times.
    The state of a post that was written during an incident began with the incident.
    """
    by_id = {monitor.id: monitor for monitor in monitors}
    for post in posts:
        for entry in post.impact if post.state in OPEN_STATES else ():
            monitor, state = by_id.get(entry.key), state_by_post(post.state, entry.value)
            if monitor is None or worst([monitor.state, state]) != state:
                continue
            started_at = _start_of_impact(entry.key, post, incidents)
            if monitor.state != state:
                monitor.state, monitor.counts = state, True
                monitor.since = None if state == ComponentState.MAINTENANCE else started_at
            elif monitor.since is not None and started_at is not None:
                monitor.since = min(monitor.since, started_at)


def _start_of_impact(id: int, post: Post, incidents: Sequence[PublicIncident]) -> datetime | None:
    """The start of the state that the post gives to this monitor."""
    at = post.created_at
    if at is None:
        return None
    starts = [
        incident.started_at
        for incident in incidents
        if incident.component == id and incident.started_at <= at <= (incident.ended_at or at)
    ]
    return min([at, *starts])


# --- Days -----------------------------------------------------------------------------------------


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _next_month(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1)


def _public_days(
    days: Sequence[date],
    cached: rollups.Days,
    incident_counts: Mapping[int, int],
    unreachable: Mapping[int, int],
) -> Sequence[PublicDay]:
    """The days as the public sees them. In most cases, only today is not cached. A page shows the
    ``unreachable`` seconds as down, because the public could not reach the monitor; the uptime does
    not count them (decision 20).
    """
    public_days = list(cached.shown)
    for index, seconds in cached.unsummed.items():
        public_days[index] = rollups.public_day(
            days[index], rollups.add_seconds(cached.seconds[index], seconds)
        )
    for index, incidents in incident_counts.items():
        public_days[index] = replace(public_days[index], incidents=incidents)
    for index, behind_s in unreachable.items():
        day = public_days[index]
        moved = min(behind_s, day.unknown_s)  # maintenance stays maintenance
        public_days[index] = replace(
            day, down_s=day.down_s + moved, unknown_s=day.unknown_s - moved
        )
    return public_days


def _incident_counts(
    midnights: Sequence[int], incidents: Collection[tuple[int, int | None, str | None]], now: int
) -> Mapping[int, int]:
    """The number of incidents on each day, by the day's index; days with none are left out."""
    counts: dict[int, int] = {}
    for start, end, classification in incidents:
        if classification in NO_OUTAGE:
            continue
        stop = max(start + 1, now if end is None else end)
        first = max(0, bisect_right(midnights, start) - 1)
        for day in range(first, min(bisect_left(midnights, stop), len(midnights) - 1)):
            counts[day] = counts.get(day, 0) + 1
    return counts


def _unreachable(
    midnights: Sequence[int], incidents: Collection[tuple[int, int | None, str | None]], now: int
) -> Mapping[int, int]:
    """The seconds for which a monitor was unreachable on each day, by the day's index; days with
    none are left out.
    """
    if all(classification != BEHIND for _start, _end, classification in incidents):
        return {}
    behind = outage_times(incidents, now).behind
    of_days = enumerate(overlap(behind, begin, end) for begin, end in pairwise(midnights))
    return {index: ms // 1000 for index, ms in of_days if ms}


_INCIDENT = (
    IncidentRow.id, IncidentRow.monitor_id, IncidentRow.started_at, IncidentRow.ended_at,
    IncidentRow.cause_code, IncidentRow.by_hand, IncidentRow.unwatched,
)  # fmt: skip


def _incidents(ids: Sequence[int], start: datetime, end: datetime) -> list[PublicIncident]:
    rows = db.session.execute(
        select(*_INCIDENT)
        .where(
            IncidentRow.monitor_id.in_(ids),
            IncidentRow.started_at < end,
            or_(IncidentRow.ended_at.is_(None), IncidentRow.ended_at > start),
            or_(IncidentRow.classification.is_(None), IncidentRow.classification.not_in(EXCUSED)),
        )
        .order_by(IncidentRow.started_at.desc(), IncidentRow.id.desc())
    )
    incidents = [
        PublicIncident(
            row.id,
            row.monitor_id,
            row.started_at,
            row.ended_at,
            _("Somebody reported a problem.") if row.by_hand else public_cause(row.cause_code),
            unwatched=bool(row.unwatched),
        )
        for row in rows
    ]
    spans = db.session.scalars(
        select(UnreachableRow).where(
            UnreachableRow.monitor_id.in_(ids),
            UnreachableRow.started_at < end,
            or_(UnreachableRow.ended_at.is_(None), UnreachableRow.ended_at > start),
        )
    )
    cause = public_cause(Cause.UNREACHABLE)
    incidents += [
        PublicIncident(span.id, span.monitor_id, span.started_at, span.ended_at, cause)
        for span in spans
    ]
    return sorted(incidents, key=lambda incident: incident.started_at, reverse=True)


# --- Posts ----------------------------------------------------------------------------------------


def _current(now: datetime) -> Any:
    """SQL condition: a post that the page shows at ``now``."""
    return or_(PostRow.state.not_in(ENDED_STATES), PostRow.updated_at > now - RECENT)


def _touching(start: datetime, end: datetime) -> Any:
    """SQL condition: a post was written or changed in this time, or its times overlap it."""
    return or_(
        (PostRow.created_at < end) & (PostRow.updated_at >= start),
        (PostRow.starts_at < end) & (PostRow.ends_at > start),
    )


def _posts(page_id: int, condition: Any) -> list[Post]:
    ids = db.session.scalars(
        select(PostRow.id)
        .where(PostRow.status_page_id == page_id, condition)
        .order_by(PostRow.created_at.desc(), PostRow.id.desc())
    ).all()
    return records_of_posts(ids)
