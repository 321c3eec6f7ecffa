"""Judging certificate chains (decision 10): each fault alone, and several faults at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.checks.certificate import TrustStore, fits_host, judge_chain, read_certificate
from app.records import Cause

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HOST = "shop.example"


@dataclass(frozen=True)
class Made:
    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


def make(
    title: str,
    issuer: Made | None = None,
    *,
    names: Sequence[str] = (),
    since: timedelta = -30 * DAY,
    until: timedelta = 60 * DAY,
    key: ec.EllipticCurvePrivateKey | None = None,
) -> Made:
    """A certificate for ``title``, signed by ``issuer`` or by itself."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.name if issuer else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + since)
        .not_valid_after(NOW + until)
        .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
    )
    if names:
        kinds = [
            x509.IPAddress(ip_address(name))
            if name[0].isdigit() or ":" in name
            else x509.DNSName(name)
            for name in names
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(kinds), critical=False)
    return Made(name, key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


ROOT = make("Root")
MIDDLE = make("Middle", ROOT)
OLD_MIDDLE = make("Middle", ROOT, until=-DAY, key=MIDDLE.key)
EARLY_MIDDLE = make("Middle", ROOT, since=DAY, key=MIDDLE.key)
STRANGE_ROOT = make("Strange Root")
STRANGE_MIDDLE = make("Strange Middle", STRANGE_ROOT)
OLD_CROSS = make("Root", STRANGE_ROOT, until=-DAY, key=ROOT.key)
GOOD = make("shop", MIDDLE, names=[HOST])
SELF = make("shop", names=[HOST])
EXPIRED = {"since": -30 * DAY, "until": -3 * DAY}
EARLY = {"since": DAY, "until": 30 * DAY}


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> TrustStore:
    bundle: Path = tmp_path_factory.mktemp("trust") / "bundle.pem"
    junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    bundle.write_text(f"# a comment\n{junk}{ROOT.pem}\n")
    return TrustStore(str(bundle))


@pytest.mark.parametrize(
    ("sent", "cause", "says"),
    [
        ([GOOD, MIDDLE], None, ()),
        ([GOOD, MIDDLE, ROOT], None, ()),
        ([GOOD, STRANGE_MIDDLE, MIDDLE], None, ()),
        ([GOOD, MIDDLE, OLD_CROSS], None, ()),
        ([make("direct", ROOT, names=[HOST])], None, ()),
        ([make("shop", MIDDLE, names=[HOST], **EXPIRED), MIDDLE], Cause.TLS_EXPIRED,
         ("3 days ago", "2026-11-18", "shop")),
        ([GOOD, OLD_MIDDLE], Cause.TLS_EXPIRED, ("intermediate", "Middle", "1 day ago")),
        ([GOOD, OLD_MIDDLE, MIDDLE], Cause.TLS_EXPIRED, ("Middle",)),
        ([make("shop", MIDDLE, names=[HOST], **EARLY), MIDDLE], Cause.TLS_NOT_YET_VALID,
         ("2026-11-22",)),
        ([GOOD, EARLY_MIDDLE], Cause.TLS_NOT_YET_VALID, ("Middle",)),
        ([SELF], Cause.TLS_SELF_SIGNED, ("shop", "self-signed")),
        ([GOOD], Cause.TLS_INCOMPLETE_CHAIN, ("shop", "Middle")),
        ([GOOD, STRANGE_MIDDLE], Cause.TLS_INCOMPLETE_CHAIN, ("Middle",)),
        ([make("shop", STRANGE_ROOT, names=[HOST])], Cause.TLS_INCOMPLETE_CHAIN, ("Strange Root",)),
        ([make("shop", STRANGE_ROOT, names=[HOST]), STRANGE_ROOT], Cause.TLS_UNTRUSTED,
         ("Strange Root",)),
        ([make("shop", STRANGE_MIDDLE, names=[HOST]), STRANGE_MIDDLE], Cause.TLS_UNTRUSTED,
         ("Strange Root",)),
        ([make("x", MIDDLE, names=["other.example"]), MIDDLE], Cause.TLS_HOSTNAME,
         ("other.example", HOST)),
        ([make("x", MIDDLE, names=[f"{n}.example" for n in "abcde"]), MIDDLE], Cause.TLS_HOSTNAME,
         ("a.example, b.example, c.example and 2 more",)),
        ([make(HOST, MIDDLE), MIDDLE], Cause.TLS_HOSTNAME, ("alternative names",)),
        # Two faults or more: docs/decisions.md has the order.
        ([make("x", names=["other.example"], **EXPIRED)], Cause.TLS_EXPIRED, ()),
        ([make("x", names=["other.example"], **EARLY)], Cause.TLS_NOT_YET_VALID, ()),
        ([make("x", names=["other.example"])], Cause.TLS_SELF_SIGNED, ()),
        ([make("x", MIDDLE, names=["other.example"])], Cause.TLS_INCOMPLETE_CHAIN, ()),
        ([make("x", STRANGE_ROOT, names=["other.example"]), STRANGE_ROOT], Cause.TLS_UNTRUSTED, ()),
        ([make("x", MIDDLE, names=[HOST], **EARLY), OLD_MIDDLE], Cause.TLS_EXPIRED, ()),
        ([make("x", MIDDLE, names=["o.example"], **EXPIRED)], Cause.TLS_EXPIRED, ()),
        ([], None, ()),
    ],
)  # fmt: skip
def test_the_first_fault_in_order_is_named(
    trust: TrustStore, sent: Sequence[Made], cause: Cause | None, says: Sequence[str]
) -> None:
    chain = [
        certificate for made in sent if (certificate := read_certificate(made.pem)) is not None
    ]
    judged = judge_chain(chain, HOST, trust, NOW)
    assert (judged.code if judged else None) == cause
    for words in says:
        assert judged is not None
        assert words in judged.sentence


@pytest.mark.parametrize(
    ("names", "host", "fits"),
    [
        (["a.example"], "a.example", True), (["A.Example"], "a.example", True),
        (["a.example"], "A.EXAMPLE", True), (["a.example"], "b.example", False),
        (["*.a.example"], "x.a.example", True), (["*.a.example"], "a.example", False),
        (["*.a.example"], "x.y.a.example", False), (["*.example"], "a.example", False),
        (["*"], "a", False), (["x*.a.example"], "xy.a.example", False),
        (["1.2.3.4"], "1.2.3.4", True), (["1.2.3.4"], "1.2.3.5", False),
        (["2001:db8::1"], "2001:db8::1", True), (["*.2.3.4"], "1.2.3.4", False),
        (["b.example", "a.example"], "a.example", True),
        (["xn--bcher-kva.example"], "xn--bcher-kva.example", True),
    ],
)  # fmt: skip
def test_a_certificate_is_valid_for_its_names_only(names: list[str], host: str, fits: bool) -> None:
    certificate = read_certificate(make("x", MIDDLE, names=names).pem)
    assert certificate is not None
    assert fits_host(certificate, host) == fits


@pytest.mark.parametrize(
    ("age", "says"),
    [(timedelta(minutes=5), "5 minutes ago"), (timedelta(minutes=1), "1 minute ago"),
     (timedelta(hours=2), "2 hours ago"), (timedelta(hours=23), "23 hours ago"),
     (timedelta(hours=25), "1 day ago"), (timedelta(days=2, hours=20), "3 days ago"),
     (timedelta(days=400), "400 days ago")],
)  # fmt: skip
def test_the_sentence_says_how_long_ago(trust: TrustStore, age: timedelta, says: str) -> None:
    leaf = read_certificate(make("x", ROOT, names=[HOST], since=-500 * DAY, until=-age).pem)
    assert leaf is not None
    judged = judge_chain([leaf], HOST, trust, NOW)
    assert judged is not None
    assert says in judged.sentence


def test_an_unreadable_certificate_is_read_as_none() -> None:
    junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert read_certificate(junk) is None
