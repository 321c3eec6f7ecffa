"""Forms of the mail server's settings."""

from __future__ import annotations

from app.forms.browser import BrowserForm
from app.forms.fields import Number, Password, Text, Word
from app.i18n import N_, _
from app.records import MAX_CREDENTIAL, MAX_NAME
from app.rules import smtp
from app.rules.smtp import Server, Tls
from app.web.forms import email_field

TLS_LABELS = {
    Tls.REQUIRED: N_("STARTTLS (port 587)"),
    Tls.FROM_START: N_("TLS from the start (port 465)"),
    Tls.OFFERED: N_("STARTTLS if offered (port 25)"),
}
PORTS = {Tls.REQUIRED: 587, Tls.FROM_START: 465, Tls.OFFERED: 25}
LOGIN_CHANGED = N_("Enter the password again: the host or the user name has changed.")
NO_USER = N_("A password needs a user name.")
_PLAIN = {"spellcheck": "false", "autocapitalize": "none", "autocomplete": "off"}


class MailServerForm(BrowserForm):
    host = Text(
        N_("Host"),
        required=True,
        most=MAX_NAME,
        rule=smtp.check_host,
        description=N_("Such as mail.example.com."),
        render_kw=_PLAIN,
    )
    tls = Word(N_("Encryption"), words=Tls, labels=TLS_LABELS.__getitem__, default=Tls.REQUIRED)
    port = Number(N_("Port"), low=1, high=65535)
    user = Text(N_("User name"), most=MAX_CREDENTIAL, render_kw=_PLAIN)
    password = Password(N_("Password"), most=MAX_CREDENTIAL, render_kw={"autocomplete": "off"})
    sender = Text(
        N_("Sender"),
        required=True,
        most=MAX_NAME,
        rule=smtp.check_sender,
        description=N_("Such as Wakeful <alerts@example.com>."),
        render_kw=_PLAIN,
    )

    known: Server | None = None  # what is stored

    @property
    def keeps_password(self) -> bool:
        return self.known is not None and self.known.password is not None

    def check_together(self) -> None:
        if self.password.data and not self.user.data:
            self.password.fault(_(NO_USER))
        elif self._needs_password():
            self.password.fault(_(LOGIN_CHANGED))

    def _needs_password(self) -> bool:
        """A stored password must not be sent to a server that it was not entered for."""
        asked = bool(self.user.data) and not self.password.data
        return asked and self.keeps_password and not self._is_same_login()

    def _is_same_login(self) -> bool:
        known = self.known
        return known is not None and (known.host, known.user) == (self.host.data, self.user.data)

    def server(self) -> Server:
        kept = self.known.password if self.known is not None else None
        tls = Tls(self.tls.data)
        return Server(
            host=self.host.data,
            port=self.port.data or PORTS[tls],
            sender=self.sender.data,
            user=self.user.data or None,
            password=(self.password.data or kept) if self.user.data else None,
            tls=tls,
        )


class TestMailForm(BrowserForm):
    address = email_field("email")
