"""The visitors of a page that not everybody may read: people with its password or an account."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from flask import Flask
from itsdangerous import BadData, URLSafeTimedSerializer
from werkzeug.wrappers import Request, Response

from app.access import Access
from app.access.counters import Limit, counted_address
from app.cookies import cookie_name, is_secure
from app.errors import Throttled
from app.i18n import N_
from app.records import PageAddress, Visibility
from app.secret_keys import signing_keys
from app.stores import DatabaseError, unavailable

if TYPE_CHECKING:
    from app.stores.local.public import PublicPages

COOKIE = "wakeful_page"
COOKIE_SECONDS = 30 * 24 * 3600
WRONG_MAX, WRONG_SECONDS = 10, 15 * 60
TOO_MANY = N_("Too many wrong passwords. Wait a few minutes and try again.")
_SESSION_TOKEN = "_user_id"  # noqa: S105 - the key of the token in the dashboard's session


class Visitors:
    def __init__(self, app: Flask, public: PublicPages) -> None:
        self._app, self._public = app, public
        self._access: Access = app.extensions["wakeful.access"]
        self._signer = URLSafeTimedSerializer(signing_keys(app), "wakeful status page")

    def may_read(self, address: PageAddress, environ: dict[str, Any]) -> bool:
        if address.visibility in (Visibility.PUBLIC, Visibility.UNLISTED):
            return True
        if address.visibility == Visibility.PASSWORD:
            return self._has_password(address, environ)
        return self.logged_in(environ)

    def _has_password(self, address: PageAddress, environ: dict[str, Any]) -> bool:
        # Browsers also send cookies of other sites under the same domain. The parser of the
        # standard library stops at the first invalid one, and would miss the cookie of the page.
        expected = [address.id, address.password_turn]
        request = Request(environ)
        name = cookie_name(self._app, request, COOKIE)
        for cookie in request.cookies.getlist(name):
            with suppress(BadData):
                if self._signer.loads(cookie, COOKIE_SECONDS) == expected:
                    return True
        return False

    def logged_in(self, environ: dict[str, Any]) -> bool:
        """Whether the visitor is logged in to the dashboard."""
        if f"{self._app.config['SESSION_COOKIE_NAME']}=" not in environ.get("HTTP_COOKIE", ""):
            return False
        request = self._app.request_class(environ)
        session = self._app.session_interface.open_session(self._app, request)
        token = session.get(_SESSION_TOKEN) if session else None
        if not isinstance(token, str):
            return False
        try:
            with self._app.app_context():
                person = self._access.sessions.person(token)
                return person is not None and not self._access.factors.must_add(person)
        except DatabaseError:
            return False  # the database cannot say whose session this is

    def check_password(self, address: PageAddress, request: Request) -> bool:
        """Whether the password in the sent form is right. A wrong one is counted. Raises Throttled
        and Unavailable.
        """
        name = f"page:password:{counted_address(request.remote_addr)}"
        limit, counters = Limit(name, WRONG_SECONDS, WRONG_MAX), self._access.counters
        try:
            counters.attempt(TOO_MANY, limit)
            try:
                is_right = self._public.password_fits(address.id, request.form.get("password", ""))
            except Throttled:
                counters.take_back_attempt(limit)
                raise
            if is_right:
                counters.take_back_attempt(limit)
            return is_right
        except DatabaseError as fault:
            raise unavailable(fault) or fault from None

    def admit(
        self, address: PageAddress, paths: list[str], request: Request, response: Response
    ) -> None:
        """Set a cookie with which this browser may read the page for 30 days, or until the page
        has another password.
        """
        ticket = self._signer.dumps([address.id, address.password_turn])
        name = cookie_name(self._app, request, COOKIE)
        for path in paths:
            response.set_cookie(
                name,
                str(ticket),
                max_age=COOKIE_SECONDS,
                path=path,
                secure=is_secure(self._app, request),
                httponly=True,
                samesite="Lax",
            )
