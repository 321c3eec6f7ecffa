"""Checks of TCP ports: what a row of tests/lab/table.py cannot show."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing

import pytest

from app.checks.prober import Prober
from app.net.policy import Policy
from app.net.race import interleaved
from app.records import Cause, CheckSpec, Outcome, Timings, Verdict
from tests.checks.servers import NameServer, host
from tests.lab import tcp
from tests.lab.net import ClosedPort, Connection, Listener

LOOPBACK = Policy.parse("loopback")
EXPECTS = {"alert_condition": "url_no_text", "alert_text_lookup": "ESMTP"}


@pytest.fixture(scope="module")
def names() -> Iterator[NameServer]:
    zone = {"mail.test": host("mail.test", "127.0.0.1"), "nowhere.test": host("nowhere.test")}
    server = NameServer(zone)
    yield server
    server.close()


@pytest.fixture(scope="module")
def prober(names: NameServer) -> Iterator[Prober]:
    prober = Prober(policy=lambda: LOOPBACK, dns_servers=[names.server], location="lab")
    yield prober
    prober.close(5)


@pytest.fixture
def mail() -> Iterator[Listener]:
    listener = Listener(tcp.greeting)
    yield listener
    listener.close()


def url(listener: Listener | ClosedPort, name: str = "mail.test") -> str:
    return f"tcp://{name}:{listener.port}"


def test_the_outcome_of_a_good_check_has_figures_banner_and_the_text_found(
    prober: Prober, mail: Listener
) -> None:
    outcome = prober.check(CheckSpec(url=url(mail), **EXPECTS))
    result, evidence = outcome.result, outcome.evidence
    assert result.verdict is Verdict.UP
    assert (result.ip, result.location, result.status_code) == ("127.0.0.1", "lab", None)
    assert outcome.answered
    assert outcome.matched == "220 mail.lab.test ESMTP ready"
    times = result.timings
    assert None not in (times.dns, times.connect, times.ttfb, times.download)
    assert times.tls is None
    assert evidence == {
        "url": url(mail),
        "resolved": ["127.0.0.1"],
        "refused": [],
        "ip": "127.0.0.1",
        "timings": {"dns": times.dns, "connect": times.connect, "tls": None, "ttfb": times.ttfb,
                    "download": times.download},
        "banner": "220 mail.lab.test ESMTP ready\r\n",
        "banner_bytes": 31,
    }  # fmt: skip
    json.dumps(evidence)


def test_without_a_text_condition_a_check_does_not_read(prober: Prober) -> None:
    with closing(Listener(tcp.silent)) as silent:
        outcome = prober.check(CheckSpec(url=url(silent), timeout=30))
    assert outcome.result.verdict is Verdict.UP
    assert "banner" not in (outcome.evidence or {})
    assert outcome.result.timings.ttfb is None


def test_the_wait_for_a_text_is_not_part_of_the_response_time(prober: Prober) -> None:
    with closing(Listener(tcp.silent)) as silent:
        spec = CheckSpec(
            url=url(silent), timeout=2, alert_condition="url_text", alert_text_lookup="x"
        )
        result = prober.check(spec).result
    assert result.verdict is Verdict.UP
    assert result.response_time is not None
    assert result.response_time < 1700


def test_a_connection_counts_as_an_answer_and_a_refusal_does_not(prober: Prober) -> None:
    """``network_down`` depends on whether anything came from the target (decision 10)."""
    with closing(ClosedPort()) as closed, closing(Listener(tcp.close_at_once)) as ends:
        refused = prober.check(CheckSpec(url=url(closed)))
        missing = prober.check(CheckSpec(url=url(ends), **EXPECTS))
    assert (refused.result.cause_code, refused.answered) == (Cause.CONNECTION_REFUSED, False)
    assert (missing.result.cause_code, missing.answered) == (Cause.TEXT_MISSING, True)
    assert refused.result.timings.connect is not None
    assert refused.result.response_time is None


def test_bytes_that_are_not_utf_8_are_escaped(prober: Prober) -> None:
    with closing(Listener(tcp.binary_greeting)) as database:
        spec = CheckSpec(url=url(database), alert_condition="url_text", alert_text_lookup="ready")
        outcome = prober.check(spec)
    assert outcome.result.cause_code == Cause.TEXT_FOUND
    assert (outcome.evidence or {})["banner"] == (
        "J\ufffd\ufffd\ufffd\n8.0.36\ufffd\\xff\\xf7ready\ufffd[31m"
    )


def test_a_name_that_is_not_found_sends_nothing(prober: Prober, mail: Listener) -> None:
    outcome = prober.check(CheckSpec(url=url(mail, "gone.test")))
    assert outcome.result.cause_code == Cause.DNS_NXDOMAIN
    assert outcome.result.timings == Timings(dns=outcome.result.timings.dns)
    assert mail.connections == 0


def test_a_closed_address_is_not_connected_to(names: NameServer, mail: Listener) -> None:
    prober = Prober(policy=lambda: Policy.parse(""), dns_servers=[names.server])
    outcome = prober.check(CheckSpec(url=url(mail)))
    prober.close(5)
    assert outcome.result.verdict is Verdict.UNKNOWN
    assert outcome.result.cause_code == Cause.BLOCKED_BY_POLICY
    assert "mail.test resolves to an address that is not allowed" in (outcome.result.cause or "")
    assert (outcome.evidence or {})["refused"] == [
        {"address": "127.0.0.1", "network": "127.0.0.0/8"}
    ]
    assert mail.connections == 0


def test_good_evidence_is_made_when_something_changed(prober: Prober, mail: Listener) -> None:
    spec = CheckSpec(url=url(mail), monitor_id=77, **EXPECTS)
    assert prober.check(spec).evidence is not None
    assert prober.check(spec).evidence is None
    other = CheckSpec(url=url(mail, "127.0.0.1"), monitor_id=77, **EXPECTS)
    assert prober.check(other).evidence is not None


def test_many_checks_run_at_once_and_leave_nothing_open(prober: Prober, mail: Listener) -> None:
    def gather(count: int) -> list[Outcome]:
        futures: list[Future[Outcome]] = [Future() for _ in range(count)]
        for future in futures:
            prober.submit(CheckSpec(url=url(mail), **EXPECTS), future.set_result)
        return [future.result(30) for future in futures]

    gather(20)
    before = len(os.listdir("/proc/self/fd"))
    assert {outcome.result.verdict for outcome in gather(100)} == {Verdict.UP}
    assert len(os.listdir("/proc/self/fd")) - before < 50, "the server may still be closing some"
    assert prober.in_flight == 0


def test_a_fault_of_ours_is_check_error_and_closes_the_connection(
    names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = threading.Event()

    def wait(connection: Connection) -> None:
        try:
            tcp.greeting(connection)
        finally:  # closing with unread data sends a reset
            gone.set()

    def fail(*arguments: object) -> None:
        raise ZeroDivisionError

    prober = Prober(policy=lambda: LOOPBACK, dns_servers=[names.server])
    with closing(Listener(wait)) as mail:
        with monkeypatch.context() as patch:
            patch.setattr("app.checks.tcp.checks.TcpCheck._ready", fail)
            outcome = prober.check(CheckSpec(url=url(mail), timeout=30, **EXPECTS))
        assert outcome.result.cause_code == Cause.CHECK_ERROR
        assert gone.wait(60)
        with monkeypatch.context() as patch:
            patch.setattr("app.checks.tcp.checks.judge", fail)
            outcome = prober.check(CheckSpec(url=url(mail)))
        assert outcome.result.cause_code == Cause.CHECK_ERROR
        assert prober.check(CheckSpec(url=url(mail))).result.verdict is Verdict.UP
    prober.close(5)


def test_close_ends_the_connection_to_a_silent_server(names: NameServer) -> None:
    begun, gone = threading.Event(), threading.Event()

    def wait(connection: Connection) -> None:
        begun.set()
        connection.wait_until_gone()
        gone.set()

    prober = Prober(policy=lambda: LOOPBACK, dns_servers=[names.server])
    with closing(Listener(wait)) as silent:
        spec = CheckSpec(url=url(silent), timeout=30, monitor_id=9, **EXPECTS)
        prober.submit(spec, lambda outcome: None)
        assert begun.wait(60)
        assert prober.close() == [spec]
        assert gone.wait(60)


def test_running_out_of_file_descriptors_is_check_error(
    prober: Prober, mail: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*arguments: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("app.net.race.socket.socket", none_left)
        result = prober.check(CheckSpec(url=url(mail, "127.0.0.1"))).result
    assert (result.verdict, result.cause_code) == (Verdict.UNKNOWN, Cause.CHECK_ERROR)


def test_a_url_of_no_kind_is_check_error(prober: Prober) -> None:
    for broken in ("gopher://mail.test:70", "tcp://mail.test", "no address"):
        result = prober.check(CheckSpec(url=broken, monitor_id=3)).result
        assert (result.verdict, result.cause_code) == (Verdict.UNKNOWN, Cause.CHECK_ERROR)
        assert "The URL cannot be checked." in (result.cause or "")


def test_addresses_of_both_families_alternate() -> None:
    assert interleaved(("::1", "::2", "::3", "10.0.0.1")) == ("::1", "10.0.0.1", "::2", "::3")
    assert interleaved(("10.0.0.1", "10.0.0.2")) == ("10.0.0.1", "10.0.0.2")
