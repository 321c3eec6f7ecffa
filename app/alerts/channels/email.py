"""Email through the instance's mail server (``app.rules.smtp`` says how it is written)."""

from __future__ import annotations

import contextlib
import re
import smtplib
import socket
import ssl
import threading
from collections.abc import Container, Iterator
from dataclasses import replace

from app.alerts.channels import answer, mail
from app.alerts.channels.answer import Answer
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.channels.setup import NO_MAIL_SERVER
from app.i18n import _
from app.net.client import TOTAL_SECONDS, Unreachable
from app.rules import masking
from app.rules.smtp import Server, parse

STEP_SECONDS = 10.0  # for each command and its answer
MAX_ADDRESSES = 2  # of the server that are tried, so that all fits into TOTAL_SECONDS
_MAX_LINE, _MAX_LINES = 8_192, 20  # of the last reply: enough of what it says
_DOTS = re.compile(rb"^\.", re.MULTILINE)  # a line of one dot ends a mail, so each is doubled


class _NoTls(Exception):
    pass


class _Recipient(smtplib.SMTPResponseException):
    """The server refuses the recipient, not our login and not our sender."""


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    if tools.settings.smtp_url is None:
        return answer.permanent(_(NO_MAIL_SERVER))
    try:
        server = parse(tools.settings.smtp_url)
        built = mail.build(outgoing, server.sender)
        to, sender = mail.wire_address(outgoing.value), built["From"].addresses[0].addr_spec
    except (ValueError, IndexError) as fault:
        return answer.permanent(str(fault))
    secrets = [server.password or "", server.user or ""]
    try:
        with _session(server, tools) as smtp:
            if server.user is not None:
                smtp.login(server.user, server.password or "")
            options = [] if to.isascii() else ["SMTPUTF8"]
            smtp.ehlo_or_helo_if_needed()
            if options and not smtp.has_extn("smtputf8"):
                return answer.permanent(
                    _("The mail server does not accept addresses with these characters.")
                )
            said = _transmit(smtp, sender, to, built.as_bytes(), options)
            return answer.delivered(masking.clean(said, secrets))
    except _NoTls:
        return answer.permanent(
            _("The mail server does not offer STARTTLS, but the email settings require TLS.")
        )
    except smtplib.SMTPNotSupportedError:
        return answer.permanent(
            _("The mail server does not offer a login, but a user name is set.")
        )
    except smtplib.SMTPResponseException as fault:
        refused = _refused(fault.smtp_code, fault.smtp_error, secrets)
        gone = isinstance(fault, _Recipient) and _is_gone(fault.smtp_code, _text(fault.smtp_error))
        return replace(refused, gone=gone)
    except Unreachable as fault:
        return answer.retry(str(fault))
    except ssl.SSLCertVerificationError as fault:
        return answer.retry(
            _(
                "The mail server's certificate is not trusted: %(why)s.",
                why=fault.verify_message,
            )
        )
    except (OSError, smtplib.SMTPException) as fault:
        return answer.retry(_say(server.host, fault))


def _transmit(smtp: smtplib.SMTP, sender: str, to: str, data: bytes, options: list[str]) -> str:
    """One mail to one address. Raises SMTPResponseException with the server's own words."""
    _expect(smtp.mail(sender, options))
    try:
        _expect(smtp.rcpt(to))
    except smtplib.SMTPResponseException as fault:
        raise _Recipient(fault.smtp_code, fault.smtp_error) from None
    _expect(smtp.docmd("DATA"), accepted=(354,))
    smtp.send(_DOTS.sub(b"..", data).removesuffix(b"\r\n") + b"\r\n.\r\n")
    code, said = _last_reply(smtp)
    _expect((code, said))
    return f"SMTP {code}: {_text(said)}"


def _last_reply(smtp: smtplib.SMTP) -> tuple[int, bytes]:
    """The reply to the mail itself. Its first line decides: smtplib's own reader raises for what
    comes behind it (a long line, a lost connection), and an accepted mail would be sent again.
    """
    stream = smtp.file
    line = stream.readline(_MAX_LINE) if stream is not None else b""
    if not line[:3].isdigit():
        raise smtplib.SMTPServerDisconnected("no reply to the mail")
    code, said = int(line[:3]), [line[4:].strip()]
    with contextlib.suppress(OSError):
        while line[3:4] == b"-" and len(said) < _MAX_LINES and stream is not None:
            line = stream.readline(_MAX_LINE)
            said.append(line[4:].strip())
    return code, b"\n".join(said)


