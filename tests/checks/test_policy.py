"""No connection is made to an address that policy forbids (decision 9)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from ipaddress import ip_address, ip_network
from urllib.parse import quote, unquote

import pytest

from app.alerts.channels import apprise
from app.checks.prober import Prober
from app.net import client
from app.net.hosts import SystemNames
from app.net.networks import SPECIAL, STICKY, embedded
from app.net.policy import Policy
from app.records import Cause, CheckSpec, Outcome, Verdict
from tests.checks.servers import NameServer, Trap, Web, host, http, reply
from tests.support.loopback import IPV6

# --- The rule itself ------------------------------------------------------------------------------

# Addresses: at least one from every row of the table, and one for every form of embedded IPv4.
CLOSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.0", "10.255.255.255", "100.64.0.1", "100.100.100.200",
    "100.127.255.255", "127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.0.1",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1",
    "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.0.1", "192.168.255.255",
    "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.254", "255.255.255.255",
    "::", "::1", "::7f00:1", "::10.0.0.1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::10.1.2.3", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "64:ff9b:1:7f00:0:100::", "64:ff9b:1::127.0.0.1", "100::1", "100:0:0:1::1",
    "2001:1::1", "2001:2::1", "2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1",
    "2001:30::1", "2001:db8::1", "2620:4f:8000::1", "3ffe::1", "3fff::1", "5f00::1", "fc00::1",
    "fd00::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::1", "ff02::1", "ff0e::1",
    "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::", "2001:0:7f00:1::", "2001::80ff:fffe",
    "2001:0:808:808:0:0:f5ff:fffe", "2606:4700::5efe:127.0.0.1", "2606:4700::200:5efe:10.0.0.1",
    "fe80::5efe:8.8.8.8", "1::1", "200::1", "4000::1", "8000::1", "e000::1", "0:1::1",
]  # fmt: skip

OPEN = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "169.253.255.255", "172.15.255.255", "172.32.0.0",
    "192.0.1.1", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
    "223.255.255.255", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:0:808:808:0:0:f7f7:f7f7",
    "2606:4700::5efe:8.8.8.8", "2001:4860:4860::8888",
]  # fmt: skip


@pytest.mark.parametrize("address", CLOSED)
def test_special_addresses_are_closed_by_default(address: str) -> None:
    refusal = Policy.parse("").refusal(address)
    assert refusal is not None
    assert "Settings page" in refusal.sentence
    assert "WAKEFUL_ALLOW_NETWORKS" in refusal.sentence
    assert ip_address(address) == refusal.address
    assert len(refusal.sentence) <= 255, "an incident's cause is cut there"


@pytest.mark.parametrize("address", OPEN)
def test_public_addresses_are_open(address: str) -> None:
    assert Policy.parse("").refusal(address) is None
    assert Policy.parse("").refusal(ip_address(address)) is None


@pytest.mark.parametrize(
    ("allowed", "opened", "closed"),
    [
        ("loopback", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"],
         ["10.0.0.1", "0.0.0.0", "::"]),
        ("private", ["10.1.2.3", "172.20.0.1", "192.168.1.1", "100.64.1.1", "fd12::1",
                     "::ffff:10.0.0.1", "2002:a00:1::"],
         ["127.0.0.1", "169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fe80::1",
          "192.0.0.192", "168.63.129.16", "198.18.0.1"]),
        (" Private , LOOPBACK ", ["10.0.0.1", "127.0.0.1"], ["169.254.1.1"]),
        ("0.0.0.0/0", ["10.0.0.1", "127.0.0.1", "224.0.0.1"],
         ["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "::1"]),
        ("::/0", ["::1", "fd00::1", "ff02::1"],
         ["fe80::1", "fd00:ec2::254", "127.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"]),
        ("169.254.169.254/32", ["169.254.169.254", "::ffff:169.254.169.254"], ["169.254.169.253"]),
        ("169.254.0.0/16", ["169.254.169.254"], ["100.100.100.200"]),
        ("169.254.0.0/15", ["169.255.0.1"], ["169.254.169.254"]),
        ("fe80::/64", ["fe80::1"], ["fe80:0:0:1::1"]),
        ("100.100.100.200", ["100.100.100.200"], ["100.100.100.201"]),
        ("fd00:ec2::254", ["fd00:ec2::254"], ["fd00:ec2::253"]),
        ("10.0.0.0/30", ["10.0.0.3"], ["10.0.0.4"]),
        ("::ffff:10.0.0.0/104", ["10.9.9.9", "::ffff:10.9.9.9"], ["127.0.0.1"]),
        ("64:ff9b:1::/48", ["64:ff9b:1::8.8.8.8"], ["64:ff9b:1::127.0.0.1"]),
        ("", [], ["127.0.0.1"]),
    ],
)  # fmt: skip
def test_a_word_or_network_in_the_setting_opens_its_addresses(
    allowed: str, opened: list[str], closed: list[str]
) -> None:
    policy = Policy.parse(allowed)
    assert [address for address in opened if policy.refusal(address)] == []
    assert [address for address in closed if not policy.refusal(address)] == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10.0.0.1/8", "10.0.0.0/8"), ("intern", "'intern'"), ("10.0.0.0/33", "10.0.0.0/33"),
        ("loopback, 1.2.3", "'1.2.3'"), ("http://10.0.0.1", "'http://10.0.0.1'"),
    ],
)  # fmt: skip
def test_an_invalid_part_of_the_setting_is_named_in_the_error(text: str, says: str) -> None:
    with pytest.raises(ValueError, match="network") as error:
        Policy.parse(text)
    assert says in str(error.value)


def test_every_row_closes_its_first_and_last_address() -> None:
    policy = Policy.parse("")
    for row in (*SPECIAL, *STICKY):
        assert policy.refusal(row.network[0]), row
        assert policy.refusal(row.network[-1]), row


def test_embedded_ipv4_addresses_are_found() -> None:
    by_text = {
        text: [str(address) for address in embedded(ip_address(text))]  # type: ignore[arg-type]
        for text in ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2002:c000:204::", "::1", "2606::1")
    }
    assert by_text == {
        "2001:0:4136:e378:8000:63bf:3fff:fdd2": ["65.54.227.120", "192.0.2.45"],  # RFC 4380's
        "2002:c000:204::": ["192.0.2.4"],
        "::1": [],
        "2606::1": [],
    }


# --- On the wire ----------------------------------------------------------------------------------
#
# Loopback is closed except for one address, which redirects come from. The trap listens on every
# address of this machine.

REDIRECTOR = "127.0.0.77"
ALLOWED_TEXT = f"{REDIRECTOR}/32"
ALLOWED = Policy.parse(ALLOWED_TEXT)

SPELLINGS = [
    # dotted, short, decimal, octal, hexadecimal, mixed
    "127.0.0.1", "127.0.1", "127.1", "2130706433", "017700000001", "0x7f000001", "0x7f.1",
    "0X7F.0.0.1", "0177.0.0.1", "0177.0.0.01", "127.0x0.0.1", "0x7f.0.0x0.0x1", "00000177.1",
    "127.000.000.001", "0x7f.0.1", "127.0.0.1.", "127.1.", "0", "0.0.0.0", "0x0", "00.0.0",
    "127.65535", "127.16777215", "2130706434", "0x7F000002",
    # non-ASCII digits and dots
    "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "127\uff0e0\uff0e0\uff0e1",
    "\u2460\u2461\u2466.0.0.1", "\U0001d7cf\U0001d7d0\U0001d7d5.0.0.1", "127\uff610\uff610\uff611",
    "\uff10x7f000001", "\u00b92\u2077.0.0.1",
    "\uff12\uff11\uff13\uff10\uff17\uff10\uff16\uff14\uff13\uff13",
    # IPv6
    "[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::]", "[::0001]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:7F00:0001]", "[::127.0.0.1]",
    "[::7f00:1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]", "[2001:0:7f00:1::]",
    "[2001::80ff:fffe]", "[2606:4700::5efe:7f00:1]", "[fd00::2]", "[fe80::1]", "[ff02::1]",
    "[fc00::1]", "[fec0::1]", "[fd00:ec2::254]", "[100::1]", "[2001:db8::1]", "[::ffff:0.0.0.0]",
    # other networks
    "10.0.0.1", "10.1", "0xa.1", "167772161", "172.16.0.1", "192.168.1.1", "0300.0250.1.1",
    "3232235777", "100.64.0.1", "169.254.169.254", "0xa9fea9fe", "2852039166",
    "0251.0376.0251.0376",
    "169.254.43518", "169.16689662", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "192.0.2.2", "198.18.0.1", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "0xffffffff", "4294967295",
    # names of this machine
    "localhost", "LOCALHOST", "localhost.", "any.localhost", "\uff4cocalhost",
]  # fmt: skip

# Names that DNS resolves to closed addresses: one for each address, and CNAMEs to some of them.
NAMED = [address for address in CLOSED if address not in ("0.0.0.0", "::")]


def _zone() -> dict[str, object]:
    zone: dict[str, object] = {
        f"n{number}.test": host(f"n{number}.test", address) for number, address in enumerate(NAMED)
    }
    zone["alias.test"] = [("alias.test", "CNAME", "n9.test."), *host("n9.test", "127.0.0.1")]
    zone["several.test"] = host("several.test", "127.0.0.1", "10.0.0.1", "::1", "fd00::2")
    zone["mixed.test"] = host("mixed.test", "127.0.0.1", REDIRECTOR, "::1")
    # The first look-up gives an open address, the next a closed one.
    zone["rebinding.test"] = lambda query, times: reply(
        query, host("rebinding.test", REDIRECTOR if times == 0 else "127.0.0.1")
    )
    zone["1.2.3.256"] = host("1.2.3.256", "127.0.0.1")
    return zone


@pytest.fixture(scope="module")
def names() -> Iterator[NameServer]:
    server = NameServer(_zone())  # type: ignore[arg-type]
    yield server
    server.close()


@pytest.fixture(scope="module")
def trap() -> Iterator[Trap]:
    trap = Trap()
    yield trap
    trap.close()


@pytest.fixture(scope="module")
def redirector(trap: Trap) -> Iterator[Web]:
    def answer(head: str, body: bytes) -> bytes:
        path = head.split(" ")[1]
        if path.startswith("/trap"):
            return http("307 Found", b"", f"Location: http://127.0.0.1:{trap.port}/")
        if not path.startswith("/to?"):
            return http()
        return http("302 Found", b"", f"Location: {unquote(path[4:])}")

    web = Web(answer, REDIRECTOR)
    yield web
    web.close()


@pytest.fixture(scope="module")
def prober(names: NameServer) -> Iterator[Prober]:
    prober = Prober(policy=lambda: ALLOWED, dns_servers=[names.server])
    yield prober
    prober.close(5)


AT_ONCE = 16


def check_all(prober: Prober, urls: list[str]) -> dict[str, Outcome]:
    """Some at a time: a server of the tests refuses connections that come by the hundred."""
    outcomes: dict[str, Outcome] = {}
    for start in range(0, len(urls), AT_ONCE):
        futures: dict[str, Future[Outcome]] = {url: Future() for url in urls[start:][:AT_ONCE]}
        for url, future in futures.items():
            prober.submit(CheckSpec(url=url, timeout=30), future.set_result)
        outcomes |= {url: future.result(60) for url, future in futures.items()}
    return outcomes


def refused(outcomes: dict[str, Outcome]) -> dict[str, str | None]:
    """The results that were not blocked."""
    return {
        url: outcome.result.cause
        for url, outcome in outcomes.items()
        if outcome.result.verdict != Verdict.UNKNOWN
        or outcome.result.cause_code != Cause.BLOCKED_BY_POLICY
    }


def test_no_spelling_of_a_closed_address_is_connected_to(prober: Prober, trap: Trap) -> None:
    outcomes = check_all(prober, [f"http://{host}:{trap.port}/" for host in SPELLINGS])
    assert refused(outcomes) == {}
    assert {outcome.result.ip for outcome in outcomes.values()} == {None}
    assert trap.caught() == []


def test_no_redirect_leads_to_a_closed_address(prober: Prober, trap: Trap, redirector: Web) -> None:
    places = [f"http://{host}:{trap.port}/" for host in SPELLINGS]
    places += [f"//{host}:{trap.port}/x" for host in SPELLINGS if host.isascii()]
    base = f"http://{REDIRECTOR}:{redirector.port}/to?"
    outcomes = check_all(prober, [base + quote(place, safe="") for place in places])
    assert refused(outcomes) == {}
    assert all("Redirect 1" in (outcome.result.cause or "") for outcome in outcomes.values())
    assert trap.caught() == []


def test_no_name_leads_to_a_closed_address(prober: Prober, trap: Trap) -> None:
    hosts = [f"n{number}.test" for number in range(len(NAMED))]
    hosts += ["alias.test", "several.test", "1.2.3.256", "ALIAS.Test", "several.test."]
    outcomes = check_all(prober, [f"http://{host}:{trap.port}/" for host in hosts])
    assert refused(outcomes) == {}
    assert trap.caught() == []


def test_no_redirect_leads_to_a_name_with_a_closed_address(
    prober: Prober, trap: Trap, redirector: Web
) -> None:
    base = f"http://{REDIRECTOR}:{redirector.port}/to?"
    hosts = [f"n{number}.test" for number in range(len(NAMED))]
    urls = [base + quote(f"http://{host}:{trap.port}/", safe="") for host in hosts]
    assert refused(check_all(prober, urls)) == {}
    assert trap.caught() == []


def test_a_name_with_open_and_closed_addresses_uses_only_the_open_ones(
    prober: Prober, redirector: Web
) -> None:
    outcome = prober.check(CheckSpec(url=f"http://mixed.test:{redirector.port}/", timeout=30))
    assert outcome.result.verdict == Verdict.UP
    assert outcome.result.ip == REDIRECTOR
    assert outcome.evidence is not None
    assert [refusal["address"] for refusal in outcome.evidence["refused"]] == ["::1", "127.0.0.1"]


def test_a_name_is_judged_again_at_each_hop(
    prober: Prober, names: NameServer, redirector: Web
) -> None:
    names.asked.clear()
    there = quote(f"http://rebinding.test:{redirector.port}/again", safe="")
    outcome = prober.check(
        CheckSpec(url=f"http://rebinding.test:{redirector.port}/to?{there}", timeout=30)
    )
    assert refused({"": outcome}) == {}
    assert names.asked["rebinding.test", "A"] == 2
    assert not any("/again" in head for head in redirector.heads)


def test_the_connection_goes_to_the_address_that_was_judged(
    prober: Prober, names: NameServer, redirector: Web
) -> None:
    """DNS is not asked again between the judgement and the connection."""
    names.asked.clear()
    outcome = prober.check(CheckSpec(url=f"http://rebinding.test:{redirector.port}/", timeout=30))
    assert (outcome.result.verdict, outcome.result.ip) == (Verdict.UP, REDIRECTOR)
    assert names.asked["rebinding.test", "A"] == 1


def test_policy_is_checked_again_when_the_socket_is_opened(names: NameServer, trap: Trap) -> None:
    """If the first judgement is bypassed, the one at the connection still refuses."""

    class Fooled(Policy):
        answers = threading.local()

        def refusal(self, address: object) -> object:  # type: ignore[override]
            first = not getattr(self.answers, "asked", False)
            self.answers.asked = True
            return None if first else super().refusal(address)  # type: ignore[arg-type]

    policy = Fooled()
    prober = Prober(policy=lambda: policy, dns_servers=[names.server])
    outcome = prober.check(CheckSpec(url=f"http://127.0.0.1:{trap.port}/", timeout=30))
    prober.close(5)
    assert refused({"": outcome}) == {}
    assert trap.caught() == []


def test_no_alert_url_leads_to_a_closed_address(names: NameServer, trap: Trap) -> None:
    network = client.Network(ALLOWED, SystemNames((names.server,)))
    hosts = [*SPELLINGS, *(f"n{number}.test" for number in range(len(NAMED)))]
    for name in (*hosts, "alias.test", "several.test", "1.2.3.256"):
        with pytest.raises(client.Blocked):
            network.post(f"http://{name}:{trap.port}/hook", body=b"")
    assert trap.caught() == []


def test_no_apprise_url_leads_to_a_closed_address(trap: Trap, redirector: Web) -> None:
    """Apprise connects by itself, so its process refuses each connection when it is opened."""
    child = apprise._Child()
    urls = [f"json://{REDIRECTOR}:{redirector.port}/trap"]
    urls += [f"json://{host}:{trap.port}/" for host in SPELLINGS if host.isascii()]
    # The port of DNS is refused too: Apprise itself never needs to connect to it.
    urls += ["json://127.0.0.1:53/", "json://169.254.169.254:53/"]
    # Apprise gives up after four seconds, which a busy machine may need for the redirect.
    urls = [f"{url}?cto=60&rto=60" for url in urls]
    outcomes = {}
    try:
        for url in urls:
            task = {"url": url, "title": "", "body": "x", "kind": "info", "allow": [ALLOWED_TEXT]}
            outcomes[url] = child.ask(task, 60)["outcome"]
    finally:
        child.end()
    assert any("/trap" in head for head in redirector.heads), "the redirect was asked for"
    assert set(outcomes.values()) <= {"permanent", "retry"}
    for url in (urls[0], *urls[-2:]):
        assert outcomes[url] == "permanent"
    assert trap.caught() == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com@127.0.0.1:{port}/", "http://127.0.0.1:{port}\\@example.com/",
        "http://example.com\\@127.0.0.1:{port}/", "http://127.0.0.1%3a{port}/",
        "http://%31%32%37.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "http:127.0.0.1:{port}",
        "http://127.0.0.1:{port}\t/", "http://[127.0.0.1]:{port}/", "http://[::1%25lo]:{port}/",
        "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/", "file:///etc/passwd",
        "http://user:pass@127.0.0.1:{port}/", "http://127.0.0.1:{port}:80/",
    ],
)  # fmt: skip
def test_a_url_that_is_not_plain_http_is_not_connected_to(
    prober: Prober, trap: Trap, url: str
) -> None:
    outcome = prober.check(CheckSpec(url=url.format(port=trap.port), timeout=30))
    assert outcome.result.cause_code == Cause.CHECK_ERROR
    assert trap.caught() == []


@pytest.mark.parametrize(
    ("host", "caught"), [("127.1", "::ffff:127.0.0.1"), pytest.param("[::1]", "::1", marks=IPV6)]
)
def test_the_trap_counts_connections(trap: Trap, host: str, caught: str) -> None:
    """The tests above do not pass only because nothing listens."""
    prober = Prober(policy=lambda: Policy.parse("loopback"))
    outcome = prober.check(CheckSpec(url=f"http://{host}:{trap.port}/", timeout=2))
    prober.close(5)
    assert outcome.result.cause_code == Cause.TIMEOUT_TTFB
    assert trap.caught() == [caught]


def test_a_changed_policy_applies_to_the_next_check(names: NameServer, redirector: Web) -> None:
    """A change on the Settings page applies to the next check."""
    policies = [Policy.parse("")]
    prober = Prober(policy=lambda: policies[-1], dns_servers=[names.server])
    spec = CheckSpec(url=f"http://{REDIRECTOR}:{redirector.port}/", timeout=30)
    before = prober.check(spec).result.verdict
    policies.append(ALLOWED)
    after = prober.check(spec).result.verdict
    prober.close(5)
    assert (before, after) == (Verdict.UNKNOWN, Verdict.UP)


def test_a_policy_can_be_made_from_networks_and_words() -> None:
    assert Policy([ip_network("10.0.0.0/8")], ["loopback"]).allows("127.0.0.1")
    assert not Policy().allows("127.0.0.1")
    with pytest.raises(ValueError, match="intern"):
        Policy(words=["intern"])
