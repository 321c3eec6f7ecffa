"""``wakeful doctor``: looks at all that an installation stands on, and says what is wrong."""

from __future__ import annotations

import os
import smtplib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dns.exception
import dns.resolver
from dns.nameserver import Do53Nameserver
from flask import Flask
from sqlalchemy import func, select, text
from sqlalchemy.exc import SQLAlchemyError

from app.access import networks
from app.access.mail_server import smtp_url
from app.access.setup import SETUP_TOKEN
from app.alerts.channels import email
from app.alerts.channels.base import Tools
from app.commands import services
from app.commands.heartbeat import withheld
from app.commands.services import SECONDS, Finding, Look, Subject
from app.config import SettingError, Settings
from app.db import db, heartbeats, integrity, patience, rotation, schema, unreadable
from app.db.faults import DAMAGED, sentence_of
from app.db.settings import setting
from app.db.tables import MonitorRow, MonitorStateRow
from app.db.types import readable
from app.errors import WakefulError
from app.i18n import N_, _, _n
from app.net.canary import (
    MEMORY,
    Said,
    ask,
    have_accepted,
    parse_canaries,
    read_memory,
)
from app.net.client import Unreachable
from app.records import Channel
from app.records.resources import BY_TABLE
from app.rules.smtp import parse
from app.rules.url import ascii_host, parse_url
from app.stores import health
from app.stores.writable import cannot_write

CLOCK_OFF = timedelta(seconds=5)

# What ends it, by the table that a value cannot be read of.
MENDED_BY = {
    **{table: resource.mend for table, resource in BY_TABLE.items() if resource.mend},
    "monitor_evidence": N_("It is dropped when the next incident of that monitor opens."),
    "monitor_states": N_("The next check of that monitor replaces it."),
    "settings": N_("Set it again on the Settings page."),
    "authenticator_apps": N_(
        "They log in with a passkey or a recovery code. If they have none, an admin resets their "
        "second factor on the People page, or run: wakeful user reset EMAIL"
    ),
    "post_updates": N_("Correct the update, or delete its post."),
    "report_mails_sent": N_("Delete the monthly report and set it up again."),
}
ROTATE = N_("Run: wakeful secrets rotate")
NO_OLD = N_(
    "The first key reads every stored value. wakeful secrets rotate says when to remove the others."
)
OLD_SHOWN = 20
STORED_WHOLE = N_(
    "All stored secrets, texts and times can be read. (Check results are not examined.)"
)
UNKNOWN = N_(
    "Without the tables, the stored values, the clock, checkers, alert workers and allowed "
    "networks cannot be examined. Run this command again when the database works."
)
MENDED_BY_NONE = N_("The rest works without it. Restore a backup to get it back.")
# Settings that nobody sets: Wakeful replaces them.
HEALS = {
    MEMORY: N_("The next start of a checker replaces it."),
    SETUP_TOKEN: N_("The next start makes another."),
}
PARTS = {heartbeats.CHECKER: N_("checker"), heartbeats.WORKER: N_("alert worker")}


def examine(app: Flask, settings: Settings) -> Iterator[Finding]:
    """All findings, one after the other. Needs no context; never raises for what it looks at.

    Only ``_database`` waits for a database that does not answer: if every look did, they would
    take a minute together.
    """
    subject = Subject(settings)
    yield from _run(app, subject, [_folder, _database, _rights])
    of_tables: list[Look] = [_file, _secrets, _old_keys, _clock, _parts, _policy]
    yield from _run(app, subject, of_tables if subject.tables else [_unknown])
    yield from _run(app, subject, [_names, _canaries, _mail, _heartbeat, *services.LOOKS])


def _run(app: Flask, subject: Subject, looks: Iterable[Look]) -> Iterator[Finding]:
    for look in looks:
        try:
            with app.app_context(), patience(SECONDS):
                yield from look(subject)
        except Exception as fault:
            yield Finding(look.__name__.strip("_"), _reason(fault), fault=True)


def _reason(fault: Exception) -> str:
    if isinstance(fault, SQLAlchemyError):
        return sentence_of(fault)
    if isinstance(fault, WakefulError | SettingError):
        return str(fault)
    lines = str(fault).splitlines() or [""]
    return _(
        "This examination failed because of a bug in Wakeful: %(fault)s: %(text)s",
        fault=type(fault).__name__,
        text=lines[0],
    )


