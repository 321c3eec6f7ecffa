"""The contents of a request (headers, credentials, cookies, cache buster), and which of them are
sent again after a redirect.
"""

from __future__ import annotations

import base64
import re
import secrets
from functools import lru_cache

from app.checks.http.cookies import Jar, host_of
from app.i18n import _
from app.net.codings import ACCEPT_ENCODING
from app.records import CheckSpec, RequestMethod
from app.rules.text import shortened
from app.rules.url import Target, parse_url

_BODY_METHODS = frozenset({RequestMethod.POST, RequestMethod.PUT, RequestMethod.PATCH})
# Set by curl; a wrong value would hang the check.
_FRAMING = frozenset({"content-length", "transfer-encoding"})
_BUSTER = "wakeful_cache_buster"
_BUSTED = re.compile(rf"([?&]){_BUSTER}=[0-9a-f]*(&|$)")

_PLAIN = (b"Accept-Encoding: " + ACCEPT_ENCODING.encode(),)


# Headers of the monitor that go to any origin: they describe the client, and are no secrets.
_FOR_ALL = frozenset({"user-agent", "accept", "accept-language", "cache-control", "pragma"})
# Headers that describe a body, and go when a redirect drops it.
_OF_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
_SHOWN_NAMES = 100


class ChainContents:
    """The contents of the requests of a chain of redirects. One object for each check.

    Credentials, the body and the monitor's headers (but those in ``_FOR_ALL``) go to the first
    origin only: another origin may be anyone's.
    """

    def __init__(self, spec: CheckSpec) -> None:
        self.spec = spec
        self.method = str(spec.request_method)
        self._body = _body(spec)
        self._dropped_body = False  # a redirect made the request a GET
        self._first = parse_url(spec.url)
        self._jar = Jar()
        self._own_cookies = [
            pair.value for pair in spec.request_headers if pair.key.lower() == "cookie"
        ]

    def body(self, target: Target) -> bytes | None:
        if not self._body or self._is_first(target):
            return self._body
        return b"" if self.method in _BODY_METHODS else None

    def headers(self, target: Target) -> tuple[bytes, ...]:
        """curl's header lines for a request to this target."""
        spec = self.spec
        bare = not spec.request_headers and spec.auth is None and not spec.cache_buster
        if bare and self._body is None and not self._jar:
            return _PLAIN
        return self._composed(target)

    def _composed(self, target: Target) -> tuple[bytes, ...]:
        own = [
            pair for pair in self.spec.request_headers if self._is_sent(pair.key.lower(), target)
        ]
        lines = [_line(pair.key, pair.value) for pair in own if pair.key.lower() != "cookie"]
        own_names = {pair.key.lower() for pair in own}

        def default(name: str, value: str) -> None:
            if name.lower() not in own_names:
                lines.append(_line(name, value))

        default("Accept-Encoding", ACCEPT_ENCODING)
        if self.spec.auth is not None and self._is_first(target):
            default("Authorization", _basic(*self.spec.auth))
        if self.spec.cache_buster:
            default("Cache-Control", "no-cache")
            default("Pragma", "no-cache")
        body = self.body(target)
        if body is not None:
            lines.append(b"Expect:")  # do not wait for 100 Continue
            if not body and "content-type" not in own_names:
                lines.append(b"Content-Type:")  # for an empty body, curl would send that of a form
        if cookies := self._cookies(target):
            lines.append(b"Cookie: " + cookies)
        return tuple(lines)

    def _is_sent(self, name: str, target: Target) -> bool:
        """Whether the monitor's own header of this lower-case name is sent."""
        if name in _FRAMING or (self._dropped_body and name in _OF_BODY):
            return False
        return name in _FOR_ALL or self._is_first(target)

    def _is_first(self, target: Target) -> bool:
        """Whether this is the first origin, or the same host after a step from http to https."""
        first, origin = self._first.origin, target.origin
        return origin == first or (first, origin) == (
            ("http", target.dns_name, 80),
            ("https", target.dns_name, 443),
        )

    def _cookies(self, target: Target) -> bytes:
        """The value of the Cookie header. The monitor's own cookies count as cookies of the path
        ``/``.
        """
        own = self._own_cookies if self._is_first(target) else ()
        cookies = [("/", text.encode("utf-8", "surrogatepass")) for text in own if text]
        for cookie in self._jar.matching(target):
            # The value as it came: header bytes are read as Latin-1.
            cookies.append((cookie.path, f"{cookie.name}={cookie.value}".encode("latin-1")))
        return b"; ".join(text for _path, text in sorted(cookies, key=lambda c: -len(c[0])))

    def url(self, target: Target) -> str:
        """The URL to send, with a fresh parameter if the monitor busts caches."""
        if not self.spec.cache_buster:
            return target.url
        url = without_buster(target.url)
        return f"{url}{'&' if '?' in url else '?'}{_BUSTER}={secrets.token_hex(8)}"

    def withheld(self, target: Target) -> str | None:
        """The parts of the monitor's request that are not sent to this target, in words; None if
        all are sent.
        """
        if self._is_first(target):
            return None
        spec = self.spec
        headers = {pair.key for pair in spec.request_headers}
        names = sorted(name for name in headers if name.lower() not in _FOR_ALL | _FRAMING)
        parts = [_("user name and password")] if spec.auth is not None else []
        if names:
            parts.append(_("headers (%(names)s)", names=shortened(", ".join(names), _SHOWN_NAMES)))
        if self._body:
            parts.append(_("request body"))
        return ", ".join(parts) or None

    # --- redirects

    def store_cookies(self, target: Target, set_cookies: list[str]) -> None:
        """Store cookies for later requests of this chain. A cookie of the first host with the path
        ``/`` replaces the monitor's own cookie of its name.
        """
        changed = self._jar.store(target, set_cookies)
        first = host_of(self._first)
        names = {name for name, domain, path in changed if (domain, path) == (first, "/")}
        if names and self._own_cookies:
            pieces = [piece.strip() for text in self._own_cookies for piece in text.split(";")]
            self._own_cookies = [
                piece for piece in pieces if piece and piece.partition("=")[0].strip() not in names
            ]

    def apply_redirect(self, status: int) -> None:
        """Prepare the next hop as browsers do: 303, and 301 or 302 after POST, become GET without a
        body.
        """
        if (status == 303 and self.method != "HEAD") or (
            status in (301, 302) and self.method == "POST"
        ):
            self._dropped_body = self._dropped_body or self._body is not None
            self.method, self._body = "GET", None

    def state(self, target: Target) -> tuple[object, ...]:
        """The state that decides the next request. If it occurs twice, the redirects form a
        loop.
        """
        url = without_buster(target.url)
        return (self.method, self._dropped_body, url, self._cookies(target))


def _body(spec: CheckSpec) -> bytes | None:
    """The bytes to send: for methods with a body, empty bytes when the monitor has none."""
    if spec.request_method == RequestMethod.HEAD:
        return None
    if spec.request_body:
        return spec.request_body.encode("utf-8", "surrogatepass")
    return b"" if spec.request_method in _BODY_METHODS else None


def _line(name: str, value: str) -> bytes:
    # "Name;" is curl's notation for a header with an empty value; "Name:" removes the header.
    return (f"{name}: {value}" if value else f"{name};").encode("utf-8", "surrogatepass")


@lru_cache(maxsize=1024)
def _basic(user: str, password: str) -> str:
    return (
        "Basic " + base64.b64encode(f"{user}:{password}".encode("utf-8", "surrogatepass")).decode()
    )


def without_buster(url: str) -> str:
    """The URL without our cache-busting parameter, which some redirects copy."""
    return _BUSTED.sub(lambda match: match[1] if match[2] else "", url) if _BUSTER in url else url
