"""The agent's requests to its server, on a separate thread: hello, assigned monitors, results."""

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

from app.codec import MalformedData
from app.codec.sealing import ABOUT_ASSIGNED, key_of, new_private_key, public_key_of, unseal_text
from app.codec.values import Json, moment, must, object_, parse_json, record_id, text, whole
from app.config import SettingError
from app.engine.agent import faults
from app.engine.agent.assigned_file import AssignedFile, replace_file
from app.engine.agent.buffer import Buffer
from app.engine.agent.faults import AgentRefused, Foreign, Later, ServerFault
from app.i18n import N_, _
from app.lasting import Lasting
from app.net.client import Network
from app.records import MAX_LOCATION
from app.rules.clocks import MIN, Offset
from app.rules.text import one_line
from app.rules.time import Backoff, pause_of
from app.version import __version__

log = logging.getLogger(__name__)

POST_SECONDS = 1.0  # how often results are sent, if there are some
IDLE_SECONDS = 5.0  # how often the server is asked for changes otherwise
FIRST_PAUSE, MAX_PAUSE = 1.0, 15.0  # after a request that failed
MAX_RETRY_AFTER = 60.0  # seconds to wait because the server asks for it
CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
MAX_RESULTS = 200  # results in one request
WHOLE_SECONDS = 300.0  # the time limit of a whole answer, which may arrive slowly
# The size of a list of monitors, in bytes: a monitor takes 1 KB, or 90 with the longest body in
# ASCII.
MAX_LIST = 64 * 1024 * 1024
MAX_VALUES = 1_000_000  # in that list; a monitor has some 20, or 110 with all headers
MAX_ANSWER = 1024 * 1024  # bytes of any other answer; the one to 200 results takes 50 KB
MAX_IN_ANSWER = 10_000  # values, without those of the sealed part
CHUNK = 64 * 1024
TOO_LARGE = 413
LATER = "later"
MAX_SENTENCE = 500  # of the server, in the log
MAX_CONFIRM = 3_600  # seconds
MAX_REQUEST = 600_000  # characters of results in one request: the server reads a MiB
DENIED_KEY = N_("The agent's key, %(path)s, cannot be read or written (%(why)s).")
DAMAGED_KEY = N_(
    "The key in %(path)s is damaged. Delete the file, make a new token for the place on its page,"
    " and start the agent with it."
)
MIN_REQUEST = 20_000  # characters: the least that is tried behind a proxy with a low limit


@dataclass(frozen=True, slots=True)
class AssignedNews:
    """The monitors to check. ``is_whole``: ``assigned`` has all of them; otherwise only the changed
    ones, and ``removed`` has the ids of the removed ones.
    """

    is_whole: bool
    assigned: list[Json]
    removed: list[int]


@dataclass(frozen=True, slots=True)
class StandingsNews:
    """The new standings of monitors, by id; None if the server dropped the monitor's result."""

    standings: Mapping[int, Json | None]


@dataclass(frozen=True, slots=True)
class Greeted:
    """The server's answer to the agent's hello."""

    location: str
    confirm: timedelta


News = Greeted | AssignedNews | StandingsNews


# --- The server's time


class Clock:
    """The server's time, by which an agent schedules checks and dates results. Until the first
    answer it is this machine's time. Its methods may be called on any thread.

    After the first measurement it follows this machine's uptime, so that setting this machine's
    clock has no effect, not even while the server is out of reach.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measured = Offset()  # the server's clock by this machine's uptime
        self._base: float | None = None

    @property
    def base(self) -> float:
        """The server's time when this machine's uptime was 0 (Unix seconds). It changes when the
        server's clock is set; before the first answer, when this machine's clock is set.
        """
        return _started() if self._base is None else self._base

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.base + uptime(), UTC)

    @property
    def offset(self) -> timedelta:
        """By how much the server's clock is ahead of this machine's."""
        return timedelta() if self._base is None else timedelta(seconds=self._base - _started())

    def corrected(self, moment: datetime) -> datetime:
        """Convert a time of this machine's clock to the server's clock."""
        return moment + self.offset

    def measure(self, sent: float, took: float, received: datetime, answered: datetime) -> None:
        """Measure by a request: sent at ``sent`` (``uptime``), and answered ``took`` seconds later.
        ``received`` and ``answered``: when the server got it and answered it, by the server's
        clock.
        """
        inside = max(0.0, (answered - received).total_seconds())
        high = received.timestamp() - sent
        with self._lock:
            low, high = self._measured.add(high - max(0.0, took - inside), high)
            # The request or the answer may have been delayed, so a time within the bounds stays.
            if not low - MIN <= self.base <= high + MIN:
                self._base = (low + high) / 2
            else:
                self._base = self.base


def uptime() -> float:
    """Seconds since this machine started, including those in which it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _started() -> float:
    """When this machine started, by its clock (Unix seconds)."""
    return time.time() - uptime()


