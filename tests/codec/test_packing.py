"""Checks and outcomes survive their way between machines, and wrong ones are refused."""

import json
from datetime import UTC, datetime
from types import NoneType

import pytest

from app.codec.evidence import MAX_EVIDENCE
from app.codec.packing import pack, read_outcome
from app.codec.specs import read_spec
from app.codec.values import MalformedData
from app.records import CheckSpec, Outcome, Pair, Result, Timings, Verdict

LISTS = ("resolved", "redirects", "refused", "headers", "tls")
NOW = datetime(2026, 11, 22, 8, 0, 0, 123456, UTC)
ROW = {"source": "body", "property": None, "op": "contains", "value": "ok", "found": "", "ok": True}
SPECS = [
    CheckSpec(url="https://example.com/"),
    CheckSpec(url="https://example.com/", monitor_id=7, request_method="POST",
        request_headers=(Pair("X-Token", "hunter2"), Pair("X-Token", "ü")),
        auth=("user", "hunter2"), request_body="a=b", timeout=2.5, verify_tls=False,
        ssl_alert_days="auto", fault="Not checked."),
]  # fmt: skip
OUTCOMES = [
    Outcome(Result(checked_at=NOW, verdict=Verdict.UP, monitor_id=7)),
    Outcome(
        Result(
            checked_at=NOW,
            verdict=Verdict.DOWN,
            monitor_id=7,
            cause_code="http_status:503",
            cause="The server answered 503.",
            status_code=503,
            response_time=120,
            timings=Timings(1, 2, None, 4, 5),
            ip="2001:db8::1",
            http_version="2",
            redirects=("https://example.com/a",),
            warnings=("ipv6_unreachable",),
        ),
        evidence={"headers": [["Server", "x"]], "body": "no", "tls": [], "curl": None},
        ssl_issued_at=NOW,
        ssl_expires_at=NOW,
        ssl_fingerprint="ab" * 32,
        ssl_host="example.com",
        answered=True,
    ),
]


def sent(record):
    return json.loads(json.dumps(pack(record)))


@pytest.mark.parametrize("spec", SPECS)
def test_a_check_arrives_as_it_was_sent(spec):
    assert read_spec(sent(spec)) == spec


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_arrives_as_it_was_sent(outcome):
    arrived = read_outcome(sent(outcome))
    # Certificates' times are kept in whole seconds.
    assert arrived.result == outcome.result
    kept = {
        name: value for name, value in (outcome.evidence or {}).items() if value not in (None, [])
    }
    assert (arrived.evidence or {}) == kept
    assert arrived.ssl_fingerprint == outcome.ssl_fingerprint
    assert arrived.answered == outcome.answered


@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": "fine"},
        {"checked_at": "yesterday"},
        {"checked_at": "2026-11-22T08:00:00"},
        {"status_code": 100_000},
        {"response_time": -1},
        {"response_time": 2**40},
        {"cause_code": "made up"},
        {"cause_code": "http_status:٥٠٣"},
        {"cause": "x" * 5_000},
        {"cause": "a\0b"},
        {"cause": "\ud800"},
        {"ip": "not an address"},
        {"ip": "fe80::1%a\0"},
        {"ip": f"fe80::1%{'a' * 100}"},
        {"redirects": ["x"] * 11},
        {"redirects": ["x" * 2_049]},
        {"warnings": ["x" * 65]},
        {"timings": {"dns": 2**40}},
        {"assertions": [ROW] * 21},
        {"assertions": [ROW | {"value": "x" * 100_000}]},
    ],
)
def test_an_outcome_that_no_check_can_bring_is_refused(wrong):
    data = sent(OUTCOMES[1])
    data["result"] |= wrong
    with pytest.raises(MalformedData):
        read_outcome(data)


@pytest.mark.parametrize(
    "evidence",
    [{"body": "a\0b"}, {"headers": [["Server", "\ud800"]]}, {"tls": [{"names": ["\ud800"]}]}],
)
def test_evidence_that_cannot_be_stored_is_refused(evidence):
    with pytest.raises(MalformedData):
        read_outcome(sent(OUTCOMES[1]) | {"evidence": evidence})


@pytest.mark.parametrize(
    "large",
    [
        {"body": "x" * 10**6},
        {"body": "\ufffd" * 100_000, "headers": [["A", "ÿ" * 2_048]] * 100},
        {"tls": [{"subject": "x" * 100_000}]},
        {"tls": [{"names": ["x" * 255] * 100}] * 100},
        {"resolved": ["x" * 100_000]},
        {"request": {"method": "x" * 100_000}},
        {"redirects": [{"url": "x" * 60_000}] * 5, "status_line": "x" * 50_000},
    ],
)
def test_evidence_that_is_larger_than_any_of_ours_is_cut(large):
    """With each result of a token, 240 KB went into the database."""
    arrived = read_outcome(sent(OUTCOMES[1]) | {"evidence": {"ip": "192.0.2.1", **large}})
    assert len(json.dumps(arrived.evidence)) <= MAX_EVIDENCE
    assert arrived.evidence["ip"] == "192.0.2.1"
    assert arrived.evidence.get("body_cut", True)
    assert arrived.result == read_outcome(sent(OUTCOMES[1])).result


def test_a_body_that_names_a_null_character_arrives_as_it_is():
    """Servers that answer JSON of PHP's send such bodies. A failing check that was refused because
    of one would never open its incident.
    """
    body = r'{"message": "\u0000*\u0000code \ud800"}'
    arrived = read_outcome(sent(OUTCOMES[1]) | {"evidence": {"body": body}})
    assert arrived.evidence == {"body": body}


@pytest.mark.parametrize("odd", [5, True, "text", [1], {"a": 1}, [[1, 2, 3]], [{"x": {"y": 1}}]])
def test_odd_evidence_of_a_stranger_is_left_out_or_has_the_types_of_ours(odd):
    names = [
        *("url", "status_line", "body", "ip", "banner", "body_bytes", "body_cut", "timings"),
        *("request", "resolved", "redirects", "refused", "headers", "tls", "curl"),
    ]
    for name in names:
        evidence = read_outcome(sent(OUTCOMES[1]) | {"evidence": {name: odd}}).evidence
        kind = type((evidence or {}).get(name))
        assert kind in {
            "body_bytes": {int, NoneType},
            "body_cut": {bool, NoneType},
            "timings": {dict, NoneType},
            "request": {dict, NoneType},
            "curl": {dict, NoneType},
            **{many: {list, NoneType} for many in LISTS},
        }.get(name, {str, NoneType})


def test_evidence_names_neither_place_nor_verdict_nor_anything_that_checks_do_not_write():
    """Its names would replace the result's own: one place could speak for another, and a value that
    no recorder expects would keep the incidents of other places from opening.
    """
    deep: dict[str, object] = {}
    for _ in range(500):
        deep = {"a": deep}
    names = ("location", "verdict", "cause", "cause_code", "checked_at", "aside", "made_up")
    outcome = read_outcome(
        sent(OUTCOMES[1]) | {"evidence": dict.fromkeys(names, deep) | {"ip": "x"}}
    )
    assert outcome.evidence == {"ip": "x"}
