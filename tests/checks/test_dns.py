"""Checks of DNS: what a row of tests/lab/table.py cannot show."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from app.checks.prober import Prober
from app.codec.packing import pack, read_outcome
from app.net.policy import Policy
from app.records import Assertion, CheckSpec
from tests.checks.servers import NameServer

NAME = "shop.test"
# The records of a zone by type, as dig writes them.
RECORDS = {
    "A": "192.0.2.1",
    "AAAA": "2001:db8::1",
    "MX": "10 mail.shop.test.",
    "NS": "ns1.shop.test.",
    "TXT": '"v=spf1 -all"',
    "SRV": "10 20 5060 sip.shop.test.",
    "CAA": '0 issue "ca.test"',
    "SOA": "ns1.shop.test. admin.shop.test. 7 3600 600 86400 300",
    "PTR": "host.shop.test.",
}


@pytest.fixture(scope="module")
def names() -> Iterator[NameServer]:
    zone = {NAME: [(NAME, kind, value) for kind, value in RECORDS.items()]}
    zone["www.shop.test"] = [("www.shop.test", "CNAME", f"{NAME}.")]
    zone["1.2.0.192.in-addr.arpa"] = [("1.2.0.192.in-addr.arpa", "PTR", "host.shop.test.")]
    server = NameServer(zone, ttl=300)
    yield server
    server.close()


@pytest.fixture(scope="module")
def prober(names: NameServer) -> Iterator[Prober]:
    policy = Policy.parse("loopback")
    prober = Prober(policy=lambda: policy, dns_servers=[names.server])
    yield prober
    prober.close()


@pytest.mark.parametrize("kind", RECORDS)
def test_section_17_a_record_of_each_type_is_up_and_searched_as_dig_writes_it(prober, kind):
    text = {"alert_condition": "url_no_text", "alert_text_lookup": RECORDS[kind]}
    asserted = (Assertion("answer", None, "=", RECORDS[kind]),)
    spec = CheckSpec(url=f"dns:{NAME}?type={kind.lower()}", assertions=asserted, **text)
    outcome = prober.check(spec)
    assert [row.ok for row in outcome.result.assertions] == [True]
    assert (outcome.result.verdict, outcome.matched) == ("up", RECORDS[kind])
    assert outcome.answered
    assert outcome.evidence["answers"] == [
        {"name": f"{NAME}.", "ttl": 300, "type": kind, "data": RECORDS[kind]}
    ]


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("dns:www.shop.test?type=CNAME", "up"),
        ("dns:www.shop.test", "down"),  # the CNAME is no address
        ("dns:192.0.2.1?type=PTR", "up"),
        ("dns:///shop.test.", "up"),
        ("dns:Shop.TEST?TYPE=mx;class=in", "up"),
    ],
)
def test_section_17_what_is_asked_for_follows_from_the_address(prober, url, verdict):
    assert prober.check(CheckSpec(url=url)).result.verdict == verdict


def test_section_17_evidence_has_flags_code_and_server(prober, names):
    outcome = prober.check(CheckSpec(url=f"dns://localhost:{names.port}/gone.test"))
    assert outcome.result.cause_code == "dns_nxdomain"
    assert outcome.evidence["rcode"] == "NXDOMAIN"
    assert outcome.evidence["flags"] == "qr rd ra"
    assert outcome.evidence["server"] == f"127.0.0.1:{names.port}"
    assert (outcome.result.ip, outcome.result.timings.dns) == ("127.0.0.1", 0)
    brought = read_outcome(json.loads(json.dumps(pack(outcome))))  # by an agent or a queue
    assert brought.evidence == {name: value for name, value in outcome.evidence.items() if value}


def test_section_17_policy_judges_the_named_server_and_not_the_answers(names):
    prober = Prober(policy=lambda: Policy.parse(""), dns_servers=[names.server])
    answer = prober.check(CheckSpec(url=f"dns:{NAME}")).result
    server = prober.check(CheckSpec(url=f"dns://127.0.0.1:{names.port}/{NAME}")).result
    prober.close()
    assert (answer.verdict, server.cause_code) == ("up", "blocked_by_policy")
