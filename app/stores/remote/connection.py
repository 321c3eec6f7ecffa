"""Send requests to another server's /api/v1, and read its answers.

The server is somebody else's: it may be slow, dead, rate limited, or send anything at all. Every
call ends in time, reads a bounded answer, and raises one of ``app/errors.py`` with a sentence. The
key never stands in an error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from math import isfinite
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
from tenacity import (
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    stop_after_delay,
)
from urllib3.exceptions import HTTPError, NewConnectionError

from app.codec.values import MalformedData, parse_json, record_id
from app.errors import Unavailable
from app.i18n import N_, _
from app.net.client import Network
from app.records import MASK
from app.rules.time import pause_of
from app.slots import BUSY_SECONDS, LONG_WAITS, REMOTE_ANSWERS

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0  # for the whole answer
CHECK_SECONDS = 80.0  # an answer that waits for a check, whose own limit is 70
MAX_ANSWER_BYTES = 32 * 1024 * 1024  # decoded: 12,000 monitors at once take 10
MAX_VALUES = 1_000_000
MAX_REDIRECTS = 3
READ_ATTEMPTS = 2
REPEATED = frozenset({502, 503, 504})  # from a proxy while its server restarts
MAX_AHEAD = timedelta(days=365)
MAX_PAUSE = 7 * 24 * 3600.0
MAX_NUMBER = 20  # digits; a thousand of them are no number of anything
_LOGIN = re.compile(r"log[-_]?in|sign[-_]?in|auth", re.IGNORECASE)
# Escapes that may hide the key, or are half of a character.
_ESCAPED = re.compile(rb"\\u(?:00|[dD][89a-fA-F])|\\/")
Pairs = Sequence[tuple[str, str]]


TOO_LARGE = N_("The server %(server)s sent an answer that is too large.")
LATE = N_("The server %(server)s did not answer in time.")
REDIRECTS = (301, 302, 303, 307, 308)
MOVED = (307, 308)  # repeat the request with the same method: nothing was done yet
SEE_OTHER = 303  # an answer to a write that was done


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """``body``: the answer's JSON; None if it has none. ``text``: plain text in its place."""

    status: int
    body: Any
    headers: Mapping[str, str]
    text: str = ""
    is_json: bool = True
    retry_after: float | None = None

    @property
    def is_success(self) -> bool:
        """A redirect to the written record counts too, as after a form in a browser."""
        if self.status in (301, 302):
            return self.id is not None
        return 200 <= self.status < 300 or (self.status == SEE_OTHER and not self.was_turned_away)

    @property
    def was_turned_away(self) -> bool:
        """Whether this is a redirect that means that nothing was done: to a moved address, or to a
        login.
        """
        path = urlsplit(self.headers.get("Location", "")).path
        is_login = _LOGIN.search(path) is not None
        return 300 <= self.status < 400 and (self.status not in (302, SEE_OTHER) or is_login)

    @property
    def id(self) -> int | None:
        """The id of the record to which ``Location`` leads."""
        last = urlsplit(self.headers.get("Location", "")).path.rstrip("/").rpartition("/")[2]
        return record_id(last) if last.isascii() and last.isdigit() else None


