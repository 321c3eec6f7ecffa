"""The monitors and contacts that a form lists as choices, and channels that cannot work here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from flask import request

from app.forms.browser import BrowserForm
from app.i18n import _, _n, listed
from app.records import Channel, Contact, MonitorRef, PageQuery
from app.rules.channel_values import CHANNELS
from app.stores import current_store
from app.web.frame.session import SAFE_METHODS
from app.web.frame.store_errors import NOT_TAKEN

MOST = 500  # with more monitors, people start from the button on a monitor's own page


def monitors(form: BrowserForm, chosen: Collection[int], search: str = "") -> list[MonitorRef]:
    """Monitors by name, or those with ``search`` in it; those already chosen are always among them.
    If the store did not answer the form, only the chosen ones are there, with their
    numbers: the choice must not get lost.
    """
    if not form.unanswered:  # the person has already waited for the store once
        try:
            monitors_store = current_store().monitors
            refs = list(monitors_store.refs(search=search or None, limit=MOST))
            missing = set(chosen) - {ref.id for ref in refs}
            return [*(monitors_store.refs(ids=sorted(missing)) if missing else []), *refs]
        except NOT_TAKEN:
            if request.method in SAFE_METHODS:
                raise
    return [MonitorRef(id, _("Monitor %(id)s", id=id), "") for id in chosen]


def contacts(form: BrowserForm, chosen: Sequence[str]) -> list[str]:
    """The names of all contacts; the chosen ones alone if the store did not answer the form."""
    if not form.unanswered:
        try:
            names = list(current_store().contacts.names())
            return [*names, *(name for name in chosen if name not in names)]
        except NOT_TAKEN:
            if request.method in SAFE_METHODS:
                raise
    return list(chosen)


MOST_CONTACTS = 100


def lacking(form: BrowserForm | None = None) -> Mapping[str, str]:
    """The channels that cannot work, each with a sentence; none where that is not known. A form
    does without it rather than fail, or wait once more for a store that did not answer.
    """
    if form is not None and form.unanswered:
        return {}
    try:
        return current_store().channels.not_set_up()
    except NOT_TAKEN:
        return {}


def contact_choices(
    names: Collection[str], form: BrowserForm | None = None
) -> list[tuple[str, str]]:
    """Contacts to choose from as pairs of name and label."""
    notes = _notes(lacking(form)) if names else {}
    return [(name, f"{name} ({notes[name]})" if name in notes else name) for name in names]


def _notes(without: Mapping[str, str]) -> Mapping[str, str]:
    if not without:
        return {}
    try:
        stored = current_store().contacts.list(PageQuery(per_page=MOST_CONTACTS)).items
    except NOT_TAKEN:
        return {}
    lacking_of = {contact.name: _channels(contact, without) for contact in stored}
    return {name: _note(channels) for name, channels in lacking_of.items() if channels}


def _channels(contact: Contact, without: Mapping[str, str]) -> Sequence[str]:
    used = dict.fromkeys(pair.key for pair in contact.channels)
    return [_(CHANNELS[Channel(key)].label) for key in used if key in without]


def _note(channels: Sequence[str]) -> str:
    return _n(
        "%(channels)s is not set up",
        "%(channels)s are not set up",
        len(channels),
        channels=listed(channels),
    )
