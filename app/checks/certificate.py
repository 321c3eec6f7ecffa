"""Judge the certificate chain that a server sent, and read when its certificates expire.

curl reports that verification failed, but names only the first fault that it meets. The chain is
read here with cryptography, so that the fault is named in the order of decision 10: expired,
not yet valid, self-signed, incomplete, untrusted, host name. Reading a certificate takes some 100
us, so each is read once.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID

from app.checks.outcome import Failure, strip_controls
from app.i18n import N_, _, _n
from app.records import Cause
from app.rules.time import days_left, iso

log = logging.getLogger(__name__)

_MAX_PATH = 10


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """The parts of a certificate that a check needs. ``names`` are its DNS names in lower case,
    ``addresses`` its IP addresses.
    """

    subject: str
    issuer: str
    not_before: datetime
    not_after: datetime
    fingerprint: str
    names: tuple[str, ...]
    addresses: tuple[str, ...]
    parsed: x509.Certificate

    def whole_days_left(self, at: datetime) -> int:
        """The whole days until it expires; ``rules.time.days_left`` counts calendar days."""
        return (self.not_after - at).days

    @property
    def is_self_issued(self) -> bool:
        return self.parsed.subject == self.parsed.issuer


@lru_cache(maxsize=20_000)
def read_certificate(pem: str) -> ServerCertificate | None:
    """Read one certificate; None if it cannot be read. Only curl's verdict counts then."""
    try:
        parsed = _load(pem.encode("ascii"))
        names, addresses = _alternative_names(parsed)
        return ServerCertificate(
            subject=_title(parsed.subject),
            issuer=_title(parsed.issuer),
            not_before=parsed.not_valid_before_utc,
            not_after=parsed.not_valid_after_utc,
            fingerprint=parsed.fingerprint(SHA256()).hex(),
            names=names,
            addresses=addresses,
            parsed=parsed,
        )
    except (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension) as error:
        log.info("A certificate cannot be read: %s", error)
        return None


def describe(pem: str) -> dict[str, Any]:
    """A certificate as evidence."""
    certificate = read_certificate(pem)
    if certificate is None:
        return {"subject": None, "unreadable": True}
    return {
        "subject": strip_controls(certificate.subject),
        "issuer": strip_controls(certificate.issuer),
        "not_before": iso(certificate.not_before),
        "not_after": iso(certificate.not_after),
        "sha256": certificate.fingerprint,
        "names": [strip_controls(name) for name in (*certificate.names, *certificate.addresses)][
            :100
        ],
    }


def _load(pem: bytes) -> x509.Certificate:
    with warnings.catch_warnings():
        # Some trusted old roots have a serial number of zero; nobody can act on the warning.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        return x509.load_pem_x509_certificate(pem)


def _alternative_names(parsed: x509.Certificate) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        extension = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return (), ()
    names = tuple(name.lower().rstrip(".") for name in extension.get_values_for_type(x509.DNSName))
    return names, tuple(str(address) for address in extension.get_values_for_type(x509.IPAddress))


def _title(name: x509.Name) -> str:
    """A name for people: the common name, else the unit or organisation, else the whole name."""
    for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.ORGANIZATION_NAME):
        for attribute in name.get_attributes_for_oid(oid):
            return str(attribute.value)
    return name.rfc4514_string() or _("(no name)")


def fits_host(certificate: ServerCertificate, host: str) -> bool:
    """Whether the certificate is for this host (RFC 6125; a common name does not count)."""
    with suppress(ValueError):
        return str(ip_address(host)) in certificate.addresses
    host = host.lower()
    _name, dot, parent = host.partition(".")
    wildcard = f"*.{parent}" if dot and "." in parent else None
    return any(name in (host, wildcard) for name in certificate.names)


class TrustStore:
    """The authorities of one bundle file, read when a verification first fails."""

    def __init__(self, bundle: str) -> None:
        self._bundle = bundle
        self._by_subject: dict[bytes, list[x509.Certificate]] | None = None

    def issuers(self, certificate: x509.Certificate) -> list[x509.Certificate]:
        """The trusted authorities with the name of this certificate's issuer."""
        return self._read().get(certificate.issuer.public_bytes(), [])

    def contains(self, certificate: x509.Certificate) -> bool:
        return certificate in self._read().get(certificate.subject.public_bytes(), [])

    def _read(self) -> dict[bytes, list[x509.Certificate]]:
        if self._by_subject is None:
            by_subject: dict[bytes, list[x509.Certificate]] = {}
            with open(self._bundle, "rb") as file:
                for block in _pem_blocks(file.read()):
                    try:
                        root = _load(block)
                        by_subject.setdefault(root.subject.public_bytes(), []).append(root)
                    except ValueError:
                        # one root that cannot be read must not hide the rest of the bundle
                        continue
            self._by_subject = by_subject
        return self._by_subject


def _pem_blocks(data: bytes) -> list[bytes]:
    end = b"-----END CERTIFICATE-----"
    return [
        block[block.index(b"-----BEGIN CERTIFICATE-----") :] + end + b"\n"
        for block in data.split(end)
        if b"-----BEGIN CERTIFICATE-----" in block
    ]