def _folder(subject: Subject) -> Iterator[Finding]:
    settings = subject.settings
    folder = settings.instance
    if not folder.is_dir():
        missing = _(
            "The folder %(folder)s does not exist. Check that its disk is mounted.", folder=folder
        )
        yield Finding(_("folder"), missing + " " + _("Only a first start creates it."), fault=True)
    elif not os.access(folder, os.W_OK):
        yield Finding(
            _("folder"),
            _("%(folder)s cannot be written. Give Wakeful write permission.", folder=folder),
            True,
        )
    else:
        yield Finding(_("folder"), _("%(folder)s can be written.", folder=folder))
    key = folder / "secret_key"
    if not settings.secret_key:
        yield Finding(
            _("secret key"),
            _(
                "The file %(key)s does not exist, and WAKEFUL_SECRET_KEY is not set. Put the key "
                "back: without it, no encrypted value can be read. Only a first start creates a "
                "key.",
                key=key,
            ),
            fault=True,
        )
    elif key.exists() and key.stat().st_mode & 0o077:
        yield Finding(
            _("secret key"),
            _("Others can read %(key)s. Run: chmod 600 %(key)s", key=key),
            fault=True,
        )


def _database(subject: Subject) -> Iterator[Finding]:
    kind = db.engine.dialect.name
    version = db.session.scalar(
        text("SELECT sqlite_version()" if kind == "sqlite" else "SHOW server_version")
    )
    yield Finding(_("database"), _("%(database)s answers.", database=f"{kind} {version}"))
    if sentence := schema.fault():
        yield Finding(_("tables"), sentence, fault=True)
        return
    subject.tables = True
    yield Finding(_("tables"), _("They are up to date (%(revision)s).", revision=schema.wanted()))
    if sentence := cannot_write():
        yield Finding(_("database"), sentence, fault=True)
    monitors = db.session.scalar(select(func.count()).select_from(MonitorRow)) or 0
    if subject.settings.secret_key:
        schema.check_key()
    yield Finding(
        _("monitors"),
        _n("%(num)s is stored.", "%(num)s are stored.", monitors, num=f"{monitors:,}"),
    )


def _rights(subject: Subject) -> Iterator[Finding]:
    file = Path(schema.place())
    if db.engine.dialect.name == "sqlite" and _is_open_to_all(file):
        sentence = _(
            "Everybody on this machine can open %(file)s. Run: chmod o= %(file)s*", file=file
        )
        yield Finding(_("file"), sentence, fault=True)


def _unknown(subject: Subject) -> Iterator[Finding]:
    yield Finding(_("not examined"), _(UNKNOWN), fault=True)


def _file(subject: Subject) -> Iterator[Finding]:
    if db.engine.dialect.name != "sqlite":
        return
    found = integrity.faults(SECONDS)
    for fault in found or ():
        yield Finding(
            _("file"), _(DAMAGED) + " " + _("SQLite says: %(fault)s", fault=fault), fault=True
        )
    if not found:
        whole = (
            _("Reading all of it took too long.") if found is None else _("SQLite finds no damage.")
        )
        yield Finding(_("file"), whole)


def _is_open_to_all(file: Path) -> bool:
    """Whether somebody who is neither the owner nor of the group gets at the file."""
    try:
        return bool(file.stat().st_mode & 0o006 and file.parent.stat().st_mode & 0o001)
    except OSError:
        return False  # it is not there, or we may not look: ``_database`` says so


def _secrets(subject: Subject) -> Iterator[Finding]:
    if not subject.settings.secret_key or unreadable.key_is_wrong():
        return  # ``_database`` or ``_folder`` has said so
    whole = True
    for broken in unreadable.scan():
        whole = False
        heals = HEALS.get(broken.id) if broken.table == "settings" else None
        advice = heals or MENDED_BY.get(broken.table, MENDED_BY_NONE)
        nothing_to_do = heals is not None or broken.table == "deliveries"
        yield Finding(_("stored values"), f"{broken}. {_(advice)}", fault=not nothing_to_do)
    if whole:
        yield Finding(_("stored values"), _(STORED_WHOLE))


