"""The WSGI layer in front of Wakeful that answers for status pages.

It reads the Host header and the path. On the host name of a page, it answers every path: only this
page and the files that it needs exist there. On other host names, it answers ``/status`` and the
paths below, and passes all other requests to the next layer. The links in messages to subscribers
work on every host name.
Only the right password of a page sets a cookie. Answers are cached, ready to send; an answer that
everybody may read has an ETag.
"""

from __future__ import annotations

import logging
import operator
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import Flask
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from app.access.tokens import Purpose
from app.config import Settings
from app.errors import NotFound, Throttled, Unavailable
from app.headers import PAGE_HOST
from app.i18n import N_, _, speaking
from app.middleware import EARLY, Environ, Layer, continued
from app.pages import addresses, answers, front, history, routes, subscribe
from app.pages.addresses import FRONT, HTML, Directory, PageContext, PageLinks, Visit
from app.pages.answers import PageAnswer, cached_answer, not_found, page_answer, text_answer
from app.pages.copies import MONTHS, Copies, image_name, month_name, page_name, page_of
from app.pages.memory import CachedValue, Memory
from app.pages.routes import CachedRoute, FormRoute
from app.pages.visitors import Visitors
from app.paths import translations_of
from app.records import (
    PAGE_IMAGES,
    Component,
    PageAddress,
    PublicMonth,
    PublicPage,
    Visibility,
)
from app.rules.text import digits
from app.rules.url import host_of
from app.secret_keys import keys_of

if TYPE_CHECKING:
    from app.stores.local.public import PublicPages

log = logging.getLogger(__name__)

ANSWERED_METHODS = ("GET", "HEAD")
MAX_PAGES, MAX_IMAGES = 500, 100  # in the cache
MAX_FORM_BYTES = 16_384
LOOKUPS, LOOKUP_SECONDS = 5, 0.25  # reads of the directory for unknown pages: at most 5 in 0.25 s
# The keys of the two values that are cached once, and the names of their copies.
DIRECTORY, LIST = "addresses", "list"
# These answer while the database does not, and must not wait for it.
HEALTH_PATHS = ("/healthz", "/readyz")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
FAVICON = "favicon.ico"
OUTDATED = N_("The page was changed since this was read.")
# Its value is a ``PublicMonth``: see ``_serve_month``.
HISTORY = CachedRoute("history", HTML, history.month_page)
FRONT_PAGE = CachedRoute(FRONT, HTML, front.front_page)

