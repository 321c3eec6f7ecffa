"""Targets that never stop sending: a check ends in time and takes little memory (issue 3)."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.checks.prober import Prober
from app.codec.evidence import MAX_EVIDENCE
from app.codec.packing import pack, read_outcome
from app.net.policy import Policy
from app.records import MAX_REDIRECTS, Cause, CheckSpec, Warn
from tests.checks.servers import closing
from tests.lab.net import Connection, Listener

HOME = Path(__file__).parents[2]
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"

# How the answer begins, what it repeats for ever, and the cause after a check of two seconds.
FLOODS = {
    "100 Continue without end": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", Cause.HEADERS_TOO_LARGE),
    "early hints without end": (b"", b"HTTP/1.1 103 E\r\nA: b\r\n\r\n", Cause.HEADERS_TOO_LARGE),
    "a status line without end": (b"HTTP/1.1 200 ", b"x", Cause.HEADERS_TOO_LARGE),
    "a header line without end": (OK + b"A: ", b"x", Cause.HEADERS_TOO_LARGE),
    "trailers without end": (CHUNKED + b"0\r\n", b"A: b\r\n", Cause.HEADERS_TOO_LARGE),
    "a chunk extension without end": (CHUNKED + b"1;", b"x", Cause.TIMEOUT_BODY),
    "chunks of one byte without end": (CHUNKED, b"1\r\nx\r\n", None),
    "a body without end": (OK + b"\r\n", b"x", None),
}


# In a process of its own: other tests leave threads in theirs, whose memory is none of the check's.
MEASURED = """
import json, sys, time
from app.checks.prober import Prober
from app.net.policy import Policy
from app.records import CheckSpec
from tests.lab.runner import peak_memory_of

policy, measured = Policy.parse("loopback"), []
prober = Prober(policy=lambda: policy)
for url, timeout in json.loads(sys.argv[1]):
    spec = CheckSpec(url=url, timeout=timeout)
    outcomes = [] if measured else [prober.check(spec)]  # load modules before memory is measured
    began = time.monotonic()
    peak = peak_memory_of(lambda: outcomes.append(prober.check(spec)))
    took = time.monotonic() - began
    measured.append([outcomes[-1].result.cause_code, outcomes[-1].result.warnings, took, peak])
print(json.dumps(measured))
prober.close(5)
"""


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    policy = Policy.parse("loopback")
    prober = Prober(policy=lambda: policy)
    yield prober
    prober.close(5)


def flood(begins: bytes, goes_on: bytes) -> Listener:
    def send(connection: Connection) -> None:
        connection.receive(65_536)
        with contextlib.suppress(OSError):
            connection.send(begins)
            for _ in itertools.count():
                connection.send(goes_on * (4096 // len(goes_on)))

    return Listener(send)


def test_an_endless_answer_gets_its_cause_in_time_and_in_little_memory() -> None:
    targets = [flood(begins, goes_on) for begins, goes_on, _cause in FLOODS.values()]
    # Reaching the cap takes time: on a busy machine, more than 4 s.
    timeouts = [4 if cause else 30 for _begins, _goes_on, cause in FLOODS.values()]
    urls = [f"http://127.0.0.1:{target.port}/" for target in targets]
    with closing(*targets):
        ran = subprocess.run(
            [sys.executable, "-c", MEASURED, json.dumps([*zip(urls, timeouts, strict=True)])],
            capture_output=True, text=True, check=True, cwd=HOME,
        )  # fmt: skip
    for name, timeout, measured in zip(FLOODS, timeouts, json.loads(ran.stdout), strict=True):
        cause = FLOODS[name][2]
        code, warnings, took, peak = measured
        assert code == cause, name
        assert warnings == ([Warn.BODY_CUT_AT_CAP] if cause is None else []), name
        assert took < timeout + 20, name  # a busy machine is late itself
        assert peak < 10, name


def test_evidence_of_the_largest_answers_is_bounded_and_taken_by_the_server(prober: Prober) -> None:
    """The server refused such outcomes of an agent, so their incidents never opened."""

    def answer(connection: Connection) -> None:
        path = connection.read_until(b"\r\n\r\n").split()[1]
        number = int(path[1:3] or b"0")
        if number < MAX_REDIRECTS:
            moved = b"HTTP/1.1 302 Found\r\nLocation: /%02d%s\r\n" % (number + 1, b"x" * 14_000)
            connection.send(moved + b"Content-Length: 0\r\n\r\n")
        else:
            headers = b"".join(b"X-%d: %s\r\n" % (number, b"\xff" * 600) for number in range(100))
            connection.send(b"HTTP/1.1 503 No\r\n" + headers + b"\r\n" + b"\x01" * 5_000)

    target = Listener(answer)
    with closing(target):
        outcome = prober.check(CheckSpec(url=f"http://127.0.0.1:{target.port}/", timeout=30))
    assert outcome.result.cause_code == "http_status:503"
    assert [len(url) for url in outcome.result.redirects] == [2_048] * MAX_REDIRECTS
    evidence = json.dumps(outcome.evidence)
    assert MAX_EVIDENCE / 3 < len(evidence) <= MAX_EVIDENCE
    assert read_outcome(json.loads(json.dumps(pack(outcome)))).evidence is not None


@pytest.mark.parametrize(
    ("goes_to", "cause"), [(0, Cause.REDIRECT_LOOP), (1, Cause.TOO_MANY_REDIRECTS)]
)
def test_the_cause_of_an_endless_redirect_to_a_long_url_is_taken_by_the_server(
    prober: Prober, goes_to: int, cause: Cause
) -> None:
    def answer(connection: Connection) -> None:
        path = connection.read_until(b"\r\n\r\n").split()[1]
        number = int(path[1:3] or b"0") + goes_to
        moved = b"HTTP/1.1 302 Found\r\nLocation: /%02d%s\r\n" % (number, b"x" * 2_000)
        connection.send(moved + b"Content-Length: 0\r\n\r\n")

    target = Listener(answer)
    with closing(target):
        outcome = prober.check(CheckSpec(url=f"http://127.0.0.1:{target.port}/", timeout=30))
    assert outcome.result.cause_code == cause
    assert read_outcome(json.loads(json.dumps(pack(outcome)))).result == outcome.result
