"""Resolving names: causes of failure, cache, validation of answers, and time limits."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import pytest

from app.net import dnsquery, resolver
from app.net.dnsquery import FIRST_WAIT
from app.net.hosts import (
    DnsServer,
    SystemConfig,
    SystemNames,
    parse_servers,
    read_hosts,
    read_resolv_conf,
)
from app.net.loop import Loop
from app.net.resolver import Cache, Resolved, Resolver, resolve
from app.records import Cause
from tests.checks.servers import Answer, NameServer, host, reply

Query = dns.message.Message


@pytest.fixture
def names() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.close()


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A UDP port without a listener; another socket reserves it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


def system(*servers: DnsServer) -> SystemNames:
    return SystemNames(servers, hosts="/dev/null")


def ask(names: NameServer, name: str = "a.test", timeout: float = 5.0) -> Resolved:
    return resolve(name, timeout, names=system(names.server))


def failing(rcode: dns.rcode.Rcode) -> Answer:
    return lambda query, times: reply(query, [], rcode=rcode)


def for_kind(kind: str, first: Answer, other: Answer) -> Answer:
    """``first`` for questions of one type, ``other`` for all others."""

    def answer(query: Query, times: int) -> Query | bytes | None:
        asked = dns.rdatatype.to_text(query.question[0].rdtype)
        answer = first if asked == kind else other
        return answer(query, times) if callable(answer) else reply(query, answer)

    return answer


def cut(query: Query, times: int) -> Query:
    message = reply(query, [])
    message.flags |= dns.flags.TC
    return message


def too_long_for_udp(records: object) -> Answer:
    """The first answer of each type is truncated; the second question comes over TCP."""
    return lambda query, times: cut(query, 0) if times == 0 else reply(query, records)  # type: ignore[arg-type]


def garbage(query: Query, times: int) -> bytes:
    return reply(query, []).to_wire()[:2] + b"\xff" * 20


ADDRESS = host("a.test", "192.0.2.7")
BOTH = host("a.test", "192.0.2.7", "2001:db8::7")
SILENT: Answer = lambda query, times: None  # noqa: E731  (a value of the table, not a function)


ANSWERS: dict[str, tuple[Answer | None, tuple[str, ...] | Cause]] = {
    "one address": (ADDRESS, ("192.0.2.7",)),
    "both families": (BOTH, ("2001:db8::7", "192.0.2.7")),
    "IPv6 alone": (host("a.test", "2001:db8::7"), ("2001:db8::7",)),
    "records of another name": ([*ADDRESS, *host("b.test", "192.0.2.66")], ("192.0.2.7",)),
    "29 addresses": (host("a.test", *[f"192.0.2.{n}" for n in range(1, 30)]),
                     tuple(f"192.0.2.{n}" for n in range(1, 30))),
    "two CNAMEs": ([("a.test", "CNAME", "b.test."), ("b.test", "CNAME", "c.test."),
                    *host("c.test", "192.0.2.9")], ("192.0.2.9",)),
    "cut over UDP": (too_long_for_udp(ADDRESS), ("192.0.2.7",)),
    "AAAA fails": (for_kind("AAAA", failing(dns.rcode.SERVFAIL), ADDRESS), ("192.0.2.7",)),
    "AAAA is denied": (for_kind("AAAA", failing(dns.rcode.NXDOMAIN), ADDRESS), ("192.0.2.7",)),
    "AAAA is silent": (for_kind("AAAA", SILENT, ADDRESS), ("192.0.2.7",)),
    "A is silent": (for_kind("A", SILENT, BOTH), ("2001:db8::7",)),
    "no name": (None, Cause.DNS_NXDOMAIN),
    "no address": ([], Cause.DNS_NO_ADDRESS),
    "CNAME to itself": ([("a.test", "CNAME", "a.test.")], Cause.DNS_SERVFAIL),
    "CNAME loop": ([("a.test", "CNAME", "b.test."), ("b.test", "CNAME", "a.test.")],
                   Cause.DNS_SERVFAIL),
    "SERVFAIL": (failing(dns.rcode.SERVFAIL), Cause.DNS_SERVFAIL),
    "NOTIMP": (failing(dns.rcode.NOTIMP), Cause.DNS_SERVFAIL),
    "FORMERR": (failing(dns.rcode.FORMERR), Cause.DNS_SERVFAIL),
    "REFUSED": (failing(dns.rcode.REFUSED), Cause.DNS_REFUSED),
    "one denied, one empty": (for_kind("AAAA", failing(dns.rcode.NXDOMAIN), []),
                              Cause.DNS_NXDOMAIN),
    "one refused, one empty": (for_kind("AAAA", failing(dns.rcode.REFUSED), []),
                               Cause.DNS_REFUSED),
    "garbage": (garbage, Cause.DNS_SERVFAIL),
    "cut over TCP too": (cut, Cause.DNS_SERVFAIL),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_addresses_or_one_cause(
    names: NameServer, answer: Answer | None, expected: tuple[str, ...] | Cause
) -> None:
    if answer is not None:
        names.zone["a.test"] = answer
    resolved = ask(names)
    if isinstance(expected, Cause):
        assert (resolved.cause, resolved.addresses) == (expected, ())
        assert "a.test" in resolved.sentence
        assert str(names.server) in resolved.sentence
    else:
        assert resolved.cause is None
        shuffled = len(expected) > 2  # by the test's server
        assert (sorted(resolved.addresses) if shuffled else resolved.addresses) == (
            sorted(expected) if shuffled else expected
        )


def test_a_cname_without_its_target_is_followed_by_another_question(names: NameServer) -> None:
    names.zone["a.test"] = [("a.test", "CNAME", "b.test.")]
    names.zone["b.test"] = [("b.test", "CNAME", "c.test.")]
    names.zone["c.test"] = host("c.test", "192.0.2.9")
    assert ask(names).addresses == ("192.0.2.9",)
    names.zone["c.test"] = [("c.test", "CNAME", "a.test.")]
    assert ask(names).cause == Cause.DNS_SERVFAIL


def _changed(change: Callable[[Query], None]) -> Answer:
    def answer(query: Query, times: int) -> Query:
        message = reply(query, host(query.question[0].name.to_text(True), "192.0.2.66"))
        change(message)
        return message

    return answer


def wrong_id(message: Query) -> None:
    message.id = (message.id + 1) % 65_536


def wrong_name(message: Query) -> None:
    message.question[0].name = dns.name.from_text("b.test")


def no_answer(message: Query) -> None:
    message.flags &= ~dns.flags.QR


@pytest.mark.parametrize("change", [wrong_id, wrong_name, no_answer])
def test_an_answer_to_another_question_is_ignored(
    names: NameServer, change: Callable[[Query], None]
) -> None:
    names.zone["a.test"] = _changed(change)
    resolved = ask(names, timeout=0.3)
    assert (resolved.addresses, resolved.cause) == ((), Cause.DNS_TIMEOUT)
    assert "0.3 s" in resolved.sentence


def test_every_question_has_its_own_id(names: NameServer) -> None:
    ids: list[int] = []

    def answer(query: Query, times: int) -> Query:
        ids.append(query.id)
        return reply(query, ADDRESS)

    names.zone["a.test"] = answer
    for _ in range(10):
        ask(names)
    assert len(set(ids)) >= 18, ids


def test_a_silent_server_is_asked_again_after_the_next_one(names: NameServer) -> None:
    names.zone["a.test"] = lambda query, times: None if times == 0 else reply(query, ADDRESS)
    other = NameServer({"a.test": SILENT})
    began = time.monotonic()
    resolved = resolve("a.test", 10, names=system(names.server, other.server))
    other.close()
    assert resolved.addresses == ("192.0.2.7",)
    assert other.asked["a.test", "A"] == 1
    assert time.monotonic() - began > 2 * FIRST_WAIT * 0.9


@pytest.mark.parametrize(
    "first", [failing(dns.rcode.SERVFAIL), None], ids=["SERVFAIL", "nobody there"]
)
def test_after_an_error_the_next_server_is_asked_at_once(
    names: NameServer, first: Answer | None, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dnsquery, "FIRST_WAIT", 120)
    names.zone["a.test"] = ADDRESS
    broken = NameServer({"a.test": first}) if first is not None else None
    server = broken.server if broken else DnsServer("127.0.0.1", closed_port)
    resolved = resolve("a.test", 60, names=system(server, names.server))
    if broken:
        broken.close()
    assert resolved.addresses == ("192.0.2.7",)


def test_servfail_outranks_refused_and_nxdomain_ends_the_look_up() -> None:
    refusing = NameServer({"a.test": failing(dns.rcode.REFUSED)})
    failing_ = NameServer({"a.test": failing(dns.rcode.SERVFAIL)})
    resolved = resolve("a.test", 5, names=system(refusing.server, failing_.server))
    assert resolved.cause == Cause.DNS_SERVFAIL
    assert str(failing_.server) in resolved.sentence
    nothing = resolve("gone.test", 5, names=system(refusing.server, failing_.server))
    assert nothing.cause == Cause.DNS_NXDOMAIN
    assert failing_.asked["gone.test", "A"] == 0
    refusing.close()
    failing_.close()


def test_unreachable_servers_are_a_timeout(closed_port: int) -> None:
    resolved = resolve("a.test", 0.4, names=system(DnsServer("127.0.0.1", closed_port)))
    assert resolved.cause == Cause.DNS_TIMEOUT


# --- The cache ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ttl", "records", "questions"), [(60, ADDRESS, 1), (0, ADDRESS, 2), (60, None, 1)]
)
def test_an_answer_is_cached_for_its_ttl(ttl: int, records: Answer | None, questions: int) -> None:
    names = NameServer({"a.test": records} if records is not None else {}, ttl)
    cache = Cache()
    for _ in range(2):
        resolve("a.test", 5, names=system(names.server), cache=cache)
    names.close()
    assert names.asked["a.test", "A"] == questions


def test_a_servers_error_is_never_cached(names: NameServer) -> None:
    names.zone["a.test"] = failing(dns.rcode.SERVFAIL)
    cache = Cache()
    assert resolve("a.test", 5, names=system(names.server), cache=cache).cause
    names.zone["a.test"] = ADDRESS
    assert resolve("a.test", 5, names=system(names.server), cache=cache).addresses


def test_the_cache_is_bounded_and_its_entries_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "CACHE_SIZE", 3)
    cache = Cache()
    for number in range(5):
        cache.put(Resolved(f"{number}.test", ("192.0.2.1",)), 60)
    assert [number for number in range(5) if cache.get(f"{number}.test")] == [2, 3, 4]
    cache.put(Resolved("brief.test", ("192.0.2.1",)), 0.01)
    time.sleep(0.02)
    assert cache.get("brief.test") is None


def test_concurrent_look_ups_of_a_name_share_one_question(names: NameServer) -> None:
    names.zone["a.test"] = ADDRESS
    loop = Loop()
    resolver = Resolver(loop, system(names.server))
    answers: list[Resolved] = []
    forget = resolver.look_up("a.test", answers.append)
    for _ in range(3):
        resolver.look_up("a.test", answers.append)
    forget()
    while len(answers) < 3:
        loop.run_once(1)
    resolver.close()
    loop.close()
    assert names.asked["a.test", "A"] == 1


# --- What the machine knows -----------------------------------------------------------------------


def test_the_hosts_file_comes_before_dns_and_is_read_again(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "# comment\n192.0.2.1 One.test two.test # x\n2001:db8::1\tone.test\nbad line\n\n"
        "192.0.2.1 one.test\nfe80::1%lo linked.test\n"
    )
    names = SystemNames((DnsServer("127.0.0.1", 1),), hosts=str(hosts))
    assert resolve("one.test", 1, names=names).addresses == ("2001:db8::1", "192.0.2.1")
    assert resolve("two.test", 1, names=names).addresses == ("192.0.2.1",)
    assert resolve("linked.test", 1, names=names).addresses == ("fe80::1",)
    hosts.write_text("192.0.2.99 one.test\n")
    os.utime(hosts, ns=(1, 1))
    names._hosts_file._examined_at = time.monotonic() - 60  # longer than the pause
    assert resolve("one.test", 1, names=names).addresses == ("192.0.2.99",)


@pytest.mark.parametrize("name", ["localhost", "any.localhost", "localhost."])
def test_localhost_is_this_machine_without_asking_dns(name: str) -> None:
    names = system(DnsServer("127.0.0.1", 1))
    assert resolve(name, 1, names=names).addresses == ("::1", "127.0.0.1")
    assert read_hosts("127.0.0.1 localhost\n") == {"localhost": ("127.0.0.1",)}


@pytest.mark.parametrize(
    "answer",
    [None, [], failing(dns.rcode.SERVFAIL), lambda *_: None],
    ids=["nxdomain", "no address", "servfail", "silence"],
)
@pytest.mark.parametrize("name", ["printer.local", "nas.home.local."])
def test_a_name_that_only_mdns_answers_says_so(
    names: NameServer, name: str, answer: Answer | None
) -> None:
    if answer is not None:
        names.zone[name.removesuffix(".")] = answer
    assert "mDNS, which Wakeful does not ask" in ask(names, name, 0.5).sentence
    assert "mDNS" not in ask(names, "printer.local.example", 0.5).sentence


def test_an_ip_address_resolves_to_itself() -> None:
    for address in ("192.0.2.1", "2001:db8::1"):
        assert resolve(address, 1, names=system()).addresses == (address,)


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("nameserver 192.0.2.53\nnameserver 2001:db8::53\n",
         SystemConfig((DnsServer("192.0.2.53"), DnsServer("2001:db8::53")))),
        ("search one.test two.test.\noptions timeout:1 ndots:3\nnameserver 192.0.2.53",
         SystemConfig((DnsServer("192.0.2.53"),), ("one.test", "two.test"), 3)),
        ("domain one.test\n; comment\nnameserver bogus\n",
         SystemConfig((DnsServer("127.0.0.1"),), ("one.test",))),
        ("", SystemConfig((DnsServer("127.0.0.1"),))),
    ],
)  # fmt: skip
def test_resolv_conf_is_read_as_the_c_library_does(text: str, config: SystemConfig) -> None:
    assert read_resolv_conf(text) == config


@pytest.mark.parametrize(
    ("ndots", "host_name", "tried"),
    [
        (1, "web", ("web.a.test", "web.b.test", "web")),
        (1, "web.c", ("web.c", "web.c.a.test", "web.c.b.test")),
        (5, "web.c", ("web.c.a.test", "web.c.b.test", "web.c")),
        (1, "web.c.", ("web.c.",)),
        (1, "web.", ("web.",)),
    ],
)
def test_short_names_are_completed_from_the_search_list(
    ndots: int, host_name: str, tried: tuple[str, ...]
) -> None:
    assert SystemConfig((), ("a.test", "b.test"), ndots).names(host_name) == tried


def test_the_search_list_is_tried_until_a_name_has_an_address(names: NameServer) -> None:
    names.zone["web.b.test"] = host("web.b.test", "192.0.2.8")

    class Searching(SystemNames):
        def config(self) -> SystemConfig:
            return SystemConfig((names.server,), ("a.test", "b.test"))

    searching = Searching(hosts="/dev/null")
    assert resolve("web", 5, names=searching).addresses == ("192.0.2.8",)
    missing = resolve("gone", 5, names=searching)
    assert missing.cause == Cause.DNS_NXDOMAIN
    assert names.asked["gone", "A"] == 1


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("127.0.0.1:5353", (DnsServer("127.0.0.1", 5353),)),
        ("9.9.9.9, [2001:db8::1]:54 ,2001:db8::2,[2001:db8::3]",
         (DnsServer("9.9.9.9"), DnsServer("2001:db8::1", 54), DnsServer("2001:db8::2"),
          DnsServer("2001:db8::3"))),
        ("", ()),
    ],
)  # fmt: skip
def test_dns_servers_are_addresses_and_ports(text: str, servers: tuple[DnsServer, ...]) -> None:
    assert parse_servers(text) == servers
    assert parse_servers(",".join(map(str, servers))) == servers


@pytest.mark.parametrize("text", ["dns.example", "1.2.3.4:0", "1.2.3.4:x", "1.2.3.4:70000", "[::1"])
def test_an_invalid_dns_server_is_named_in_the_error(text: str) -> None:
    with pytest.raises(ValueError, match="DNS server"):
        parse_servers(f"127.0.0.1,{text}")
