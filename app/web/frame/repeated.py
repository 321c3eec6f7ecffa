"""The same form sent twice at once, as by a double click without a script, is carried out once.

Browsers show the answer to the second request. It waits for the first and leads where that led. So
a form is the same one if its address and all of its fields are the same, and so is its CSRF token:
that of a page that was loaded again is another one.
"""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from flask import Flask, Response, flash, g, redirect, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response as Answer

from app.access.keyed_hash import keyed_hash
from app.access.sent_forms import BegunForm
from app.i18n import N_, _
from app.slots import LONG_WAITS, REPEATED_FORMS
from app.stores import current_access
from app.web.frame import fragments, links
from app.web.frame.session import SAFE_METHODS

# What a form waits for the same one that came before it. It pins a thread meanwhile.
WAIT_SECONDS = 15.0
POLL_SECONDS = 0.1
_BEGUN = "begun_form"  # where ``g`` has the form that this request carries out

SENT_TWICE = N_("This form was sent twice. The second one was ignored.")
STILL_BUSY = N_(
    "This form was sent twice. The first one is still being carried out. Reload the page to see"
    " what came of it."
)


def init_app(app: Flask) -> None:
    app.before_request(_once)
    app.after_request(_note)


def _once() -> Answer | None:
    if request.method in SAFE_METHODS or "csrf_token" not in request.form:
        return None
    if fragments.HEADER in request.headers:
        return None  # a script sends a form once, and shows the answer to it itself
    if not current_user.is_authenticated:
        return None  # a login changes the cookie, which the second request does not have
    digest = _digest()
    found = current_access().sent_forms.begin(digest) or _answer_of_first(digest)
    if not isinstance(found, BegunForm):
        return found
    setattr(g, _BEGUN, found)
    return None


def _answer_of_first(digest: str) -> Answer | BegunForm:
    """Where the same form that came before leads; if that was refused, this one, which is to be
    carried out. Not waited for if too many requests wait already.
    """
    with REPEATED_FORMS.taken() as free:
        if not free:
            return _await_first(digest, 0.0)
        with LONG_WAITS.taken() as free:
            return _await_first(digest, WAIT_SECONDS if free else 0.0)


def _await_first(digest: str, seconds: float) -> Answer | BegunForm:
    """This only reads: SQLite has one writer, and the results of checks would wait."""
    access = current_access()
    until = time.monotonic() + seconds
    while True:
        sent = access.sent_forms.get(digest)
        if sent is None and (begun := access.sent_forms.begin(digest)):
            return begun
        if sent is not None and sent.location is not None:
            flash(_(SENT_TWICE), "info")
            return redirect(sent.location)
        if time.monotonic() >= until:
            flash(_(STILL_BUSY), "info")
            return redirect(_back())
        time.sleep(POLL_SECONDS)


def _digest() -> str:
    body = request.get_data().decode("latin-1")
    return keyed_hash("sent form", current_user.get_id(), links.full_path(), body)


def _back() -> str:
    """The page that the form was on, if the browser says so and it is ours."""
    page = request.referrer or ""
    return page if urlsplit(page).netloc == request.host else url_for("home.show")


def _note(response: Response) -> Response:
    """A redirect says that the form was carried out. Other answers ask for something, and the form
    may be sent again.
    """
    if begun := g.pop(_BEGUN, None):
        done = 300 <= response.status_code < 400
        current_access().sent_forms.end(begun, response.location if done else None)
    return response
