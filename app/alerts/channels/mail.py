"""Making an alert mail: text and HTML, threads by incident, and a Message-ID that a retry
repeats.
"""

from __future__ import annotations

from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from functools import cache

import idna
from jinja2 import Environment, FileSystemLoader, Template

from app import i18n
from app.alerts.channels.base import Outgoing
from app.alerts.messages import COLOURS
from app.alerts.words import shorten
from app.i18n import _
from app.paths import TEMPLATES

MAX_SUBJECT = 150
ENCODED = "=?"  # begins an encoded word (RFC 2047)
# Python encodes a link that does not fit a line of 78, and mail programs then see no link.
_LONG_LINES = SMTP.clone(max_line_length=998)


def build(outgoing: Outgoing, sender: str) -> EmailMessage:
    """The mail. ``sender`` is an address, or ``Name <address>``. Raises ValueError on a bad one."""
    message = outgoing.message
    name, address = parseaddr(sender)
    domain = address.rpartition("@")[2] or "localhost"
    mail = EmailMessage(policy=SMTP)
    mail["From"] = _address(address, name or "Wakeful")
    mail["To"] = _address(outgoing.value)
    mail["Subject"] = _literal(shorten(message.title, MAX_SUBJECT))
    mail["Date"] = format_datetime(message.at)
    mail["Message-ID"] = f"<{outgoing.id}@{domain}>"
    if message.thread:
        # The mails of one incident form a thread, whichever comes first.
        mail["References"] = f"<{message.thread}@{domain}>"
        mail["In-Reply-To"] = f"<{message.thread}@{domain}>"
    if message.unsubscribe:
        # RFC 8058: mail programs show a button of their own, which sends a POST.
        mail["List-Unsubscribe"] = f"<{message.unsubscribe}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail["Auto-Submitted"] = "auto-generated"  # so that no out-of-office note comes back
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content("\n\n".join([message.title, "\n".join(message.lines())]) + "\n")
    mail.add_alternative(html(outgoing), subtype="html")
    mail.policy = _LONG_LINES if message.unsubscribe else SMTP
    return mail


def html(outgoing: Outgoing) -> str:
    message = outgoing.message
    return _template().render(message=message, colour=f"#{COLOURS[message.tone]:06x}")


def wire_address(address: str) -> str:
    """The address as it goes on the wire: an international domain as IDNA."""
    local, _at, domain = address.rpartition("@")
    if ENCODED in address:
        raise ValueError(
            _("No mail can be sent to an address with %(encoded)s in it.", encoded=ENCODED)
        )
    if domain.isascii():
        return address
    try:
        return f"{local}@{idna.encode(domain, uts46=True).decode('ascii')}"
    except idna.IDNAError:
        raise ValueError(
            _("The domain of this address is not a valid international name.")
        ) from None


def _address(address: str, name: str = "") -> Address:
    local, _at, domain = wire_address(address).rpartition("@")
    return Address(_literal(name), local, domain)


def _literal(text: str) -> str:
    """``text`` for a header, which decodes encoded words: a line break in one would begin another
    header, or the body.
    """
    return text.replace(ENCODED, "= ?")


@cache
def _template() -> Template:
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    i18n.install(environment)
    return environment.get_template("alerts/email.html")
