"""The mail of an alert: text and HTML, a thread for each incident, and a Message-ID that stays the
same in a retry.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import cache

from jinja2 import Environment, FileSystemLoader, Template

from app import i18n
from app.alerts.channels.base import Outgoing
from app.alerts.messages.message import COLOURS
from app.alerts.words import shorten
from app.paths import TEMPLATES, translations_of
from app.rules.addresses import ENCODED, sender_parts, wire
from app.templating import Missing

MAX_SUBJECT = 150
MAX_LINE = 998
# Not every server takes 8 bits, so what is not ASCII is encoded.
_POLICY = SMTP.clone(cte_type="7bit")


@dataclass(frozen=True, slots=True)
class BuiltMail:
    """A mail, and its addresses for the envelope."""

    sender: str
    to: str
    message: EmailMessage

    @property
    def needs_smtputf8(self) -> bool:
        """Whether an address is not ASCII before its @ (RFC 6531)."""
        return not (self.sender + self.to).isascii()


def build(outgoing: Outgoing, sender: str) -> BuiltMail:
    """The mail. ``sender`` is an address, or ``Name <address>``. Raises ValueError on a bad one."""
    message = outgoing.message
    name, address = sender_parts(sender)
    built = BuiltMail(wire(address), wire(outgoing.value), EmailMessage(policy=_POLICY))
    mail, domain = built.message, built.sender.rpartition("@")[2]
    mail["From"] = _address(built.sender, name or "Wakeful")
    mail["To"] = _address(built.to)
    mail["Subject"] = _literal(shorten(message.title, MAX_SUBJECT))
    mail["Date"] = format_datetime(message.at)
    mail["Message-ID"] = f"<{outgoing.id}@{domain}>"
    if message.thread:
        # The mails of one incident form a thread, in whatever order they arrive.
        mail["References"] = f"<{message.thread}@{domain}>"
        mail["In-Reply-To"] = f"<{message.thread}@{domain}>"
    if message.unsubscribe:
        # RFC 8058: mail programs show a button that sends a POST.
        mail["List-Unsubscribe"] = f"<{message.unsubscribe}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    mail["Auto-Submitted"] = "auto-generated"  # so that no out-of-office note comes back
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content("\n\n".join([message.title, "\n".join(message.lines())]) + "\n")
    mail.add_alternative(html(outgoing), subtype="html")
    # Python encodes a link that does not fit a line of 78, and mail programs then see no link.
    length = MAX_LINE if message.unsubscribe else _POLICY.max_line_length
    mail.policy = _POLICY.clone(max_line_length=length, utf8=built.needs_smtputf8)
    return built


def html(outgoing: Outgoing) -> str:
    message = outgoing.message
    with i18n.speaking(translations_of(message.language)):
        return _template().render(message=message, colour=f"#{COLOURS[message.tone]:06x}")


def _address(address: str, name: str = "") -> Address:
    local, _at, domain = address.rpartition("@")
    return Address(_literal(name), local, domain)


def _literal(text: str) -> str:
    """``text`` for a header, without encoded words: Python would decode them, and a line break in
    one would begin another header or the body.
    """
    return text.replace(ENCODED, "= ?")


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=Missing
    )
    i18n.install(environment)
    return environment.get_template("alerts/email.html")
