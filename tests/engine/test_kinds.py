"""A check of each kind comes back the same through each carrier (decision 17)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from app.checks.kinds import HEARTBEAT, KINDS, kind_of
from app.engine.carriers.queue.sender import QueueCarrier
from app.net import icmp
from app.records import Result
from tests.factories import make_monitor
from tests.lab.lab import Lab
from tests.lab.runner import InProcess, spec_of
from tests.lab.table import ROWS, Row
from tests.support.agents import agent_settings, running, stored
from tests.support.loopback import serving
from tests.support.queue import desk, hand_over, queue_settings, sent_batch
from tests.support.service import eventually

NAMED = {row.name: row for row in ROWS}
CHECKS = (
    "tls valid", "assertion on a body that is no JSON", "port banner matches an assertion",
    "port closed", "ping without loss", "ping no route", "record has the text",
    "record fails an assertion", "handshake valid", "handshake fails an assertion",
    "starttls postgres", "starttls expired",
)  # fmt: skip


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture(params=CHECKS)
def row(request: pytest.FixtureRequest) -> Row:
    row = NAMED[request.param]
    if row.at.kind == "ping" and icmp.why_not():
        pytest.skip("this machine does not let us ping")
    return row


def fields_of(row: Row, lab: Lab) -> dict[str, object]:
    return {"url": row.at.url(lab), "timeout": row.timeout} | row.fields


def judged(result: Result) -> tuple[object, ...]:
    shown = [(row.source, row.ok) for row in result.assertions]
    return result.verdict, result.cause_code, result.cause, shown


def test_each_kind_has_a_check_here(lab):
    kinds = {kind_of(NAMED[name].at.url(lab)) for name in CHECKS}
    assert kinds == {*KINDS} - {HEARTBEAT}


def test_through_the_queue(row, lab, redis_server, tmp_path):
    settings = replace(
        queue_settings(redis_server, tmp_path),
        dns_servers=lab.dns.settings,
        ca_bundle=lab.ca_bundle,
    )
    spec, done = spec_of(fields_of(row, lab)), []
    with closing(InProcess(lab)) as here:
        expected = here.outcome(fields_of(row, lab))
    carrier = QueueCarrier(settings)
    try:
        with desk(settings) as made:
            carrier.submit(replace(spec, monitor_id=7), done.append)
            made.take(sent_batch(redis_server))
            assert made.came.wait(30)
            hand_over(redis_server, made)
            [outcome] = eventually(lambda: done, "the outcome")
    finally:
        carrier.close(0)
    assert judged(outcome.result) == judged(expected.result)
    assert (outcome.result.verdict, outcome.result.cause_code) == (row.verdict, row.code)
    evidence = {name for name, value in (expected.evidence or {}).items() if value}
    assert {*(outcome.evidence or {})} == evidence


def test_through_an_agent(row, lab, app, place, tmp_path):
    id, token = place
    spec = spec_of(fields_of(row, lab))
    names = ("assertions", "starttls", "ssl_alert_days", "alert_condition", "alert_text_lookup")
    fields = {name: getattr(spec, name) for name in names if getattr(spec, name)}
    monitor = make_monitor(app, places=[id], url=spec.url, confirmations=0, **fields)
    more = {"dns_servers": lab.dns.settings, "ca_bundle": lab.ca_bundle}
    with serving(app) as url, running(agent_settings(tmp_path, url, token, **more)):
        eventually(lambda: stored(app, monitor.id), "the result")
    result = stored(app, monitor.id)[0]
    assert (result.location, result.verdict, result.cause_code) == ("oslo", row.verdict, row.code)
