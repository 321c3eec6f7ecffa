"""``wakeful doctor``: examines everything that an installation needs, and reports problems."""

from __future__ import annotations

import os
import smtplib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import dns.exception
import dns.resolver
from dns.nameserver import Do53Nameserver
from flask import Flask
from sqlalchemy import func, select, text
from sqlalchemy.exc import SQLAlchemyError

from app.access.people import SETUP_TOKEN
from app.access.settings import allowed_networks, networks_are_locked, smtp_url
from app.alerts.channels import email
from app.alerts.channels.base import Tools
from app.commands import services
from app.commands.heartbeat import why_withheld
from app.commands.services import SECONDS, Context, Examination, Finding, Problem, Sentences
from app.config import SettingError, Settings
from app.db import db, faults, liveness, patience, rotation, schema, unreadable
from app.db.faults import DAMAGED, sentence_of
from app.db.settings import setting
from app.db.statements import count_of
from app.db.tables import MonitorRow, MonitorStateRow
from app.db.types import readable
from app.errors import WakefulError
from app.i18n import N_, _, _n
from app.net import canary, icmp
from app.net.canary import MEMORY
from app.net.client import ConnectionFailed
from app.records import Channel
from app.records.resources import BY_TABLE
from app.rules.smtp import parse
from app.rules.url import ascii_host, parse_url
from app.stores import health
from app.stores.health import cannot_write

CLOCK_OFF = timedelta(seconds=5)

