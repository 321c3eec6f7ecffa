"""Who is looking at the dashboard, and what they may do.

A cookie carries the token of a session and nothing else of the person: what it is worth says the
session's record (app/access/sessions.py), for every copy of the cookie. The guard stands
before every view of every blueprint that asks for it, so a new page is closed until somebody opens
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from flask import Blueprint, Flask, current_app, g, redirect, request, session, url_for
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user
from werkzeug.wrappers import Response

from app.errors import Denied
from app.records import Person, Role
from app.stores import current_access
from app.web.frame import links

V = TypeVar("V", bound=Callable[..., Any])

TOKEN = "_user_id"  # noqa: S105 - where Flask-Login keeps what ``User.get_id`` says
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# Each role has the rights of those after it (records.Role).
RANKS = {role: rank for rank, role in enumerate(reversed(Role))}
NOT_ALLOWED = {
    Role.EDITOR: "You can look at this, but changing it needs the role editor. Ask an admin.",
    Role.ADMIN: "This page is for admins. Ask one of them.",
}


class User(UserMixin):  # type: ignore[misc]
    """The logged-in person as Flask-Login and the templates see them."""

    def __init__(self, person: Person, token: str) -> None:
        self.person = person
        self.token = token

    def get_id(self) -> str:
        return self.token

    def can(self, role: str) -> bool:
        """Whether this person has the rights of ``role``."""
        return RANKS[Role(self.person.role)] >= RANKS[Role(role)]

    @property
    def may_edit(self) -> bool:
        return self.can(Role.EDITOR)

    @property
    def is_admin(self) -> bool:
        return self.can(Role.ADMIN)


def init_app(app: Flask) -> None:
    manager = LoginManager(app)
    manager.user_loader(_load)
    # Flask-Login would compare the browser's name and address; a phone changes them on its way.
    manager.session_protection = None


def database_away() -> bool:
    """Whether this request has found that the database does not answer. Nobody is known then, who
    was not known before.
    """
    return bool(g.get("database_away"))


def _load(token: str) -> User | None:
    if database_away():
        return None
    person = current_access().session_person(token)
    return None if person is None else User(person, token)


def begin(person: Person) -> None:
    """Log ``person`` in with a fresh session: nothing that was in the old one is carried over."""
    end()
    session.permanent = True
    login_user(User(person, current_access().begin_session(person.id)))


def end() -> None:
    """Log out whoever looks, here and wherever this session's cookie was copied to."""
    if token := session.get(TOKEN):
        current_access().end_session(token)
    logout_user()
    session.clear()


def needs(role: Role) -> Callable[[V], V]:
    """The role that a view needs, where it is not the default (``default_role``)."""

    def mark(view: V) -> V:
        view.needs_role = role  # type: ignore[attr-defined]
        return view

    return mark


def default_role() -> Role:
    """Looking is for everybody with an account, changing for editors, and so is seeing its form."""
    changes = request.url_rule is not None and (request.url_rule.methods or set()) - SAFE_METHODS
    return Role.EDITOR if changes else Role.VIEWER


def guarded(blueprint: Blueprint) -> Blueprint:
    """Close a blueprint to whoever is not logged in or lacks the role."""
    blueprint.before_request(_guard)
    return blueprint


class LoggedOut(Exception):
    """The session ended while somebody typed. What they sent must not be lost on the way to log in
    (app/web/frame/errors.py shows it).
    """


def _guard() -> Response | None:
    if not current_user.is_authenticated:
        if request.method not in SAFE_METHODS and request.form:
            raise LoggedOut
        return to_login()
    view = current_app.view_functions.get(request.endpoint or "")
    role: Role = getattr(view, "needs_role", default_role())
    if not current_user.can(role):
        raise Denied(NOT_ALLOWED[role])
    return None


def to_login() -> Response:
    """To the login page, and back to this one afterwards."""
    back = links.full_path() if request.method in SAFE_METHODS else None
    return redirect(url_for("auth.login", next=None if request.path == "/" else back))


def safe_next(target: str | None) -> str:
    """``target`` when it is a path on this site, else the home page: a link to the login page must
    not be able to send people to somebody else's.
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
