"""The part of ``wakeful doctor`` that examines other services. It sends them requests as Wakeful
does, but changes nothing there.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus

from flask import current_app
from sqlalchemy import exists, select

from app.checks.expiry.registry import NoAnswer
from app.config import PUBLIC_TELEGRAM_API, Settings
from app.db import db
from app.db.tables import MonitorStateRow
from app.i18n import N_, _
from app.net.client import ConnectionFailed
from app.rules import sms
from app.rules.service_url import take_apart_service
from app.rules.url import parse_url
from app.stores import remote_servers

SECONDS = 5.0  # for each request to another service


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. ``label``: the part of the installation that it is about.
    ``is_problem``: somebody must repair something; otherwise the line is for information.
    """

    label: str
    sentence: str
    is_problem: bool = False


@dataclass(slots=True)
class Context:
    """What the examinations share. ``has_tables``: the tables exist, so an examination may read
    them.
    """

    settings: Settings
    has_tables: bool = False


class Problem(str):
    """A sentence about something that somebody must repair."""

    __slots__ = ()


Sentences = Iterator[str | Finding]  # a Finding has a label of its own
Examination = Callable[[Context], Sentences]

ACCEPTS = N_("%(host)s answers and accepts the login.")
REFUSES = N_("%(host)s refuses the account or the token (HTTP %(status)s).")
UNCLEAR = N_(
    "%(host)s answers. Whether it accepts the login, only a test message tells (HTTP %(status)s)."
)
REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
# The addresses at which Twilio and Vonage describe an account to the owner of its token.
ACCOUNT = {"twilio": "/2010-04-01/Accounts/{user}.json", "vonage": "/account/get-balance"}


def _remote(context: Context) -> Sentences:
    settings = context.settings
    if settings.store != "remote":
        return
    # Imported here: it loads the forms.
    from app.stores.remote import remote_store

    app = current_app._get_current_object()  # type: ignore[attr-defined]
    stores = [remote_store(url, key) for url, key in settings.remotes]
    for name, fault in remote_servers.ask(app, stores, SECONDS).items():
        yield Problem(fault) if fault else _("%(server)s answers and accepts its key.", server=name)


def _telegram(context: Context) -> Sentences:
    settings = context.settings
    api, token = settings.telegram_api, settings.telegram_token
    if token is not None:
        # Telegram answers 404 if no bot has the first part of the token.
        refused = (*REFUSED, HTTPStatus.NOT_FOUND)
        yield _ask(settings, f"{api}/bot{token}/getMe", refused=refused)
    elif api != PUBLIC_TELEGRAM_API:
        yield _ask(settings, f"{api}/", refused=())


def _sms(context: Context) -> Sentences:
    settings = context.settings
    if settings.sms_url is None:
        return
    provider = sms.parse(settings.sms_url)
    login = b64encode(f"{provider.user}:{provider.password}".encode()).decode()
    url = f"{provider.api}{ACCOUNT[provider.service].format(user=provider.user)}"
    yield _ask(settings, url, {"Authorization": "Basic " + login})


def _ask(
    settings: Settings,
    url: str,
    headers: Mapping[str, str] | None = None,
    refused: tuple[int, ...] = REFUSED,
) -> str:
    """The sentence for the answer of a service to a GET. It names only the host of ``url``, which
    may contain a secret.
    """
    host = parse_url(url).host
    network = replace(settings.network(), total_seconds=SECONDS)
    try:
        status = network.get(url, headers=headers, own_setting=True).status
    except ConnectionFailed as fault:
        return Problem(fault)
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return _(ACCEPTS, host=host)
    if status in refused:
        return Problem(_(REFUSES, host=host, status=status))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status < HTTPStatus.BAD_REQUEST:
        return Problem(_("%(host)s answers HTTP %(status)s.", host=host, status=status))
    # A private gateway may lack this address of the public service.
    return _(UNCLEAR, host=host, status=status)


def _broker(context: Context) -> Sentences:
    url = context.settings.broker_url
    if url is None:
        return
    host = take_apart_service(url, "redis", "rediss").host
    try:
        from app.engine.carriers.queue import broker
    except ImportError:
        yield Problem(_("The queue's libraries are missing. Install wakeful[distributed]."))
        return
    if fault := broker.fault_of(url):
        yield Problem(_("%(name)s does not answer: %(fault)s.", name=host, fault=fault))
    else:
        yield _(ACCEPTS, host=host)


def _registries(context: Context) -> Sentences:
    settings = context.settings
    if settings.store != "local":
        return
    # Imported here: it takes 8 MB.
    from app.checks.expiry import rdap

    has_domains = context.has_tables and bool(
        db.session.scalar(select(exists().where(MonitorStateRow.domain > "")))
    )
    try:
        deadline = time.monotonic() + SECONDS
        rdap.load(settings.rdap_bootstrap, datetime.now(UTC), deadline, settings.network())
    except NoAnswer as fault:
        # An installation without access to the internet may have no domains to look up.
        is_needed = settings.rdap_bootstrap is not None or has_domains
        yield (Problem if is_needed else str)(f"RDAP: {fault}")
    else:
        yield _("The list of registries (RDAP) can be read.")


EXAMINATIONS = (
    (N_("remote server"), _remote),
    ("Telegram", _telegram),
    ("SMS", _sms),
    (N_("broker"), _broker),
    (N_("domain expiry"), _registries),
)