Start = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for an address of a page. ``on_page_host``: its host name is that of the page."""

    environ: Environ
    address: PageAddress
    links: PageLinks
    on_page_host: bool

    @property
    def method(self) -> str:
        return str(self.environ["REQUEST_METHOD"])


class StatusPageLayer(Layer):
    """``public`` reads the database; this layer caches the values. ``clock``: monotonic, in
    seconds.
    """

    def __init__(
        self, app: Flask, public: PublicPages, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        settings: Settings = app.extensions["wakeful.settings"]
        self._app, self._public = app, public
        self._visitors = Visitors(app, public)
        self._assets = answers.Assets(Path(str(app.static_folder)), routes.ASSETS)
        self._copies = Copies(settings.instance, keys_of(app), self._now)
        self._our_hosts = {*LOCAL_HOSTS, *settings.own_hosts}
        self._directory: Memory[str, Directory] = Memory(
            self._read_directory, 1, lambda name: self._read_copy(name, Directory), self._now
        )
        self._list = self._memory(1, lambda name: name, lambda _name: tuple(public.public_pages()))
        self._pages = self._memory(MAX_PAGES, page_name, public.page, _looks_same)
        self._months = self._memory(
            MONTHS, lambda key: month_name(*key), lambda key: _month(public, *key), _looks_same
        )
        self._images = self._memory(
            MAX_IMAGES, lambda key: image_name(*key[:2]), lambda key: public.image(*key[:2])
        )
        self._lookups: deque[float] = deque(maxlen=LOOKUPS)
        public.on_write(app, self._expire)
        self._cached_routes = {
            route.name: route for route in (FRONT_PAGE, HISTORY, *routes.CACHED_ROUTES)
        }
        self._form_routes = {route.name: route for route in routes.FORM_ROUTES}

    def __call__(self, environ: Environ, start_response: Start) -> Any:
        path = environ.get("PATH_INFO") or "/"
        address = self._page_of_host(environ, path)
        if address is not None:
            environ[PAGE_HOST] = True
            environ["SCRIPT_NAME"] = ""  # only PUBLIC_URL has a folder, not the host of a page
        if address is None and not addresses.is_status_path(path) and self._link(path) is None:
            return self.inner(environ, start_response)
        if EARLY in environ:
            return continued(environ, start_response)
        try:
            answer = self._answer(environ, path, address)
        except NotFound:
            answer = not_found()
        except Unavailable:
            answer = answers.unavailable()
        except HTTPException as fault:
            answer = text_answer(fault.code or 400, fault.name)
        except Exception:
            log.exception("A status page could not be made")
            answer = text_answer(500, _("Something went wrong here"))
        return answer.send(environ, start_response)

    def _now(self) -> float:
        return self.clock()

    def _expire(self, _app: Flask) -> None:
        """Expire the caches after a write of this process, so that people see their change."""
        for memory in (self._directory, self._list, self._pages, self._months, self._images):
            memory.expire()

    def answers_for(self, host: str, path: str) -> bool:
        """Whether a page has this host name, or the path is a valid link of a message of a page.
        Raises Unavailable if the database cannot be read now.
        """
        return host in self._current_directory().by_host or self._link(path) is not None

    # --- which page a request is for

    def _page_of_host(self, environ: Environ, path: str) -> PageAddress | None:
        """The page whose host name this request has."""
        host = host_of(environ.get("HTTP_HOST", ""))
        if host is None or host in self._our_hosts:
            return None
        if path in HEALTH_PATHS:
            directory = self._directory.cached(DIRECTORY)
            return directory.by_host.get(host) if directory else None
        try:
            return self._current_directory().by_host.get(host)
        except Unavailable:
            return None

    def _current_directory(self) -> Directory:
        return self._directory.get(DIRECTORY)[0]

    def _find_address(self, pick: Callable[[Directory], PageAddress | None]) -> PageAddress | None:
        """The page that ``pick`` finds. If the cached directory lacks the page, another process
        may have stored it a moment ago: the directory is read again, but not for each request,
        because strangers guess names.
        """
        directory, stale = self._directory.get(DIRECTORY)
        address = pick(directory)
        if address is None and not stale and self._count_lookup():
            self._directory.expire()
            address = pick(self._current_directory())
        return address

    def _count_lookup(self) -> bool:
        """Count a read of the directory for an unknown page. Return False if it is one too many."""
        now, lookups = self.clock(), self._lookups
        if len(lookups) == LOOKUPS and now - lookups[0] < LOOKUP_SECONDS:
            return False
        lookups.append(now)
        return True

    def _answer(self, environ: Environ, path: str, host_page: PageAddress | None) -> PageAnswer:
        """``host_page``: the page that has the host name of the request."""
        link = self._link(path)
        if link is not None:
            return self._serve_link(environ, path, host_page, *link)
        if host_page is not None and (asset := self._assets.find(path)) is not None:
            return asset
        if host_page is not None:
            slug, name = host_page.slug, path.removeprefix("/")
        else:
            if path == addresses.FOLDER:
                return self._serve_list(environ)
            moved = addresses.without_slash(path)
            if moved is not None:
                return text_answer(308, "Moved.", [("Location", moved)])
            slug, name = addresses.target_of(path)
        address = host_page or self._find_address(lambda pages: pages.by_slug.get(slug))
        if address is None:
            return not_found()
        on_page_host = host_page is not None
        links = addresses.links_of(slug, name, on_page_host=on_page_host)
        with speaking(translations_of(address.brand.language)):
            return self._serve_page(PageRequest(environ, address, links, on_page_host), name)

    # --- a page's answers

    def _serve_page(self, page_request: PageRequest, name: str) -> PageAnswer:
        address, method = page_request.address, page_request.method
        form_route, token = self._form_route(name)
        if form_route is not None and form_route.purpose is not None:
            # ``_answer`` serves valid links.
            return self._serve_void_link(page_request, form_route)
        admitted = self._visitors.may_read(address, page_request.environ)
        has_password = address.visibility == Visibility.PASSWORD
        if not admitted and not has_password:
            return not_found()
        if page_request.on_page_host and name == FAVICON:
            is_read = method in ANSWERED_METHODS
            return self._serve_favicon(page_request, admitted) if is_read else _read_only()
        route, id = self._cached_route(name)
        if route is None and form_route is None and name not in PAGE_IMAGES:
            return not_found(address.brand.theme)
        # A visitor who was admitted may send the password again.
        sends_form = method == "POST" and name == FRONT
        if not admitted or (sends_form and has_password):
            return self._serve_password_form(page_request, name)
        if form_route is not None:
            return self._serve_form(page_request, form_route, token)
        if method not in ANSWERED_METHODS:
            return _read_only()
        if route is None:
            return self._serve_image(page_request, name)
        if route is HISTORY:
            return self._serve_month(page_request)
        return self._serve_cached(page_request, route, id)

    def _link(self, path: str) -> tuple[FormRoute, str, int] | None:
        """The route, the token and the page's id, if the path is that of a valid link in a message
        to a subscriber. The token identifies the page: the slug or the host name may have changed
        since the message was sent.
        """
        form_route, token = self._form_route(addresses.link_name(path))
        if form_route is None or form_route.purpose is None or token is None:
            return None
        with self._app.app_context():
            page_id = self._public.page_of_token(form_route.purpose, token)
        return None if page_id is None else (form_route, token, page_id)

    def _serve_link(
        self,
        environ: Environ,
        path: str,
        host_page: PageAddress | None,
        form_route: FormRoute,
        token: str,
        page_id: int,
    ) -> PageAnswer:
        address = self._find_address(lambda pages: pages.by_id.get(page_id))
        # If the page was closed since, people may unsubscribe, but not subscribe.
        subscribes = form_route.purpose is Purpose.CONFIRM
        if address is None or (subscribes and address.visibility == Visibility.CLOSED):
            return not_found()
        root = "../" * (path.count("/") - 1)
        if host_page is None:
            front_link = f"{root}status/{address.slug}"
        else:
            front_link = root if host_page.id == address.id else self._public.link(address)
        links = PageLinks(root, root, front_link)
        page_request = PageRequest(environ, address, links, host_page is not None)
        with speaking(translations_of(address.brand.language)):
            return self._serve_form(page_request, form_route, token)

    def _serve_void_link(self, page_request: PageRequest, route: FormRoute) -> PageAnswer:
        """Answer an invalid token. If not everybody may read the page, the answer is 404 as for an
        unknown page.
        """
        if page_request.address.visibility not in answers.EVERYBODY:
            return not_found()
        return self._serve_form(page_request, replace(route, answer=subscribe.void), None)

    def _serve_favicon(self, page_request: PageRequest, admitted: bool) -> PageAnswer:
        """Redirect /favicon.ico, which browsers request without a link, to the page's icon. If the
        icon itself were the answer, browsers would miss a new icon of the page.
        """
        version = page_request.address.brand.favicon if admitted else None
        default = self._assets.link(page_request.links.root, "img/mark.svg")
        icon = f"favicon?v={version}" if version else default
        return text_answer(302, "", [("Location", icon)])

    def _cached_route(self, name: str) -> tuple[CachedRoute | None, int | None]:
        """The route of this name, and the monitor's id if the name contains one."""
        route = self._cached_routes.get(name)
        if route is not None or "/" not in name:
            return route, None
        folder, _slash, file = name.rpartition("/")
        number, dot, ending = file.partition(".")
        id = digits(number)
        route = self._cached_routes.get(f"{folder}/<id>{dot}{ending}")
        return (None, None) if id is None else (route, id)

    def _form_route(self, name: str) -> tuple[FormRoute | None, str | None]:
        """The route of this name, and the token if the name contains one."""
        route = self._form_routes.get(name)
        if route is not None or "/" not in name:
            return route, None
        folder, _slash, token = name.rpartition("/")
        return self._form_routes.get(f"{folder}/<token>"), token

    def _serve_cached(
        self, page_request: PageRequest, route: CachedRoute, id: int | None
    ) -> PageAnswer:
        cached, stale = self._pages.get(page_request.address.id)
        page: PublicPage = cached.value
        component = next((part for part in page.components if part.id == id), None)
        if id is not None and component is None:
            return not_found(page_request.address.brand.theme)
        return self._render(page_request, cached, stale, route, component)

    def _serve_month(self, page_request: PageRequest) -> PageAnswer:
        address = page_request.address
        cached, _stale = self._pages.get(address.id)
        month = history.month_of_query(page_request.environ.get("QUERY_STRING", ""), cached.value)
        if month is None:
            return not_found(address.brand.theme)
        cached_month, stale = self._months.get((address.id, *month))
        if cached_month.value is None:
            return not_found(address.brand.theme)
        # A month that was read before the page was changed may show something that the page must no
        # longer show.
        if stale and cached_month.value.page.updated_at < cached.value.page.updated_at:
            raise Unavailable(_(OUTDATED))
        return self._render(page_request, cached_month, stale, HISTORY)

    def _render(
        self,
        page_request: PageRequest,
        cached: CachedValue,
        stale: bool,
        route: CachedRoute,
        component: Component | None = None,
    ) -> PageAnswer:
        """The answer of a route, rendered once for each cached value and each look of the page."""
        address, value, on_page_host = page_request.address, cached.value, page_request.on_page_host
        context = self._context(
            page_request.links,
            on_page_host=on_page_host,
            stale=stale,
            brand=address.brand,
            component=component,
        )
        look = (on_page_host, stale and value.made_at, address.visibility, address.brand)
        key = (route.name, component and component.id, *look)
        return cached.get(key, lambda: cached_answer(route, route.make(value, context), address))

    def _serve_image(self, page_request: PageRequest, name: str) -> PageAnswer:
        address = page_request.address
        version: str | None = getattr(address.brand, name)
        if version is None:
            return not_found(address.brand.theme)
        cached, _stale = self._images.get((address.id, name, version))
        is_named = page_request.environ.get("QUERY_STRING") == f"v={version}"
        return cached.get(
            (is_named, address.visibility),
            lambda: answers.image_answer(cached.value, version, address, is_named=is_named),
        )

    def _serve_list(self, environ: Environ) -> PageAnswer:
        if environ["REQUEST_METHOD"] not in ANSWERED_METHODS:
            return _read_only()
        cached, stale = self._list.get(LIST)
        context = self._context(PageLinks("", "status/", "status"), stale=stale)
        return cached.get(
            stale, lambda: cached_answer(FRONT_PAGE, front.page_list(cached.value, context), None)
        )

    def _context(self, links: PageLinks, **more: Any) -> PageContext:
        static = partial(self._assets.link, links.root)
        return PageContext(self._app.jinja_env, static, links.up, links.front, **more)

    # --- answers that are not cached

    def _serve_form(
        self, page_request: PageRequest, form_route: FormRoute, token: str | None
    ) -> PageAnswer:
        request = _request(page_request.environ)
        method = "GET" if request.method == "HEAD" else request.method
        if method not in form_route.methods:
            return _not_allowed(_("This address does not take that."), sorted(form_route.methods))
        address = page_request.address
        context = self._context(
            page_request.links, on_page_host=page_request.on_page_host, brand=address.brand
        )
        with self._app.app_context():
            response = form_route.answer(Visit(request, address, context, self._public, token))
            return _uncached(response)

    def _serve_password_form(self, page_request: PageRequest, name: str) -> PageAnswer:
        """The form for the password of the page, in place of the answer with this name."""
        address, is_sent = page_request.address, page_request.method == "POST"
        if not is_sent and page_request.method not in ANSWERED_METHODS:
            others = ["POST"] if name == FRONT else []
            return _not_allowed(_("This address does not take that."), [*ANSWERED_METHODS, *others])
        # People open a form, the front or the history. Programs read the other addresses.
        opens_form = self._form_route(name)[0] is not None and not is_sent
        if not opens_form and name not in (FRONT, HISTORY.name):
            return text_answer(403, _("This page needs a password"))
        # The images and colours of the page need the password too.
        brand = replace(address.brand, accent=None, logo=None, favicon=None)
        context = self._context(page_request.links, brand=brand)
        request = _request(page_request.environ)
        if not is_sent:
            return _uncached(front.password_form(context))
        try:
            with self._app.app_context():
                is_right = self._visitors.check_password(address, request)
        except Throttled as fault:
            response = front.password_form(context, 429, str(fault))
            response.headers["Retry-After"] = str(fault.retry_after)
            return _uncached(response)
        if not is_right:
            return _uncached(front.password_form(context, 422, _(front.WRONG)))
        response = Response(status=303, headers={"Location": page_request.links.front})
        response.autocorrect_location_header = False
        self._visitors.admit(address, _cookie_paths(request, address), request, response)
        return _uncached(response)

    # --- reading

    def _read_directory(self, key: str, cached: Directory | None) -> Directory:
        with self._app.app_context():
            addresses = tuple(self._public.addresses())
        unchanged = cached is not None and cached.addresses == addresses
        self._copies.write(DIRECTORY, addresses, changed=not unchanged)
        if not unchanged:
            self._delete_other_copies({address.id for address in addresses})
        return cached if cached is not None and unchanged else Directory(addresses)

    def _delete_other_copies(self, ids: set[int]) -> None:
        """Delete the copies of deleted pages. ``ids``: those of the pages that exist."""
        for name in self._copies.names():
            page_id = page_of(name)
            if page_id is not None and page_id not in ids:
                self._copies.delete(name)

    def _memory(
        self,
        limit: int,
        name_of: Callable[[Any], str],
        read: Callable[[Any], Any],
        is_same: Callable[[Any, Any], bool] = operator.eq,
    ) -> Memory[Any, CachedValue]:
        """A cache of values that ``read`` returns, with a copy of each in the file ``name_of``. If
        a value is the same as before, the answers that were rendered from it stay valid.
        """

        def read_again(key: Any, cached: CachedValue | None) -> CachedValue:
            with self._app.app_context():
                value = read(key)
            if value is None:
                return CachedValue(None)  # cached too, so that it is not read for each request
            earlier = cached and cached.value
            is_changed = earlier is None or not is_same(earlier, value)
            self._copies.write(name_of(key), value, changed=is_changed)
            if cached is None or is_changed:
                return CachedValue(value)
            cached.value = value
            return cached

        return Memory(
            read_again, limit, lambda key: self._read_copy(name_of(key)), lambda: self.clock()
        )

    def _read_copy(self, name: str, make: Callable[[Any], Any] = CachedValue) -> Any:
        value = self._copies.read(name)
        return None if value is None else make(value)