def _old_keys(subject: Subject) -> Iterator[Finding]:
    """What stands in the way of removing an old key."""
    if not subject.settings.old_keys:
        return
    olds = list(rotation.old_values())
    for old in olds[:OLD_SHOWN]:
        sentence = _("Only an old secret key reads the %(what)s.", what=old.what)
        yield Finding(_("secret key"), f"{sentence} {_(ROTATE)}")
    if len(olds) > OLD_SHOWN:
        more = len(olds) - OLD_SHOWN
        sentence = _n(
            "%(num)s more value needs an old key.", "%(num)s more values need an old key.", more
        )
        yield Finding(_("secret key"), sentence)
    if not olds:
        yield Finding(_("secret key"), _(NO_OLD))


def _clock(subject: Subject) -> Iterator[Finding]:
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
            _("clock"),
            _("This machine's clock and the stored times disagree. Set it by NTP."),
            True,
        )
    else:
        yield Finding(_("clock"), _("It is %(time)s UTC here.", time=f"{now:%Y-%m-%d %H:%M:%S}"))


def _parts(subject: Subject) -> Iterator[Finding]:
    if subject.settings.store != "local":
        return
    # A missing part is no fault where there is nothing to check.
    needed = health.monitors_wait()
    now = datetime.now(UTC)
    for part, label in PARTS.items():
        name = _(label)
        signs = heartbeats.signs_of(part, now)
        last = (
            _("in the future")
            if signs.at is None
            else _("from %(time)s UTC", time=f"{signs.at:%Y-%m-%d %H:%M:%S}")
        )
        if not signs.ever:
            sentence = _(
                "None has run yet. Start one: wakeful serve, or wakeful %(part)s", part=part
            )
            yield Finding(name, sentence, fault=needed)
        elif not signs.silent:
            yield Finding(name, _("It runs."))
        elif cannot_write():
            what = _(
                "It may be running: the database cannot be written. The last sign of it is "
                "%(last)s.",
                last=last,
            )
            yield Finding(name, what)
        else:
            yield Finding(
                name,
                _("None is running. The last sign of one is %(last)s.", last=last),
                fault=needed,
            )
        if part == heartbeats.CHECKER and not signs.silent:
            alone = health.left_alone(now)
            for place in [*alone, *health.idle_places(now, alone)]:
                yield Finding(name, str(place), fault=True)


def _policy(subject: Subject) -> Iterator[Finding]:
    settings = subject.settings
    locked = networks.are_locked(settings)
    where = "WAKEFUL_ALLOW_NETWORKS" if locked else _("the Settings page")
    allowed = networks.allowed_networks(settings)
    opened = (
        _("public addresses and %(networks)s", networks=allowed)
        if allowed
        else _("public addresses only")
    )
    yield Finding(
        _("policy"),
        _("Checks and alerts may reach %(opened)s (%(where)s).", opened=opened, where=where),
    )


def _names(subject: Subject) -> Iterator[Finding]:
    settings = subject.settings
    if settings.dns_servers:
        resolver = dns.resolver.Resolver(configure=False)
        # With their ports: two of them may share an address.
        servers = [Do53Nameserver(server.address, server.port) for server in settings.name_servers]
        resolver.nameservers = servers
    else:
        resolver = dns.resolver.Resolver()
    asked = settings.dns_servers or ", ".join(map(str, resolver.nameservers))
    try:
        # The root's name servers: any resolver that works knows them, and no name is given away.
        resolver.resolve(".", "NS", lifetime=SECONDS)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        yield Finding(
            _("names"), _("%(servers)s answer.", servers=asked)
        )  # a resolver that knows no root, but answers
    except dns.exception.DNSException as fault:
        yield Finding(
            _("names"),
            _("%(servers)s do not answer: %(fault)s.", servers=asked, fault=type(fault).__name__),
            fault=True,
        )
    else:
        yield Finding(_("names"), _("%(servers)s answer.", servers=asked))


