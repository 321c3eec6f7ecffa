"""The WSGI layer in front of Wakeful that answers for status pages.

It looks at the Host header and the path: a page's own host name serves that page and nothing else
of Wakeful; elsewhere, it answers ``/status`` and what is under it, and hands all the rest to the
layer below. Nothing here passes through the dashboard: no session is opened and no cookie is set,
except by a right password. What everybody may read comes from memory, ready to send, with an ETag.
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
from app.i18n import N_, _, speaking
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
    links_of,
    own_target,
    target_of,
    without_slash,
)
from app.pages.answers import (
    EVERYBODY,
    Assets,
    PageAnswer,
    cached_answer,
    fixed,
    html_headers,
    image_answer,
    not_found,
    unavailable,
)
from app.pages.copies import MONTHS, Copies, image_name, month_name, page_name, page_of
from app.pages.memory import CachedValue, Memory
from app.pages.routes import CachedRoute, FormRoute
from app.pages.text import translations_of
from app.pages.visitors import Visitors
from app.records import (
    PAGE_IMAGES,
    UNBRANDED,
    Brand,
    Component,
    PublicMonth,
    PublicPage,
    StatusPage,
    Visibility,
)
from app.rules.url import host_of
from app.secret_keys import keys_of
from app.stores.public import Address, PublicPages

log = logging.getLogger(__name__)

ANSWERED_METHODS = ("GET", "HEAD")
PAGES = 500  # that are kept in memory
IMAGES_KEPT = 100
MAX_FORM_BYTES = 16_384
LOOKUPS, LOOKUP_SECONDS = 5, 0.25  # queries for pages that are not cached: at most 5 in 0.25 s
DIRECTORY, LIST = "addresses", "list"
# They answer while the database is away, and must not wait for it.
AT_ONCE = ("/healthz", "/readyz")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
OUTDATED = N_("The page was changed since this was read.")
# Answered by ``_serve_month``, because it needs another record.
HISTORY = CachedRoute("history", HTML, front.page)
FRONT_PAGE = CachedRoute(FRONT, HTML, front.page)
# Answered by ``_serve_image``: their bytes are read by themselves.
IMAGES = tuple(CachedRoute(name, "", front.page) for name in PAGE_IMAGES)

Start = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class SubscriberLink:
    """A link of a message to a subscriber."""

    form_route: FormRoute
    token: str
    page_id: int


class StatusPageLayer(Layer):
    """``public`` reads the database; what it read is cached here. ``clock``: in seconds, never
    set back.
    """

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
            self._read_directory, 1, lambda name: self._copy(name, Directory), self._now
        )
        self._list: Memory[str, CachedValue] = Memory(self._read_list, 1, self._copy, self._now)
        self._pages: Memory[int, CachedValue] = Memory(
            self._read_page, PAGES, lambda id: self._copy(page_name(id)), self._now
        )
        self._months: Memory[tuple[int, int, int], CachedValue] = Memory(
            self._read_month, MONTHS, lambda month: self._copy(month_name(*month)), self._now
        )
        self._images: Memory[tuple[int, str, str], CachedValue] = Memory(
            self._read_image, IMAGES_KEPT, lambda key: self._copy(image_name(*key[:2])), self._now
        )
        self._lookups: deque[float] = deque(maxlen=LOOKUPS)
        public.on_write(app, self._expire)
        self._cached_routes = {
            page.name: page for page in (FRONT_PAGE, HISTORY, *IMAGES, *routes.CACHED_ROUTES)
        }
        self._form_routes = {page.name: page for page in routes.FORM_ROUTES}

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
            answer = fixed(500, _text(_("Something went wrong here")))
        return answer.send(environ, start_response)

    def _now(self) -> float:
        return self.clock()

    def _expire(self, _app: Flask) -> None:
        """Called when something was written in this process: whoever wrote it sees it."""
        for memory in (self._directory, self._list, self._pages, self._months, self._images):
            memory.expire()

    def answers_for(self, host: str, path: str) -> bool:
        """Whether a page has this host name, or had it when it sent the link that the path is.
        Raises Unavailable if the database cannot be read now.
        """
        return host in self._current_directory().by_host or self._link(path) is not None

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
            return self._current_directory().by_host.get(host)
        except Unavailable:
            return None

    def _current_directory(self) -> Directory:
        return self._directory.get(DIRECTORY)[0]

    def _find_address(self, pick: Callable[[Directory], Address | None]) -> Address | None:
        """The page that ``pick`` finds. One that is not cached may have been stored by another
        process a moment ago, so the database is asked, but not for each guess of strangers.
        """
        directory, away = self._directory.get(DIRECTORY)
        address = pick(directory)
        if address is None and not away and self._may_look_up():
            self._directory.expire()
            address = pick(self._current_directory())
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
            return self._serve_link(environ, path, own, link)
        if own is not None:
            asset = self._assets.find(path)
            if asset is not None:
                return asset
            return self._serve_in_its_language(environ, own, own_target(own, path), own_host=True)
        if path == FOLDER:
            return self._serve_list(environ)
        moved = without_slash(path)
        if moved is not None:
            return fixed(308, "Moved.\n", [("Location", moved)])
        target = target_of(path)
        address = self._find_address(lambda pages: pages.by_slug.get(target.slug))
        if address is None:
            return not_found()
        return self._serve_in_its_language(environ, address, target, own_host=False)

    # --- a page's answers

    def _serve_in_its_language(
        self, environ: Environ, address: Address, target: PagePath, *, own_host: bool
    ) -> PageAnswer:
        with speaking(translations_of(address.brand.language)):
            return self._serve_page(environ, address, target, own_host=own_host)

    def _serve_page(
        self, environ: Environ, address: Address, target: PagePath, *, own_host: bool
    ) -> PageAnswer:
        links = links_of(target, own_host=own_host)
        form_route, token = self._form_route(target.name)
        if form_route is not None and form_route.purpose is not None:
            return self._serve_void_link(environ, address, links, form_route, own_host)
        admitted = self._visitors.may_read(address, environ)
        if not admitted and address.visibility != Visibility.PASSWORD:
            return not_found()
        route, component = self._cached_route(target.name)
        if route is None and form_route is None:
            return not_found(address.brand.theme)
        method = environ["REQUEST_METHOD"]
        # Somebody who was admitted may send the form again, too.
        sends_form = method == "POST" and route is FRONT_PAGE
        if not admitted or (sends_form and address.visibility == Visibility.PASSWORD):
            return self._ask_password(environ, address, links, method, route)
        if form_route is not None:
            return self._serve_form(environ, address, links, form_route, token, own_host)
        if method not in ANSWERED_METHODS:
            return _refused(_("This address accepts GET and HEAD only."), ANSWERED_METHODS)
        if route in IMAGES:
            return self._serve_image(environ, address, target.name)
        if route is HISTORY:
            return self._serve_month(environ, address, links, own_host)
        assert route is not None  # noqa: S101 - one of the two was found
        return self._serve_cached(address, links, route, component, own_host)

    def _link(self, path: str) -> SubscriberLink | None:
        """The link of a message that a path is. Its token proves it: the page may have had another
        slug or host name when the message was sent.
        """
        form_route, token = self._form_route(link_name(path))
        if form_route is None or form_route.purpose is None or token is None:
            return None
        with self._app.app_context():
            page_id = self._public.page_of_token(form_route.purpose, token)
        return None if page_id is None else SubscriberLink(form_route, token, page_id)

    def _serve_link(
        self, environ: Environ, path: str, own: Address | None, link: SubscriberLink
    ) -> PageAnswer:
        address = self._find_address(lambda pages: pages.by_id.get(link.page_id))
        # Nobody joins a page that was closed since; leaving it stays possible.
        joins = link.form_route.purpose is Purpose.CONFIRM
        if address is None or (joins and address.visibility == Visibility.CLOSED):
            return not_found()
        root = "../" * (path.count("/") - 1)
        if own is None:
            front_link = f"{root}status/{address.slug}"
        else:
            front_link = root if own.id == address.id else self._public.link(address)
        links = PageLinks(root, root, front_link)
        with speaking(translations_of(address.brand.language)):
            return self._serve_form(
                environ, address, links, link.form_route, link.token, own is not None
            )

    def _serve_void_link(
        self, environ: Environ, address: Address, links: PageLinks, route: FormRoute, own_host: bool
    ) -> PageAnswer:
        """The answer to a token that is not ours; for a closed page, that of a missing page."""
        if address.visibility not in EVERYBODY:
            return not_found()
        void = replace(route, answer=subscribe.void)
        return self._serve_form(environ, address, links, void, None, own_host)

    def _cached_route(self, name: str) -> tuple[CachedRoute | None, int | None]:
        """The line of the table for this name, and the monitor's id in it."""
        entry = self._cached_routes.get(name)
        if entry is not None or "/" not in name:
            return entry, None
        before, _slash, rest = name.rpartition("/")
        number, dot, ending = rest.partition(".")
        if not (number.isascii() and number.isdigit() and len(number) < 19):
            return None, None
        return self._cached_routes.get(f"{before}/<id>{dot}{ending}"), int(number)

    def _form_route(self, name: str) -> tuple[FormRoute | None, str | None]:
        entry = self._form_routes.get(name)
        if entry is not None or "/" not in name:
            return entry, None
        before, _slash, token = name.rpartition("/")
        return self._form_routes.get(f"{before}/<token>"), token

    def _serve_cached(
        self, address: Address, links: PageLinks, route: CachedRoute, id: int | None, own_host: bool
    ) -> PageAnswer:
        cached, away = self._pages.get(address.id)
        page: PublicPage = cached.value
        component: Component | None = None
        if id is not None:
            component = next(
                (component for component in page.components if component.id == id), None
            )
            if component is None:
                return not_found(address.brand.theme)
        context = replace(self._context(links, own_host, away, address.brand), component=component)
        shown = (address.visibility, address.brand)
        key = (route.name, id, own_host, away and page.made_at, *shown)
        return cached.get(key, lambda: cached_answer(route, route.make(page, context), address))

    def _serve_month(
        self, environ: Environ, address: Address, links: PageLinks, own_host: bool
    ) -> PageAnswer:
        cached, _away = self._pages.get(address.id)
        month = history.asked_month(environ.get("QUERY_STRING", ""), cached.value)
        if month is None:
            return not_found(address.brand.theme)
        cached_month, away = self._months.get((address.id, *month))
        if cached_month.value is None:
            return not_found(address.brand.theme)
        # What was read before the page was changed may show what it no longer shows.
        if away and cached_month.value.page.updated_at < cached.value.page.updated_at:
            raise Unavailable(_(OUTDATED))
        context = self._context(links, own_host, away, address.brand)
        shown = (address.visibility, address.brand)
        key = (own_host, away and cached_month.value.made_at, *shown)
        return cached_month.get(
            key, lambda: cached_answer(HISTORY, history.page(cached_month.value, context), address)
        )

    def _serve_image(self, environ: Environ, address: Address, name: str) -> PageAnswer:
        version: str | None = getattr(address.brand, name)
        if version is None:
            return not_found(address.brand.theme)
        cached, _away = self._images.get((address.id, name, version))
        is_named = environ.get("QUERY_STRING") == f"v={version}"
        return cached.get(
            (is_named, address.visibility),
            lambda: image_answer(cached.value, version, address, is_named=is_named),
        )

    def _serve_list(self, environ: Environ) -> PageAnswer:
        if environ["REQUEST_METHOD"] not in ANSWERED_METHODS:
            return _refused(_("This address accepts GET and HEAD only."), ANSWERED_METHODS)
        cached, away = self._list.get(LIST)
        context = self._context(PageLinks("", "status/", "status"), False, away)
        return cached.get(
            away, lambda: cached_answer(FRONT_PAGE, front.listed(cached.value, context), None)
        )

    def _context(
        self, links: PageLinks, own_host: bool, away: bool, brand: Brand = UNBRANDED
    ) -> PageContext:
        return PageContext(
            templates=self._app.jinja_env,
            static=partial(self._assets.link, links.root),
            up=links.up,
            front=links.front,
            own_host=own_host,
            away=away,
            brand=brand,
        )

    # --- what is not kept in memory

    def _serve_form(
        self,
        environ: Environ,
        address: Address,
        links: PageLinks,
        form_route: FormRoute,
        token: str | None,
        own_host: bool,
    ) -> PageAnswer:
        request = _request(environ)
        method = "GET" if request.method == "HEAD" else request.method
        if method not in form_route.methods:
            return _refused(_("This address does not take that."), sorted(form_route.methods))
        context = self._context(links, own_host, False, address.brand)
        visit = Visit(request, address, context, self._public, token)
        with self._app.app_context():
            return self._uncached(form_route.answer(visit), environ)

    def _ask_password(
        self,
        environ: Environ,
        address: Address,
        links: PageLinks,
        method: str,
        route: CachedRoute | None,
    ) -> PageAnswer:
        form = route is None and method != "POST"  # a person opens it, as the front and the history
        if not form and route is not FRONT_PAGE and route is not HISTORY:
            return fixed(403, _text(_("This page needs a password")))
        # Its images and colours are behind the password too.
        brand = replace(address.brand, accent=None, logo=None, favicon=None)
        context = self._context(links, False, False, brand)
        request = _request(environ)
        if method != "POST":
            return self._uncached(front.password(address, context), environ)
        try:
            with self._app.app_context():
                right = self._visitors.enter(address, request)
        except Throttled as fault:
            response = front.password(address, context, 429, str(fault))
            response.headers["Retry-After"] = str(fault.retry_after)
            return self._uncached(response, environ)
        if not right:
            return self._uncached(front.password(address, context, 422, _(front.WRONG)), environ)
        response = Response(status=303, headers={"Location": links.front})
        response.autocorrect_location_header = False
        self._visitors.admit(address, self._paths(request, address), request, response)
        return self._uncached(response, environ)

    def _paths(self, request: Request, address: Address) -> list[str]:
        """Where the cookie of a page is sent: nowhere else in Wakeful."""
        host = host_of(request.environ.get("HTTP_HOST", ""))
        root = request.environ.get("SCRIPT_NAME", "")
        if host == (address.domain or "").lower():
            return [f"{root}/"]
        front_path = f"{root}{FOLDER}/{address.slug}"
        return [front_path, f"{front_path}.json"]

    def _uncached(self, response: Response, environ: Environ) -> PageAnswer:
        """The answer that this response is; nobody may keep it."""
        response.headers.setdefault("Cache-Control", "private, no-store")
        for name, value in html_headers(noindex=True):
            response.headers.setdefault(name, value)
        return PageAnswer.of(response, environ)

    # --- reading

    def _read_directory(self, key: str, before: Directory | None) -> Directory:
        with self._app.app_context():
            addresses = tuple(self._public.addresses())
        unchanged = before is not None and before.addresses == addresses
        self._copies.keep(DIRECTORY, addresses, changed=not unchanged)
        if not unchanged:
            self._forget_others({address.id for address in addresses})
        return before if before is not None and unchanged else Directory(addresses)

    def _forget_others(self, ids: set[int]) -> None:
        """A deleted page leaves nothing behind."""
        for name in self._copies.names():
            page_id = page_of(name)
            if page_id is not None and page_id not in ids:
                self._copies.forget(name)

    def _read_list(self, key: str, before: CachedValue | None) -> CachedValue:
        with self._app.app_context():
            pages: tuple[StatusPage, ...] = tuple(self._public.listed())
        unchanged = before is not None and before.value == pages
        self._copies.keep(LIST, pages, changed=not unchanged)
        return _cached_value(pages, before if unchanged else None)

    def _read_page(self, id: int, before: CachedValue | None) -> CachedValue:
        with self._app.app_context():
            page = self._public.page(id)
        unchanged = before is not None and _same(before.value, page)
        self._copies.keep(page_name(id), page, changed=not unchanged)
        return _cached_value(page, before if unchanged else None)

    def _read_image(self, key: tuple[int, str, str], before: CachedValue | None) -> CachedValue:
        id, name, _version = key
        with self._app.app_context():
            data = self._public.image(id, name)
        unchanged = before is not None and before.value == data
        self._copies.keep(image_name(id, name), data, changed=not unchanged)
        return _cached_value(data, before if unchanged else None)

    def _read_month(self, key: tuple[int, int, int], before: CachedValue | None) -> CachedValue:
        try:
            with self._app.app_context():
                month: PublicMonth = self._public.month(*key)
        except NotFound:
            return CachedValue(None)  # cached too: a month that is not there is not read each time
        value = before.value if before else None
        unchanged = value is not None and replace(value, made_at=month.made_at) == month
        self._copies.keep_month(*key, month, changed=not unchanged)
        return _cached_value(month, before if unchanged else None)

    def _copy(self, name: str, make: Callable[[Any], Any] = CachedValue) -> Any:
        value = self._copies.find(name)
        return None if value is None else make(value)


def _cached_value(value: Any, equal: CachedValue | None) -> CachedValue:
    """``equal``: an earlier one that says the same, whose answers stay right: it is kept."""
    if equal is None:
        return CachedValue(value)
    equal.advance(value)
    return equal


def _same(before: PublicPage, page: PublicPage) -> bool:
    """Whether an earlier page says the same: nothing differs, and no window has begun since."""
    begun = any(before.made_at < window.start_at <= page.made_at for window in page.windows)
    return not begun and replace(before, made_at=page.made_at) == page


def _refused(sentence: str, methods: Sequence[str]) -> PageAnswer:
    return fixed(405, _text(sentence), [("Allow", ", ".join(methods))])


def _text(sentence: str) -> str:
    return f"{sentence}\n"


def _request(environ: Environ) -> Request:
    request = Request(environ)
    request.max_content_length = MAX_FORM_BYTES
    request.max_form_memory_size = MAX_FORM_BYTES
    return request
