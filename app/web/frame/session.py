"""The person who is logged in to the dashboard, and what they may do.

The cookie contains only the token of a session. The rights are read from the record of the session
(app/access/sessions.py), so a change applies to every copy of the cookie. The guard runs before
every view of its blueprints, so a new page needs a login by default.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from flask import Blueprint, Flask, current_app, flash, g, redirect, request, session, url_for
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user
from werkzeug.wrappers import Response

from app.access import actors
from app.access.people import DEVICE_RETENTION
from app.cookies import CookieSessions, keep_in_browser, kept_name
from app.errors import Denied
from app.i18n import N_, _
from app.records import Client, Person, Role, Session
from app.rules.url import host_of
from app.stores import current_access
from app.web.frame import links

V = TypeVar("V", bound=Callable[..., Any])
Answer = str | Response | tuple[str, int]  # of a view

TOKEN = "_user_id"  # noqa: S105 - the key of ``User.get_id`` in Flask-Login's session
DEVICE = "device"  # the name of the cookie
# The key in the session of the token of a login that waits for the second factor.
PENDING_LOGIN = "half_login"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Each role has the rights of those after it in records.Role.
RANKS = {role: rank for rank, role in enumerate(reversed(Role))}
NOT_ALLOWED = {
    Role.EDITOR: N_("You need the editor role for this. Ask an admin."),
    Role.ADMIN: N_("You need the admin role for this. Ask an admin."),
}
SET_UP_FIRST = N_("Your role requires a second factor. Set one up first. Nothing was changed.")


class User(UserMixin):  # type: ignore[misc]
    """The logged-in person, for Flask-Login and the templates."""

    def __init__(self, person: Person, token: str, session: Session) -> None:
        self.person = person
        self.token = token
        self.session = session

    def get_id(self) -> str:
        return self.token

    def can(self, role: str) -> bool:
        """Whether this person has the rights of ``role``."""
        return RANKS[Role(self.person.role)] >= RANKS[Role(role)]

    @cached_property
    def must_set_up(self) -> bool:
        """Whether the person must set up a second factor first."""
        return current_access().factors.must_add(self.person)

    @property
    def may_edit(self) -> bool:
        return self.can(Role.EDITOR)

    @property
    def is_admin(self) -> bool:
        return self.can(Role.ADMIN)


def init_app(app: Flask) -> None:
    manager = LoginManager(app)
    manager.user_loader(load)
    # Otherwise Flask-Login compares the browser's name and address, and a phone's address changes.
    manager.session_protection = None
    app.session_interface = CookieSessions()
    app.after_request(_remember_device)


def database_is_away() -> bool:
    """Whether the database failed during this request. The error page does not read it again."""
    return bool(g.get("database_is_away"))


def load(token: str) -> User | None:
    """The person whose session has this token."""
    if database_is_away():
        return None
    opened = current_access().sessions.open(token, client())
    if opened is None:
        return None
    person, record = opened
    actors.begin(actors.by_person(person, request.remote_addr))
    return User(person, token, record)


def client() -> Client:
    """The browser of this request, for the list of sessions and the limits of attempts."""
    return Client(
        request.remote_addr,
        request.headers.get("User-Agent"),
        request.cookies.get(kept_name(DEVICE)),
        host_of(request.host),
    )


def begin_pending(person: Person) -> None:
    """After the right password, wait for the second factor. The person is not logged in yet."""
    end()
    session[PENDING_LOGIN] = current_access().pending_logins.begin(person.id)


def pending_token() -> str:
    """The token of the login that waits in this browser; empty if none does."""
    return str(session.get(PENDING_LOGIN, ""))


def end_pending() -> None:
    """End the login that waits in this browser."""
    if token := session.pop(PENDING_LOGIN, None):
        current_access().pending_logins.end(token)


def begin(person: Person, *, password_at: datetime | None = None) -> None:
    """Log ``person`` in with a new session; the old one ends. ``password_at``: when they last typed
    their password, if the session is replaced after a change of their account.
    """
    if token := session.get(TOKEN):
        current_access().sessions.end(token)
    _clear()
    session.permanent = True
    actors.begin(actors.by_person(person, request.remote_addr))
    begun = current_access().sessions.begin(person.id, client(), password_at=password_at)
    g.device = begun.device
    login_user(load(begun.session))


def end(*, forget: bool = False) -> None:
    """Log the person out: all copies of this session's cookie become invalid. ``forget``: the
    browser is no longer a known device of the person.
    """
    if token := session.get(TOKEN):
        load(token)  # otherwise the audit log does not name the person
        current_access().sessions.log_out(token, forget=forget)
    end_pending()
    _clear()


def _clear() -> None:
    logout_user()
    session.clear()


def _remember_device(response: Response) -> Response:
    if device := g.get("device"):
        keep_in_browser(response, DEVICE, device, DEVICE_RETENTION)
    return response


def needs(role: Role) -> Callable[[V], V]:
    """Set the role that a view needs, if it differs from that of its blueprint."""

    def mark(view: V) -> V:
        view.needs_role = role  # type: ignore[attr-defined]
        return view

    return mark


def for_set_up(view: V) -> V:
    """Allow a view to people who must set up their second factor first."""
    view.for_set_up = True  # type: ignore[attr-defined]
    return view


def guarded(name: str, module: str, path: str | None = None, role: Role | None = None) -> Blueprint:
    """A blueprint at ``path`` for people who are logged in and have the role that its views need:
    that of the view (``needs``), otherwise ``role``. Without both, everybody with an account may
    read, and editors may open forms and change records.
    """
    blueprint = Blueprint(name, module, url_prefix=path)
    blueprint.before_request(partial(_guard, role))
    return blueprint


class LoggedOut(Exception):
    """The session ended before a form was sent. The error page has the form, which the person can
    send again after the login (app/web/frame/errors.py).
    """


def _guard(role: Role | None) -> Response | None:
    if not current_user.is_authenticated:
        if request.method not in SAFE_METHODS and request.form:
            raise LoggedOut
        return to_login()
    view = current_app.view_functions.get(request.endpoint or "")
    if not getattr(view, "for_set_up", False) and current_user.must_set_up:
        if request.method not in SAFE_METHODS:
            raise Denied(_(SET_UP_FIRST))
        return redirect(url_for("two_factor.show"))
    changes = request.url_rule is not None and (request.url_rule.methods or set()) - SAFE_METHODS
    default = role or (Role.EDITOR if changes else Role.VIEWER)
    role = getattr(view, "needs_role", default)
    if not current_user.can(role):
        raise Denied(_(NOT_ALLOWED[role]))
    return None


def to_login() -> Response:
    """Redirect to the login page, which leads back to this page. If the person was logged in, a
    notice says that the session has ended.
    """
    if session.get(TOKEN) and not database_is_away() and "X-Fragment" not in request.headers:
        session.pop(TOKEN)
        flash(_("Your session has ended. Log in to continue where you left off."), "info")
    back = links.full_path() if request.method in SAFE_METHODS else None
    return redirect(url_for("auth.login", next=None if request.path == "/" else back))


def safe_next(target: str | None) -> str:
    """``target`` if it is a path on this site, otherwise the home page: a link to the login page
    must not lead people to another site.
    """
    home = url_for("home.show")
    if not target or not target.isprintable() or "\\" in target:
        return home
    try:
        parts = urlsplit(target)
    except ValueError:
        return home
    plain = not parts.scheme and not parts.netloc and target.startswith("/")
    return target if plain and not target.startswith("//") else home