def judge_chain(
    chain: Sequence[ServerCertificate], host: str, trust: TrustStore, now: datetime
) -> Failure | None:
    """The first fault of the chain in the order of decision 10; None if it has none.

    ``chain`` is as sent, the leaf first. Certificates outside the leaf's path are not judged:
    servers also send expired cross-signed roots, which browsers ignore.
    """
    if not chain:
        return None
    leaf = chain[0]
    path = _path(chain, trust)
    if fault := _dates(path, now) or _authority(path, trust):
        return fault
    return None if fits_host(leaf, host) else wrong_host(leaf, host)


def wrong_host(leaf: ServerCertificate, host: str) -> Failure:
    names = [*leaf.names, *leaf.addresses]
    shown, more = ", ".join(names[:3]), len(names) - 3
    if more > 0:
        shown = _n("%(names)s and %(num)s more", "%(names)s and %(num)s more", more, names=shown)
    if host in leaf.names:
        sentence = N_(
            "The certificate names %(host)s as if it were a host name, not as an address."
        )
    elif names:
        sentence = N_("The certificate is for %(shown)s, not for %(host)s.")
    else:
        sentence = N_(
            "The certificate for %(subject)s names no host in its alternative names, so it is "
            "not valid for %(host)s."
        )
    values = {"host": host, "shown": shown, "subject": leaf.subject}
    return Failure(Cause.TLS_HOSTNAME, _(sentence, **values))


def _path(chain: Sequence[ServerCertificate], trust: TrustStore) -> list[ServerCertificate]:
    """The certificates that were sent, from the leaf up to the first with a trusted issuer."""
    path = [chain[0]]
    while len(path) < _MAX_PATH:
        last = path[-1]
        if trust.contains(last.parsed) or _trusted_issuer(last, trust) or last.is_self_issued:
            break
        unused = (other for other in chain if other not in path)
        issuer = next((other for other in unused if _is_signed_by(last.parsed, other.parsed)), None)
        if issuer is None:
            break
        path.append(issuer)
    return path


def _dates(path: Sequence[ServerCertificate], now: datetime) -> Failure | None:
    for depth, certificate in enumerate(path):
        if certificate.not_after < now:
            which, ended = _description(certificate, depth), certificate.not_after
            sentence = N_("%(which)s expired %(ago)s (%(date)s).")
            sentence = _(sentence, which=which, ago=_ago(ended, now), date=f"{ended:%Y-%m-%d}")
            return Failure(Cause.TLS_EXPIRED, sentence)
    for depth, certificate in enumerate(path):
        if certificate.not_before > now:
            which, begins = _description(certificate, depth), certificate.not_before
            sentence = N_("%(which)s is not valid before %(time)s UTC.")
            sentence = _(sentence, which=which, time=f"{begins:%Y-%m-%d %H:%M}")
            return Failure(Cause.TLS_NOT_YET_VALID, sentence)
    return None


def _authority(path: Sequence[ServerCertificate], trust: TrustStore) -> Failure | None:
    leaf, last = path[0], path[-1]
    if trust.contains(last.parsed) or _trusted_issuer(last, trust):
        return None
    if last is not leaf:
        cause = Cause.TLS_UNTRUSTED
        sentence = N_(
            "The certificate for %(subject)s comes from an authority that is not trusted: "
            "%(issuer)s."
        )
    elif leaf.is_self_issued and _is_signed_by(leaf.parsed, leaf.parsed):
        cause = Cause.TLS_SELF_SIGNED
        sentence = N_(
            "The certificate for %(subject)s is self-signed: no authority vouches for it."
        )
    else:
        cause = Cause.TLS_INCOMPLETE_CHAIN
        sentence = N_(
            "The server sent the certificate for %(subject)s without that of its issuer, "
            "%(issuer)s."
        )
    return Failure(cause, _(sentence, subject=leaf.subject, issuer=last.issuer))


def _trusted_issuer(certificate: ServerCertificate, trust: TrustStore) -> bool:
    return any(
        _is_signed_by(certificate.parsed, issuer) for issuer in trust.issuers(certificate.parsed)
    )


def _is_signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _description(certificate: ServerCertificate, depth: int) -> str:
    if depth == 0:
        return _("The certificate for %(subject)s", subject=certificate.subject)
    if certificate.is_self_issued:
        return _("The certificate of the authority %(subject)s", subject=certificate.subject)
    return _("The intermediate certificate %(subject)s", subject=certificate.subject)


def _ago(moment: datetime, now: datetime) -> str:
    """Minutes in the first hour, hours on the first day, then calendar days (the sentence has the
    date too).
    """
    minutes = int((now - moment).total_seconds()) // 60
    days, hours = -days_left(moment, now), minutes // 60
    if days and hours >= 24:
        return _n("%(num)s day ago", "%(num)s days ago", days)
    if hours:
        return _n("%(num)s hour ago", "%(num)s hours ago", hours)
    return _n("%(num)s minute ago", "%(num)s minutes ago", minutes)