def _expect(reply: tuple[int, bytes], accepted: Container[int] = range(200, 300)) -> None:
    if reply[0] not in accepted:
        raise smtplib.SMTPResponseException(reply[0], reply[1])


@contextlib.contextmanager
def _session(server: Server, tools: Tools) -> Iterator[smtplib.SMTP]:
    """A connection that is ready for login, cut off as a whole after TOTAL_SECONDS."""
    trust = _trust(server, tools.settings.ca_bundle)
    # Given here, because smtplib would otherwise look this machine's name up in DNS, and wait.
    name = socket.gethostname() or "localhost"
    smtp: smtplib.SMTP = (
        smtplib.SMTP_SSL(local_hostname=name, timeout=STEP_SECONDS, context=trust)
        if server.tls_from_start
        else smtplib.SMTP(local_hostname=name, timeout=STEP_SECONDS)
    )
    setattr(smtp, "_host", server.host)  # noqa: B010  # the name that TLS checks; no public way
    expired = threading.Event()
    timer = threading.Timer(TOTAL_SECONDS, _cut, (smtp, expired))
    timer.daemon = True
    timer.start()
    try:
        _connect(smtp, tools.network.addresses(server.host, own_setting=True), server.port)
        if expired.is_set():  # before there was a connection to cut
            raise TimeoutError
        _encrypt(smtp, server, trust)
        yield smtp
        with contextlib.suppress(OSError, smtplib.SMTPException):
            smtp.quit()  # the mail was accepted, even if QUIT fails
    finally:
        timer.cancel()
        with contextlib.suppress(OSError):
            smtp.close()


def _trust(server: Server, ca_bundle: str | None) -> ssl.SSLContext:
    trust = ssl.create_default_context()
    if ca_bundle:
        trust.load_verify_locations(ca_bundle)
    if not server.tls_required and server.password is None:
        # If plain text would be allowed too, an untrusted certificate is accepted.
        trust.check_hostname = False
        trust.verify_mode = ssl.CERT_NONE
    return trust


def _connect(smtp: smtplib.SMTP, addresses: list[str], port: int) -> None:
    for place, address in enumerate(addresses[:MAX_ADDRESSES], 1):
        try:
            code, said = smtp.connect(address, port)
        except OSError:
            if place == min(len(addresses), MAX_ADDRESSES):
                raise
            continue
        _expect((code, said))
        return


def _encrypt(smtp: smtplib.SMTP, server: Server, trust: ssl.SSLContext) -> None:
    if server.tls_from_start:
        return
    smtp.ehlo_or_helo_if_needed()
    if smtp.has_extn("starttls"):
        _expect(smtp.starttls(context=trust))
        smtp.ehlo()
    elif server.tls_required:
        raise _NoTls


def _cut(smtp: smtplib.SMTP, expired: threading.Event) -> None:
    expired.set()
    with contextlib.suppress(OSError, AttributeError):
        if smtp.sock is not None:
            smtp.sock.shutdown(socket.SHUT_RDWR)


def _refused(code: int, said: bytes | str, secrets: list[str]) -> Answer:
    text = masking.clean(f"SMTP {code}: {_text(said)}", secrets)
    return answer.permanent(text) if code >= 500 else answer.retry(text)


# The answers to RCPT that say something of the address: RFC 5321, and RFC 7504 for 556.
_OF_ADDRESS = frozenset({550, 551, 552, 553, 554, 556})
# RFC 3463: the address, or its mailbox. The two exceptions are about the sender's address.
_ADDRESS, _MAILBOX = "5.1.", "5.2."
_OF_SENDER = frozenset({"5.1.7", "5.1.8"})


def _is_gone(code: int, said: str) -> bool:
    """Whether a recipient was refused permanently. Many servers judge login, sender and relaying
    only when they hear the recipient: taken for the recipient's fault, one wrong setting of ours
    would end every subscription.
    """
    if code not in _OF_ADDRESS or "relay" in said.casefold():
        return False
    detail = (said.split() or [""])[0]
    if detail[:2] == "5." and detail.count(".") == 2:
        return detail.startswith((_ADDRESS, _MAILBOX)) and detail not in _OF_SENDER
    return True


def _text(said: bytes | str) -> str:
    return said.decode("utf-8", errors="replace") if isinstance(said, bytes) else said


def _say(host: str, fault: Exception) -> str:
    if isinstance(fault, TimeoutError):
        return _("The mail server %(host)s did not answer in time.", host=host)
    if isinstance(fault, ConnectionRefusedError):
        return _("The mail server %(host)s refused the connection.", host=host)
    return _("The connection to the mail server %(host)s was lost.", host=host)
