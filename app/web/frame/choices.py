"""The monitors that a form offers to choose from."""

from __future__ import annotations

from collections.abc import Collection

from flask import request

from app.forms.browser import BrowserForm
from app.records import MonitorRef
from app.stores import current_store
from app.web.frame.session import SAFE_METHODS
from app.web.frame.store_errors import NOT_TAKEN

MOST = 500  # beyond that, a monitor's own page has the button


def monitors(form: BrowserForm, chosen: Collection[int]) -> list[MonitorRef]:
    """By name; those already chosen are always among them. Where a store does not answer to a form
    that was sent, they are all there is, with their numbers: what was chosen must not get lost.
    """
    if not form.unanswered:  # else who waits has waited long enough
        try:
            known = current_store().monitors
            found = list(known.refs(limit=MOST))
            missing = set(chosen) - {one.id for one in found}
            return [*(known.refs(ids=sorted(missing)) if missing else []), *found]
        except NOT_TAKEN:
            if request.method in SAFE_METHODS:
                raise
    return [MonitorRef(id, f"Monitor {id}", "") for id in chosen]