# --- Requests


class ServerLink:
    """The requests of an agent, made on a separate thread. ``news`` gets the server's answers;
    ``figures`` returns the agent's report on itself. The thread closes ``buffer`` when it ends.
    """

    def __init__(
        self,
        server: str,
        token: str,
        folder: Path,
        buffer: Buffer,
        clock: Clock,
        *,
        network: Network,
        wake: Callable[[], None],
        figures: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._base = f"{server}/api/v1/agent/"
        scheme, _slashes, address = server.partition("://")
        self._server = f"{scheme}://{address.rpartition('@')[2]}"
        self._buffer, self._clock = buffer, clock
        self._wake, self._figures = wake, figures
        self.news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._private = _key_in(folder)
        self._file = AssignedFile(folder)
        self._session = network.session()
        # The proxy for HTTPS is for the server, never for checks.
        proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
        self._session.proxies = {"https": proxy} if proxy else {}
        self._session.headers.update(
            {
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "User-Agent": f"Wakeful-Agent/{__version__}",
                # A MiB of zeros is 1 KB compressed: the size limits are for plain bytes.
                "Accept-Encoding": "identity",
            }
        )
        self._location = ""
        self._change = 0  # the number of the newest change that was read
        # The last demand for the whole list, and the last one that was met. They are objects,
        # because a demand that is made while an answer arrives is a new one.
        self._list_request, self._answered_request = object(), object()
        self._send_now = threading.Event()  # results are to be sent at once
        self._ended = threading.Event()
        self._until = 0.0  # after ``close``, no request begins later (monotonic)
        self._largest = MAX_REQUEST
        self._pauses = Backoff(FIRST_PAUSE, MAX_PAUSE)
        self._ask_at = 0.0  # when to ask for changes again, at the earliest (monotonic)
        self._log = Lasting(log)
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)

    def start(self) -> None:
        self._recall()
        self._thread.start()

    def send_soon(self) -> None:
        """Send results soon. May be called on any thread."""
        self._send_now.set()

    def reload(self) -> None:
        """Ask for the whole list again. May be called on any thread."""
        self._list_request = object()
        self._send_now.set()

    def close(self, timeout: float) -> None:
        """Send waiting results for at most ``timeout`` seconds; others stay on disk. A request that
        takes longer continues in its thread.
        """
        self._until = time.monotonic() + timeout
        self._ended.set()
        self._send_now.set()
        self._thread.join(timeout)

    # --- the thread

    def _run(self) -> None:
        try:
            self._turns()
        finally:
            self._session.close()
            self._buffer.close()

    def _turns(self) -> None:
        while True:
            last = self._ended.is_set()
            if last and time.monotonic() >= self._until:
                return
            try:
                more = self._turn()
            except Exception as fault:
                self._log_fault(fault)
                if last:
                    return
                # Also if many results wait: without a pause, requests would follow at once.
                self._pause_after(fault)
                continue
            if last and not more:
                return
            if not more:
                self._wait()

    def _pause_after(self, fault: Exception) -> None:
        """Pause after a request that failed."""
        if isinstance(fault, Later) and fault.seconds:
            self._pauses.reset()
            self._ended.wait(fault.seconds)
        else:
            self._ended.wait(self._pauses.next())

    def _wait(self) -> None:
        """Wait until there are results to send, or it is time to ask for changes."""
        if not self._send_now.wait(IDLE_SECONDS):
            return
        self._send_now.clear()
        self._ended.wait(POST_SECONDS)  # to send several results together

    def _turn(self) -> bool:
        """Send the newest results, and ask for changes. Returns whether more results wait."""
        if not self._location:
            self._hello()
        # Before the question for changes: after a restart, the server must first have the results.
        change, more = self._post()
        if self._ask_if_changed(change, more):
            self._log_recovery(more)
        self._file.write()
        return more

    def _ask_if_changed(self, change: int, more: bool) -> bool:
        """Ask for changes, if there are any. Returns whether the agent has all of them. If the
        server cannot answer while more results wait, these are sent first.
        """
        if self._change == change and self._list_request is self._answered_request:
            return True
        if self._ended.is_set() or time.monotonic() < self._ask_at:
            return False
        try:
            self._ask()
        except Exception as fault:
            if not more or isinstance(fault, Later):
                raise
            self._log_fault(fault)
            self._ask_at = time.monotonic() + self._pauses.next()
            return False
        return True

    def _log_fault(self, fault: Exception) -> None:
        """Log a fault once: it may last for hours."""
        if isinstance(fault, AgentRefused):
            self._location = ""
        sentence = faults.sentence_of(self._server, fault)
        self._log.error(
            "%s",
            sentence,
            # Each answer 429 has another number of seconds.
            cause=LATER if isinstance(fault, Later) else sentence,
            exc_info=None if isinstance(fault, faults.DESCRIBED) else fault,
        )

    def _log_recovery(self, more: bool) -> None:
        """Log the end of a fault. While more results wait, the end of an answer 429 is not logged,
        because a backlog causes one every few seconds.
        """
        self._pauses.reset()
        if not (more and self._log.cause() == LATER) and self._log.end():
            log.warning("The exchange with the server works again.")

    def _hello(self) -> None:
        key = base64.b64encode(public_key_of(self._private)).decode()
        data = self._send("hello", {"public_key": key, "version": __version__})
        confirm = data.get("confirm_seconds")
        if not isinstance(confirm, int | float) or not 0 <= confirm <= MAX_CONFIRM:
            raise MalformedData("confirm_seconds")
        location = must(text(data.get("location")), "location")
        # The name is written to the log, and to a line of a file.
        if not location or location != one_line(location, MAX_LOCATION):
            raise MalformedData("location")
        self._location = location
        self._pass_on(Greeted(location, timedelta(seconds=confirm)))

    def _post(self) -> tuple[int, bool]:
        """Send the newest results. Returns the number of the newest change, and whether more
        results wait.
        """
        batch = self._buffer.newest(MAX_RESULTS, self._largest)
        offset = -self._clock.offset / timedelta(milliseconds=1)
        figures = {"version": __version__, "clock_offset_ms": round(offset), **self._figures()}
        data = self._send(
            "results", f'{json.dumps(figures)[:-1]},"results":[{",".join(batch.bodies)}]}}'
        )
        refused, change = must(whole(data.get("refused")), "refused"), _change(data)
        standings = _standings(data.get("standings"))
        self._buffer.remove(batch)  # an answer means that the server has read the results
        if refused:
            log.warning("The server refused %s results.", refused)
        if standings:
            self._pass_on(StandingsNews(standings))
        return change, batch.more

    def _ask(self) -> None:
        list_request = self._list_request
        wants_all = list_request is not self._answered_request
        data = self._send("assigned", {} if wants_all else {"since": self._change})
        sealed = must(text(data.get("sealed")), "sealed")
        news = self._opened(self._location, sealed)
        self._change, self._answered_request = _change(data), list_request
        self._pass_on(news)
        if news.is_whole or news.assigned or news.removed:
            self._file.add(self._location, sealed, whole=news.is_whole)
        if self._file.is_full:
            self.reload()

    def _send(self, path: str, data: Mapping[str, Any] | str) -> Json:
        body = data if isinstance(data, str) else json.dumps(data)
        sent_at = uptime()
        with self._session.post(
            self._base + path,
            data=body.encode(),
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as answer:
            max_bytes = MAX_LIST if path == "assigned" else MAX_ANSWER
            status, raw = answer.status_code, _body(answer, max_bytes)
            if status == 429:
                retry_after = answer.headers.get("Retry-After")
                pause = pause_of(retry_after, datetime.now(UTC), MAX_RETRY_AFTER)
                raise Later(pause or 0.0, _message(raw))
        took = uptime() - sent_at
        if status == TOO_LARGE:  # for a proxy before the server
            self._largest = max(MIN_REQUEST, min(self._largest, len(body) // 2))
        decoded = _read(status, raw)
        if status != 200:
            raise (ServerFault if status >= 500 else AgentRefused)(
                f"{status}: {_sentence(decoded)}"
            )
        reply = object_(decoded["data"], "data")
        received, answered = moment(reply.get("received")), moment(reply.get("now"))
        if received is not None and answered is not None:
            self._clock.measure(sent_at, took, received, answered)
        return reply

    def _opened(self, location: str, sealed: str) -> AssignedNews:
        """The monitors of a sealed answer. Raises MalformedData and Forged."""
        about = ABOUT_ASSIGNED.format(location)
        plain = unseal_text(self._private, _from_base64(sealed), about)
        data = object_(parse_json(plain, MAX_VALUES), "sealed")
        assigned = [object_(item, "assigned") for item in _list(data, "assigned")]
        removed = [must(record_id(id), "gone") for id in _list(data, "gone")]
        return AssignedNews(data.get("whole") is True, assigned, removed)

    def _pass_on(self, news: News) -> None:
        self.news.put(news)
        self._wake()

    def _recall(self) -> None:
        """After a restart, read the assigned monitors from disk."""
        try:
            location, answers = self._file.read()
            for sealed in answers:
                self._pass_on(self._opened(location, sealed))
        except (OSError, ValueError):
            return  # the server sends it again


def _body(answer: requests.Response, max_bytes: int) -> bytes:
    """The whole answer. Raises if it has more than ``max_bytes`` or takes too long."""
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Foreign("its answer is compressed, which the agent has not asked for")
    content, until = bytearray(), time.monotonic() + WHOLE_SECONDS
    try:
        while chunk := answer.raw.read1(CHUNK, decode_content=False):
            content += chunk
            if len(content) > max_bytes:
                raise Foreign("its answer is too large")
            if time.monotonic() > until:
                raise requests.ReadTimeout
    except ReadTimeoutError:
        raise requests.ReadTimeout from None
    except HTTPError as fault:
        raise requests.ConnectionError(fault) from fault
    return bytes(content)


def _read(status: int, body: bytes) -> dict[str, Any]:
    """The JSON of an answer. Raises Foreign if Wakeful's API has not sent it."""
    try:
        decoded = parse_json(body, MAX_IN_ANSWER)
    except MalformedData:
        decoded = None
    key = "data" if status == 200 else "message"
    if not isinstance(decoded, dict) or key not in decoded:
        raise Foreign(faults.no_api(status))
    return decoded


def _sentence(decoded: Mapping[str, Any]) -> str:
    return one_line(str(decoded["message"]), MAX_SENTENCE)


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
        raise MalformedData("sealed") from None


def _change(data: Json) -> int:
    return must(whole(data.get("change")), "change")


def _list(data: Json, name: str) -> list[Any]:
    items = data.get(name)
    if not isinstance(items, list):
        raise MalformedData(name)
    return items


def _standings(value: Any) -> dict[int, Json | None]:
    """The new standings by monitor; None if the server dropped its result."""
    name = "standings"
    return {
        must(record_id(number), name): None if standing is None else object_(standing, name)
        for number, standing in object_(value, name).items()
    }


def _key_in(folder: Path) -> bytes:
    """The agent's private key, made once. Raises SettingError."""
    path = folder / "agent_key"
    try:
        if not path.exists():
            replace_file(path, base64.b64encode(new_private_key()))
        return key_of(path.read_text())
    except OSError as fault:
        raise SettingError(_(DENIED_KEY, path=path, why=fault.strerror)) from None
    except ValueError:
        raise SettingError(_(DAMAGED_KEY, path=path)) from None