def _month(public: PublicPages, page_id: int, year: int, month: int) -> PublicMonth | None:
    with suppress(NotFound):
        return public.month(page_id, year, month)
    return None


def _looks_same(earlier: Any, page: Any) -> bool:
    """Whether a page or a month looks as before: nothing changed, and no maintenance began."""
    began = any(earlier.made_at < window.start_at <= page.made_at for window in page.windows)
    return not began and replace(earlier, made_at=page.made_at) == page


def _not_allowed(sentence: str, methods: Sequence[str]) -> PageAnswer:
    return text_answer(405, sentence, [("Allow", ", ".join(methods))])


def _read_only() -> PageAnswer:
    return _not_allowed(_("This address accepts GET and HEAD only."), ANSWERED_METHODS)


def _uncached(response: Response) -> PageAnswer:
    """The answer of a response that is sent once and that nobody may cache."""
    response.headers.setdefault("Cache-Control", "private, no-store")
    for name, value in answers.html_headers(noindex=True):
        response.headers.setdefault(name, value)
    headers = [(name, value) for name, value in response.headers if name != "Content-Length"]
    return page_answer(response.status, response.get_data(), headers)


def _cookie_paths(request: Request, address: PageAddress) -> list[str]:
    """The paths of the page's cookie: browsers send it to no other address of Wakeful."""
    host = host_of(request.environ.get("HTTP_HOST", ""))
    root = request.environ.get("SCRIPT_NAME", "")
    if host == (address.domain or "").lower():
        return [f"{root}/"]
    front_path = f"{root}{addresses.FOLDER}/{address.slug}"
    return [front_path, f"{front_path}.json"]


def _request(environ: Environ) -> Request:
    request = Request(environ)
    request.max_content_length = MAX_FORM_BYTES
    request.max_form_memory_size = MAX_FORM_BYTES
    return request
