"""``wakeful doctor``: looks at all that an installation stands on, and says what is wrong."""

from __future__ import annotations

import os
import smtplib
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import dns.exception
import dns.resolver
from flask import Flask
from sqlalchemy import func, select, text

from app.access import networks
from app.config import Settings
from app.db import db, heartbeats, patience, schema, unreadable
from app.db.settings import setting
from app.db.tables import MonitorRow, MonitorStateRow
from app.net.canary import (
    MEMORY,
    Said,
    ask,
    have_accepted,
    parse_canaries,
    read_memory,
)
from app.net.hosts import parse_servers
from app.stores import health

SECONDS = 5.0  # for each question to somebody else
CLOCK_OFF = timedelta(seconds=5)

# What ends it, by the table that a value cannot be read of.
MENDED_BY = {
    "monitors": "Edit the monitor and enter it again, or remove it.",
    "monitor_evidence": "It is dropped when the next incident of that monitor opens.",
    "incidents": "The incident stands without its evidence. Deleting the incident ends this.",
    "deliveries": "It cannot be sent. It is deleted by its age.",
    "settings": "Set it again on the Settings page.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """``fault`` is something to mend; otherwise it is good to know."""

    subject: str
    sentence: str
    fault: bool = False


def examine(app: Flask, settings: Settings) -> Iterator[Finding]:
    """All findings, one after the other. Needs no context; never raises for what it looks at."""
    looks: list[Callable[[Settings], Iterator[Finding]]] = [
        _folder, _database, _secrets, _clock, _checker, _policy, _names, _canaries, _mail,
    ]  # fmt: skip
    for look in looks:
        try:
            with app.app_context(), patience(SECONDS):
                yield from look(settings)
        except Exception as fault:
            reason = f"{type(fault).__name__}: {str(fault).splitlines()[0] if str(fault) else ''}"
            yield Finding(look.__name__.strip("_"), reason, fault=True)


def _folder(settings: Settings) -> Iterator[Finding]:
    writable = settings.instance.is_dir() and os.access(settings.instance, os.W_OK)
    word = "can be written" if writable else "cannot be written: make it, or give us the right to"
    yield Finding("folder", f"{settings.instance} {word}.", fault=not writable)
    key = settings.instance / "secret_key"
    if key.exists() and key.stat().st_mode & 0o077:
        yield Finding("secret key", f"Others can read {key}. Do: chmod 600 {key}", fault=True)


def _database(settings: Settings) -> Iterator[Finding]:
    kind = db.engine.dialect.name
    version = db.session.scalar(
        text("SELECT sqlite_version()" if kind == "sqlite" else "SHOW server_version")
    )
    yield Finding("database", f"{kind} {version} answers.")
    if sentence := schema.fault():
        yield Finding("tables", sentence, fault=True)
        return
    yield Finding("tables", f"They are up to date ({schema.wanted()}).")
    monitors = db.session.scalar(select(func.count()).select_from(MonitorRow))
    schema.check_key()
    yield Finding("monitors", f"{monitors} are stored.")


def _secrets(settings: Settings) -> Iterator[Finding]:
    if not _tables_are_there() or unreadable.key_is_wrong():
        return  # ``_database`` has said so
    whole = True
    for broken in unreadable.scan():
        whole = False
        yield Finding("secrets", f"{broken}. {MENDED_BY[broken.table]}", fault=True)
    if whole:
        yield Finding("secrets", "All that is stored encrypted can be read.")


def _tables_are_there() -> bool:
    """Whether the tables can be read at all; where not, ``_database`` has said what to do."""
    return schema.fault() is None


def _clock(settings: Settings) -> Iterator[Finding]:
    if not _tables_are_there():
        return
    now = datetime.now(UTC)
    newest = [
        db.session.scalar(select(func.max(MonitorStateRow.checked_at))),
        heartbeats.newest(),
    ]
    ahead = any(moment is not None and moment - now > CLOCK_OFF for moment in newest)
    if db.engine.dialect.name == "postgresql":
        theirs = db.session.scalar(text("SELECT clock_timestamp()"))
        ahead = ahead or abs(theirs - now) > CLOCK_OFF
    if ahead:
        yield Finding(
            "clock", "This machine's clock and the stored times disagree. Set it by NTP.", True
        )
    else:
        yield Finding("clock", f"It is {now:%Y-%m-%d %H:%M:%S} UTC here.")


def _checker(settings: Settings) -> Iterator[Finding]:
    if settings.store != "local" or not _tables_are_there():
        return
    signs = heartbeats.of_checkers(datetime.now(UTC))
    if not signs.ever:
        yield Finding("checker", "None has run yet. Start one: wakeful serve, or wakeful checker")
    elif signs.silent:
        last = "of a time to come" if signs.at is None else f"of {signs.at:%Y-%m-%d %H:%M:%S} UTC"
        yield Finding("checker", f"None runs: the last sign is {last}.")
    else:
        yield Finding("checker", "It runs.")
        for place in health.left_alone(datetime.now(UTC)):
            yield Finding("checker", str(place), fault=True)


def _policy(settings: Settings) -> Iterator[Finding]:
    if not _tables_are_there():
        return
    where = "WAKEFUL_ALLOW_NETWORKS" if networks.are_locked(settings) else "the Settings page"
    allowed = networks.allowed_networks(settings)
    opened = f"public addresses and {allowed}" if allowed else "public addresses only"
    yield Finding("policy", f"Checks and alerts may reach {opened} ({where}).")


def _names(settings: Settings) -> Iterator[Finding]:
    if settings.dns_servers:
        resolver = dns.resolver.Resolver(configure=False)
        servers = parse_servers(settings.dns_servers)
        resolver.nameservers = [server.address for server in servers]
        resolver.nameserver_ports = {server.address: server.port for server in servers}
    else:
        resolver = dns.resolver.Resolver()
    asked = ", ".join(str(server) for server in resolver.nameservers)
    try:
        # The root's name servers: any resolver that works knows them, and no name is given away.
        resolver.resolve(".", "NS", lifetime=SECONDS)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        yield Finding("names", f"{asked} answer.")  # a resolver that knows no root, but answers
    except dns.exception.DNSException as fault:
        yield Finding("names", f"{asked} do not answer: {type(fault).__name__}.", fault=True)
    else:
        yield Finding("names", f"{asked} answer.")


def _canaries(settings: Settings) -> Iterator[Finding]:
    kept = setting(MEMORY) if _tables_are_there() else None
    accepted = have_accepted(read_memory(kept, settings.location))
    for name, said in ask(parse_canaries(settings.canaries), SECONDS).items():
        if said is Said.ACCEPTED:
            yield Finding("canary", f"{name} answers.")
        elif said is Said.NOTHING:
            yield Finding("canary", f"{name} does not answer.", fault=True)
        elif name in accepted:
            yield Finding(
                "canary",
                f"{name} refuses, but has accepted before. Something between may refuse for it.",
                fault=True,
            )
        else:
            yield Finding(
                "canary",
                f"{name} refuses, and has never accepted. Its refusal counts as an answer, so it "
                "tells little. Name a host that accepts connections in WAKEFUL_CANARIES.",
            )


def _mail(settings: Settings) -> Iterator[Finding]:
    if settings.smtp_url is None:
        yield Finding("mail", "WAKEFUL_SMTP_URL is not set, so no email can be sent.")
        return
    url = urlsplit(settings.smtp_url)
    host = url.hostname or ""
    try:
        if url.scheme == "smtps":
            trust = ssl.create_default_context()
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                host, url.port or 465, timeout=SECONDS, context=trust
            )
        else:
            server = smtplib.SMTP(host, url.port or 25, timeout=SECONDS)
        with server:
            server.noop()
    except (OSError, smtplib.SMTPException) as fault:
        yield Finding("mail", f"{host} does not answer: {type(fault).__name__}.", fault=True)
    else:
        yield Finding("mail", f"{host} answers.")