def _canaries(subject: Subject) -> Iterator[Finding]:
    kept = setting(MEMORY) if subject.tables else None
    accepted = have_accepted(read_memory(kept, subject.settings.location))
    canaries, servers = parse_canaries(subject.settings.canaries), subject.settings.name_servers
    for name, said in ask(canaries, SECONDS, dns_servers=servers).items():
        if said is Said.ACCEPTED:
            yield Finding(_("canary"), _("%(name)s answers.", name=name))
        elif said is Said.NOTHING:
            yield Finding(_("canary"), _("%(name)s does not answer.", name=name), fault=True)
        elif name in accepted:
            yield Finding(
                _("canary"),
                _(
                    "%(name)s refuses, but has accepted before. A firewall in between may refuse "
                    "in its place.",
                    name=name,
                ),
                fault=True,
            )
        elif not subject.tables:
            yield Finding(
                _("canary"), _("%(name)s refuses. Whether it ever accepted is unknown.", name=name)
            )
        else:
            yield Finding(
                _("canary"),
                _(
                    "%(name)s refuses, and has never accepted. In WAKEFUL_CANARIES, name a host "
                    "that accepts connections: a firewall in your network could refuse in its "
                    "place.",
                    name=name,
                ),
            )


def _mail(subject: Subject) -> Iterator[Finding]:
    # Without its tables, only the environment can be read.
    url = smtp_url(subject.settings) if subject.tables else subject.settings.smtp_url
    if url is None:
        yield _no_mail(_monitors_with_email() if subject.tables else None)
        return
    try:
        server = parse(url)
        host = ascii_host(server.host)
    except ValueError as fault:
        yield Finding(_("mail"), str(fault), fault=True)
        return
    tools = Tools(subject.settings, subject.settings.network())
    try:
        with email.session(server, host, tools, SECONDS) as smtp:
            if server.user is not None:
                email.log_in(smtp, server.user, server.password or "")
            smtp.noop()
    except Unreachable as fault:
        yield Finding(_("mail"), str(fault), fault=True)
    except smtplib.SMTPAuthenticationError as fault:
        refused = _(
            "%(name)s refuses the user name or the password (SMTP %(code)s).",
            name=server.host,
            code=fault.smtp_code,
        )
        yield Finding(_("mail"), refused, fault=True)
    except (OSError, smtplib.SMTPException, email.NoTls) as fault:
        name = type(fault).__name__
        yield Finding(
            _("mail"),
            _("%(name)s does not answer: %(fault)s.", name=server.host, fault=name),
            fault=True,
        )
    else:
        answers = (
            _("%(name)s answers.", name=server.host)
            if server.user is None
            else _("%(host)s answers and accepts the login.", host=server.host)
        )
        yield Finding(_("mail"), answers)


def _no_mail(monitors: int | None) -> Finding:
    """``monitors``: how many alert by email; None if that cannot be read."""
    if monitors is None:
        return Finding(_("mail"), _("No mail server is set up, so no email can be sent."))
    if not monitors:
        sentence = _("No mail server is set up, so no email can be sent. No monitor uses email.")
        return Finding(_("mail"), sentence)
    sentence = _n(
        "No mail server is set up, so no email can be sent, and %(num)s monitor alerts by email.",
        "No mail server is set up, so no email can be sent, and %(num)s monitors alert by email.",
        monitors,
        num=f"{monitors:,}",
    )
    return Finding(_("mail"), sentence, fault=True)


def _heartbeat(subject: Subject) -> Iterator[Finding]:
    if subject.settings.store != "local":
        return
    url = subject.settings.heartbeat_url
    if url is None:
        sentence = _(
            "WAKEFUL_HEARTBEAT_URL is not set: if this machine dies, only a service elsewhere that "
            "misses a heartbeat can say so."
        )
        yield Finding(_("heartbeat"), sentence)
        return
    sentence = _("Checkers call %(host)s each minute.", host=parse_url(url).host)
    reason = withheld(datetime.now(UTC)) if subject.tables else None
    if reason is not None:
        sentence += " " + _("Not now: %(reason)s", reason=reason)
    yield Finding(_("heartbeat"), sentence, fault=reason is not None)


def _monitors_with_email() -> int:
    stored = db.session.scalars(select(MonitorRow.alerts).where(MonitorRow.alerts.is_not(None)))
    return sum(any(name == Channel.EMAIL for name, _value in readable(one) or ()) for one in stored)
