"""The agent's requests to its server, on a thread of their own: hello, what to check, results."""

from __future__ import annotations

import base64
import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests
from urllib3.exceptions import HTTPError, ReadTimeoutError

from app.codec import Odd
from app.codec.sealing import (
    ABOUT_ASSIGNED,
    Forged,
    key_of,
    new_private_key,
    public_key_of,
    unseal,
)
from app.codec.values import Json, moment, must, object_, own_id, text, whole
from app.config import SettingError
from app.engine.agent import trouble
from app.engine.agent.buffer import Buffer
from app.engine.agent.clock import Clock, uptime
from app.engine.agent.trouble import Failing, Foreign, Later, Refused
from app.i18n import _
from app.net.trust import Bundle
from app.rules.retry_after import pause_of
from app.version import __version__

log = logging.getLogger(__name__)

POST_SECONDS = 1.0  # how often results are sent, if there are some
IDLE_SECONDS = 5.0  # how often the server is asked for changes otherwise
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 15.0  # after a request that failed
LONGEST_ASKED = 60.0  # seconds to wait because the server says so
CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
AT_ONCE = 200  # results in one request
WHOLE_SECONDS = 300.0  # for all of an answer, of which parts keep coming
LARGEST_ANSWER = 256 * 1024 * 1024  # bytes; 1,000 monitors take 1 MB, or 90 with long bodies
CHUNK = 64 * 1024
LATER = "later"
LONGEST_SENTENCE = 500  # of the server, in the log
LONGEST_CONFIRM = 3_600  # seconds
LARGEST = 600_000  # characters of results in one request: the server reads a MiB
MOST_KEPT = 50  # answers on disk, before everything is asked for again


@dataclass(frozen=True, slots=True)
class Assigned:
    """News of what to check. ``whole``: it is all, and everything else has gone."""

    whole: bool
    assigned: list[Json]
    gone: list[int]


@dataclass(frozen=True, slots=True)
class Stood:
    """The new standings of monitors, by id; None for a result that was not taken."""

    standings: Mapping[int, Json | None]


@dataclass(frozen=True, slots=True)
class Greeted:
    location: str
    confirm: timedelta


News = Greeted | Assigned | Stood


