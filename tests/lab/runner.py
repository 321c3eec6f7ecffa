"""Runs rows of the table: one function executes one row, through whatever can check fields.

``OverHttp`` is the real thing: POST /api/v1/checks on a running server. ``InProcess`` calls the
prober itself, for the memory figures and for finding out where a fault lies.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

import requests
from werkzeug.serving import WSGIRequestHandler, make_server

from app.checks.prober import Prober
from app.net.hosts import parse_servers
from app.net.policy import Policy
from app.records import AUTO, Assertion, CheckSpec, Outcome, Pair, Verdict
from app.slots import Slots
from tests.lab.lab import Lab
from tests.lab.table import DOWN, Row

AT_ONCE = 8  # rows that run beside each other: most of them wait for a time limit


class Checker(Protocol):
    """Checks a monitor's fields, given as POST /checks takes them; answers with its result."""

    def check(self, fields: Mapping[str, Any]) -> Mapping[str, Any]: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Judgement:
    """The result of a row."""

    row: Row
    result: Mapping[str, Any]
    seconds: float
    spare: float = 0.0  # what a busy machine took of them

    @property
    def late(self) -> bool:
        return self.seconds > self.row.limit + self.spare

    @property
    def verdict(self) -> str:
        return str(self.result["verdict"])

    @property
    def code(self) -> str | None:
        return self.result["cause_code"]

    def faults(self) -> list[str]:
        """The differences from the row, in sentences; none if all is as it says."""
        row, cause = self.row, self.result["cause"] or ""
        differences = []
        if self.verdict != row.verdict:
            differences.append(f"the verdict is {self.verdict}, not {row.verdict}")
        if self.code != row.code:
            differences.append(f"the cause is {self.code}, not {row.code}")
        if sorted(self.result["warnings"]) != sorted(row.warnings):
            differences.append(
                f"the warnings are {self.result['warnings']}, not {list(row.warnings)}"
            )
        if self.late:
            limit = f"{row.limit} s and the {self.spare:.2f} s that the machine was late"
            differences.append(f"it took {self.seconds:.2f} s, more than {limit}")
        if bool(cause) != (row.verdict != Verdict.UP):
            differences.append(f"the cause reads {cause!r}")
        differences += [f"{word!r} is not in {cause!r}" for word in row.says if word not in cause]
        return [
            f"{fault} ({cause})" if cause and cause not in fault else fault for fault in differences
        ]


class Lateness:
    """How late this machine wakes a thread whose time has come.

    A check and what stands around it here (a server, a client, a target) are woken one after the
    other. On a machine with nothing else to do that takes no time worth counting; on a busy one it
    says nothing about the check, so it is allowed for.
    """

    PULSE = 0.02
    WAKES = 8  # one row's, roughly

    def __init__(self) -> None:
        self._late_wakes: deque[tuple[float, float]] = deque(maxlen=100_000)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()

    def _measure(self) -> None:
        before = time.monotonic()
        while not self._stop.wait(self.PULSE):
            now = time.monotonic()
            self._late_wakes.append((now, now - before - self.PULSE))
            before = now

    def since(self, began: float) -> float:
        """The worst of it from a monotonic time until now, in seconds."""
        return sum(
            nlargest(self.WAKES, (late for at, late in list(self._late_wakes) if at >= began))
        )

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


def run_row(row: Row, lab: Lab, checker: Checker, lateness: Lateness | None = None) -> Judgement:
    """Execute one row."""
    fields = {"url": row.at.url(lab), "timeout": str(row.timeout)}
    fields |= {name: str(value) for name, value in row.fields.items()}
    began = time.monotonic()
    try:
        result = checker.check(fields)
    except Exception as fault:  # a row that breaks the checker must not hide all others
        result = {"verdict": "none", "cause_code": None, "cause": repr(fault), "warnings": []}
    seconds = time.monotonic() - began
    return Judgement(row, result, seconds, lateness.since(began) if lateness else 0.0)


