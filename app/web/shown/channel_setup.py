"""Channels and contacts that cannot work on this installation, for forms to say so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from app.forms.browser import BrowserForm
from app.i18n import _, _n
from app.records import Channel, Contact, PageQuery
from app.rules.channel_values import CHANNELS
from app.stores import current_store
from app.web.frame.store_errors import NOT_TAKEN

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
        known = current_store().contacts.list(PageQuery(per_page=MOST_CONTACTS)).items
    except NOT_TAKEN:
        return {}
    found = {contact.name: _channels(contact, without) for contact in known}
    return {name: _note(channels) for name, channels in found.items() if channels}


def _channels(contact: Contact, without: Mapping[str, str]) -> Sequence[str]:
    used = dict.fromkeys(pair.key for pair in contact.channels)
    return [_(CHANNELS[Channel(key)].label) for key in used if key in without]


def _note(channels: Sequence[str]) -> str:
    return _n(
        "%(channels)s is not set up",
        "%(channels)s are not set up",
        len(channels),
        channels=_(" and ").join(channels),
    )
