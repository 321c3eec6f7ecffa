"""Process a form only once if it is sent twice: by a double click without a script, by a reload of
the answer, or after the browser's Back button.

Two forms are the same if their addresses and all of their fields are equal, with the CSRF token,
which is new each time a page is loaded. They count as the same for some seconds; a form that is
sent later was sent on purpose. A form that creates something has a token in its hidden field
``once`` instead, and counts as the same for hours.

If the answer has a ``Location``, the form was processed: a redirect has one, and so has an answer
that shows a secret once. Other answers ask the person for something, and the form may be sent
again. The second request waits for the first one and redirects to its ``Location``.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from urllib.parse import urlsplit

from flask import Response, flash, g, redirect, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response as Answer

from app.access.sent_forms import BegunForm
from app.access.tokens import keyed_hash
from app.i18n import N_, _
from app.slots import LONG_WAITS, REPEATED_FORMS
from app.stores import current_access
from app.web.frame import fragments, links
from app.web.frame.recent import SEALED_FORM
from app.web.frame.session import SAFE_METHODS

# How long the second request waits for the first. It occupies a thread meanwhile.
WAIT_SECONDS = 15.0
POLL_SECONDS = 0.1
TOKEN_BYTES = 16
ONCE = "once"  # the hidden field with the token
_BEGUN = "begun_form"  # the attribute of ``g`` for the form that this request processes

SENT_TWICE = N_("This form was sent twice. The second one was ignored.")
STILL_BUSY = N_(
    "This form was sent twice. The first one is still being carried out. Reload the page to see"
    " what came of it."
)
SHOWN_ONCE = N_("This was created already. Its secret is shown only once; you can make a new one.")
# Endpoints whose sentence says more than SENT_TWICE.
DONE_ALREADY = {
    "keys.index": SHOWN_ONCE,
    "wall_links.index": SHOWN_ONCE,
    "locations.token": SHOWN_ONCE,
    "locations.new": SHOWN_ONCE,
    "imports.create": N_(
        "This import was started already. If monitors are missing from the list, preview it again:"
        " it leaves out those that were created."
    ),
}


def token() -> str:
    """The token of a new form, for its hidden field ``once``."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def shown_once(template: str, back: str, **context: object) -> Response:
    """A page with a secret. The answer contains it, because after a redirect the secret would have
    to be in a cookie. If the form is sent again, the answer is a redirect to ``back``.
    """
    page = render_template(template, **context)
    return Response(page, 201, {"Location": back}, mimetype="text/html")


def answer_second() -> Answer | None:
    """Called before a view. If this form was sent before, redirect to the ``Location`` of the first
    answer; otherwise return None, and the view processes the form.
    """
    if request.method in SAFE_METHODS or "csrf_token" not in request.form:
        return None
    if fragments.HEADER in request.headers:
        return None  # a script sends a form once, and shows the answer to it itself
    if not current_user.is_authenticated:
        return None  # a login changes the cookie, which the second request does not have
    digest = _digest()
    answer = _begin(digest) or _answer_of_first(digest)
    if not isinstance(answer, BegunForm):
        return answer
    setattr(g, _BEGUN, answer)
    return None


def _begin(digest: str) -> BegunForm | None:
    creates = ONCE in request.form or SEALED_FORM in request.form
    return current_access().sent_forms.begin(digest, creates=creates)


def _answer_of_first(digest: str) -> Answer | BegunForm:
    """Wait for the answer to the first form, and redirect as it did; if the first form was refused,
    return this one for the view to process. It does not wait if too many requests wait already.
    """
    with REPEATED_FORMS.taken() as free:
        if not free:
            return _await_first(digest, 0.0)
        with LONG_WAITS.taken() as free:
            return _await_first(digest, WAIT_SECONDS if free else 0.0)


def _await_first(digest: str, seconds: float) -> Answer | BegunForm:
    """Poll by reading, and write only after the first was refused: SQLite has one writer, and the
    results of checks would have to wait.
    """
    access = current_access()
    deadline = time.monotonic() + seconds
    while True:
        sent_form = access.sent_forms.get(digest)
        if sent_form is None and (begun := _begin(digest)):
            return begun
        if sent_form is not None and sent_form.location is not None:
            flash(_(DONE_ALREADY.get(request.endpoint or "", SENT_TWICE)), "info")
            return redirect(sent_form.location)
        if time.monotonic() >= deadline:
            flash(_(STILL_BUSY), "info")
            return redirect(_back())
        time.sleep(POLL_SECONDS)


def _digest() -> str:
    """A hash of the form and the person. The session is not in it, because its token changes after
    a typed password. A file counts by its content.
    """
    fields = list(request.form.items(multi=True))
    if ONCE in request.form:
        fields = [field for field in fields if field[0] != "csrf_token"]
    for name, file in request.files.items(multi=True):
        fields.append((name, hashlib.sha256(file.read()).hexdigest()))
        file.seek(0)
    return keyed_hash("sent form", str(current_user.person.id), links.full_path(), repr(fields))


def _back() -> str:
    """The page with the form, if the browser names it and it is of this installation."""
    page = request.referrer or ""
    return page if urlsplit(page).netloc == request.host else url_for("home.show")


def store_location(response: Response) -> Response:
    """Called after a view: store the ``Location`` of the answer, for the second request."""
    begun: BegunForm | None = g.pop(_BEGUN, None)
    if begun is None:
        return response
    location = response.location
    current_access().sent_forms.end(begun, location)
    # The page for the password sent this form. Store the location for the original form as well,
    # which the Back button may send again.
    if location and ONCE in request.form:
        digest = _digest()
        original = _begin(digest) if digest != begun.digest else None
        if original:
            current_access().sent_forms.end(original, location)
    return response
