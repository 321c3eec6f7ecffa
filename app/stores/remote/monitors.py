"""Monitors of another server."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any

from cachetools import TTLCache

from app.codec import foreign, reader
from app.codec.values import each, object_, text, whole
from app.errors import Invalid, NotFound
from app.forms import monitor
from app.forms.monitor import name_of
from app.i18n import N_, _
from app.records import (
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSearchBy,
    MonitorSortBy,
    MonitorStatus,
    Page,
    PageQuery,
)
from app.rules import brackets
from app.rules.natural import natural_key
from app.stats.series import STRIP_HOURS, StripHour
from app.stores import base, same_url
from app.stores.base import Extent, Fields
from app.stores.remote import envelope
from app.stores.remote.collection import RemoteCollection
from app.stores.remote.part import parameters

ADDED_FIELDS = frozenset(monitor.ADDED_FIELDS)
NO_SUCH_FIELD = N_("This server cannot store it. Leave it as it was.")
PASSWORD_NEEDED = N_("Enter the password again: the server does not return it.")
OWN_ORDERS = (MonitorSortBy.STATE, MonitorSortBy.RESPONSE_TIME, MonitorSortBy.EXPIRES_AT)
NAMES_PAGE = 100
NAMES_PAGES = 5
NAMES_SECONDS = 300.0
TAGS_SECONDS = 30.0
COUNT_PAGES = 10
# If more than FEW names are not on the first page, further pages are read. At most MAX_ASKED of the
# monitors that are still missing are requested one by one.
FEW, MAX_ASKED = 3, 50

_DEFAULTS = {field.name: field.default for field in dataclass_fields(Monitor)}
# Parts of a query that only a local store uses
UNSENT = ("ids", "uptime", "counts", "brief", "status_only", "exact")
UNSENT_IF_BARE = (*UNSENT, "hours")
_FILTERS = (
    "search", "search_by", "status_page_id", "contact_id", "tag", "location", "depends_on",
)  # fmt: skip
# The seconds of an hour in each state
_HOUR_STATES = (*StripHour._fields[:4], "degraded")


class RemoteMonitors(RemoteCollection[Monitor, MonitorQuery], base.Monitors):
    in_base_api = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._names: dict[int, MonitorRef] = {}
        self._names_at = float("-inf")
        self._tag_counts: TTLCache[MonitorQuery, Mapping[str, int] | None]
        self._tag_counts, self._counting = TTLCache(16, TAGS_SECONDS), threading.Lock()

    def read(self, data: Any) -> Monitor:
        return read(data, lambda: self.me.extent > Extent.BARE)

    def parameters(self, query: MonitorQuery) -> brackets.Pairs:
        if query.state or query.tag or query.depends_on or query.sort_by in OWN_ORDERS:
            self._refuse_bare()
        if query.sort_by == MonitorSortBy.NATURAL and self.me.extent == Extent.BARE:
            query = replace(query, sort_by=MonitorSortBy.NAME)
        if query.search_by == MonitorSearchBy.ANY and self.me.extent == Extent.BARE:
            query = replace(query, search_by=MonitorSearchBy.NAME)
        with_hours = query.hours and self.me.extent > Extent.BARE
        return parameters(query, leave=UNSENT if with_hours else UNSENT_IF_BARE)

    def list(self, query: MonitorQuery) -> Page[Monitor]:
        """Monitors that do not match are left out: some servers ignore the search, and an action on
        all matches would change all monitors.
        """
        page = super().list(query)
        if not query.search or self.me.is_wakeful:
            return page
        items = [monitor for monitor in page.items if _matches(monitor, query.search)]
        return replace(page, items=items, total=page.total - len(page.items) + len(items))

    def select_items(self, items: Sequence[Any], asked: Mapping[str, str]) -> Sequence[Any]:
        search, sort_by = asked.get("search", "").casefold(), asked.get("sort_by", "id")
        entries = []
        for item in items:
            # Only these fields are read: there may be 12,000 records.
            fields = foreign.record_fields(item, "monitor") if isinstance(item, Mapping) else {}
            text = f"{fields.get('name')} {fields.get('url')}".casefold()
            fold = natural_key if sort_by == MonitorSortBy.NAME else str.casefold
            order = (whole(fields.get(sort_by)) or 0, fold(str(fields.get(sort_by))))
            entries.append((order, text, item))
        if search:
            containing = [entry for entry in entries if search in entry[1]]
            entries = containing or [entry for entry in entries if _has_words(entry[1], search)]
        entries.sort(key=lambda entry: entry[0], reverse=asked.get("sort") == "desc")
        return [item for _order, _text, item in entries]

    def update(self, id: int, fields: Fields) -> Monitor:
        self._names_at = float("-inf")  # its name may change
        self._tag_counts.clear()
        try:
            return super().update(id, fields)
        except Invalid as fault:
            pause = fields.get("pause")
            if not isinstance(pause, bool) or "pause" not in fault.errors:
                raise
            # Some servers take booleans only as numbers.
            return super().update(id, {**fields, "pause": int(pause)})

    def create(self, fields: Fields, *, secrets_from: int | None = None) -> Monitor:
        refuse_hidden_password(self, fields, secrets_from)
        return super().create(fields)

    def sent(self, fields: Fields, *, new: bool = False) -> Fields:
        """The fields that this server can store."""
        own = ADDED_FIELDS & fields.keys()
        # The extent is read only if needed: a write must not wait for another answer.
        unknown = own if own and self.me.extent == Extent.BARE else frozenset()
        refused = {name: [_(NO_SUCH_FIELD)] for name in unknown if _was_typed(name, fields[name])}
        if refused:
            raise Invalid(refused)
        storable = {name: value for name, value in fields.items() if name not in unknown}
        return super().sent(storable, new=new)

    def newest(self, fields: Fields) -> int | None:
        """The id of the newest monitor with this name, preferably with this URL too; None if the
        server has changed the name.
        """
        name, url = str(fields["name"]), str(fields["url"])
        for search in (name, None):
            query = MonitorQuery(search=search, per_page=NAMES_PAGE)
            listed = self.list(query).items
            named = [monitor for monitor in listed if monitor.name.strip() == name.strip()]
            of_this_url = [monitor.id for monitor in named if same_url.is_same(monitor.url, url)]
            if ids := of_this_url or [monitor.id for monitor in named]:
                return max(ids)
        return None

    def refs(
        self, *, ids: Sequence[int] | None = None, search: str | None = None, limit: int = 500
    ) -> Sequence[MonitorRef]:
        """The first monitors by name, from at most ``NAMES_PAGES`` requests. Monitors with ``ids``
        whose names are not cached are requested one by one.
        """
        if ids is not None:
            names = self._named(ids[:limit])
            refs = [names[id] for id in dict.fromkeys(ids[:limit]) if id in names]
            return _in_natural_order(refs)
        query = MonitorQuery(search=search, sort_by="name", sort="asc", per_page=NAMES_PAGE)
        window = self._window(
            self.path, self.parameters(query), 0, limit, NAMES_PAGE, max_more=NAMES_PAGES - 1
        )
        refs = _in_natural_order(envelope.each(window.items, _ref_of))
        is_searched = search is not None and not self.me.is_wakeful
        return [ref for ref in refs if _matches(ref, search or "")] if is_searched else refs

    def read_names(self, pages: int = 1) -> dict[int, MonitorRef]:
        """Read the first monitors by name. They are cached for some minutes, because lists of
        incidents need the names.
        """
        sent_query = parameters(
            MonitorQuery(sort_by="name", sort="asc", per_page=NAMES_PAGE), leave=UNSENT_IF_BARE
        )
        count = pages * NAMES_PAGE
        window = self._window(self.path, sent_query, 0, count, NAMES_PAGE, max_more=2 * pages)
        cached = self._names if self._are_fresh else {}
        names = cached | {ref.id: ref for ref in envelope.each(window.items, _ref_of)}
        self._names, self._names_at = names, time.monotonic()
        return names

    @property
    def _are_fresh(self) -> bool:
        return time.monotonic() - self._names_at < NAMES_SECONDS

    def _named(self, ids: Sequence[int]) -> Mapping[int, MonitorRef]:
        """The names of these monitors. Names that are not cached are read by page or one by one."""
        names = self._names if self._are_fresh else self.read_names()
        missing = [id for id in dict.fromkeys(ids) if id not in names]
        if len(missing) > FEW:
            names = self.read_names(NAMES_PAGES)
            missing = [id for id in missing if id not in names]
        for id in missing[:MAX_ASKED]:
            with suppress(NotFound):
                names[id] = _ref(self.get(id))
        return names

    def children(self, id: int, per_page: int = 20) -> Page[MonitorRef]:
        if self.me.extent == Extent.BARE:
            return Page([], 1, per_page, 0)
        return super().children(id, per_page)

    def watching(self, url: str) -> Sequence[MonitorRef]:
        """The monitors of this URL among the first monitors with a similar URL: one request."""
        query = MonitorQuery(
            search=same_url.search_text(url), search_by="url", sort="asc", per_page=NAMES_PAGE
        )
        listed = self.list(query).items
        return [_ref(monitor) for monitor in listed if same_url.is_same(monitor.url, url)]

    def tags(self, search: str, limit: int = 10) -> Sequence[str]:
        if not search or self.me.extent == Extent.BARE:
            return ()
        counts = self.tag_counts()
        if counts is None:
            counts = {search: 1} if self.count([search]) else {}
        fitting = [tag for tag in counts if search.casefold() in tag.casefold()]
        return sorted(fitting, key=natural_key)[:limit]

    def tag_counts(self, query: MonitorQuery = base.EVERY_MONITOR) -> Mapping[str, int] | None:
        """Tags are counted in the list of monitors, because the API does not count them. The counts
        are cached for ``TAGS_SECONDS``. None for more than ``NAMES_PAGES`` pages of monitors.
        """
        if self.me.extent == Extent.BARE:
            return None
        asked = replace(query, tag=None, page=1, per_page=NAMES_PAGE, uptime=(), hours=False)
        with self._counting:  # another thread waits, and finds these counts in the cache
            if asked not in self._tag_counts:
                page, counts = self.list(asked), None
                if page.total <= NAMES_PAGE * NAMES_PAGES:
                    is_all = page.total <= NAMES_PAGE
                    monitors = page.items if is_all else self.every(asked, NAMES_PAGES)
                    counts = Counter(tag for monitor in monitors for tag in monitor.tags)
                self._tag_counts[asked] = counts
            return self._tag_counts[asked]

    def count(self, tags: Sequence[str], ids: Sequence[int] = ()) -> int:
        """The number may be too low if one of several tags has more than ``COUNT_PAGES`` pages of
        monitors.
        """
        queries = [MonitorQuery(tag=tag, per_page=NAMES_PAGE, uptime=()) for tag in tags]
        totals = [self.list(query).total for query in queries]
        if len(tags) == 1 and not ids:
            return totals[0]
        listed = (monitor.id for query in queries for monitor in self.every(query, COUNT_PAGES))
        return max(len({*ids, *listed}), *totals, 0)

    def locations(self) -> Mapping[str, str]:
        if self.me.extent < Extent.WHOLE:
            return {}
        page = self.store.locations.list(PageQuery(per_page=NAMES_PAGE))
        return {place.name: place.title for place in page.items}

    def overview(self, query: MonitorQuery = base.EVERY_MONITOR) -> Mapping[str, int]:
        self._refuse_bare()
        filters = {name for name, _value in parameters(query)}.intersection(_FILTERS)
        filters_sent = {name: getattr(query, name) for name in _FILTERS if name in filters}
        return self._get_content("/overview", _overview, brackets.write(filters_sent))


def _matches(monitor: Monitor | MonitorRef, search: str) -> bool:
    """Whether all words of the search are in the name or the URL."""
    return _has_words(f"{monitor.name} {monitor.url}".casefold(), search)


def _has_words(text: str, search: str) -> bool:
    return all(word in text for word in search.casefold().split())


def _ref_of(data: Any) -> MonitorRef:
    return _ref(read(data))


def _in_natural_order(refs: Iterable[MonitorRef]) -> list[MonitorRef]:
    return sorted(refs, key=lambda ref: (natural_key(ref.name), ref.id))


def _ref(monitor: Monitor) -> MonitorRef:
    return MonitorRef(monitor.id, monitor.name, monitor.url)


def refuse_hidden_password(monitors: base.Monitors, fields: Fields, source: int | None) -> None:
    """Raise Invalid if ``fields`` need the password of the monitor ``source``. Only the server
    knows it, so it cannot be copied into another request. If the server does not say whether there
    is one, an empty password in ``fields`` says that there is none.
    """
    password, is_needed = fields.get("request_auth_password"), fields.get("request_auth_username")
    if source is None or password or not is_needed:
        return
    monitor = monitors.get(source)
    is_unclear = "request_auth_password_set" in monitor.missing
    if monitor.request_auth_password_set or (is_unclear and "request_auth_password" not in fields):
        raise Invalid({"request_auth_password": [_(PASSWORD_NEEDED)]})


def _was_typed(name: str, value: Any) -> bool:
    """Whether a person has entered a field: its value is not the default. ``quiet_zone`` always has
    a value, also without quiet hours.
    """
    return name != "quiet_zone" and value not in ("", _DEFAULTS[name])


def read(data: Any, is_wakeful: Callable[[], bool] = lambda: False) -> Monitor:
    """The monitor in this JSON. ``is_wakeful``: whether the server is a Wakeful, which accepts the
    masked values that it sends. On any other server, a field ``check_every`` may be in minutes.
    """
    fields, gaps = foreign.monitor(data, is_wakeful)
    if fields.get("check_every") and not is_wakeful():
        del fields["check_every"]
    password = bool(fields.get("request_auth_password"))
    if "request_auth_password_set" not in fields and not password:
        gaps.missing.append("request_auth_password_set")
    url = text(fields.get("url")) or ""
    name = name_of(url) if url else _("Monitor %(id)s", id=fields["id"])
    monitor = _read({"name": name, "url": url, "interval": 0, **fields})
    is_failing = monitor.status == MonitorStatus.DOWN and fields.get("failing") is True
    return replace(
        monitor,
        request_auth_password_set=monitor.request_auth_password_set or password,
        status=MonitorStatus.FAILING if is_failing else monitor.status,
        missing=tuple(gaps.missing),
        misread=tuple(gaps.misread),
    )


def _hours(value: Any) -> tuple[dict[str, Any], ...]:
    """The last hours of a monitor as ``app.stats.series`` gives them; none if one is malformed."""
    hours = each(value, _hour)
    complete = all(hour[state] is not None for hour in hours for state in _HOUR_STATES)
    return hours if complete and len(hours) == STRIP_HOURS else ()


def _hour(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    return {
        "start": text(value.get("start")),
        **{state: whole(value.get(state)) for state in _HOUR_STATES},
        "response_time": whole(value.get("response_time")),
    }


def _overview(data: Any) -> dict[str, int]:
    """The number of monitors in each state. States that this version does not know are left out."""
    data = object_(data, "overview")
    counts = {status.value: whole(data.get(status.value)) or 0 for status in MonitorStatus}
    counts[MonitorStatus.DOWN] -= counts[MonitorStatus.FAILING]
    return {status: count for status, count in counts.items() if count > 0}


_read = reader(Monitor, "monitor", hours=_hours)