class Running(Mapping[str, "Future[Judgement]"]):
    """Rows by name, in the order in which they are asked for. Each that is asked for starts those
    of ``ahead`` places: of the workers of a test run, each runs about what it asks for.
    """

    def __init__(
        self, rows: Iterable[Row], start: Callable[[Row], Future[Judgement]], ahead: int | None
    ) -> None:
        self.rows = {row.name: row for row in rows}
        self.places = {name: place for place, name in enumerate(self.rows)}
        self.started: dict[str, Future[Judgement]] = {}
        self.start, self.ahead = start, ahead or len(self.rows)

    def __getitem__(self, name: str) -> Future[Judgement]:
        place = self.places[name]
        for row in list(self.rows.values())[place : place + self.ahead]:
            if row.name not in self.started:
                self.started[row.name] = self.start(row)
        return self.started[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@contextmanager
def running(
    rows: Iterable[Row], lab: Lab, checker: Checker, ahead: int | None = None
) -> Iterator[Running]:
    """Rows, several at once. Without ``ahead`` those that wait begin first."""
    ordered = list(rows)
    if ahead is None:
        ordered.sort(key=lambda row: "timeout" not in row.fields)
    with closing(Lateness()) as late, ThreadPoolExecutor(AT_ONCE) as pool:

        def start(row: Row) -> Future[Judgement]:
            row.at.url(lab)  # starts the listener: that time is not the check's
            return pool.submit(run_row, row, lab, checker, late)

        run = Running(ordered, start, ahead)
        try:
            yield run
        finally:
            for future in run.started.values():
                future.cancel()


# --- In process ---------------------------------------------------------------------------------


class InProcess:
    """The prober, without a server around it."""

    def __init__(self, lab: Lab, policy: Callable[[], Policy] | None = None) -> None:
        loopback = Policy.parse("loopback")
        self.prober = Prober(
            policy=policy or (lambda: loopback),
            dns_servers=parse_servers(lab.dns.settings),
            ca_bundle=lab.ca_bundle,
        )

    def outcome(self, fields: Mapping[str, Any]) -> Outcome:
        return self.prober.check(spec_of(fields))

    def check(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        result = self.outcome(fields).result
        names = ("verdict", "cause_code", "cause", "warnings", "status_code", "response_time", "ip")
        return {name: getattr(result, name) for name in names}

    def close(self) -> None:
        self.prober.close(5.0)


def spec_of(fields: Mapping[str, Any]) -> CheckSpec:
    """The fields of POST /checks as the prober takes them."""
    values = dict(fields)
    rows: dict[str, dict[str, str]] = {}
    for name in list(values):
        if match := re.fullmatch(r"(request_headers|assertions)\[\d+\]\[([a-z]+)\]", name):
            rows.setdefault(name.rpartition("[")[0], {})[match[2]] = values.pop(name)
    listed = [row for name, row in rows.items() if name.startswith("assertions")]
    headers = tuple(Pair(**row) for name, row in rows.items() if name.startswith("request"))
    user, password = (values.pop(f"request_auth_{part}", None) for part in ("username", "password"))
    for name in ("follow_redirects", "verify_tls"):
        if name in values:
            values[name] = values[name] == "true"
    for name in ("slow_after", "ssl_alert_days"):
        if name in values and values[name] != AUTO:
            values[name] = int(values[name])
    return CheckSpec(
        **values
        | {"timeout": float(values["timeout"]), "cache_buster": values.get("cache_buster") == "1"},
        request_headers=headers,
        assertions=tuple(Assertion(**{"property": None} | row) for row in listed),
        auth=(user, password) if user is not None and password is not None else None,
    )


# --- Over HTTP ----------------------------------------------------------------------------------


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Hundreds of requests a run are no news."""


class OverHttp:
    """A real server on loopback, and a client with a key for it."""

    def __init__(self, lab: Lab, folder: Path, canaries: str = "") -> None:
        from app import create_app, create_core
        from app.config import Settings
        from app.db import db, schema

        settings = Settings(
            instance=folder,
            database_url=f"sqlite:///{folder / 'truth.db'}",
            secret_key="a secret key for the laboratory",
            allow_networks="loopback",
            dns_servers=lab.dns.settings,
            ca_bundle=lab.ca_bundle,
            canaries=canaries,
            rate_limit=0,
        )
        core = create_core(settings)
        with core.app_context():
            schema.upgrade()
            db.engine.dispose()
        self.app = create_app(settings)
        with self.app.app_context():
            access = self.app.extensions["wakeful.access"]
            self.key = access.keys.create("laboratory", "write")[1]
        # The rows run side by side, more of them than a server lets in at once.
        self._room = patch("app.engine.now.LONG_WAITS", Slots(1000))
        self._room.start()
        self.server = make_server("127.0.0.1", 0, self.app, threaded=True, request_handler=_Quiet)
        self.server.daemon_threads = False  # server_close() then waits for them
        self.url = f"http://127.0.0.1:{self.server.server_port}/api/v1/checks"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def check(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        with requests.Session() as session:
            session.trust_env = False  # pytest changes the environment while others read it
            answer = session.post(
                self.url, data=fields, headers={"Authorization": f"Bearer {self.key}"}, timeout=60
            )
            assert answer.status_code == 200, f"POST /checks answered {answer.text}"
            data: Mapping[str, Any] = answer.json()["data"]
            return data

    def close(self) -> None:
        from app.db import db
        from app.engine import now

        self.server.shutdown()
        self.thread.join(10)
        self.server.server_close()
        self._room.stop()
        now.close(self.app)
        with self.app.app_context():
            db.engine.dispose()


# --- Failures of ours ---------------------------------------------------------------------------


def faulty(lab: Lab) -> InProcess:
    """A prober whose every check meets a fault in our code."""

    def fault() -> Policy:
        raise ZeroDivisionError

    return InProcess(lab, fault)


def without_network(lab: Lab, folder: Path) -> OverHttp:
    """A server none of whose canaries answers."""
    folder.mkdir(exist_ok=True)
    return OverHttp(lab, folder, canaries="nxdomain.lab.test:80")


# --- Figures ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """How well a run of the table went. A false positive is a ``down`` that was none."""

    rows: int
    right_verdicts: int
    right_causes: int
    false_positives: tuple[str, ...]
    false_negatives: tuple[str, ...]
    late: tuple[str, ...]

    @classmethod
    def of(cls, judgements: Iterable[Judgement]) -> Score:
        all_of = list(judgements)
        down = [judgement for judgement in all_of if judgement.verdict == DOWN]
        return cls(
            rows=len(all_of),
            right_verdicts=sum(judgement.verdict == judgement.row.verdict for judgement in all_of),
            right_causes=sum(
                (judgement.verdict, judgement.code) == (judgement.row.verdict, judgement.row.code)
                for judgement in all_of
            ),
            false_positives=tuple(
                judgement.row.name for judgement in down if judgement.row.verdict != DOWN
            ),
            false_negatives=tuple(
                judgement.row.name
                for judgement in all_of
                if judgement.row.verdict == DOWN and judgement.verdict != DOWN
            ),
            late=tuple(judgement.row.name for judgement in all_of if judgement.late),
        )


def peak_memory_of(work: Any) -> float:
    """The growth of this process in MB, at its largest during ``work`` (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark falls to the present size
    before = _memory("VmRSS")
    work()
    return (_memory("VmHWM") - before) / 1024


def _memory(name: str) -> int:
    """In KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(name)
