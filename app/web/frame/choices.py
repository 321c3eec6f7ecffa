"""The monitors and contacts that a form lists as choices."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from flask import request

from app.forms.browser import BrowserForm
from app.i18n import _
from app.records import MonitorRef
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
            known = current_store().monitors
            found = list(known.refs(search=search or None, limit=MOST))
            missing = set(chosen) - {one.id for one in found}
            return [*(known.refs(ids=sorted(missing)) if missing else []), *found]
        except NOT_TAKEN:
            if request.method in SAFE_METHODS:
                raise
    return [MonitorRef(id, _("Monitor %(id)s", id=id), "") for id in chosen]


def contacts(form: BrowserForm, chosen: Sequence[str]) -> list[str]:
    """The names of all contacts; the chosen ones alone if the store did not answer the form."""
    if not form.unanswered:
        try:
            known = list(current_store().contacts.names())
            return [*known, *(name for name in chosen if name not in known)]
        except NOT_TAKEN:
            if request.method in SAFE_METHODS:
                raise
    return list(chosen)
