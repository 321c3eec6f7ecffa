"""The recent password: to change access or to see a secret, a person must have typed their password
in this session within the last 10 minutes. An unattended browser, or a stolen cookie, must not be
enough to create an account or a key.

``CHANGES`` has the endpoints. If the password is older, the address answers with a page that names
the change and asks for the password. The page contains the sent form, encrypted and bound to
session, address and time. After the right password, the view runs as if the form had been sent
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from flask import Flask, Response, abort, render_template, request, session, url_for
from flask_login import current_user, login_user
from werkzeug.datastructures import ImmutableMultiDict

from app.access import tokens
from app.errors import Denied, Invalid, Throttled
from app.forms.browser import BrowserForm
from app.i18n import N_, _
from app.stores import current_access, current_store
from app.web.forms import password_field
from app.web.frame import errors, links
from app.web.frame.errors import choice_of, is_box, label_of
from app.web.frame.session import SAFE_METHODS, TOKEN, load
from app.web.frame.store_errors import too_often

# The hidden field with the encrypted form, and the field for the password.
SEALED_FORM, PASSWORD = "sealed_form", "your_password"
CURRENT = "current_password"  # the field of forms that ask for the password themselves
SEALED_FOR = timedelta(hours=1)
# In characters. The longest form is a monitor's with all headers, channels, body and notes.
MAX_SEALED = 512 * 1024
MASK = "••••••••"

View = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class GuardedChange:
    """A change that needs the recent password. ``name``: the title on the page. ``whom``: returns
    the person or object, from the variables of the address. ``shows``: returns the names and values
    of the form that the page shows.
    """

    name: str
    whom: Callable[..., str] = lambda **_values: ""
    shows: Callable[[list[tuple[str, str]]], list[tuple[str, str]]] = lambda form: _typed(form)


def _person(id: int) -> str:
    return current_access().people.get(id).email


def _invited(id: int) -> str:
    return next((row.email for row in current_access().invitations.all() if row.id == id), "")


def _key(prefix: str) -> str:
    return current_access().keys.get(prefix).name


def _place_title(id: int) -> str:
    return current_store().locations.get(id).title


CHANGES: Mapping[str, GuardedChange] = {
    "people.new": GuardedChange(N_("Add a person")),
    "people.edit": GuardedChange(N_("Change a person"), _person),
    "people.password": GuardedChange(N_("Set a password for a person"), _person),
    "people.delete": GuardedChange(N_("Delete a person"), _person),
    "people.reset_second_factor": GuardedChange(N_("Reset the second factor of a person"), _person),
    "people.end_sessions": GuardedChange(N_("Log a person out everywhere"), _person),
    "invitations.new": GuardedChange(N_("Invite a person")),
    "invitations.renew": GuardedChange(N_("Create a new link for an invitation"), _invited),
    "invitations.password_link": GuardedChange(N_("Create a link to set a new password"), _person),
    "sessions.end": GuardedChange(N_("End a session")),
    "sessions.end_others": GuardedChange(N_("Log out everywhere else")),
    "keys.index": GuardedChange(N_("Create an API key")),
    "keys.edit": GuardedChange(N_("Change an API key"), _key),
    "keys.adopt": GuardedChange(N_("Take over an API key"), _key),
    "locations.new": GuardedChange(N_("Add a place")),
    "locations.edit": GuardedChange(N_("Change a place"), _place_title),
    "locations.token": GuardedChange(N_("Create a token for an agent"), _place_title),
    "locations.delete": GuardedChange(N_("Delete a place"), _place_title),
    "mail_settings.show": GuardedChange(N_("Change the mail server")),
    "mail_settings.remove": GuardedChange(N_("Remove the mail server")),
    "settings.show": GuardedChange(N_("Change the networks that checks and alerts may reach")),
    "settings.require_second_factor": GuardedChange(N_("Change who needs a second factor")),
    "settings.show_secret": GuardedChange(N_("Show the webhook secret")),
    "settings.change_secret": GuardedChange(N_("Change the webhook secret")),
    "backups.download": GuardedChange(N_("Download a backup")),
    "wall_links.index": GuardedChange(N_("Create a link to the wall")),
}


class RecentForm(BrowserForm):
    your_password = password_field(N_("Your password"), "current-password")


def init_app(app: Flask) -> None:
    """Wrap the views, after the blueprints are registered. Role and CSRF token are checked before a
    view is called.
    """
    for endpoint, change in CHANGES.items():
        app.view_functions[endpoint] = with_recent_password(app.view_functions[endpoint], change)


def with_recent_password(view: View, change: GuardedChange) -> View:
    @wraps(view)
    def answer(**values: Any) -> Any:
        if request.method in SAFE_METHODS:
            return view(**values)
        if SEALED_FORM in request.form:
            return _confirm_and_replay(view, change, values)
        if current_access().sessions.password_is_recent(current_user.session):
            return view(**values)
        if _confirms_by_itself():
            return _replay(view, values, _sent())
        return _page(change, values, _sent(), RecentForm(formdata=None), 200)

    return answer


def _confirms_by_itself() -> bool:
    """Whether the form itself contains the right password. A wrong one is counted."""
    password = request.form.get(CURRENT)
    if not password:
        return False
    try:
        current_access().people.confirm(current_user.person.id, password)
    except (Invalid, Throttled):
        return False
    return True


def _confirm_and_replay(view: View, change: GuardedChange, values: dict[str, Any]) -> Any:
    form, password = _unseal_form(request.form[SEALED_FORM]), request.form.get(PASSWORD, "")
    password_form = RecentForm(formdata=None)
    try:
        current_access().people.confirm(current_user.person.id, password)
    except Invalid:
        password_form.your_password.add_fault(_("This is not your password."))
        return _page(change, values, form, password_form, 422)
    except Throttled as fault:
        password_form.your_password.add_fault(too_often(fault))
        page = _page(change, values, form, password_form, 429)
        page.headers["Retry-After"] = str(fault.retry_after)
        return page
    form = [(name, password if name == CURRENT else value) for name, value in form]
    return _replay(view, values, form)


def _replay(view: View, values: dict[str, Any], form: list[tuple[str, str]]) -> Any:
    """Call the view with ``form``. The session gets its new token afterwards: while the view sends
    an invitation by mail, other tabs still use the old token.
    """
    token, now = session.get(TOKEN), current_access().clock()
    current_user.session = replace(current_user.session, password_at=now)
    request.form = ImmutableMultiDict(form)
    try:
        return view(**values)
    finally:  # even if the change is refused, because the password was typed
        # With another token, the view has begun another session.
        if token and session.get(TOKEN) == token:
            _take_new_token(token)


def _take_new_token(token: str) -> None:
    """Give the session a new token. If it ended meanwhile, do nothing: the answer is still sent,
    because it may have a link that is shown once.
    """
    new = current_access().sessions.password_typed(token)
    user = load(new) if new else None
    if user is not None:
        login_user(user)


def _sent() -> list[tuple[str, str]]:
    """The form of this request, without its CSRF token, because the page has a new one."""
    return [pair for pair in request.form.items(multi=True) if pair[0] != "csrf_token"]


def _page(
    change: GuardedChange,
    values: dict[str, Any],
    form: list[tuple[str, str]],
    password_form: RecentForm,
    status: int,
) -> Response:
    sealed = tokens.seal([current_access().clock().isoformat(), form], _purpose())
    if len(sealed) > MAX_SEALED:
        abort(413)
    methods = (request.url_rule.methods if request.url_rule else None) or set()
    page = render_template(
        "recent/ask.html",
        change=_(change.name),
        whom=change.whom(**values),
        entered=[(label_of(name), _shown(name, value)) for name, value in change.shows(form)],
        sealed_form=sealed,
        form=password_form,
        back=links.full_path() if "GET" in methods else url_for("home.show"),
    )
    return Response(page, status, mimetype="text/html")


def _typed(form: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The entered values by field. An empty field is among them, because it removes a
    stored value.
    """
    values_by_name: dict[str, list[str]] = {}
    for name, value in form:
        if name not in errors.CONTROL_FIELDS:
            values_by_name.setdefault(name, []).append(value)
    # In front of a checkbox there is a hidden, empty field with the same name.
    return [(name, ", ".join(filter(None, values))) for name, values in values_by_name.items()]


def _shown(name: str, value: str) -> str:
    if any(word in name for word in errors.SECRETS):
        return MASK if value else ""
    return _("Yes") if value and is_box(name) else choice_of(name, value)


def _unseal_form(text: str) -> list[tuple[str, str]]:
    """The form that ``_page`` sealed in this session for this address. Raises Denied."""
    moment, form = tokens.unseal(text, _purpose())
    age = current_access().clock() - datetime.fromisoformat(moment)
    if abs(age) >= SEALED_FOR:  # a clock that was set back must not make it last longer
        raise Denied(_(tokens.PAGE_TOO_OLD))
    return [(name, value) for name, value in form]


def _purpose() -> str:
    """The purpose of the encryption: another session or address cannot decrypt the form."""
    return f"recent password {current_user.session.id} {links.full_path()}"