# By table, how a person replaces a value that cannot be read.
MENDED_BY = {
    **{table: resource.mend for table, resource in BY_TABLE.items() if resource.mend},
    "monitor_evidence": N_(
        "It is replaced when the next incident of that monitor opens, or its check is asked for."
    ),
    "monitor_states": N_("The next check of that monitor replaces it."),
    "settings": N_("Set it again on the Settings page."),
    "authenticator_apps": N_(
        "They log in with a passkey or a recovery code. If they have none, an admin resets their "
        "second factor on the People page, or run: wakeful user reset EMAIL"
    ),
    "heartbeat_states": N_(
        "Make a new token on the page of the heartbeat, and give it to the job."
    ),
    "pings": N_("Nothing to do: it is deleted when it is old enough."),
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
# By name, when Wakeful replaces the damaged value of a setting that no person sets.
REPLACED_AUTOMATICALLY = {
    MEMORY: N_("The next start of a checker replaces it."),
    SETUP_TOKEN: N_("The next start makes another."),
}
NO_KEY = N_(
    "The file %(key)s does not exist, and WAKEFUL_SECRET_KEY is not set. Put the key back: without "
    "it, no encrypted value can be read. Only a first start creates a key."
)
REFUSES_NOW = N_(
    "%(name)s refuses, but has accepted before. A firewall in between may refuse in its place."
)
REFUSES_ALWAYS = N_(
    "%(name)s refuses, and has never accepted. In WAKEFUL_CANARIES, name a host that accepts "
    "connections: a firewall in your network could refuse in its place."
)
REFUSES_LOGIN = N_("%(name)s refuses the user name or the password (SMTP %(code)s).")
BUG = N_("This examination failed because of a bug in Wakeful: %(fault)s: %(text)s")
LAST_SIGN = N_(
    "It may be running: the database cannot be written. The last sign of it is %(last)s."
)
NO_HEARTBEAT = N_(
    "WAKEFUL_HEARTBEAT_URL is not set: if this machine dies, only a service elsewhere that misses "
    "a heartbeat can say so."
)


def examine(app: Flask, settings: Settings) -> Iterator[Finding]:
    """All findings, one after the other. Needs no application context. An exception in an
    examination becomes a finding.

    Without tables, the examinations that read them are left out: if each of them waited for a
    database that does not answer, they would take a minute together.
    """
    context = Context(settings)
    yield from _run(app, context, ALWAYS)
    if context.has_tables:
        yield from _run(app, context, OF_TABLES)
    else:
        yield Finding(_("not examined"), _(UNKNOWN), is_problem=True)
    yield from _run(app, context, OF_OTHERS)


def _run(
    app: Flask, context: Context, examinations: Iterable[tuple[str, Examination]]
) -> Iterator[Finding]:
    for label, examine_part in examinations:
        try:
            with app.app_context(), patience(SECONDS):
                for item in examine_part(context):
                    is_problem = isinstance(item, Problem)
                    yield item if isinstance(item, Finding) else Finding(_(label), item, is_problem)
        except Exception as fault:
            yield Finding(_(label), _reason(fault), is_problem=True)


def _reason(fault: Exception) -> str:
    if isinstance(fault, SQLAlchemyError):
        return sentence_of(fault)
    if isinstance(fault, WakefulError | SettingError):
        return str(fault)
    lines = str(fault).splitlines() or [""]
    return _(BUG, fault=type(fault).__name__, text=lines[0])


def _folder(context: Context) -> Sentences:
    folder = context.settings.instance
    if not folder.is_dir():
        missing = _(
            "The folder %(folder)s does not exist. Check that its disk is mounted.", folder=folder
        )
        yield Problem(missing + " " + _("Only a first start creates it."))
    elif not os.access(folder, os.W_OK):
        yield Problem(
            _("%(folder)s cannot be written. Give Wakeful write permission.", folder=folder)
        )
    else:
        yield _("%(folder)s can be written.", folder=folder)


def _key(context: Context) -> Sentences:
    key = context.settings.instance / "secret_key"
    if not context.settings.secret_key:
        yield Problem(_(NO_KEY, key=key))
    elif key.exists() and key.stat().st_mode & 0o077:
        yield Problem(_("Others can read %(key)s. Run: chmod 600 %(key)s", key=key))


def _database(context: Context) -> Sentences:
    dialect = db.engine.dialect.name
    version = db.session.scalar(
        text("SELECT sqlite_version()" if dialect == "sqlite" else "SHOW server_version")
    )
    yield _("%(name)s answers.", name=f"{dialect} {version}")
    if sentence := schema.fault():
        yield Finding(_("tables"), sentence, is_problem=True)
        return
    context.has_tables = True
    revision = _("They are up to date (%(revision)s).", revision=schema.newest_revision())
    yield Finding(_("tables"), revision)
    if cause := cannot_write():
        yield Problem(faults.with_path(cause, schema.location()))
    monitors = count_of(db.session, MonitorRow)
    if context.settings.secret_key:
        schema.check_key()
    count = _n("%(num)s is stored.", "%(num)s are stored.", monitors, num=f"{monitors:,}")
    yield Finding(_("monitors"), count)


def _rights(context: Context) -> Sentences:
    file = Path(schema.location())
    if db.engine.dialect.name == "sqlite" and _is_open_to_all(file):
        yield Problem(
            _("Everybody on this machine can open %(file)s. Run: chmod o= %(file)s*", file=file)
        )


def _is_open_to_all(file: Path) -> bool:
    """Whether accounts outside of the owner's group can read or write the file."""
    try:
        return bool(file.stat().st_mode & 0o006 and file.parent.stat().st_mode & 0o001)
    except OSError:
        return False  # it does not exist, or cannot be read: ``_database`` says so


def _file(context: Context) -> Sentences:
    if db.engine.dialect.name != "sqlite":
        return
    damage = unreadable.file_faults(SECONDS)
    for fault in damage or ():
        yield Problem(_(DAMAGED) + " " + _("SQLite says: %(fault)s", fault=fault))
    if damage is None:
        yield _("Reading all of it took too long.")
    elif not damage:
        yield _("SQLite finds no damage.")


def _secrets(context: Context) -> Sentences:
    if not context.settings.secret_key or unreadable.key_is_wrong():
        return  # ``_database`` or ``_key`` says so
    all_readable = True
    for value in unreadable.scan():
        all_readable = False
        replaced_by = REPLACED_AUTOMATICALLY.get(value.id) if value.table == "settings" else None
        advice = replaced_by or MENDED_BY.get(value.table, MENDED_BY_NONE)
        sentence = f"{value}. {_(advice)}"
        yield (
            sentence if replaced_by or value.table in ("deliveries", "pings") else Problem(sentence)
        )
    if all_readable:
        yield _(STORED_WHOLE)


def _old_keys(context: Context) -> Sentences:
    """The values that still need an old key."""
    if not context.settings.old_keys:
        return
    values = list(rotation.old_values())
    for value in values[:OLD_SHOWN]:
        yield _("Only an old secret key reads the %(what)s.", what=value.what) + " " + _(ROTATE)
    if (more := len(values) - OLD_SHOWN) > 0:
        yield _n(
            "%(num)s more value needs an old key.", "%(num)s more values need an old key.", more
        )
    if not values:
        yield _(NO_OLD)


def _clock(context: Context) -> Sentences:
    now = datetime.now(UTC)
    newest = [db.session.scalar(select(func.max(MonitorStateRow.checked_at))), liveness.newest()]
    ahead = any(moment is not None and moment - now > CLOCK_OFF for moment in newest)
    if db.engine.dialect.name == "postgresql":
        database_time = db.session.scalar(text("SELECT clock_timestamp()"))
        ahead = ahead or abs(database_time - now) > CLOCK_OFF
    if ahead:
        yield Problem(_("This machine's clock and the stored times disagree. Set it by NTP."))
    else:
        yield _("It is %(time)s UTC here.", time=f"{now:%Y-%m-%d %H:%M:%S}")


def _processes(context: Context, part: str) -> Sentences:
    if context.settings.store != "local":
        return
    # Without monitors, a missing part is no problem.
    sentence_type = Problem if health.has_monitors() else str
    now = datetime.now(UTC)
    signs = liveness.signs_of(part, now)
    last = _("in the future")
    if signs.at is not None:
        last = _("from %(time)s UTC", time=f"{signs.at:%Y-%m-%d %H:%M:%S}")
    if not signs.ever:
        yield sentence_type(
            _("None has run yet. Start one: wakeful serve, or wakeful %(part)s", part=part)
        )
    elif not signs.silent:
        yield _("It runs.")
    elif cannot_write():
        yield _(LAST_SIGN, last=last)
    else:
        yield sentence_type(_("None is running. The last sign of one is %(last)s.", last=last))
    if part == liveness.CHECKER and not signs.silent:
        alone = health.left_alone(now)
        for place in [*alone, *health.idle_places(now, alone)]:
            yield Problem(place)


def _policy(context: Context) -> Sentences:
    settings = context.settings
    locked = networks_are_locked(settings)
    source = "WAKEFUL_ALLOW_NETWORKS" if locked else _("the Settings page")
    opened = _("public addresses only")
    if allowed := allowed_networks(settings):
        opened = _("public addresses and %(networks)s", networks=allowed)
    yield _("Checks and alerts may reach %(opened)s (%(where)s).", opened=opened, where=source)


def _names(context: Context) -> Sentences:
    settings = context.settings
    if settings.dns_servers:
        resolver = dns.resolver.Resolver(configure=False)
        # With their ports: two of them may share an address.
        servers = [Do53Nameserver(server.address, server.port) for server in settings.name_servers]
        resolver.nameservers = servers
    else:
        resolver = dns.resolver.Resolver()
    servers_asked = settings.dns_servers or ", ".join(map(str, resolver.nameservers))
    try:
        # The name servers of the root: every resolver that works knows them, and the question
        # reveals no name. A resolver without a root answers too, with an error.
        with suppress(dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
            resolver.resolve(".", "NS", lifetime=SECONDS)
    except dns.exception.DNSException as fault:
        reason = type(fault).__name__
        yield Problem(
            _("%(servers)s do not answer: %(fault)s.", servers=servers_asked, fault=reason)
        )
    else:
        yield _("%(servers)s answer.", servers=servers_asked)


def _canaries(context: Context) -> Sentences:
    memory = setting(MEMORY) if context.has_tables else None
    accepted = canary.have_accepted(canary.read_memory(memory, context.settings.location))
    canaries = canary.parse_canaries(context.settings.canaries)
    servers = context.settings.name_servers
    for name, answer in canary.ask(canaries, SECONDS, dns_servers=servers).items():
        if answer is canary.CanaryAnswer.ACCEPTED:
            yield _("%(name)s answers.", name=name)
        elif answer is canary.CanaryAnswer.NOTHING:
            yield Problem(_("%(name)s does not answer.", name=name))
        elif name in accepted:
            yield Problem(_(REFUSES_NOW, name=name))
        elif not context.has_tables:
            yield _("%(name)s refuses. Whether it ever accepted is unknown.", name=name)
        else:
            yield _(REFUSES_ALWAYS, name=name)


def _ping(context: Context) -> Sentences:
    if not (fault := icmp.why_not()):
        yield _("This machine may send pings.")
        return
    pings = MonitorRow.url_folded.startswith("ping:")
    yield (
        Problem(fault) if context.has_tables and count_of(db.session, MonitorRow, pings) else fault
    )


def _mail(context: Context) -> Sentences:
    # Without the tables, only the environment can be read.
    url = smtp_url(context.settings) if context.has_tables else context.settings.smtp_url
    if url is None:
        count = _monitors_with_email() if context.has_tables else 0
        sentence = _("No mail server is set up, so no email can be sent.")
        if context.has_tables and not count:
            sentence += " " + _("No monitor uses email.")
        elif count:
            sentence = Problem(_n(
                "No mail server is set up, so no email can be sent, and %(num)s monitor alerts"
                " by email.",
                "No mail server is set up, so no email can be sent, and %(num)s monitors alert"
                " by email.", count, num=f"{count:,}",
            ))  # fmt: skip
        yield sentence
        return
    try:
        server = parse(url)
        host = ascii_host(server.host)
    except ValueError as fault:
        yield Problem(fault)
        return
    tools = Tools(context.settings, context.settings.network())
    try:
        with email.session(server, host, tools, SECONDS) as smtp:
            if server.user is not None:
                email.log_in(smtp, server.user, server.password or "")
            smtp.noop()
    except ConnectionFailed as fault:
        yield Problem(fault)
    except smtplib.SMTPAuthenticationError as fault:
        yield Problem(_(REFUSES_LOGIN, name=server.host, code=fault.smtp_code))
    except (OSError, smtplib.SMTPException, email.NoTls) as fault:
        reason = type(fault).__name__
        yield Problem(_("%(name)s does not answer: %(fault)s.", name=server.host, fault=reason))
    else:
        if server.user is None:
            yield _("%(name)s answers.", name=server.host)
        else:
            yield _(services.ACCEPTS, host=server.host)


def _heartbeat(context: Context) -> Sentences:
    if context.settings.store != "local":
        return
    url = context.settings.heartbeat_url
    if url is None:
        yield _(NO_HEARTBEAT)
        return
    sentence = _("Checkers call %(host)s each minute.", host=parse_url(url).host)
    reason = why_withheld(datetime.now(UTC)) if context.has_tables else None
    if reason is None:
        yield sentence
    else:
        yield Problem(sentence + " " + _("Not now: %(reason)s", reason=reason))


def _monitors_with_email() -> int:
    rows = db.session.scalars(select(MonitorRow.alerts).where(MonitorRow.alerts.is_not(None)))
    return sum(
        any(name == Channel.EMAIL for name, _value in readable(pairs) or ()) for pairs in rows
    )


ALWAYS = (
    (N_("folder"), _folder),
    (N_("secret key"), _key),
    (N_("database"), _database),
    (N_("file"), _rights),
)
OF_TABLES = (
    (N_("file"), _file),
    (N_("stored values"), _secrets),
    (N_("secret key"), _old_keys),
    (N_("clock"), _clock),
    (N_("checker"), partial(_processes, part=liveness.CHECKER)),
    (N_("alert worker"), partial(_processes, part=liveness.WORKER)),
    (N_("policy"), _policy),
)
OF_OTHERS = (
    (N_("names"), _names),
    (N_("canary"), _canaries),
    (N_("ping"), _ping),
    (N_("mail"), _mail),
    (N_("heartbeat"), _heartbeat),
    *services.EXAMINATIONS,
)
