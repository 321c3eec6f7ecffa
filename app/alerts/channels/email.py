"""Email through the instance's mail server (``app.rules.smtp`` says how it is written)."""

from __future__ import annotations

import contextlib
import hmac
import re
import smtplib
import socket
import ssl
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from app.alerts.answers import Answer, delivered, permanent, retry
from app.alerts.channels import mail
from app.alerts.channels.base import Outgoing, Tools
from app.i18n import N_, _
from app.net.client import TOTAL_SECONDS, ConnectionFailed, connect
from app.rules import addresses, masking
from app.rules.smtp import Server, check_sender, parse
from app.rules.url import ascii_host, parse_url

NO_SERVER = N_(
    "No mail server is set up. An admin can set one up under Settings, Email; then retry."
)
STEP_SECONDS = 10.0  # for each command and its answer
LOGINS = frozenset({"CRAM-MD5", "PLAIN", "LOGIN"})  # those of smtplib
CHALLENGE, LOGGED_IN, MAX_CHALLENGES = 334, (235, 503), 5
_MAX_LINE, _MAX_LINES = 8_192, 20  # of the last reply
_DOTS = re.compile(rb"^\.", re.MULTILINE)  # a line of one dot ends a mail, so each is doubled


class NoTls(Exception):
    """The server offers no STARTTLS, which the setting requires."""


class _Recipient(smtplib.SMTPResponseException):
    """The server refused the command RCPT."""


class _Smtp(smtplib.SMTP):
    """SMTP over ``connection``, which ``_connect`` makes: smtplib would choose the address itself.

    smtplib encodes logins as ASCII, and raises for a password with other letters. This class
    encodes them as UTF-8 (RFC 4616 for PLAIN; the others do the same).
    """

    connection: socket.socket

    def _get_socket(self, *_host_port_timeout: Any) -> socket.socket:
        return self.connection

    def auth(
        self,
        mechanism: str,
        authobject: Callable[..., str | None],
        *,
        initial_response_ok: bool = True,
    ) -> tuple[int, bytes]:
        first = authobject() if initial_response_ok else None
        command = "AUTH " + mechanism + ("" if first is None else f" {_base64(first)}")
        code, reply = self.docmd(command)
        self._auth_challenge_count = int(first is not None)  # auth_login reads it
        while code == CHALLENGE and self._auth_challenge_count < MAX_CHALLENGES:
            self._auth_challenge_count += 1
            try:
                challenge = b64decode(reply)
            except ValueError:  # a text in place of a challenge
                challenge = reply
            code, reply = self.docmd(_base64(authobject(challenge) or ""))
        if code not in LOGGED_IN:
            raise smtplib.SMTPAuthenticationError(code, reply)
        return code, reply

    def auth_cram_md5(  # type: ignore[override]  # typed with overloads there
        self, challenge: bytes | None = None
    ) -> str | None:
        if challenge is None:
            return None
        return f"{self.user} {hmac.new(self.password.encode(), challenge, 'md5').hexdigest()}"


class _Smtps(smtplib.SMTP_SSL, _Smtp):
    pass


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    if tools.settings.smtp_url is None:
        return permanent(_(NO_SERVER))
    try:
        server = parse(tools.settings.smtp_url)
        host = ascii_host(server.host)
        addresses.check(outgoing.value)
    except ValueError as fault:
        return permanent(str(fault))
    try:
        check_sender(server.sender or "wakeful@localhost")
    except ValueError as fault:
        return permanent(_("The sender of emails is wrong. %(why)s", why=str(fault)))
    secrets = [server.password or "", server.user or ""]
    try:
        with session(server, host, tools) as smtp:
            if server.user is not None:
                log_in(smtp, server.user, server.password or "")
            smtp.ehlo_or_helo_if_needed()
            built = mail.build(outgoing, server.sender or f"wakeful@{smtp.local_hostname}")
            if built.needs_smtputf8 and not smtp.has_extn("smtputf8"):
                return permanent(
                    _("The mail server does not accept addresses with these characters.")
                )
            reply = _transmit(smtp, built)
            return delivered(masking.clean(reply, secrets))
    except NoTls:
        return permanent(
            _("The mail server does not offer STARTTLS, but the email settings require TLS.")
        )
    except smtplib.SMTPNotSupportedError:
        return permanent(
            _(
                "The mail server offers none of the logins PLAIN, LOGIN and CRAM-MD5, but a user "
                "name is set."
            )
        )
    except smtplib.SMTPResponseException as fault:
        refused = _refused(fault.smtp_code, fault.smtp_error, secrets)
        is_gone = isinstance(fault, _Recipient) and _is_gone(
            fault.smtp_code, _text(fault.smtp_error)
        )
        return replace(refused, gone=is_gone)
    except ConnectionFailed as fault:
        return retry(str(fault))
    except ssl.SSLCertVerificationError as fault:
        return retry(
            _(
                "The mail server's certificate is not trusted: %(why)s.",
                why=fault.verify_message.rstrip("."),
            )
        )
    except (OSError, smtplib.SMTPException) as fault:
        return retry(_sentence(server.host, fault))


