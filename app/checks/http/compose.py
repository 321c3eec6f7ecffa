"""What a request carries (headers, credentials, cookies, cache buster), and what of it survives a
redirect.
"""

from __future__ import annotations

import base64
import re
import secrets
from functools import lru_cache

from app.net.codings import ACCEPT_ENCODING
from app.records import CheckSpec, RequestMethod
from app.rules.url import Target

_BODY_METHODS = frozenset({RequestMethod.POST, RequestMethod.PUT, RequestMethod.PATCH})
_FRAMING = frozenset(
    {"content-length", "transfer-encoding"}
)  # set by curl; a wrong value would hang the check
_BUSTER = "wakeful_cache_buster"
_BUSTED = re.compile(rf"([?&]){_BUSTER}=[0-9a-f]*(&|$)")

_PLAIN = (b"Accept-Encoding: " + ACCEPT_ENCODING.encode(),)


class Carried:
    """What requests carry along a chain of redirects. One object for each check."""

    def __init__(self, spec: CheckSpec) -> None:
        self.spec = spec
        self.method = str(spec.request_method)
        self.body = _body(spec)
        self._own = (
            True  # own headers and credentials are sent until the origin changes, then never again
        )
        self._cookies: dict[tuple[str, str, int], dict[tuple[str, str], str]] = {}

    def headers(self, target: Target) -> tuple[bytes, ...]:
        """curl's header lines for a request to this target."""
        spec = self.spec
        bare = not spec.request_headers and spec.auth is None and not spec.cache_buster
        if bare and self.body is None and not self._cookies:
            return _PLAIN
        return self._composed(target)

    def _composed(self, target: Target) -> tuple[bytes, ...]:
        own = self.spec.request_headers if self._own else ()
        lines = [
            _line(pair.key, pair.value)
            for pair in own
            if pair.key.lower() not in _FRAMING | {"cookie"}
        ]
        named = {pair.key.lower() for pair in own}

        def default(name: str, value: str) -> None:
            if name.lower() not in named:
                lines.append(_line(name, value))

        default("Accept-Encoding", ACCEPT_ENCODING)
        if self._own and self.spec.auth is not None:
            default("Authorization", _basic(*self.spec.auth))
        if self.spec.cache_buster:
            default("Cache-Control", "no-cache")
            default("Pragma", "no-cache")
        if self.body is not None:
            lines.append(b"Expect:")  # do not wait for 100 Continue
            if not self.body and "content-type" not in named:
                lines.append(b"Content-Type:")  # curl would send that of a form for an empty body
        cookies = [pair.value for pair in own if pair.key.lower() == "cookie"] + self._matching(
            target
        )
        if cookies:
            lines.append(_line("Cookie", "; ".join(cookies)))
        return tuple(lines)

    def url(self, target: Target) -> str:
        """The URL to send, with a fresh parameter if the monitor busts caches."""
        if not self.spec.cache_buster:
            return target.url
        url = without_buster(target.url)
        return f"{url}{'&' if '?' in url else '?'}{_BUSTER}={secrets.token_hex(8)}"

    # --- redirects

    def remember(self, target: Target, set_cookies: list[str]) -> None:
        """Store cookies for later requests of this chain, each for the origin that set it."""
        for text in set_cookies:
            pair, *attributes = text.split(";")
            name, equals, value = pair.strip().partition("=")
            if not equals or not name:
                continue
            given = dict(_attribute(one) for one in attributes)
            path = given.get("path", "")
            if not path.startswith("/"):
                path = target.request_target.partition("?")[0].rpartition("/")[0] or "/"
            jar = self._cookies.setdefault(target.origin, {})
            if given.get("max-age", "1").startswith(("0", "-")):
                jar.pop((name, path), None)
            else:
                jar[(name, path)] = value

    def redirected(self, status: int, origin_changed: bool) -> None:
        """Prepare the next hop as browsers do: 303, and 301 or 302 after POST, become GET without a
        body.
        """
        if origin_changed:
            self._own = False
        if (status == 303 and self.method != "HEAD") or (
            status in (301, 302) and self.method == "POST"
        ):
            self.method, self.body = "GET", None

    def state(self, target: Target) -> tuple[object, ...]:
        """All that decides the next request: a state that occurs twice is a redirect loop."""
        return (self.method, without_buster(target.url), self._own, tuple(self._matching(target)))

    def _matching(self, target: Target) -> list[str]:
        path = target.request_target.partition("?")[0]
        jar = self._cookies.get(target.origin, {})
        return [f"{name}={value}" for (name, of), value in jar.items() if _path_matches(path, of)]


def _path_matches(path: str, of: str) -> bool:
    return path == of or path.startswith(of if of.endswith("/") else of + "/")


def _attribute(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip().lower(), value.strip()


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
    return _BUSTED.sub(lambda found: found[1] if found[2] else "", url) if _BUSTER in url else url
