"""A check of each kind comes back the same through each carrier (decision 17)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial

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
from tests.support.queue import desk, queue_settings, waiting
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


@pytest.fixture
def rows() -> list[Row]:
    rows = [NAMED[name] for name in CHECKS]
    if icmp.why_not():  # this machine does not let us ping
        rows = [row for row in rows if row.at.kind != "ping"]
    return rows


def fields_of(row: Row, lab: Lab) -> dict[str, object]:
    return {"url": row.at.url(lab), "timeout": row.timeout} | row.fields


def judged(result: Result) -> tuple[object, ...]:
    shown = [(row.source, row.ok) for row in result.assertions]
    return result.verdict, result.cause_code, result.cause, shown


def test_each_kind_has_a_check_here(lab):
    kinds = {kind_of(NAMED[name].at.url(lab)) for name in CHECKS}
    assert kinds == {*KINDS} - {HEARTBEAT}


def test_through_the_queue(rows, lab, redis_server, tmp_path):
    settings = replace(
        queue_settings(redis_server, tmp_path),
        dns_servers=lab.dns.settings,
        ca_bundle=lab.ca_bundle,
    )
    with closing(InProcess(lab)) as here:
        expected = {row.name: here.outcome(fields_of(row, lab)) for row in rows}
    outcomes, taken = {}, set()
    carrier = QueueCarrier(settings)
    with desk(settings, sending=True) as made:
        for number, row in enumerate(rows, 1):
            spec = replace(spec_of(fields_of(row, lab)), monitor_id=number)
            carrier.submit(spec, partial(outcomes.__setitem__, row.name))

        def all_came() -> bool:
            for batch in waiting(redis_server):
                if batch not in taken:
                    taken.add(batch)
                    made.take(batch)
            return len(outcomes) == len(rows)

        try:
            eventually(all_came, "the outcomes", 60)
        finally:
            carrier.close(0)
    for row in rows:
        outcome = outcomes[row.name]
        assert judged(outcome.result) == judged(expected[row.name].result)
        assert (outcome.result.verdict, outcome.result.cause_code) == (row.verdict, row.code)
        evidence = {name for name, value in (expected[row.name].evidence or {}).items() if value}
        assert {*(outcome.evidence or {})} == evidence


def test_through_an_agent(rows, lab, app, place, tmp_path):
    id, token = place
    names = ("assertions", "starttls", "ssl_alert_days", "alert_condition", "alert_text_lookup")
    monitors = []
    for row in rows:
        spec = spec_of(fields_of(row, lab))
        fields = {name: getattr(spec, name) for name in names if getattr(spec, name)}
        monitors.append(make_monitor(app, places=[id], url=spec.url, confirmations=0, **fields))
    more = {"dns_servers": lab.dns.settings, "ca_bundle": lab.ca_bundle}
    with serving(app) as url, running(agent_settings(tmp_path, url, token, **more)):
        eventually(lambda: all(stored(app, monitor.id) for monitor in monitors), "the results", 60)
    for row, monitor in zip(rows, monitors, strict=True):
        result = stored(app, monitor.id)[0]
        shown = (result.location, result.verdict, result.cause_code)
        assert shown == ("oslo", row.verdict, row.code), row.name