def log_in(smtp: smtplib.SMTP, user: str, password: str) -> None:
    """Log in. Raises SMTPException."""
    smtp.ehlo_or_helo_if_needed()
    offered = smtp.esmtp_features.get("auth", "").upper()
    if LOGINS.isdisjoint(offered.split()):
        raise smtplib.SMTPNotSupportedError
    smtp.esmtp_features["auth"] = offered  # smtplib compares them in capitals
    smtp.login(user, password)


def _transmit(smtp: smtplib.SMTP, built: mail.BuiltMail) -> str:
    """Send one mail to one address. Raises SMTPResponseException with the server's reply."""
    _expect(smtp.mail(built.sender, ["SMTPUTF8"] if built.needs_smtputf8 else []))
    try:
        _expect(smtp.rcpt(built.to))
    except smtplib.SMTPResponseException as fault:
        raise _Recipient(fault.smtp_code, fault.smtp_error) from None
    _expect(smtp.docmd("DATA"), accepted=(354,))
    data = built.message.as_bytes()
    smtp.send(_DOTS.sub(b"..", data).removesuffix(b"\r\n") + b"\r\n.\r\n")
    code, reply = _last_reply(smtp)
    _expect((code, reply))
    return f"SMTP {code}: {_text(reply)}"


def _last_reply(smtp: smtplib.SMTP) -> tuple[int, bytes]:
    """The reply to the mail itself. Its first line decides: smtplib's own reader raises for faults
    after it (a long line, a lost connection), and an accepted mail would be sent again.
    """
    stream = smtp.file
    line = stream.readline(_MAX_LINE) if stream is not None else b""
    if not line[:3].isdigit():
        raise smtplib.SMTPServerDisconnected("no reply to the mail")
    code, lines = int(line[:3]), [line[4:].strip()]
    with contextlib.suppress(OSError):
        while line[3:4] == b"-" and len(lines) < _MAX_LINES and stream is not None:
            line = stream.readline(_MAX_LINE)
            lines.append(line[4:].strip())
    return code, b"\n".join(lines)


def _expect(reply: tuple[int, bytes], accepted: Container[int] = range(200, 300)) -> None:
    if reply[0] not in accepted:
        raise smtplib.SMTPResponseException(reply[0], reply[1])


@contextlib.contextmanager
def session(
    server: Server, host: str, tools: Tools, seconds: float = TOTAL_SECONDS
) -> Iterator[smtplib.SMTP]:
    """A connection that is ready for login. It is closed after ``seconds`` in all."""
    step = min(STEP_SECONDS, seconds)
    trust = _trust(server, tools.settings.ca_bundle)
    make = partial(_Smtps, context=trust) if server.tls_from_start else _Smtp
    # Without a name, smtplib would look up this machine's name in DNS, and wait.
    smtp: _Smtp = make(local_hostname="localhost", timeout=step)
    # The name that the certificate must have; smtplib has no public attribute for it.
    setattr(smtp, "_host", host.removesuffix("."))  # noqa: B010
    expired = threading.Event()
    timer = threading.Timer(seconds, _cut, (smtp, expired))
    timer.daemon = True
    timer.start()
    try:
        ips = tools.network.addresses(host, own_setting=True)
        _connect(smtp, ips, server.port, step, expired)
        smtp.local_hostname = _own_name(tools.settings.public_url, smtp)
        if expired.is_set():  # the timer ended before there was a connection to close
            raise TimeoutError
        _encrypt(smtp, server, trust)
        yield smtp
        with contextlib.suppress(OSError, smtplib.SMTPException):
            smtp.quit()  # the mail was accepted, even if QUIT fails
    finally:
        timer.cancel()
        with contextlib.suppress(OSError):
            smtp.close()


