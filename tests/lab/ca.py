"""Certificates of every kind, from an authority of our own (trustme) that the checks trust.

Each kind is a row of ``KINDS``: a function from the authorities to the chain that a server sends.
"""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = dt.timedelta(days=1)
NAMES = ("lab.test", "*.lab.test", "127.0.0.1", "::1")


def days_from_now(days: float) -> dt.datetime:
    """So many days away, and half an hour more, so that "5 days left" stays so; whole days ago are
    counted by dates, and half an hour more would be another date just after midnight.
    """
    spare = dt.timedelta(minutes=30 if days > 0 else 0 if days <= -1 else -30)
    return dt.datetime.now(dt.UTC).replace(microsecond=0) + days * DAY + spare


@dataclass(frozen=True)
class Served:
    """The certificates of a server: the chain it sends, leaf first, and the leaf's key, all
    as PEM.
    """

    chain: bytes
    key: bytes


class Authorities:
    """The trusted root, an intermediate below it, and an untrusted root. Times in UTC."""

    def __init__(self) -> None:
        self.root = trustme.CA(organization_name="Wakeful laboratory")
        self.intermediate = self.root.create_child_ca()
        self.stranger = trustme.CA(organization_name="A stranger")
        self.strangers_child = self.stranger.create_child_ca()

    def write_bundle(self, folder: Path) -> Path:
        """The root as a file for CA_BUNDLE."""
        path = folder / "lab-ca.pem"
        path.write_bytes(self.root.cert_pem.bytes())
        return path


def _served(leaf: trustme.LeafCert, *more: bytes, alone: bool = False) -> Served:
    own = leaf.cert_chain_pems[:1] if alone else leaf.cert_chain_pems
    chain = b"".join([pem.bytes() for pem in own] + list(more))
    return Served(chain, leaf.private_key_pem.bytes())


def _dated(
    authorities: Authorities, start: float, end: float, *names: str, depth: int = 0
) -> Served:
    """A certificate valid from ``start`` to ``end``, both in days from now."""
    issuer = authorities.intermediate if depth else authorities.root
    return _served(
        issuer.issue_cert(
            *(names or NAMES), not_before=days_from_now(start), not_after=days_from_now(end)
        )
    )


def _dated_today(authorities: Authorities) -> Served:
    """A certificate that ends with this day (UTC): some hours from now may be tomorrow."""
    end = dt.datetime.now(dt.UTC).replace(hour=23, minute=59, second=59, microsecond=0)
    issued = authorities.root.issue_cert(*NAMES, not_before=days_from_now(-40), not_after=end)
    return _served(issued)


def self_signed(start: float = -10, end: float = 365, bits: int | None = None) -> Served:
    """A leaf that signed itself, for the lab's own names. ``bits`` is the size of an RSA key."""
    key: Any = ec.generate_private_key(ec.SECP256R1())
    if bits:
        key = rsa.generate_private_key(65_537, bits)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lab.test")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(days_from_now(start))
        .not_valid_after(days_from_now(end))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("lab.test"), x509.DNSName("*.lab.test")]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Served(certificate.public_bytes(Encoding.PEM), pem)


def _expired_intermediate(authorities: Authorities) -> Served:
    """A good leaf below an intermediate whose time is over, both sent."""
    child = authorities.root.create_child_ca()
    old = child._certificate
    renewed = x509.CertificateBuilder(
        issuer_name=old.issuer,
        subject_name=old.subject,
        public_key=old.public_key(),
        serial_number=old.serial_number,
        not_valid_before=days_from_now(-400),
        not_valid_after=days_from_now(-30),
        extensions=list(old.extensions),
    ).sign(authorities.root._private_key, hashes.SHA256())
    leaf = child.issue_cert(*NAMES)
    return _served(leaf, renewed.public_bytes(Encoding.PEM), alone=True)


LAB_NAMES = (x509.DNSName("lab.test"), x509.DNSName("*.lab.test"))


