"""All connections follow one rule: names are asked of DNS_SERVERS, a final dot is absolute, several
addresses are raced as checks race them, and CA_BUNDLE is trusted.

``WAYS`` has every way in which Wakeful connects to a host that somebody names. Faults behind the
connection do not matter here.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dns.message
import pytest
import requests
import trustme

from app.alerts.channels import base, email
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.messages.message import Message, Tone
from app.checks.expiry import registry, whois
from app.checks.expiry.registry import NoAnswer
from app.checks.prober import Prober
from app.config import Settings
from app.engine.agent.buffer import Buffer
from app.engine.agent.link import Clock, ServerLink
from app.errors import Unavailable
from app.net.canary import ask
from app.net.client import ConnectionFailed, Network
from app.net.hosts import SystemConfig, SystemNames
from app.net.policy import Policy
from app.records import CheckSpec, PageQuery
from app.rules.smtp import parse
from app.stores.remote import remote_store
from tests.checks.servers import NameServer, Web, host, http, reply
from tests.lab.net import BlackHole, ClosedPort, Connection, Listener
from tests.lab.tls import over_tls

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
SECONDS = 20.0
Way = Callable[[str, Network, Path], None]  # host and port, with TLS where ``ca_bundle`` is set


def scheme(network: Network, plain: str = "http") -> str:
    return plain if network.ca_bundle is None else f"{plain}s"


def webhook(at: str, network: Network, _folder: Path) -> None:
    with suppress(ConnectionFailed):
        network.post(f"{scheme(network)}://{at}/hook", body=b"")


def heartbeat(at: str, network: Network, _folder: Path) -> None:
    with suppress(ConnectionFailed):
        network.get(f"{scheme(network)}://{at}/ping")


def _settings(at: str, network: Network, folder: Path) -> Settings:
    required = "" if network.ca_bundle is None else "?tls=required"
    url = f"{scheme(network, 'smtp')}://{at}{required}"
    return Settings(folder, "sqlite://", "key", smtp_url=url, ca_bundle=network.ca_bundle)


def _outgoing(value: str) -> Outgoing:
    return Outgoing("msg_1", value, Message("test", Tone.PLAIN, "t", "s", NOW), NOW)


def mail(at: str, network: Network, folder: Path) -> None:
    email.send(_outgoing("ops@example.com"), Tools(_settings(at, network, folder), network))


def doctors_mail(at: str, network: Network, folder: Path) -> None:
    settings = _settings(at, network, folder)
    server = parse(settings.smtp_url or "")
    tools = Tools(settings, network)
    with suppress(OSError, ConnectionFailed), email.session(server, server.host, tools, SECONDS):
        pass


def registry_by_rdap(at: str, network: Network, _folder: Path) -> None:
    with suppress(NoAnswer):
        registry.fetch(f"{scheme(network)}://{at}/dns.json", time.monotonic() + SECONDS, network)


def registry_by_whois(at: str, network: Network, _folder: Path) -> None:
    with suppress(NoAnswer):
        whois.ask(at, "shop.example", time.monotonic() + SECONDS, network, own_setting=True)


def another_server(at: str, network: Network, _folder: Path) -> None:
    with suppress(Unavailable):
        remote_store(f"{scheme(network)}://{at}", "key", network).windows.list(PageQuery())


def agents_server(at: str, network: Network, folder: Path) -> None:
    with closing(Buffer(folder)) as buffer:
        link = ServerLink(
            f"{scheme(network)}://{at}", "wa_token", folder, buffer, Clock(),
            network=network, wake=int, figures=dict,
        )  # fmt: skip
        with suppress(requests.RequestException):
            link._hello()
        link._session.close()


WAYS = [
    webhook, heartbeat, mail, doctors_mail, registry_by_rdap, registry_by_whois, another_server,
    agents_server,
]  # fmt: skip
OVER_TLS = [way for way in WAYS if way is not registry_by_whois]


def http_check(at: str, network: Network, _folder: Path) -> None:
    check(f"http://{at}/", network)


def webhook_of_an_alert(at: str, network: Network, folder: Path) -> None:
    """The request as it is sent, with the redirects that are followed."""
    tools = Tools(_settings(at, network, folder), network)
    base.post(_outgoing(f"{scheme(network)}://{at}/hook"), tools, {})


def tcp_check(at: str, network: Network, _folder: Path) -> None:
    check(f"tcp://{at}", network)


def check(url: str, network: Network) -> None:
    with closing(Prober(policy=lambda: network.policy, names=network.names)) as prober:
        prober.check(CheckSpec(url=url, timeout=20))


def answer(connection: Connection) -> None:
    connection.send(b"220 hello\r\n")
    connection.wait_until_gone(0.2)


class Searching(SystemNames):
    """A machine in a company, whose search domain has a wildcard."""

    def __init__(self, server: NameServer) -> None:
        super().__init__(hosts="/dev/null")
        self._server = server

    def config(self) -> SystemConfig:
        return SystemConfig((self._server.server,), ("corp.test",))


@pytest.fixture
def names() -> Iterator[NameServer]:
    with closing(NameServer()) as server:
        yield server


@pytest.fixture
def server() -> Iterator[Listener]:
    with closing(Listener(answer)) as listener:
        yield listener


def network_of(names: NameServer, **more: Any) -> Network:
    return Network(Policy.parse("loopback"), SystemNames((names.server,)), **more)


@pytest.mark.parametrize("way", [*WAYS, http_check, tcp_check])
def test_a_name_with_a_final_dot_is_asked_of_no_search_domain(
    way: Way, names: NameServer, server: Listener, tmp_path: Path
) -> None:
    names.zone |= {
        "there.example": host("there.example", "127.0.0.1"),
        "gone.example.corp.test": host("gone.example.corp.test", "127.0.0.1"),
    }
    network = Network(Policy.parse("loopback"), Searching(names))
    way(f"gone.example.:{server.port}", network, tmp_path)
    assert server.connections == 0
    assert names.asked["gone.example", "A"] > 0
    assert names.asked["gone.example.corp.test", "A"] == 0
    way(f"there.example.:{server.port}", network, tmp_path)
    assert server.connections > 0


@pytest.mark.parametrize(
    ("way", "location"),
    [
        (http_check, "/login"), (http_check, "login"), (http_check, "//There.example:{port}/login"),
        (http_check, "http://there.example:{port}/login"),
        (http_check, "http://there.example.:{port}/login"),
        (webhook_of_an_alert, "/login"),
        (webhook_of_an_alert, "http://there.example:{port}/login"),
    ],
)  # fmt: skip
def test_a_redirect_to_the_same_host_keeps_the_final_dot(
    way: Way, location: str, names: NameServer, tmp_path: Path
) -> None:
    """A server does not see the dot, so it names its host without. The name is there for the first
    request only.
    """

    def once(query: dns.message.Message, times: int) -> dns.message.Message:
        first = times == 0
        return reply(query, host("there.example", "127.0.0.1") if first else None)

    names.zone["there.example"] = once
    with closing(Web(lambda *_: http("307 Moved", b"", f"Location: {to}"))) as web:
        to = location.format(port=web.port)
        way(f"there.example.:{web.port}", Network(Policy.parse("loopback"), Searching(names)),
            tmp_path)  # fmt: skip
    assert names.asked["there.example", "A"] > 1
    assert names.asked["there.example.corp.test", "A"] == 0


def test_without_a_final_dot_the_search_domain_is_tried(
    names: NameServer, server: Listener, tmp_path: Path
) -> None:
    names.zone["gone.example.corp.test"] = host("gone.example.corp.test", "127.0.0.1")
    webhook(f"gone.example:{server.port}", Network(Policy.parse("loopback"), Searching(names)),
            tmp_path)  # fmt: skip
    assert server.connections == 1


@pytest.mark.parametrize(
    ("way", "before", "closed"),
    [
        *((way, ["127.0.0.2"], ClosedPort) for way in WAYS),
        # The test asserts the one rule that all of them follow.
        (webhook, [f"127.0.0.{number}" for number in range(2, 13)], ClosedPort),
        (webhook, ["127.0.0.2"], BlackHole),
        (mail, ["127.0.0.2", "127.0.0.3", "127.0.0.4"], BlackHole),
        (webhook, ["2001:db8::1", "2001:db8::2"], None),
    ],
)
def test_of_several_addresses_the_one_that_serves_is_reached(
    way: Way,
    before: list[str],
    closed: Callable[[str, int], Any] | None,
    names: NameServer,
    server: Listener,
    tmp_path: Path,
) -> None:
    names.zone["several.test"] = host("several.test", *before, "127.0.0.1")
    with ExitStack() as stack:
        for address in before:
            if closed is not None:
                stack.enter_context(closing(closed(address, server.port)))
        way(f"several.test:{server.port}", network_of(names), tmp_path)
    assert server.connections > 0


def test_a_mail_server_behind_a_dead_proxy_leaves_the_turn_to_the_other_address(
    names: NameServer, server: Listener, tmp_path: Path
) -> None:
    """The proxy accepts, and has nobody who greets."""
    names.zone["mail.test"] = host("mail.test", "127.0.0.2", "127.0.0.3", "127.0.0.1")
    with ExitStack() as stack:
        for address in ("127.0.0.2", "127.0.0.3"):
            proxy = Listener(lambda connection: None, address, server.port)
            stack.enter_context(closing(proxy))
        mail(f"mail.test:{server.port}", network_of(names), tmp_path)
    assert server.connections == 1


@pytest.mark.parametrize("way", OVER_TLS)
def test_ca_bundle_is_trusted(way: Way, names: NameServer, tmp_path: Path) -> None:
    authority, shaken = trustme.CA(), []
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("secure.test").configure_cert(context)

    def shake(connection: Connection) -> None:
        shaken.append(connection)
        answer(connection)

    names.zone["secure.test"] = host("secure.test", "127.0.0.1")
    with closing(Listener(over_tls(context, shake))) as server:
        for ending in ("", "."):
            shaken.clear()
            network = network_of(names, ca_bundle=str(tmp_path / "ca.pem"))
            way(f"secure.test{ending}:{server.port}", network, tmp_path)
            assert shaken, "the handshake ended well"


def test_canaries_are_asked_of_dns_servers_and_by_the_same_rule(
    names: NameServer, server: Listener
) -> None:
    names.zone["canary.test"] = host("canary.test", "127.0.0.2", "127.0.0.1")
    with closing(BlackHole("127.0.0.2", server.port)):
        answers = ask([("canary.test.", server.port)], SECONDS, dns_servers=[names.server])
    assert list(answers.values()) == ["accepted"]
