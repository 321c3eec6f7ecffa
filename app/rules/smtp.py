"""A mail server as one URL, as in the environment and in the settings table:

smtp://user:password@host:port?from=Wakeful <alerts@example.com>&tls=required

STARTTLS is used if the server offers it; with ``tls=required``, nothing is sent without it.
``smtps://`` is TLS from the first byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote, urlencode

from app.i18n import N_, _
from app.rules import addresses
from app.rules.service_url import ESCAPED, take_apart_service
from app.rules.url import take_apart

_SUBMISSION = 587  # the port for mail with a user and a password
_PORTS = {"smtp": 25, "smtps": 465}
HOST = N_("Enter a host name or an IP address, such as mail.example.com.")
SENDER = N_("Enter an address such as alerts@example.com, or Wakeful <alerts@example.com>.")


class Tls(StrEnum):
    """How the connection is encrypted."""

    REQUIRED = "required"
    OFFERED = "offered"  # if the server offers it
    FROM_START = "from_start"


@dataclass(frozen=True, slots=True)
class Server:
    """The parts of the URL. ``sender`` is empty if neither ``from`` nor the user is an address; the
    caller then uses a default.
    """

    host: str
    port: int
    sender: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: Tls = Tls.OFFERED

    @property
    def tls_from_start(self) -> bool:
        return self.tls is Tls.FROM_START

    @property
    def tls_required(self) -> bool:
        return self.tls is not Tls.OFFERED


def parse(url: str) -> Server:
    """Raises ValueError with a sentence that contains nothing of the URL."""
    service = take_apart_service(url, *_PORTS)
    options = dict(service.query)
    sender, tls = options.pop("from", ""), options.pop("tls", "")
    if service.path or options:
        raise ValueError(
            _("after the host and port, only ?from= and &tls=required may stand.")
            + " "
            + _(ESCAPED)
        )
    if tls not in ("", Tls.REQUIRED):
        raise ValueError(_("the only value of tls is required."))
    user, scheme = service.user, service.scheme
    if user is None and service.password:
        raise ValueError(_("it has a password and no user name."))
    if sender:
        check_sender(sender)
    fallback = user if user and "@" in user else ""
    return Server(
        host=service.host,
        port=service.port or (_SUBMISSION if user and scheme == "smtp" else _PORTS[scheme]),
        sender=sender or fallback,
        user=user,
        password=service.password or None,
        tls=Tls.FROM_START if scheme == "smtps" else Tls.REQUIRED if tls else Tls.OFFERED,
    )


def compose(server: Server) -> str:
    """The URL that ``parse`` reads as this server."""
    scheme = "smtps" if server.tls is Tls.FROM_START else "smtp"
    login = quote(server.user or "", safe="")
    if server.user and server.password:
        login += f":{quote(server.password, safe='')}"
    host = f"[{server.host}]" if ":" in server.host else server.host
    query = {"from": server.sender} if server.sender else {}
    if server.tls is Tls.REQUIRED:
        query["tls"] = "required"
    at = f"{login}@" if login else ""
    return f"{scheme}://{at}{host}:{server.port}?{urlencode(query)}"


def check_host(host: str) -> str:
    """Raises ValueError with a sentence."""
    try:
        target = take_apart(f"smtp://[{host}]" if ":" in host else f"smtp://{host}", _PORTS)
    except ValueError:
        raise ValueError(_(HOST)) from None
    if target.host.strip("[]") != host or any(mark in host for mark in "/?#"):
        raise ValueError(_(HOST))
    return host


def check_sender(sender: str) -> str:
    """Raises ValueError with a sentence."""
    try:
        addresses.sender_parts(sender)
    except ValueError:
        raise ValueError(_(SENDER)) from None
    return sender
