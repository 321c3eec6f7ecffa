"""The addresses that checks and alerts may reach (decision 9).

A policy judges the addresses that a name resolves to, never the name. By default only public
addresses are open; an admin adds networks, or the words ``private`` and ``loopback``. An address is
refused if it, or an IPv4 address that it embeds, is closed.

No library does this: the same policy is needed for libcurl, sockets, requests and the process that
runs Apprise, and each library against SSRF guards one HTTP client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network

from app.i18n import N_, OR, _, join_words
from app.net.networks import LOOPBACK, PRIVATE, SPECIAL, STICKY, WORDS, Special, embedded, special
from app.rules.url import IpAddress, IpNetwork, plain_network

SETTING = N_("on the Settings page, or in WAKEFUL_ALLOW_NETWORKS")
# Comes before the sentence of a refused address if the target is a name.
RESOLVES = N_("%(host)s resolves to an address that is not allowed.")
# Judged addresses: searching the table takes some 10 us, reading the cache 0.1 us.
_MAX_CACHED = 20_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an address is closed. ``sentence`` says what to allow and where. ``is_offered``: a page
    may offer to allow ``network``. It is False for link-local and cloud metadata addresses, which
    hand out credentials, and for networks that are neither private nor loopback: an admin must
    enter those by hand.
    """

    address: IpAddress
    network: IpNetwork
    sentence: str
    is_offered: bool = False

    def __str__(self) -> str:
        return self.sentence


class Policy:
    """The networks that are open in addition to the public internet. Immutable, so threads may
    share it. ``setting``: where people open more networks, the end of the sentence of a refusal.
    """

    def __init__(
        self, networks: Sequence[IpNetwork] = (), words: Iterable[str] = (), setting: str = SETTING
    ) -> None:
        self._setting = setting
        self.words = frozenset(words)
        if unknown := self.words - set(WORDS):
            raise ValueError(
                _(
                    "%(word)s is not a word for networks. Use %(private)s or %(loopback)s.",
                    word=repr(sorted(unknown)[0]),
                    private=PRIVATE,
                    loopback=LOOPBACK,
                )
            )
        self.networks = tuple(networks)
        opened = tuple(row.network for row in SPECIAL if row.word in self.words)
        self._opened: tuple[IpNetwork, ...] = (
            tuple(plain_network(network) for network in self.networks) + opened
        )
        self._judged: dict[IpAddress | str, Refusal | None] = {}

    @classmethod
    def parse(cls, text: str, setting: str = SETTING) -> Policy:
        """Read ``10.0.0.0/8, loopback``. Empty text opens public addresses only. Raises ValueError
        with a sentence.
        """
        networks: list[IpNetwork] = []
        words: set[str] = set()
        for part in (piece.strip() for piece in text.split(",")):
            if part.lower() in WORDS:
                words.add(part.lower())
            elif part:
                networks.append(_network(part))
        return cls(networks, words, setting)

    def refusal(self, address: IpAddress | str) -> Refusal | None:
        """Why this address is closed, or None if it is open. Raises ValueError for text that is not
        an address.
        """
        try:
            return self._judged[address]
        except KeyError:
            pass
        parsed = ip_address(address.partition("%")[0]) if isinstance(address, str) else address
        refused = self._judge(parsed)
        if len(self._judged) >= _MAX_CACHED:
            self._judged.clear()
        self._judged[address] = refused
        return refused

    def allows(self, address: IpAddress | str) -> bool:
        return self.refusal(address) is None

    def opens(self, network: IpNetwork) -> bool:
        """Whether the policy opens this network, or a wider one that contains it."""
        return any(_within(network, opened) for opened in self._opened)

    @property
    def offerable(self) -> Iterable[IpNetwork]:
        """Every network that ``offered`` may return."""
        return (row.network for row in SPECIAL if row.word is not None)

    def offered(self, text: str) -> IpNetwork | None:
        """The network to allow, so that the address in the refusal ``text`` can be reached. None if
        ``text`` is not exactly a refusal of this policy. It may be the refusal of another place,
        which has its own networks, or a text of a stranger's server, which must not lead anybody to
        open a network.
        """
        sentence = text.removeprefix(f"{_(RESOLVES, host=text.partition(' ')[0])} ")
        try:
            refusal = self.refusal(sentence.partition(" ")[0])
        except ValueError:
            return None
        if refusal is None or not refusal.is_offered or refusal.sentence != sentence:
            return None
        wider = Policy((*self.networks, refusal.network), self.words)
        return refusal.network if wider.allows(refusal.address) else None

    def _judge(self, address: IpAddress) -> Refusal | None:
        inner: Iterable[IpAddress] = embedded(address) if isinstance(address, IPv6Address) else ()
        for part in (address, *inner):
            row = special(part)
            if row is not None and not self._is_open(row, part):
                sentence = _sentence(address, part, row, self._setting)
                is_offered = row.word is not None and not row.sticky
                return Refusal(address, row.network, sentence, is_offered)
        return None

    def _is_open(self, row: Special, address: IpAddress) -> bool:
        for network in self._opened:
            if address in network and (not row.sticky or _within(network, row.network)):
                return True
        return False


def _within(inner: IpNetwork, outer: IpNetwork) -> bool:
    return (
        inner.version == outer.version
        and inner.prefixlen >= outer.prefixlen
        and (inner.network_address in outer)
    )


def _network(part: str) -> IpNetwork:
    try:
        return ip_network(part)
    except ValueError:
        pass
    try:
        without_host_bits = ip_network(part, strict=False)
    except ValueError:
        sentence = N_(
            "%(part)s is not a network. Write a network such as 10.0.0.0/8 or fd00::/8, "
            "or the word %(private)s or %(loopback)s."
        )
        raise ValueError(_(sentence, part=repr(part), private=PRIVATE, loopback=LOOPBACK)) from None
    sentence = N_("%(part)s is not a network: it has host bits set. Did you mean %(meant)s?")
    raise ValueError(_(sentence, part=repr(part), meant=without_host_bits))


def _sentence(address: IpAddress, judged: IpAddress, row: Special, setting: str) -> str:
    is_embedded = judged != address
    network = "" if row.network.prefixlen in (0, row.network.max_prefixlen) else f" ({row.network})"
    sentence = (
        N_(
            "%(address)s carries %(inner)s, which is %(what)s and not allowed. To reach it, allow"
            " %(way)s %(where)s."
        )
        if is_embedded
        else N_("%(address)s is %(what)s and not allowed. To reach it, allow %(way)s %(where)s.")
    )
    return _(
        sentence,
        address=address,
        inner=judged,
        what=_(row.name) + network,
        way=_way(judged, row),
        where=_(setting),
    )


def _way(address: IpAddress, row: Special) -> str:
    if row.word is not None and row not in STICKY:
        return join_words((row.word, str(row.network)), OR)
    sentence = N_("the network %(network)s itself") if row.sticky else N_("the network %(network)s")
    return _(sentence, network=ip_network(address))
