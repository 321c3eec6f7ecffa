"""The lines of ``wakeful doctor`` on services of others: it asks each as Wakeful does, and changes
nothing there.
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

SECONDS = 5.0  # for each question to somebody else


@dataclass(frozen=True, slots=True)
class Finding:
    """``fault`` is something to mend; otherwise it is good to know."""

    subject: str
    sentence: str
    fault: bool = False


@dataclass(slots=True)
class Subject:
    """The settings and stores that are examined. ``tables``: they exist, so the checks may read
    them.
    """

    settings: Settings
    tables: bool = False


class Fault(str):
    """A sentence about something to mend."""

    __slots__ = ()


Statements = Iterator[str | Finding]  # a sentence, or what is of another subject
Examination = Callable[[Subject], Statements]

ACCEPTS = N_("%(host)s answers and accepts the login.")
REFUSES = N_("%(host)s refuses the account or the token (HTTP %(status)s).")
UNCLEAR = N_(
    "%(host)s answers. Whether it accepts the login, only a test message tells (HTTP %(status)s)."
)
REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
# The addresses at which Twilio and Vonage describe an account to the owner of its token.
ACCOUNT = {"twilio": "/2010-04-01/Accounts/{user}.json", "vonage": "/account/get-balance"}


def _remote(subject: Subject) -> Statements:
    settings = subject.settings
    if settings.store != "remote":
        return
    # Imported here: it loads the forms.
    from app.stores.remote import remote_store

    app = current_app._get_current_object()  # type: ignore[attr-defined]
    stores = [remote_store(url, key) for url, key in settings.remotes]
    for name, fault in remote_servers.ask(app, stores, SECONDS).items():
        yield Fault(fault) if fault else _("%(server)s answers and accepts its key.", server=name)


def _telegram(subject: Subject) -> Statements:
    settings = subject.settings
    api, token = settings.telegram_api, settings.telegram_token
    if token is not None:
        # Telegram answers 404 if the first part of a token is of no bot.
        refused = (*REFUSED, HTTPStatus.NOT_FOUND)
        yield _asked(settings, f"{api}/bot{token}/getMe", refused=refused)
    elif api != PUBLIC_TELEGRAM_API:
        yield _asked(settings, f"{api}/", refused=())


def _sms(subject: Subject) -> Statements:
    settings = subject.settings
    if settings.sms_url is None:
        return
    provider = sms.parse(settings.sms_url)
    login = b64encode(f"{provider.user}:{provider.password}".encode()).decode()
    url = f"{provider.api}{ACCOUNT[provider.service].format(user=provider.user)}"
    yield _asked(settings, url, {"Authorization": "Basic " + login})


def _asked(
    settings: Settings,
    url: str,
    headers: Mapping[str, str] | None = None,
    refused: tuple[int, ...] = REFUSED,
) -> str:
    """``url`` may hold a secret, so that only its host is named."""
    host = parse_url(url).host
    network = replace(settings.network(), total_seconds=SECONDS)
    try:
        status = network.get(url, headers=headers, own_setting=True).status
    except ConnectionFailed as fault:
        return Fault(fault)
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return _(ACCEPTS, host=host)
    if status in refused:
        return Fault(_(REFUSES, host=host, status=status))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status < HTTPStatus.BAD_REQUEST:
        return Fault(_("%(host)s answers HTTP %(status)s.", host=host, status=status))
    # A gateway of one's own need not have what the public service has.
    return _(UNCLEAR, host=host, status=status)


def _broker(subject: Subject) -> Statements:
    url = subject.settings.broker_url
    if url is None:
        return
    host = take_apart_service(url, "redis", "rediss").host
    try:
        from app.engine.carriers.queue import broker
    except ImportError:
        yield Fault(_("The queue's libraries are missing. Install wakeful[distributed]."))
        return
    if fault := broker.fault_of(url):
        yield Fault(_("%(name)s does not answer: %(fault)s.", name=host, fault=fault))
    else:
        yield _(ACCEPTS, host=host)


def _registries(subject: Subject) -> Statements:
    settings = subject.settings
    if settings.store != "local":
        return
    # Imported here: it takes 8 MB.
    from app.checks.expiry import rdap

    asked = subject.tables and bool(
        db.session.scalar(select(exists().where(MonitorStateRow.domain > "")))
    )
    try:
        deadline = time.monotonic() + SECONDS
        rdap.load(settings.rdap_bootstrap, datetime.now(UTC), deadline, settings.network())
    except NoAnswer as fault:
        # An installation without a way out may have no domains to ask about.
        kind = Fault if settings.rdap_bootstrap is not None or asked else str
        yield kind(f"RDAP: {fault}")
    else:
        yield _("The list of registries (RDAP) can be read.")


EXAMINATIONS = (
    (N_("remote server"), _remote),
    ("Telegram", _telegram),
    ("SMS", _sms),
    (N_("broker"), _broker),
    (N_("domain expiry"), _registries),
)
