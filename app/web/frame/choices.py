"""The monitors and contacts that a form offers as choices, and channels that are not set up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from flask import request

from app.checks.kinds import read_url
from app.forms.browser import BrowserForm
from app.i18n import _, _n, join_words
from app.records import (
    PAGE_SIZES,
    Channel,
    Monitor,
    MonitorQuery,
    MonitorRef,
    MonitorSortBy,
    PageQuery,
    ResultQuery,
)
from app.rules.channel_values import CHANNELS
from app.stores import current_store
from app.web.frame.session import SAFE_METHODS
from app.web.frame.store_errors import STORE_REFUSALS, if_answered

T = TypeVar("T")
MAX = 500  # with more monitors, people use the button on a monitor's page instead


def unless_unanswered(form: BrowserForm, question: Callable[[], T], otherwise: T) -> T:
    """The answer of the store to ``question``. For a sent form, ``otherwise`` if the store does not
    answer: the form must not get lost. If saving the form has failed for that reason, the store is
    not asked, because the person has waited for it once.
    """
    if form.unanswered:
        return otherwise
    try:
        return question()
    except STORE_REFUSALS:
        if request.method in SAFE_METHODS:
            raise
        return otherwise


def monitors(form: BrowserForm, ids: Collection[int], search: str = "") -> list[MonitorRef]:
    """The chosen monitors and, by name, those that match ``search``. If the store did not answer,
    only the chosen ones, with their ids as names.
    """

    def matching() -> list[MonitorRef]:
        store = current_store().monitors
        refs = list(store.refs(search=search or None, limit=MAX))
        missing = set(ids) - {ref.id for ref in refs}
        return [*(store.refs(ids=sorted(missing)) if missing else []), *refs]

    numbered = [MonitorRef(id, _("Monitor %(id)s", id=id), "") for id in ids]
    return unless_unanswered(form, matching, numbered)


PAGE = 100  # monitors that are read at once


def refs_of(query: MonitorQuery, limit: int) -> list[MonitorRef]:
    """The first ``limit`` monitors that match a query, by name."""
    query = replace(query, sort_by=MonitorSortBy.NATURAL, sort="asc", per_page=PAGE, uptime=())
    monitors = current_store().monitors.every(query, -(-limit // PAGE))
    return [MonitorRef(each.id, each.name, each.url) for each in islice(monitors, limit)]


MAX_SUGGESTED = 8  # parents for each reason
MAX_TAGS = 3
MAX_LEFT_OUT = 500


def parents(form: BrowserForm, record: Monitor | None, search: str) -> list[tuple[str, str]]:
    """The monitors that a monitor may be reached through, as pairs of id and label: the chosen
    ones, the matches of ``search``, and monitors with the same host, the same address or a common
    tag.
    """
    parent_ids = list(form["depends_on"].data)
    labels = {str(id): _("Monitor %(id)s", id=id) for id in parent_ids}
    edited = None if record is None or form.clone else record.id
    left_out = {edited}

    def name_all() -> None:
        store = current_store().monitors
        if edited is not None:  # a cycle would be refused
            left_out.update(child.id for child in store.children(edited, MAX_LEFT_OUT).items)
        refs = store.refs(ids=parent_ids) if parent_ids else ()
        labels.update((str(ref.id), ref.name) for ref in refs)
        for ref, why in _suggested(form, record, search):
            labels.setdefault(str(ref.id), f"{ref.name} ({why})" if why else ref.name)

    unless_unanswered(form, name_all, None)
    left_out -= {*parent_ids}
    return [(id, name) for id, name in labels.items() if int(id) not in left_out]


def _host(url: object) -> str | None:
    try:
        _kind, target = read_url(str(url or ""))
    except ValueError:
        return None
    return target.ascii_host or None


def _suggested(
    form: BrowserForm, record: Monitor | None, search: str
) -> Iterator[tuple[MonitorRef | Monitor, str]]:
    store = current_store()
    if search:
        yield from ((ref, "") for ref in store.monitors.refs(search=search, limit=MAX_SUGGESTED))
    host = _host(form["url"].data)
    address = None
    if record is not None and not form.clone:
        query = ResultQuery(monitor_id=record.id, per_page=PAGE_SIZES[0])
        address = next((result.ip for result in store.results.list(query).items), None)
    for name, why in ((host, _("same host")), (address, _("same address"))):
        if name:
            refs = store.monitors.refs(search=name, limit=MAX_SUGGESTED)
            yield from ((ref, why) for ref in refs if _host(ref.url) == name)
    for tag in form["tags"].data[:MAX_TAGS] if "tags" in form else ():
        query_of_tag = MonitorQuery(tag=tag, per_page=PAGE_SIZES[0], uptime=(), brief=True)
        why = _("tag %(tag)s", tag=tag)
        yield from ((monitor, why) for monitor in store.monitors.list(query_of_tag).items)


def contacts(form: BrowserForm, chosen_names: Sequence[str]) -> list[str]:
    """The names of all contacts, and of chosen ones that no longer exist; if the store did not
    answer the form, only the chosen ones.
    """
    none: Sequence[str] = ()
    names = unless_unanswered(form, lambda: current_store().contacts.names(), none)
    return [*names, *(name for name in chosen_names if name not in names)]


MAX_CONTACTS = 100


def channels_not_set_up(form: BrowserForm | None = None) -> Mapping[str, str]:
    """The channels that are not set up, each with a sentence; none if the store does not answer,
    because the form must not fail for that.
    """
    if form is not None and form.unanswered:
        return {}
    return if_answered(lambda: current_store().channels.not_set_up(), {})


def contact_choices(
    names: Collection[str], form: BrowserForm | None = None
) -> list[tuple[str, str]]:
    """Contacts to choose from as pairs of name and label."""
    notes = _notes(channels_not_set_up(form)) if names else {}
    return [(name, f"{name} ({notes[name]})" if name in notes else name) for name in names]


def _notes(not_set_up: Mapping[str, str]) -> Mapping[str, str]:
    """A note for each contact with channels that are not set up."""
    if not not_set_up:
        return {}
    query, notes = PageQuery(per_page=MAX_CONTACTS), {}
    for contact in if_answered(lambda: current_store().contacts.list(query).items, ()):
        used = dict.fromkeys(pair.key for pair in contact.channels)
        if labels := [_(CHANNELS[Channel(key)].label) for key in used if key in not_set_up]:
            notes[contact.name] = _n(
                "%(channels)s is not set up", "%(channels)s are not set up",
                len(labels), channels=join_words(labels)
            )  # fmt: skip
    return notes