class RemoteConnection:
    """One remote server. ``name`` is shown to people. Safe to use from several threads."""

    def __init__(self, url: str, key: str, network: Network) -> None:
        parts = urlsplit(url)
        # Without user and password, which would replace the key as Basic authentication.
        self.name = parts.netloc.rpartition("@")[2] + parts.path.rstrip("/")
        self.base = f"{parts.scheme}://{self.name}/api/v1"
        self.origin = _origin(url)
        self._key = key
        self._session = network.session()
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._ahead = timedelta(0)

    def __repr__(self) -> str:
        return f"<Connection {self.name}>"

    def now(self) -> datetime:
        """The server's time, from its last answer; ours until then."""
        return datetime.now(UTC) + self._ahead

    def read(self, path: str, query: Pairs = ()) -> ServerAnswer:
        """GET. If the server is unavailable, the request is made a second time, but not after
        ``CONNECT_SECONDS``: a slow server gets no faster, and people would wait twice as long.
        """
        twice = Retrying(
            retry=retry_if_exception_type(Unavailable)
            | retry_if_result(lambda answer: answer.status in REPEATED),
            stop=stop_after_attempt(READ_ATTEMPTS) | stop_after_delay(CONNECT_SECONDS),
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )
        return twice(self._follow, "GET", path, REDIRECTS, ANSWER_SECONDS, query=query)

    def write(
        self, method: str, path: str, fields: Pairs = (), *, seconds: float = ANSWER_SECONDS
    ) -> ServerAnswer:
        """POST, PATCH or DELETE, never retried: a lost request may have arrived."""
        return self._follow(method, path, MOVED, seconds, form=fields)

    def unavailable(
        self,
        fault: str,
        retry_after: float | None = None,
        *,
        unsent: bool = False,
        **values: object,
    ) -> Unavailable:
        """``fault``: a sentence with the placeholders ``server`` and those of ``values``."""
        return Unavailable(_(fault, server=self.name, **values), retry_after, unsent=unsent)

    def _follow(
        self,
        method: str,
        path: str,
        redirects: Collection[int],
        seconds: float,
        *,
        query: Pairs = (),
        form: Pairs = (),
    ) -> ServerAnswer:
        """Send a request. Follow ``redirects`` (statuses) to the same origin only: no other may get
        the key.
        """
        url = self.base + path
        for _hop in range(MAX_REDIRECTS + 1):
            answer = self._send(method, url, seconds, query, form)
            if answer.status not in redirects:
                return answer
            url, query = urljoin(url, answer.headers.get("Location", "")), ()
            if _origin(url) != self.origin:
                return answer
        raise self.unavailable(N_("The server %(server)s redirects too often."), unsent=True)

    def _send(
        self, method: str, url: str, seconds: float, query: Pairs, form: Pairs
    ) -> ServerAnswer:
        with (LONG_WAITS if seconds > ANSWER_SECONDS else REMOTE_ANSWERS).taken() as free:
            if not free:
                sentence = N_("The server %(server)s has too many requests waiting.")
                raise self.unavailable(sentence, BUSY_SECONDS, unsent=True)
            return self._exchange(method, url, seconds, query, form)

    def _exchange(
        self, method: str, url: str, seconds: float, query: Pairs, form: Pairs
    ) -> ServerAnswer:
        deadline = time.monotonic() + seconds
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        try:
            response = self._session.request(
                method,
                url,
                params=list(query),
                data=list(form) or None,
                headers=headers,
                timeout=(CONNECT_SECONDS, seconds),
                allow_redirects=False,
                stream=True,
            )
            with response:
                text = self._body(response, deadline)
        except requests.Timeout as fault:
            unsent = isinstance(fault, requests.ConnectTimeout)
            raise self.unavailable(LATE, unsent=unsent) from None
        except (requests.RequestException, HTTPError, OSError, ValueError) as fault:
            # Without the text of the error, which contains the whole address.
            sentence = N_("The server %(server)s cannot be reached.")
            raise self.unavailable(sentence, unsent=_never_connected(fault)) from None
        self._note_clock(response)
        body, is_json = self._json(text)
        is_plain = response.headers.get("Content-Type", "").startswith("text/plain")
        is_plain = is_plain and not text.lstrip().startswith(b"<")
        plain = self._keyless(text.decode("utf-8", "replace")) if is_plain and not is_json else ""
        pause = pause_of(response.headers.get("Retry-After"), datetime.now(UTC), MAX_PAUSE)
        return ServerAnswer(response.status_code, body, response.headers, plain, is_json, pause)

    def _body(self, response: requests.Response, deadline: float) -> bytes:
        """The whole body, bounded in size and time: requests limits only the time between bytes."""
        parts, size = [], 0
        while part := response.raw.read1(65536, decode_content=True):
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise self.unavailable(TOO_LARGE)
            if time.monotonic() > deadline:
                raise self.unavailable(LATE)
            parts.append(part)
        return b"".join(parts)

    def _json(self, text: bytes) -> tuple[Any, bool]:
        """The body, and whether it is JSON. An empty body is not."""
        # The key must not appear on a page, even if the server's answer repeats it.
        text = text.replace(self._key.encode(), MASK.encode())
        try:
            body = parse_json(
                text, MAX_VALUES, parse_int=_int, parse_float=_float, parse_constant=_no_number
            )
        except MalformedData:
            return None, False
        return self._keyless(body) if _ESCAPED.search(text) else body, True

    def _keyless(self, value: Any) -> Any:
        """``value`` without the key, however it was escaped, and without halves of characters: a
        page with one cannot be encoded.
        """
        if isinstance(value, str):
            text = value.encode("utf-8", "replace").decode()
            return text.replace(self._key, MASK)
        if isinstance(value, list):
            return [self._keyless(item) for item in value]
        if isinstance(value, dict):
            return {self._keyless(name): self._keyless(item) for name, item in value.items()}
        return value

    def _note_clock(self, response: requests.Response) -> None:
        try:
            date = parsedate_to_datetime(response.headers.get("Date", ""))
        except (ValueError, OverflowError):  # OverflowError: an offset of twenty digits
            return
        ahead = date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)
        # The header has whole seconds; less than two seconds count as equal clocks.
        # A clock that is years off is ignored: calculations with it could overflow.
        is_plausible = timedelta(seconds=2) < abs(ahead) < MAX_AHEAD
        self._ahead = ahead if is_plausible else timedelta(0)


def _never_connected(fault: Exception) -> bool:
    """Whether nothing was sent, because there was no connection: it was refused, or the name has no
    address.
    """
    reason = getattr(fault.args[0] if fault.args else None, "reason", None)
    return isinstance(reason, NewConnectionError)


def _int(text: str) -> int | None:
    return int(text) if len(text) <= MAX_NUMBER else None


def _float(text: str) -> float | None:
    value = float(text)
    return value if isfinite(value) else None


def _no_number(_text: str) -> None:
    """The value of NaN and Infinity, which are no JSON."""


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", None, None
    return parts.scheme, parts.hostname, port
