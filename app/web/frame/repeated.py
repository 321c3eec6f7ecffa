"""The same form sent twice is carried out once: by a double click without a script, by a reload of
the answer, or by the browser's Back button.

A form is the same one if its address and all of its fields are the same. One that changes
something has a CSRF token, which a page that was loaded again has anew, and counts as the same for
seconds: later it is sent on purpose. One that makes something has a token of its own in its hidden
field ``once``, and counts as the same for hours.

An answer that says where it leads (a redirect; an answer that shows a secret once says it too, in
its ``Location``) tells that the form was carried out. Other answers ask for something, and the form
may be sent again. The second request waits for the first and leads where that led.
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

# How long a form waits for the same one that came before it. It pins a thread meanwhile.
WAIT_SECONDS = 15.0
POLL_SECONDS = 0.1
TOKEN_BYTES = 16
ONCE = "once"  # the hidden field with the token
_BEGUN = "begun_form"  # the name in ``g`` of the form that this request carries out

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
    """A page with a secret that is shown in the answer itself, never after a redirect: it would
    have to wait in a cookie. Nothing may keep a copy; its form sent again leads to ``back``.
    """
    headers = {"Cache-Control": "no-store", "Location": back}
    return Response(render_template(template, **context), 201, headers, mimetype="text/html")


def answer_second() -> Answer | None:
    """Before a view. If this form was sent before: a redirect to where the first one led. None
    if it is the first, which the view then carries out.
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
    """The redirect of the first form; or, if that was refused, this form, to be carried out.
    Without a wait if too many requests wait already.
    """
    with REPEATED_FORMS.taken() as free:
        if not free:
            return _await_first(digest, 0.0)
        with LONG_WAITS.taken() as free:
            return _await_first(digest, WAIT_SECONDS if free else 0.0)


def _await_first(digest: str, seconds: float) -> Answer | BegunForm:
    """Poll by reading, and write only once the first was refused: SQLite has one writer, and the
    results of checks would wait.
    """
    access = current_access()
    until = time.monotonic() + seconds
    while True:
        sent = access.sent_forms.get(digest)
        if sent is None and (begun := _begin(digest)):
            return begun
        if sent is not None and sent.location is not None:
            flash(_(DONE_ALREADY.get(request.endpoint or "", SENT_TWICE)), "info")
            return redirect(sent.location)
        if time.monotonic() >= until:
            flash(_(STILL_BUSY), "info")
            return redirect(_back())
        time.sleep(POLL_SECONDS)


def _digest() -> str:
    """A hash of form and person, not of the session, whose token a typed password renews. A file
    counts with its content: the same form may send another one.
    """
    fields = list(request.form.items(multi=True))
    if ONCE in request.form:
        fields = [field for field in fields if field[0] != "csrf_token"]
    for name, file in request.files.items(multi=True):
        fields.append((name, hashlib.sha256(file.read()).hexdigest()))
        file.seek(0)
    return keyed_hash("sent form", str(current_user.person.id), links.full_path(), repr(fields))


def _back() -> str:
    """The page that the form was on, if the browser says so and it is ours."""
    page = request.referrer or ""
    return page if urlsplit(page).netloc == request.host else url_for("home.show")


def store_location(response: Response) -> Response:
    """After a view that carried a form out: store where its answer leads, for the second one."""
    begun: BegunForm | None = g.pop(_BEGUN, None)
    if begun is None:
        return response
    location = response.location
    current_access().sent_forms.end(begun, location)
    # A form that waited for the password was carried out too: Back leads to its own page.
    if location and ONCE in request.form:
        digest = _digest()
        own = _begin(digest) if digest != begun.digest else None
        if own:
            current_access().sent_forms.end(own, location)
    return response