@dataclass(frozen=True)
class Party:
    """A name and a key: what signs, or is signed."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def named(cls, name: str) -> Party:
        name_of = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return cls(name_of, ec.generate_private_key(ec.SECP256R1()))

    def served(self, *chain: bytes) -> Served:
        pem = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Served(b"".join(chain), pem)


def _root(authorities: Authorities) -> Party:
    root = x509.load_pem_x509_certificate(authorities.root.cert_pem.bytes())
    key = authorities.root._private_key
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Party(root.subject, key)


def _signed(
    subject: Party,
    by: Party,
    *extensions: x509.ExtensionType,
    names: Sequence[x509.GeneralName] = (),
    start: float = -40,
    end: float = 300,
) -> bytes:
    """``subject`` certified ``by``: an authority, or with ``names`` a server."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject.name)
        .issuer_name(by.name)
        .public_key(subject.key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(days_from_now(start))
        .not_valid_after(days_from_now(end))
        .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    return builder.sign(by.key, hashes.SHA256()).public_bytes(Encoding.PEM)


def _cross_signed(authorities: Authorities) -> Served:
    """Our root, certified also by an old one whose time is over: September 2021 once more."""
    root, old = _root(authorities), Party.named("An old root")
    middle, leaf = Party.named("Middle"), Party.named("good.lab.test")
    return leaf.served(
        _signed(leaf, middle, names=LAB_NAMES),
        _signed(middle, root),
        _signed(root, old, start=-3000, end=-30),
    )


def _wrong_order(authorities: Authorities) -> Served:
    root, upper = _root(authorities), Party.named("Upper")
    lower, leaf = Party.named("Lower"), Party.named("good.lab.test")
    above, below = _signed(upper, root), _signed(lower, upper)
    return leaf.served(_signed(leaf, lower, names=LAB_NAMES), above, below)


def _renewed_intermediate(authorities: Authorities) -> Served:
    """The intermediate in two editions with one key: one whose time is over, and the new one."""
    root, middle, leaf = _root(authorities), Party.named("Middle"), Party.named("good.lab.test")
    old, new = _signed(middle, root, end=-3), _signed(middle, root)
    return leaf.served(_signed(leaf, middle, names=LAB_NAMES), old, new)


def _of_another_time(authorities: Authorities) -> Served:
    """The leaf was renewed by another intermediate; the server still sends the one before."""
    root, middle, leaf = _root(authorities), Party.named("Middle"), Party.named("good.lab.test")
    before = _signed(Party.named("Middle of last year"), root)
    return leaf.served(_signed(leaf, middle, names=LAB_NAMES), before)


def _leaf_twice(authorities: Authorities) -> Served:
    middle, leaf = Party.named("Middle"), Party.named("good.lab.test")
    return leaf.served(*[_signed(leaf, middle, names=LAB_NAMES)] * 2)


def _for_clients(authorities: Authorities) -> Served:
    leaf = Party.named("good.lab.test")
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return leaf.served(_signed(leaf, _root(authorities), usage, names=LAB_NAMES))


def _constrained(authorities: Authorities) -> Served:
    """The intermediate may certify names of another domain only."""
    root, middle, leaf = _root(authorities), Party.named("Middle"), Party.named("good.lab.test")
    limit = x509.NameConstraints([x509.DNSName("other.example")], None)
    return leaf.served(_signed(leaf, middle, names=LAB_NAMES), _signed(middle, root, limit))


def _address_as_name(authorities: Authorities) -> Served:
    leaf = Party.named("lab")
    return leaf.served(_signed(leaf, _root(authorities), names=[x509.DNSName("127.0.0.1")]))


KINDS: dict[str, Callable[[Authorities], Served]] = {
    "valid": lambda a: _served(a.root.issue_cert(*NAMES)),
    "rsa": lambda a: _served(a.root.issue_cert(*NAMES, key_type=trustme.KeyType.RSA)),
    "small_key": lambda a: self_signed(bits=1024),
    "with_intermediate": lambda a: _served(a.intermediate.issue_cert(*NAMES)),
    "expired": lambda a: _dated(a, -40, -3),
    "expired_30d": lambda a: _dated(a, -400, -30),
    "expired_wrong_host": lambda a: _dated(a, -40, -3, "other.example"),
    "expired_intermediate": _expired_intermediate,
    "not_yet_valid": lambda a: _dated(a, 2, 90),
    "not_yet_valid_wrong_host": lambda a: _dated(a, 2, 90, "other.example"),
    "expiring_5d": lambda a: _dated(a, -40, 5),
    "expiring_today": _dated_today,
    "self_signed": lambda a: self_signed(),
    "self_signed_expired": lambda a: self_signed(-40, -3),
    # A chain with the untrusted root: it is complete, but ends in an unknown authority.
    "unknown_ca": lambda a: _served(a.stranger.issue_cert(*NAMES), a.stranger.cert_pem.bytes(),
        alone=True),
    "unknown_ca_below_intermediate": lambda a: _served(a.strangers_child.issue_cert(*NAMES)),
    "unknown_ca_wrong_host": lambda a: _served(a.stranger.issue_cert("other.example"),
        a.stranger.cert_pem.bytes(), alone=True),
    "missing_intermediate": lambda a: _served(a.intermediate.issue_cert(*NAMES), alone=True),
    "cross_signed": _cross_signed,
    "wrong_order": _wrong_order,
    "renewed_intermediate": _renewed_intermediate,
    "intermediate_of_another_time": _of_another_time,
    "leaf_twice": _leaf_twice,
    "for_clients": _for_clients,
    "constrained": _constrained,
    "address_as_name": _address_as_name,
    "wrong_host": lambda a: _served(a.root.issue_cert("other.example")),
    "common_name_only": lambda a: _served(
        a.root.issue_cert("other.example", common_name="good.lab.test")),
}  # fmt: skip


class Certificates:
    """TLS contexts for servers, created at their first use and cached."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authorities = Authorities()
        self.bundle = self.authorities.write_bundle(folder)
        self._paths: dict[str, Path] = {}

    def path(self, kind: str) -> Path:
        """Chain and key of ``kind`` in one PEM file."""
        if kind not in self._paths:
            served = KINDS[kind](self.authorities)
            path = self.folder / f"{kind}.pem"
            path.write_bytes(served.key + served.chain)
            self._paths[kind] = path
        return self._paths[kind]

    def context(self, kind: str = "valid", alpn: tuple[str, ...] = ("http/1.1",)) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if kind == "small_key":
            context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.load_cert_chain(self.path(kind))
        context.set_alpn_protocols(list(alpn))
        return context