class Link:
    """``news`` has what the server said; ``figures`` returns what the agent says of itself."""

    def __init__(
        self,
        server: str,
        token: str,
        folder: Path,
        buffer: Buffer,
        clock: Clock,
        *,
        ca_bundle: str | None,
        wake: Callable[[], None],
        figures: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._base = f"{server}/api/v1/agent/"
        scheme, _slashes, rest = server.partition("://")
        self._named = f"{scheme}://{rest.rpartition('@')[2]}"
        self._buffer, self._clock = buffer, clock
        self._wake, self._figures = wake, figures
        self.news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._private = _key_in(folder)
        self._stored = folder / "assigned"
        self._bundle = Bundle(ca_bundle)
        self._session = requests.Session()
        # No netrc, and no proxy but the one for HTTPS: it is for the server, never for checks.
        self._session.trust_env = False
        proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
        self._session.proxies = {"https": proxy} if proxy else {}
        self._session.verify = self._bundle.path
        self._session.headers.update(
            {
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "User-Agent": f"Wakeful-Agent/{__version__}",
            }
        )
        self._location = ""
        self._change: int | None = None  # the number of the newest change that we know
        self._kept: list[str] = []  # what the server sealed, the last whole answer and all since
        self._wanted = threading.Event()  # there are results to send at once
        self._ended = threading.Event()
        self._pause = FIRST_PAUSE
        self._told = ""
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)

    def start(self) -> None:
        self._recall()
        self._thread.start()

    def hurry(self) -> None:
        """Send results soon. Safe from any thread."""
        self._wanted.set()

    def reload(self) -> None:
        """Ask for everything again."""
        self._change = None
        self._wanted.set()

    def close(self, timeout: float) -> None:
        """Send what waits, for at most ``timeout`` seconds; the rest stays on disk."""
        self._ended.set()
        self._wanted.set()
        self._thread.join(timeout)
        self._session.close()
        self._bundle.close()

    # --- the thread

    def _run(self) -> None:
        while True:
            last = self._ended.is_set()
            try:
                self._turn()
            except Exception as fault:
                self._trouble(fault)
                if last:
                    return
                # However many results wait: each would be another request.
                self._rest(fault)
            else:
                if self._told:
                    log.warning("The exchange with the server works again.")
                self._told, self._pause = "", FIRST_PAUSE
                if last:
                    return
                self._wait()

    def _rest(self, fault: Exception) -> None:
        """After a request that failed."""
        if isinstance(fault, Later) and fault.seconds:
            self._pause = FIRST_PAUSE
            self._ended.wait(fault.seconds)
            return
        self._ended.wait(self._pause)
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)

    def _wait(self) -> None:
        """Until there are results to send, or it is time to ask for changes."""
        if not self._wanted.wait(IDLE_SECONDS):
            return
        self._wanted.clear()
        self._ended.wait(POST_SECONDS)  # others come with them

    def _turn(self) -> None:
        if not self._location:
            self._hello()
        # Before what to check is asked: after a restart, the server must know what has been done.
        change = self._post()
        if self._change != change:
            self._ask()

    def _trouble(self, fault: Exception) -> None:
        """Log a fault once: a cut may last for hours."""
        if isinstance(fault, Refused | Forged):
            self._location = ""  # the answer to the next hello says what to do
        said = trouble.said(self._named, fault)
        # Each answer 429 has another number of seconds.
        told = LATER if isinstance(fault, Later) else said
        if told != self._told:
            log.error("%s", said)
            if not isinstance(fault, trouble.KNOWN):
                log.error("The fault was:", exc_info=fault)
        self._told = told

    def _hello(self) -> None:
        key = base64.b64encode(public_key_of(self._private)).decode()
        told = self._send("hello", {"public_key": key, "version": __version__})
        confirm = told.get("confirm_seconds")
        if not isinstance(confirm, int | float) or not 0 <= confirm <= LONGEST_CONFIRM:
            raise Odd("confirm_seconds")
        self._location = must(text(told.get("location")), "location")
        self._tell(Greeted(self._location, timedelta(seconds=confirm)))

    def _post(self) -> int:
        """Send results, the newest first; returns the number of the newest change."""
        while True:
            batch = self._buffer.newest(AT_ONCE, LARGEST)
            offset = -self._clock.offset / timedelta(milliseconds=1)
            said = {"version": __version__, "clock_offset_ms": round(offset), **self._figures()}
            head = json.dumps(said)[:-1]
            body = f'{head},"results":[{",".join(batch.bodies)}]}}'
            told = self._send("results", body)
            refused, change = must(whole(told.get("refused")), "refused"), _change(told)
            stood = _standings(told.get("standings"))
            self._buffer.remove(batch)  # only what was understood is answered
            if refused:
                log.warning("The server refused %s results.", refused)
            if stood:
                self._tell(Stood(stood))
            if not batch.more:
                return change

    def _ask(self) -> None:
        told = self._send("assigned", {} if self._change is None else {"since": self._change})
        sealed = must(text(told.get("sealed")), "sealed")
        news = self._opened(self._location, sealed)
        self._change = _change(told)
        self._tell(news)  # first: it holds also if the disk is full
        if news.whole or news.assigned or news.gone:
            self._remember(sealed, whole=news.whole)

    def _send(self, path: str, data: Mapping[str, Any] | str) -> Json:
        body = data if isinstance(data, str) else json.dumps(data)
        sent = uptime()
        with self._session.post(
            self._base + path,
            data=body.encode(),
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as answer:
            status, found = answer.status_code, _body(answer)
            if status == 429:
                raise Later(_pause(answer), _message(found))
        took = uptime() - sent
        told = _read(status, found)
        if status != 200:
            raise (Failing if status >= 500 else Refused)(f"{status}: {_sentence(told)}")
        said = object_(told["data"], "data")
        received, answered = moment(said.get("received")), moment(said.get("now"))
        if received is not None and answered is not None:
            self._clock.measure(sent, took, received, answered)
        return said

    def _opened(self, location: str, sealed: str) -> Assigned:
        """Raises Odd and Forged."""
        about = ABOUT_ASSIGNED.format(location)
        told = object_(unseal(self._private, _from_base64(sealed), about), "sealed")
        assigned = [object_(one, "assigned") for one in _list(told, "assigned")]
        gone = [must(own_id(one), "gone") for one in _list(told, "gone")]
        return Assigned(told.get("whole") is True, assigned, gone)

    def _tell(self, news: News) -> None:
        self.news.put(news)
        self._wake()

    # --- what the agent knew before a restart

    def _remember(self, sealed: str, *, whole: bool) -> None:
        """Keep what to check on disk, sealed as it came, for a start while the server is away."""
        self._kept = [sealed] if whole else [*self._kept, sealed]
        _write(self._stored, "\n".join([self._location, *self._kept]).encode())
        if len(self._kept) > MOST_KEPT:
            self._change = None  # the next answer is whole again

    def _recall(self) -> None:
        try:
            location, *kept = self._stored.read_text().splitlines()
            for sealed in kept:
                self._tell(self._opened(location, sealed))
        except (OSError, ValueError):
            return  # the server says it again


def _pause(answer: requests.Response) -> float:
    """How long the server says to wait; 0 if it does not say."""
    asked = pause_of(answer.headers.get("Retry-After"), datetime.now(UTC), LONGEST_ASKED)
    return asked or 0.0


def _body(answer: requests.Response) -> bytes:
    """All of the answer, however it is sent: not more than fits in memory, and not for ever."""
    found, until = bytearray(), time.monotonic() + WHOLE_SECONDS
    try:
        while chunk := answer.raw.read1(CHUNK, decode_content=True):
            found += chunk
            if len(found) > LARGEST_ANSWER:
                raise Foreign("its answer is too large")
            if time.monotonic() > until:
                raise requests.ReadTimeout
    except ReadTimeoutError:
        raise requests.ReadTimeout from None
    except HTTPError as fault:
        raise requests.ConnectionError(fault) from fault
    return bytes(found)


def _read(status: int, body: bytes) -> dict[str, Any]:
    """What the server's API says; raises Foreign if something else answers."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    wanted = "data" if status == 200 else "message"
    if not isinstance(told, dict) or wanted not in told:
        raise Foreign(trouble.no_api(status))
    return told


def _sentence(told: Mapping[str, Any]) -> str:
    return str(told["message"])[:LONGEST_SENTENCE]


def _message(body: bytes) -> str:
    """The sentence of an answer 429; empty if it is not Wakeful's."""
    try:
        return _sentence(_read(429, body))
    except Foreign:
        return ""


def _from_base64(sealed: str) -> bytes:
    try:
        return base64.b64decode(sealed)
    except ValueError:
        raise Odd("sealed") from None


def _change(told: Json) -> int:
    return must(whole(told.get("change")), "change")


def _list(told: Json, name: str) -> list[Any]:
    found = told.get(name)
    if not isinstance(found, list):
        raise Odd(name)
    return found


def _standings(value: Any) -> dict[int, Json | None]:
    """By monitor; None for a result that was not taken."""
    return {
        must(own_id(number), "standings"): None if one is None else object_(one, "standings")
        for number, one in object_(value, "standings").items()
    }


def _key_in(folder: Path) -> bytes:
    """The agent's private key, made once."""
    path = folder / "agent_key"
    if not path.exists():
        _write(path, base64.b64encode(new_private_key()))
    try:
        return key_of(path.read_text())
    except ValueError:
        raise SettingError(
            _(
                "The key in %(path)s is damaged. Delete the file, make a new token for the place on"
                " its page, and start the agent with it.",
                path=path,
            )
        ) from None


def _write(path: Path, data: bytes) -> None:
    """Replace a file whole, readable by its owner alone."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)  # on a full disk, what was written of it takes room
        raise
