"""The WSGI layer in front of Wakeful that answers for status pages.

It looks at the Host header and the path: a page's own host name serves that page and nothing else
of Wakeful; elsewhere, ``/status`` and what is under it is ours, and all the rest goes on. Nothing
here passes through the dashboard: no session is opened and no cookie is set, except by a right
password. What everybody may read comes from memory, ready to send, with an ETag.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from app.access.subscriptions import Purpose
from app.config import Settings
from app.errors import NotFound, Throttled, Unavailable
from app.headers import OWN_HOST
from app.i18n import N_, _
from app.middleware import EARLY, Environ, Layer, continued
from app.pages import front, history, routes, subscribe
from app.pages.addresses import (
    FOLDER,
    FRONT,
    HTML,
    Directory,
    PageContext,
    PageLinks,
    PagePath,
    Visit,
    is_ours,
    link_name,
    links,
    own_target,
    target_of,
    without_slash,
)
from app.pages.answers import (
    EVERYBODY,
    Assets,
    PageAnswer,
    fixed,
    html_headers,
    not_found,
    shown,
    unavailable,
)
from app.pages.copies import MONTHS, Copies, month_name, page_name, page_of
from app.pages.memory import Made, Memory
from app.pages.routes import Asked, Shown
from app.pages.visitors import Visitors
from app.records import Component, PublicMonth, PublicPage, StatusPage, Visibility
from app.rules.url import host_of
from app.secret_keys import keys_of
from app.stores.public import Address, PublicPages

log = logging.getLogger(__name__)

READING = ("GET", "HEAD")
PAGES = 500  # that are kept in memory
MAX_FORM_BYTES = 16_384
LOOKUPS, LOOKUP_SECONDS = 5, 0.25  # of pages that are not known
DIRECTORY, LIST = "addresses", "list"
# They answer while the database is away, and must not wait for it.
AT_ONCE = ("/healthz", "/readyz")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
OUTDATED = N_("The page was changed since this was read.")
# Made by ``_of_month``, because it needs another record.
HISTORY = Shown("history", HTML, front.page)
FRONT_PAGE = Shown(FRONT, HTML, front.page)

Start = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class SubscriberLink:
    """A link of a message to a subscriber."""

    asked: Asked
    token: str
    page_id: int


class StatusPageLayer(Layer):
    """``public`` reads the database; all that was read is cached here."""

    def __init__(
        self, app: Flask, public: PublicPages, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        settings: Settings = app.extensions["wakeful.settings"]
        self._app, self._public = app, public
        self._visitors = Visitors(app, public)
        self._assets = Assets(Path(str(app.static_folder)), routes.ASSETS)
        self._copies = Copies(settings.instance, keys_of(app), self._now)
        self._our_hosts = {*LOCAL_HOSTS, *settings.own_hosts}
        self._directory: Memory[str, Directory] = Memory(
            self._read_directory, 1, lambda name: self._copied(name, Directory), self._now
        )
        self._list: Memory[str, Made] = Memory(self._read_list, 1, self._copied, self._now)
        self._pages: Memory[int, Made] = Memory(
            self._read_page, PAGES, lambda id: self._copied(page_name(id)), self._now
        )
        self._months: Memory[tuple[int, int, int], Made] = Memory(
            self._read_month, MONTHS, lambda month: self._copied(month_name(*month)), self._now
        )
        self._lookups: deque[float] = deque(maxlen=LOOKUPS)
        public.on_write(app, self._expire)
        self._shown = {page.name: page for page in (FRONT_PAGE, HISTORY, *routes.SHOWN)}
        self._asked = {page.name: page for page in routes.ASKED}

    def __call__(self, environ: Environ, start_response: Start) -> Any:
        path = environ.get("PATH_INFO") or "/"
        address = self._own_page(environ, path)
        if address is not None:
            environ[OWN_HOST] = True
            environ["SCRIPT_NAME"] = ""  # the folder of PUBLIC_URL is on its host alone
        if address is None and not is_ours(path) and self._link(path) is None:
            return self.inner(environ, start_response)
        if EARLY in environ:
            return continued(environ, start_response)
        try:
            answer = self._answer(environ, path, address)
        except NotFound:
            answer = not_found()
        except Unavailable:
            answer = unavailable()
        except HTTPException as fault:
            answer = fixed(fault.code or 400, f"{fault.name}\n")
        except Exception:
            log.exception("A status page could not be made")
            answer = fixed(500, _line(_("Something went wrong here")))
        return answer.send(environ, start_response)

    def _now(self) -> float:
        return self.clock()

    def _expire(self, _app: Flask) -> None:
        """Something was written in this process: whoever wrote it sees it."""
        for memory in (self._directory, self._list, self._pages, self._months):
            memory.expire()

    def answers_for(self, host: str, path: str) -> bool:
        """Whether a page has this host name, or had it when it sent the link that the path is.
        Raises Unavailable if the database cannot be read now.
        """
        return host in self._pages_known().by_host or self._link(path) is not None

    # --- whose request it is

    def _own_page(self, environ: Environ, path: str) -> Address | None:
        """The page whose own host name this request is for."""
        host = host_of(environ.get("HTTP_HOST", ""))
        if host is None or host in self._our_hosts:
            return None
        if path in AT_ONCE:
            directory = self._directory.cached(DIRECTORY)
            return directory.by_host.get(host) if directory else None
        try:
            return self._pages_known().by_host.get(host)
        except Unavailable:
            return None

    def _pages_known(self) -> Directory:
        return self._directory.get(DIRECTORY)[0]

    def _find_address(self, pick: Callable[[Directory], Address | None]) -> Address | None:
        """A page that is not known may have been stored by another process a moment ago. Strangers
        who guess get no query of the database for each.
        """
        directory, away = self._directory.get(DIRECTORY)
        address = pick(directory)
        if address is None and not away and self._may_look_up():
            self._directory.expire()
            address = pick(self._pages_known())
        return address

    def _may_look_up(self) -> bool:
        now, before = self.clock(), self._lookups
        if len(before) == LOOKUPS and now - before[0] < LOOKUP_SECONDS:
            return False
        before.append(now)
        return True

    def _answer(self, environ: Environ, path: str, own: Address | None) -> PageAnswer:
        link = self._link(path)
        if link is not None:
            return self._of_link(environ, path, own, link)
        if own is not None:
            asset = self._assets.find(path)
            if asset is not None:
                return asset
            return self._of_page(environ, own, own_target(own, path), own_host=True)
        if path == FOLDER:
            return self._of_list(environ)
        moved = without_slash(path)
        if moved is not None:
            return fixed(308, "Moved.\n", [("Location", moved)])
        target = target_of(path)
        address = self._find_address(lambda pages: pages.by_slug.get(target.slug))
        if address is None:
            return not_found()
        return self._of_page(environ, address, target, own_host=False)

    # --- a page's answers

    def _of_page(
        self, environ: Environ, address: Address, target: PagePath, *, own_host: bool
    ) -> PageAnswer:
        way = links(target, own_host=own_host)
        asked, token = self._find_asked(target.name)
        if asked is not None and asked.purpose is not None:
            return self._of_void_link(environ, address, target, asked, own_host=own_host)
        admitted = self._visitors.may_read(address, environ)
        if not admitted and address.visibility != Visibility.PASSWORD:
            return not_found()
        line, component = self._find(target.name)
        if line is None and asked is None:
            return not_found(address.theme)
        method = environ["REQUEST_METHOD"]
        # Somebody who was admitted may send the form again, too.
        sends_form = method == "POST" and line is FRONT_PAGE
        if not admitted or (sends_form and address.visibility == Visibility.PASSWORD):
            return self._ask_password(environ, address, way, method, line)
        if asked is not None:
            return self._ask(environ, address, way, asked, token, own_host)
        if method not in READING:
            return _refused(_("This address accepts GET and HEAD only."), READING)
        if line is HISTORY:
            return self._of_month(environ, address, way, own_host)
        assert line is not None  # noqa: S101 - one of the two was found
        return self._of_front(address, way, line, component, own_host)

    def _link(self, path: str) -> SubscriberLink | None:
        """The link of a message that a path is. Its token proves it: the page may have had another
        slug or host name when the message was sent.
        """
        asked, token = self._find_asked(link_name(path))
        if asked is None or asked.purpose is None or token is None:
            return None
        with self._app.app_context():
            page_id = self._public.page_of_token(asked.purpose, token)
        return None if page_id is None else SubscriberLink(asked, token, page_id)

    def _of_link(
        self, environ: Environ, path: str, own: Address | None, link: SubscriberLink
    ) -> PageAnswer:
        address = self._find_address(lambda pages: pages.by_id.get(link.page_id))
        # Nobody joins a page that was closed since; leaving it stays possible.
        joins = link.asked.purpose is Purpose.CONFIRM
        if address is None or (joins and address.visibility == Visibility.CLOSED):
            return not_found()
        root = "../" * (path.count("/") - 1)
        if own is None:
            front_link = f"{root}status/{address.slug}"
        else:
            front_link = root if own.id == address.id else self._public.link(address)
        way = PageLinks(root, root, front_link)
        return self._ask(environ, address, way, link.asked, link.token, own is not None)

    def _of_void_link(
        self, environ: Environ, there: Address, target: PagePath, asked: Asked, *, own_host: bool
    ) -> PageAnswer:
        """The answer to a token that is not ours; for a closed page, that of a missing page."""
        if there.visibility not in EVERYBODY:
            return not_found()
        void = replace(asked, answer=subscribe.void)
        return self._ask(environ, there, links(target, own_host=own_host), void, None, own_host)

    def _find(self, name: str) -> tuple[Shown | None, int | None]:
        """The line of the table for this name, and the monitor's id in it."""
        entry = self._shown.get(name)
        if entry is not None or "/" not in name:
            return entry, None
        before, _slash, rest = name.rpartition("/")
        number, dot, ending = rest.partition(".")
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            return None, None
        return self._shown.get(f"{before}/<id>{dot}{ending}"), int(number)

    def _find_asked(self, name: str) -> tuple[Asked | None, str | None]:
        entry = self._asked.get(name)
        if entry is not None or "/" not in name:
            return entry, None
        before, _slash, token = name.rpartition("/")
        return self._asked.get(f"{before}/<token>"), token

    def _of_front(
        self, address: Address, way: PageLinks, what: Shown, id: int | None, own_host: bool
    ) -> PageAnswer:
        made, away = self._pages.get(address.id)
        page: PublicPage = made.value
        component: Component | None = None
        if id is not None:
            component = next(
                (component for component in page.components if component.id == id), None
            )
            if component is None:
                return not_found(address.theme)
        context = replace(self._context(way, own_host, away), component=component)
        key = (what.name, id, own_host, away and page.made_at, address.visibility)
        return made.get(key, lambda: shown(what, what.make(page, context), address))

    def _of_month(
        self, environ: Environ, address: Address, way: PageLinks, own_host: bool
    ) -> PageAnswer:
        made, _away = self._pages.get(address.id)
        month = history.asked_month(environ.get("QUERY_STRING", ""), made.value)
        if month is None:
            return not_found(address.theme)
        of_month, away = self._months.get((address.id, *month))
        if of_month.value is None:
            return not_found(address.theme)
        # What was read before the page was changed may show what it no longer shows.
        if away and of_month.value.page.updated_at < made.value.page.updated_at:
            raise Unavailable(_(OUTDATED))
        context = self._context(way, own_host, away)
        key = (own_host, away and of_month.value.made_at, address.visibility)
        return of_month.get(
            key, lambda: shown(HISTORY, history.page(of_month.value, context), address)
        )

    def _of_list(self, environ: Environ) -> PageAnswer:
        if environ["REQUEST_METHOD"] not in READING:
            return _refused(_("This address accepts GET and HEAD only."), READING)
        made, away = self._list.get(LIST)
        context = self._context(PageLinks("", "status/", "status"), False, away)
        return made.get(away, lambda: shown(FRONT_PAGE, front.listed(made.value, context), None))

    def _context(self, way: PageLinks, own_host: bool, away: bool) -> PageContext:
        return PageContext(
            templates=self._app.jinja_env,
            static=partial(self._assets.link, way.root),
            up=way.up,
            front=way.front,
            own_host=own_host,
            away=away,
        )

    # --- what is not kept in memory

    def _ask(
        self,
        environ: Environ,
        address: Address,
        way: PageLinks,
        asked: Asked,
        token: str | None,
        own_host: bool,
    ) -> PageAnswer:
        request = _request(environ)
        method = "GET" if request.method == "HEAD" else request.method
        if method not in asked.methods:
            return _refused(_("This address does not take that."), sorted(asked.methods))
        context = self._context(way, own_host, away=False)
        visit = Visit(request, address, context, self._public, token)
        with self._app.app_context():
            return self._sent(asked.answer(visit), environ)

    def _ask_password(
        self, environ: Environ, address: Address, way: PageLinks, method: str, what: Shown | None
    ) -> PageAnswer:
        form = what is None and method != "POST"  # a person opens it, as the front and the history
        if not form and what is not FRONT_PAGE and what is not HISTORY:
            return fixed(403, _line(_("This page needs a password")))
        context = self._context(way, own_host=False, away=False)
        request = _request(environ)
        if method != "POST":
            return self._sent(front.password(address, context), environ)
        try:
            with self._app.app_context():
                right = self._visitors.enter(address, request)
        except Throttled as fault:
            response = front.password(address, context, 429, str(fault))
            response.headers["Retry-After"] = str(fault.retry_after)
            return self._sent(response, environ)
        if not right:
            return self._sent(front.password(address, context, 422, _(front.WRONG)), environ)
        response = Response(status=303, headers={"Location": way.front})
        response.autocorrect_location_header = False
        self._visitors.admit(address, self._paths(request, address), request, response)
        return self._sent(response, environ)

    def _paths(self, request: Request, address: Address) -> list[str]:
        """Where the cookie of a page is sent: nowhere else in Wakeful."""
        host = host_of(request.environ.get("HTTP_HOST", ""))
        root = request.environ.get("SCRIPT_NAME", "")
        if host == (address.domain or "").lower():
            return [f"{root}/"]
        front_path = f"{root}{FOLDER}/{address.slug}"
        return [front_path, f"{front_path}.json"]

    def _sent(self, response: Response, environ: Environ) -> PageAnswer:
        """A response of its own: nobody keeps it."""
        response.headers.setdefault("Cache-Control", "private, no-store")
        for name, value in html_headers(noindex=True):
            response.headers.setdefault(name, value)
        return PageAnswer.of(response, environ)

    # --- reading

    def _read_directory(self, key: str, before: Directory | None) -> Directory:
        with self._app.app_context():
            addresses = tuple(self._public.addresses())
        same = before is not None and before.addresses == addresses
        self._copies.keep(DIRECTORY, addresses, changed=not same)
        if not same:
            self._forget_others({address.id for address in addresses})
        return before if before is not None and same else Directory(addresses)

    def _forget_others(self, ids: set[int]) -> None:
        """A deleted page leaves nothing behind."""
        for name in self._copies.names():
            page_id = page_of(name)
            if page_id is not None and page_id not in ids:
                self._copies.forget(name)

    def _read_list(self, key: str, before: Made | None) -> Made:
        with self._app.app_context():
            pages: tuple[StatusPage, ...] = tuple(self._public.listed())
        same = before is not None and before.value == pages
        self._copies.keep(LIST, pages, changed=not same)
        return _made(pages, before if same else None)

    def _read_page(self, id: int, before: Made | None) -> Made:
        with self._app.app_context():
            page = self._public.page(id)
        same = before is not None and _same(before.value, page)
        self._copies.keep(page_name(id), page, changed=not same)
        return _made(page, before if same else None)

    def _read_month(self, key: tuple[int, int, int], before: Made | None) -> Made:
        try:
            with self._app.app_context():
                month: PublicMonth = self._public.month(*key)
        except NotFound:
            return Made(None)  # kept too: whoever asks for many months asks the database once
        value = before.value if before else None
        same = value is not None and replace(value, made_at=month.made_at) == month
        self._copies.keep_month(*key, month, changed=not same)
        return _made(month, before if same else None)

    def _copied(self, name: str, make: Callable[[Any], Any] = Made) -> Any:
        value = self._copies.find(name)
        return None if value is None else make(value)


def _made(value: Any, equal: Made | None) -> Made:
    """``equal``: an earlier one that says the same, so that what was made of it is as good."""
    if equal is None:
        return Made(value)
    equal.advance(value)
    return equal


def _same(before: PublicPage, page: PublicPage) -> bool:
    """Whether an earlier page says the same: also, no window has begun since."""
    begun = any(before.made_at < window.start_at <= page.made_at for window in page.windows)
    return not begun and replace(before, made_at=page.made_at) == page


def _refused(sentence: str, methods: Sequence[str]) -> PageAnswer:
    return fixed(405, _line(sentence), [("Allow", ", ".join(methods))])


def _line(sentence: str) -> str:
    return f"{sentence}\n"


def _request(environ: Environ) -> Request:
    request = Request(environ)
    request.max_content_length = MAX_FORM_BYTES
    request.max_form_memory_size = MAX_FORM_BYTES
    return request