def _own_name(public_url: str | None, smtp: smtplib.SMTP) -> str:
    """The name for EHLO: the host of PUBLIC_URL if others can look it up, else the address of this
    machine. Mail servers refuse the bare name of a container for good (Postfix: 504).
    """
    url = parse_url(public_url) if public_url else None
    if url is not None and url.address is None and "." in url.ascii_host.strip("."):
        return url.ascii_host.strip(".")
    if smtp.sock is None:
        raise smtplib.SMTPServerDisconnected
    return addresses.literal(smtp.sock.getsockname()[0])


def _trust(server: Server, ca_bundle: str | None) -> ssl.SSLContext:
    trust = ssl.create_default_context()
    if ca_bundle:
        trust.load_verify_locations(ca_bundle)
    if not server.tls_required and server.password is None:
        # Plain text is allowed too, so an untrusted certificate is no worse.
        trust.check_hostname = False
        trust.verify_mode = ssl.CERT_NONE
    return trust


def _connect(
    smtp: _Smtp, addresses: list[str], port: int, step: float, expired: threading.Event
) -> None:
    """Connect, and read the greeting. If an address sends none, as a proxy before a dead server, or
    refuses (421, 554), the next address is tried. The last one has the whole time: against spam,
    many servers greet late.
    """
    while True:
        smtp.connection, address = connect(addresses, port, step)
        smtp.connection.settimeout(step if len(addresses) > 1 else TOTAL_SECONDS)
        try:
            _expect(smtp.connect(address, port))
            if smtp.sock is not None:
                smtp.sock.settimeout(step)
            return
        except OSError:  # smtplib's errors are OSErrors too
            smtp.connection.close()
            addresses = [other for other in addresses if other != address]
            if not addresses or expired.is_set():
                raise


def _encrypt(smtp: smtplib.SMTP, server: Server, trust: ssl.SSLContext) -> None:
    if server.tls_from_start:
        return
    smtp.ehlo_or_helo_if_needed()
    if smtp.has_extn("starttls"):
        try:
            smtp.starttls(context=trust)
        except smtplib.SMTPResponseException:
            if trust.verify_mode is ssl.CERT_REQUIRED:
                raise
            return  # go on in plain text, as with a server that does not offer STARTTLS
        smtp.ehlo()
    elif server.tls_required:
        raise NoTls


def _cut(smtp: smtplib.SMTP, expired: threading.Event) -> None:
    expired.set()
    with contextlib.suppress(OSError, AttributeError):
        if smtp.sock is not None:
            smtp.sock.shutdown(socket.SHUT_RDWR)


def _refused(code: int, reply: bytes | str, secrets: list[str]) -> Answer:
    label = f"SMTP {code}" if code > 0 else _("This is no answer of SMTP")
    text = masking.clean(f"{label}: {_text(reply)}", secrets)
    return permanent(text) if code >= 500 else retry(text)


# The answers to RCPT that are about the address: RFC 5321, and RFC 7504 for 556.
_OF_ADDRESS = frozenset({550, 551, 552, 553, 554, 556})
# RFC 3463: the details 5.1.x are about an address, 5.2.x about its mailbox. 5.1.7 and 5.1.8 are
# about the sender's address.
_ADDRESS, _MAILBOX = "5.1.", "5.2."
_OF_SENDER = frozenset({"5.1.7", "5.1.8"})


def _is_gone(code: int, reply: str) -> bool:
    """Whether the answer to a recipient says that the address does not exist. Many servers refuse
    login, sender and relaying only at the recipient. If that counted against the recipient, one
    wrong setting would end every subscription.
    """
    if code not in _OF_ADDRESS or "relay" in reply.casefold():
        return False
    detail = (reply.split() or [""])[0]
    if detail[:2] == "5." and detail.count(".") == 2:
        return detail.startswith((_ADDRESS, _MAILBOX)) and detail not in _OF_SENDER
    return True


def _text(reply: bytes | str) -> str:
    return reply.decode("utf-8", errors="replace") if isinstance(reply, bytes) else reply


def _sentence(host: str, fault: Exception) -> str:
    if isinstance(fault, TimeoutError):
        return _("The mail server %(host)s did not answer in time.", host=host)
    if isinstance(fault, ConnectionRefusedError):
        return _("The mail server %(host)s refused the connection.", host=host)
    return _("The connection to the mail server %(host)s was lost.", host=host)
