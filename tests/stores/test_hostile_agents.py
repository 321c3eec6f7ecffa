"""Requests of anybody who has the token of a place's agent: never an answer 500, and nothing that
costs another result.
"""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from app.codec.packing import pack
from app.db import db
from app.db.tables import IncidentRow
from app.db.types import to_ms
from app.records import Timings, Verdict
from app.stores.local import agent_results
from tests.factories import make_monitor, make_outcome
from tests.support.agents import public, result, stored
from tests.support.lies import LIES, MISSING, paths, spoiled

ODD = [
    *LIES, "", "\0", "a\r\nb", "\x85", "\udfff\ud800", 2**31, 2**63, 2**64, -(2**63) - 1, 1e308,
    float("nan"), 0, False, 0.1, "9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "x" * 100_000, [[]], [1, "x"],
    ["\0"], ["x"] * 101, [{}], {"\0": "\0"}, {"x": {"y": ["\ud800"]}},
]  # fmt: skip
# What PostgreSQL cannot store: NUL and surrogates in a text, and numbers of more than eight bytes.
UNSTORABLE = ["\0", "\udfff\ud800", 2**31, 2**63, 2**64, ["\0"], {"\0": "\0"}]
EVIDENCE = {
    "url": "https://example.com/",
    "request": {"method": "GET", "hops": 1},
    "status_line": "HTTP/1.1 503 No",
    "headers": [["Server", "x"]],
    "body": "no",
    "body_bytes": 2,
    "body_cut": False,
    "resolved": ["192.0.2.1"],
    "refused": [{"address": "10.0.0.1", "network": "10.0.0.0/8"}],
    "ip": "192.0.2.1",
    "http_version": "1.1",
    "tls": [{"subject": "a", "issuer": "b", "not_before": "2026-11-21T08:00:00+00:00",
             "not_after": "2027-11-21T08:00:00+00:00", "sha256": "ab" * 32, "names": ["a"]}],
    "timings": dict.fromkeys(("dns", "connect", "tls", "ttfb", "download"), 1),
    "redirects": [{"status_line": "HTTP/1.1 302 Found", "url": "https://example.com/a", "ip": "x"}],
    "curl": {"code": 56, "words": "reset"},
    "banner": "220",
    "banner_bytes": 3,
}  # fmt: skip


@pytest.fixture(autouse=True)
def roomy(monkeypatch):
    """No budget ends before the table does."""
    for name in ("MIN_REQUESTS", "MIN_RESULTS"):
        monkeypatch.setattr(agent_results, name, 10**9)


@pytest.fixture
def send(client, place):
    """Sends JSON that may be odd; the answer."""

    def send(path, data):
        return client.post(
            f"/api/v1/agent/{path}",
            data=json.dumps(data),
            headers={"Authorization": f"Bearer {place[1]}", "Content-Type": "application/json"},
        )

    return send


HELLO = {"public_key": public(), "version": "1.0"}
FIGURES = {"version": "1.0", "clock_offset_ms": 5, "checks_per_minute": 60, "results": []}


@pytest.mark.parametrize(
    ("path", "data"), [("hello", HELLO), ("assigned", {"since": 0}), ("results", FIGURES)]
)
def test_odd_fields_of_a_request_are_no_fault_of_ours(ask, send, path, data):
    ask("hello", public_key=public())
    for where in paths(data):
        for odd in ODD:
            answer = send(path, spoiled(data, where, None if odd is MISSING and not where else odd))
            assert answer.status_code in (200, 409, 422), (where, repr(odd)[:50], answer.text)
    assert send(path, data).status_code == 200


@pytest.mark.both_databases
def test_an_odd_result_costs_no_other(app, settings, place, send):
    table = ODD if settings.database_url.startswith("sqlite") else UNSTORABLE
    # One for each, so that all results of a request are judged in one transaction.
    day = datetime.now(UTC) - timedelta(days=1)
    kept = {"interval": 3600, "created_at": day, "updated_at": day}
    good, *bad = (make_monitor(app, places=[place[0]], **kept) for _ in [None, *table])
    whole = make_outcome(
        Verdict.DOWN,
        evidence=EVIDENCE,
        cause_code="http_status:503",
        redirects=("https://example.com/a",),
        warnings=("ipv6_unreachable",),
        timings=Timings(1, 2, 3, 4, 5),
        status_code=503,
        ssl_issued_at=datetime.now(UTC),
        ssl_expires_at=datetime.now(UTC),
        ssl_fingerprint="ab" * 32,
        ssl_host="example.com",
        answered=True,
        matched="x",
    )
    of_heartbeats = {"conclusive", "since"}  # which no place checks
    assert {field.name for field in fields(whole)} - of_heartbeats == pack(whole).keys()
    begin, version = datetime.now(UTC) - timedelta(minutes=10), to_ms(good.updated_at)
    parts = list(paths({"made_for": version, "outcome": pack(whole)}))
    batches = [parts[number : number + 3] for number in range(0, len(parts), 3)]
    for number, batch in enumerate(batches):
        at = begin + timedelta(seconds=number)
        sent = []
        for first, where in enumerate(batch):
            # Evidence is kept of failures; good checks take less time here.
            verdict = Verdict.DOWN if "evidence" in where else Verdict.UP
            for monitor, odd in zip(bad[first::3], table[first::3], strict=True):
                made = replace(whole.result, monitor_id=monitor.id, checked_at=at, verdict=verdict)
                outcome = pack(replace(whole, result=made))
                sent.append(spoiled({"made_for": version, "outcome": outcome}, where, odd))
        sent.insert(number % len(sent), result(good, Verdict.UP, at))
        answer = send("results", {"results": sent})
        assert answer.status_code == 200, (batch, answer.text)
        assert len(stored(app, good.id)) == number + 1, batch
    with app.app_context():
        assert db.session.scalars(select(IncidentRow)).all()
