"""Email addresses: which may be stored, and how they are sent. The rule is the same for people,
contacts, monitors, subscribers and the sender: an address that it accepts can be part of a mail
header and of an SMTP command, and cannot begin another one.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address

from app.i18n import N_, _
from app.rules.text import characters
from app.rules.url import ascii_host

MAX_ADDRESS = 254  # bytes (RFC 5321)
MAX_LOCAL = 64  # bytes
NO_EMAIL = N_("This is not an email address. Enter one such as name@example.com.")
ENCODED = "=?"  # the start of an encoded word (RFC 2047), which a mail program would decode

_ATOM = r"[^\s@<>()\[\],;:\\\".\x00-\x20\x7f-\x9f\ud800-\udfff]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_SENDER = re.compile(r"(?P<name>[^<>\"]*|\"[^<>\"]*\"\s*)<(?P<address>[^<>]*)>")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")
_LITERAL = re.compile(r"\[(?:(?P<four>[0-9.]+)|IPv6:(?P<six>[0-9A-Fa-f:.]+))\]")


def check(value: str) -> str:
    """Raises ValueError with a sentence."""
    wire(value)
    return value


def wire(address: str) -> str:
    """The address as it is sent: an international domain becomes IDNA. The part before the @ is not
    changed, and may need SMTPUTF8. Raises ValueError with a sentence.
    """
    local, _at, domain = address.rpartition("@")
    if len(address) > MAX_ADDRESS or ENCODED in address or not _LOCAL.fullmatch(local):
        raise ValueError(_(NO_EMAIL))
    sent = f"{local}@{_domain(domain)}"
    if len(sent.encode()) > MAX_ADDRESS or len(local.encode()) > MAX_LOCAL:
        raise ValueError(_(NO_EMAIL))
    return sent


def sender_parts(sender: str) -> tuple[str, str]:
    """The name and the address of ``Name <address>``; the name is empty for an address alone.
    Raises ValueError with a sentence.

    ``email.utils.parseaddr`` is not used, because it drops parts that it cannot read, such as an IP
    address as the domain.
    """
    match = _SENDER.fullmatch(characters(sender).strip())
    name, address = (match["name"].strip(' "'), match["address"]) if match else ("", sender)
    return name, check(address.strip())


def literal(address: str) -> str:
    """An IP address as the domain of an address, or as the name in EHLO (RFC 5321, 4.1.3)."""
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _domain(domain: str) -> str:
    try:
        if match := _LITERAL.fullmatch(domain):
            return literal(
                str(IPv4Address(match["four"]) if match["four"] else IPv6Address(match["six"]))
            )
        name = domain if domain.isascii() else ascii_host(domain)
    except ValueError:
        raise ValueError(_(NO_EMAIL)) from None
    if not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError(_(NO_EMAIL))
    return name
