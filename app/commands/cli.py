"""The ``wakeful`` command (decisions.md 9).

An error ends a command with one sentence: exit code 2 for a wrong setting, option or argument, 1
for everything else.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click
from sqlalchemy.exc import SQLAlchemyError

from app import create_core
from app.access import actors
from app.commands import people, watchdog
from app.commands.masking import mask_streams
from app.commands.opened import access_opened, opened, typed_line
from app.config import PREFIX, SettingError, Settings, read
from app.db import db, faults, schema
from app.errors import Invalid, WakefulError
from app.i18n import N_, _, _n
from app.imports.candidates import FORMATS
from app.records import INTERVALS, AlertCondition, RequestMethod, Scope
from app.rules.time import iso
from app.version import __version__

if TYPE_CHECKING:  # imported where it is used: a checker starts faster without
    from flask import Flask

    from app.commands.doctor import Finding
    from app.stores import Store

# The options of ``wakeful check`` that set a monitor's fields.
OPTIONS_OF = {"url": "URL", "request_method": "--method", "alert_text_lookup": "--text, --no-text"}
# What a command creates (database, keys, folders), only its owner can read and write. A container
# or a service manager may start it with umask 0.
OWNER_ONLY = 0o077
EARLY = "Until it works, status pages come from their last copies, and all other requests get 503."


class Utc(logging.Formatter):
    """Times of lines in UTC, and saying so: machines and logs of several zones are compared."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"


LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

log = logging.getLogger(__name__)


def main() -> None:
    """The entry point. Errors are shown as sentences, without a traceback."""
    os.umask(OWNER_ONLY)
    mask_streams()
    try:
        cli(standalone_mode=True)
    except SettingError as fault:
        _end(str(fault), 2)
    except Invalid as fault:
        _end(" ".join(sentence for field in fault.errors.values() for sentence in field), 1)
    except WakefulError as fault:
        _end(str(fault), 1)
    except SQLAlchemyError as fault:
        _end(faults.sentence_of(fault), 1)


def _end(sentence: str, code: int) -> None:
    click.echo(sentence, err=True)
    sys.exit(code)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    help=N_("Wakeful monitors URLs and alerts people when they fail."),
)
@click.version_option(__version__, prog_name="wakeful")
def cli() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(Utc(LOG_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for noisy in ("alembic", "urllib3", "apprise"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


# --- Servers


@cli.command(help=N_("Run everything on this machine: dashboard, API, checks and alerts."))
def serve() -> None:
    from app.commands.serve import Supervisor

    sys.exit(Supervisor(read(), _part).run())


def _part(words: Sequence[str]) -> None:
    """Run the command of these words in this process."""
    sys.argv = [sys.argv[0], *words]
    main()


@cli.command(help=N_("Run the dashboard and the API."))
@click.option("--fd", type=int, hidden=True)
def web(fd: int | None) -> None:
    from app.commands.webserver import WebServer

    settings = read()
    early = False
    try:
        _ready(settings)
    except SQLAlchemyError as fault:
        if not faults.is_server_away(fault):
            raise
        early = True
        if fd is None:  # otherwise "wakeful serve" says it
            log.error("%s %s", faults.cause_of(fault), EARLY)
    WebServer(settings, fd, early=early).run()


@cli.command(help=N_("Run checks until told to stop."))
@click.option(
    "--carrier",
    type=click.Choice(["local", "queue"]),
    default="local",
    help=N_("Who makes the checks: this process, or the probers behind WAKEFUL_BROKER_URL."),
)
def checker(carrier: str) -> None:
    from app.commands import arenas, heartbeat
    from app.engine.checker import Checker

    arenas.use_one()
    settings = read()
    if carrier == "queue":
        from app.commands.queues import queue_carrier

        make, network = queue_carrier(settings)
        part = Checker(_ready(settings), settings, carrier=make, remote=network)
    else:
        part = Checker(_ready(settings), settings)
    with heartbeat.beating(part.app, settings), watchdog.watching("checker") as part.on_turn:
        _until_stopped(part.run)


@cli.command(help=N_("Make the checks that checkers send through the queue. Needs no database."))
@click.option("--location", metavar="NAME", help=N_("The place; default: WAKEFUL_LOCATION."))
def prober(location: str | None) -> None:
    from app.commands.queues import run_prober

    named = {} if location is None else {f"{PREFIX}LOCATION": location}
    sys.exit(run_prober(read({**os.environ, **named}, make=False)))


@cli.command(
    help=N_("Make the checks of a place for the server at WAKEFUL_SERVER. Needs no database.")
)
def agent() -> None:
    from app.commands import arenas
    from app.engine.agent.agent import Agent

    arenas.use_one()
    part = Agent(read(make=False))
    with watchdog.watching("agent") as part.on_turn:
        _until_stopped(part.run)


@cli.command(help=N_("Send alerts until told to stop."))
def worker() -> None:
    from app.alerts.worker import Worker
    from app.engine.silence_watch import watching_silence

    settings = read()
    part = Worker(_ready(settings), settings)
    with watchdog.watching("alert worker") as part.on_turn, watching_silence(part.app):
        _until_stopped(part.run)


def _until_stopped(run: Callable[[threading.Event], None]) -> None:
    stop = threading.Event()
    # A signal handler may interrupt itself, or a wait for the event. Setting the event in it could
    # deadlock on a lock that this thread holds. systemd sends two signals to each process.
    asked, ask = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_arguments: os.write(ask, b"."))

    def wait() -> None:
        os.read(asked, 1)
        stop.set()

    threading.Thread(target=wait, name="stop", daemon=True).start()
    run(stop)


def _ready(settings: Settings) -> Flask:
    """The application, after checking that the database is up to date."""
    app = create_core(settings, small_cache=True)
    with app.app_context():
        schema.require()
        schema.read_secrets()
        db.engine.dispose()
    return app


# --- The database


@cli.group("db", help=N_("Manage the database."))
def database() -> None:
    pass


@database.command(help=N_("Bring the database's tables up to date. Safe to repeat."))
@click.option("--new", is_flag=True, help=N_("Create a new SQLite file in place of a lost one."))
@click.option(
    "--no-copy",
    is_flag=True,
    help=N_("Do not copy an older SQLite file first. Make a backup instead."),
)
def upgrade(new: bool, no_copy: bool) -> None:
    with opened(read()):
        schema.upgrade(new=new, copy=not no_copy)
        click.echo(_("The database is up to date (%(revision)s).", revision=schema.present()))


# --- Backups

NO_PASSPHRASE = N_("The passphrase must have 8 characters or more.")
DIFFERENT = N_("The two passphrases are different.")
SHORTEST_PASSPHRASE = 8


@cli.command(
    "backup",
    help=N_(
        "Write the database and the secret key to FILE, while Wakeful runs.\n\n"
        "The passphrase is prompted for, or read from the first two lines of standard "
        "input."
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--encrypt", is_flag=True, help=N_("Encrypt the file. Asks for a passphrase twice."))
@click.option(
    "--without-key", is_flag=True, help=N_("Leave the secret key out; keep it elsewhere.")
)
def backup_file(file: Path, encrypt: bool, without_key: bool) -> None:
    from app.commands.keeping import backup

    if str(file) == "-":  # elsewhere standard output; here a file of that name, with the key in it
        raise WakefulError(_("A backup is written to a file, not to standard output. Name one."))
    passphrase = _new_passphrase() if encrypt else ""
    settings = read(make=False)
    with opened(settings):
        backup.make(settings, file, passphrase=passphrase, with_key=not without_key)
    size = file.stat().st_size
    click.echo(
        _("Backup written to %(file)s (%(size)s kB).", file=file, size=f"{size / 1000:,.0f}")
    )
    if not (encrypt or without_key):
        click.echo(_("It contains the secret key: keep it where only you can read it."), err=True)


@cli.command(
    "restore",
    help=N_(
        "Restore a backup from FILE. Stop Wakeful first.\n\n"
        "The passphrase of an encrypted backup is prompted for, or read from standard "
        "input. Messages older than an hour are held, until somebody retries them under "
        "Deliveries."
    ),
)
@click.argument("file", type=click.File("rb"))
@click.option(
    "--force",
    is_flag=True,
    help=N_("Replace a database that is not empty, or a different secret key."),
)
def restore_file(file: BinaryIO, force: bool) -> None:
    from app.commands.keeping import archive
    from app.commands.keeping.restore import restore

    passphrase = typed_line(_("Passphrase")) if archive.is_encrypted(file) else ""
    done = restore(read(make=False), file, passphrase=passphrase, force=force)
    click.echo(
        _("Restored the backup of %(at)s. Start Wakeful: wakeful serve", at=done.manifest.made_at)
    )
    for path in done.kept:
        click.echo(_("What it replaced is kept in %(file)s", file=path))
    if done.held:
        click.echo(
            _n("%(num)s message is older than an hour and is held. See Deliveries.",
               "%(num)s messages are older than an hour and are held. See Deliveries.", done.held)
        )  # fmt: skip


def _new_passphrase() -> str:
    first = typed_line(_("Passphrase"))
    if len(first) < SHORTEST_PASSPHRASE:
        raise WakefulError(_(NO_PASSPHRASE))
    if typed_line(_("Repeat the passphrase")) != first:
        raise WakefulError(_(DIFFERENT))
    return first


# --- Secret keys


@cli.group("secrets", help=N_("Manage the secret key."))
def secret_keys() -> None:
    pass


@secret_keys.command(
    "rotate",
    help=N_(
        "Encrypt all stored secrets with the first key of WAKEFUL_SECRET_KEY=NEW,OLD.\n\n"
        "Start every process with both keys first; then run this while they run. It may be run "
        "again at any time. Exit code 0: the old key can be removed. 1: it says what is left."
    ),
)
def rotate_secrets() -> None:
    from app.commands.rotating import rotate

    settings = read(make=False)
    with opened(settings), actors.acting_as(actors.by_command()):
        sys.exit(0 if rotate(settings) else 1)


# --- People and keys


cli.add_command(people.user)


@cli.group(help=N_("Manage API keys."))
def key() -> None:
    pass


@key.command("create", help=N_("Create an API key and print it. It is shown only once."))
@click.argument("name")
@click.option("--scope", type=click.Choice([scope.value for scope in Scope]), required=True)
@click.option("--expires", metavar="TIME", help=N_("UTC, as 2027-01-31T00:00:00; default: never."))
@click.option("--owner", metavar="EMAIL", help=N_("Whose it is: it does at most what they may."))
@click.option(
    "--network", "networks", multiple=True, metavar="CIDR",
    help=N_("Only from this network. May be repeated."),
)  # fmt: skip
@click.option("--tag", help=N_("Only the monitors with this tag."))
def key_create(
    name: str,
    scope: str,
    expires: str | None,
    owner: str | None,
    networks: tuple[str, ...],
    tag: str | None,
) -> None:
    moment = None if expires is None else _moment(expires)
    with access_opened() as access:
        owner_id = None if owner is None else people.found(access, owner).id
        _key, secret = access.create_key(
            name, scope, moment, owner_id=owner_id, networks=",".join(networks), tag=tag
        )
    click.echo(secret)


@key.command("list", help=N_("List the API keys: prefix, scope, name, state, last use, owner."))
def key_list() -> None:
    with access_opened() as access:
        keys = access.keys()
    now = datetime.now(UTC)
    for one in keys:
        state = _("valid")
        if one.revoked_at is not None:
            state = _("revoked")
        elif one.expires_at is not None:
            word = N_("expired %(time)s") if one.expires_at <= now else N_("until %(time)s")
            state = _(word, time=iso(one.expires_at))
        used = iso(one.last_used_at) if one.last_used_at else _("never used")
        owner = one.owner or _("no owner")
        click.echo("\t".join([one.prefix, one.scope, one.name, state, used, owner]))


@key.command("revoke", help=N_("Revoke the API key with this PREFIX."))
@click.argument("prefix")
def key_revoke(prefix: str) -> None:
    with access_opened() as access:
        access.revoke_key(prefix)
    click.echo(_("API key %(prefix)s revoked.", prefix=prefix))


@cli.command("webhook-secret", help=N_("Print the secret that webhooks are signed with."))
def webhook_secret() -> None:
    from app.access.webhook_secret import webhook_secret as secret_of

    with access_opened() as access:
        click.echo(secret_of(read(), access))


def _moment(raw: str) -> datetime:
    try:
        moment = datetime.fromisoformat(raw)
    except ValueError:
        raise click.BadParameter(
            _("it must be a time such as 2027-01-31T00:00:00."), param_hint="--expires"
        ) from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


# --- Importing


@cli.command(
    "import",
    help=N_(
        "Create monitors from FILE: lines or CSV, an Uptime Kuma backup or kuma.db, or an "
        'export of UptimeRobot, Better Stack or Gatus. "-" reads standard input.\n\n'
        "Exit code 0: all were created. 3: some were skipped, as the output says. 1: "
        "none."
    ),
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help=N_("Show what would be created, and create nothing."))
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(FORMATS)),
    help=N_("The format of FILE. Default: detected."),
)
@click.option(
    "--interval",
    type=click.Choice([str(seconds) for seconds in INTERVALS]),
    default="60",
    help=N_("Seconds between checks, for entries without an interval."),
)
@click.option(
    "--tag", "tags", multiple=True, help=N_("Add this tag to every monitor. May be repeated.")
)
@click.option(
    "--contact",
    "contacts",
    multiple=True,
    help=N_("Add this contact to every monitor. May be repeated."),
)
@click.option(
    "--duplicates", is_flag=True, help=N_("Also create monitors whose URL is already monitored.")
)
@click.option("--server", help=N_("The server to import into, if REMOTE_URL names several."))
def import_file(
    file: str,
    dry_run: bool,
    format_: str | None,
    interval: str,
    tags: tuple[str, ...],
    contacts: tuple[str, ...],
    duplicates: bool,
    server: str | None,
) -> None:
    from app import create_app
    from app.commands import importing
    from app.forms.imported import Shared
    from app.stores.importing import Importer

    settings = read()
    reading = importing.read(file, format_ or "")
    with opened(settings, create_app) as app:
        if settings.store == "local":
            schema.upgrade()
        importer = Importer(
            _store_of(app, server),
            Shared(int(interval), tags, contacts),
            telegram_token_set=bool(settings.telegram_token),
        )
        with actors.acting_as(actors.by_command()):
            code = importing.run(importer, reading, dry_run=dry_run, duplicates=duplicates)
    sys.exit(code)


def _store_of(app: Flask, server: str | None) -> Store:
    """The store of this installation; of several servers, the named one."""
    store = app.extensions["wakeful.store"]
    names = list(getattr(store, "names", ()))
    if server is None and len(names) < 2:
        return cast("Store", getattr(store, "chosen", store))
    if server not in names:
        known = (
            _("It is one of: %(names)s.", names=", ".join(names))
            if names
            else _("This installation has none.")
        )
        raise click.BadParameter(known, param_hint="--server")
    return cast("Store", store.stores[names.index(server)])


# --- Looking


@cli.command(
    help=N_(
        "Check URL once, now, and show every phase. Nothing is stored. Exit code 1 unless it is up."
    )
)
@click.argument("url")
@click.option("--method", type=click.Choice([m.value for m in RequestMethod]), default="GET")
@click.option("--timeout", type=click.IntRange(1, 60), default=30, metavar="SECONDS")
@click.option("--text", help=N_("Fail if the answer contains this text."))
@click.option("--no-text", help=N_("Fail if the answer does not contain this text."))
def check(url: str, method: str, timeout: int, text: str | None, no_text: str | None) -> None:
    # Imported here: a checker needs no forms and starts faster without them.
    from app.commands.check import check_once, lines
    from app.forms.binding import bind
    from app.forms.monitor import CheckForm
    from app.stores.local.checks import spec_of

    if text is not None and no_text is not None:
        raise click.UsageError(_("Give --text or --no-text, not both."))
    pairs = [("url", url), ("request_method", method), ("timeout", str(timeout))]
    for condition, lookup in (
        (AlertCondition.URL_TEXT, text),
        (AlertCondition.URL_NO_TEXT, no_text),
    ):
        if lookup is not None:
            pairs += [("alert_condition", condition.value), ("alert_text_lookup", lookup)]
    try:
        spec = spec_of(bind(CheckForm, pairs), None)
    except Invalid as fault:
        # As a monitor's form would say it.
        raise click.BadParameter(
            " ".join(sentence for said in fault.errors.values() for sentence in said),
            param_hint=", ".join(OPTIONS_OF.get(name, name) for name in fault.errors),
        ) from None
    outcome = check_once(read(), spec)
    for line in lines(spec, outcome):
        click.echo(line)
    sys.exit(0 if outcome.result.is_good else 1)


@cli.command(help=N_("Examine everything that this installation needs, and report what is wrong."))
def doctor() -> None:
    from app.commands.doctor import Finding, examine

    settings = read(make=False)
    _report(Finding(_("settings"), _("They are valid.")))
    wrong = 0
    with opened(settings) as app:
        for finding in examine(app, settings):
            wrong += finding.fault
            _report(finding)
    sys.exit(1 if wrong else 0)


def _report(finding: Finding) -> None:
    word = _("WRONG") if finding.fault else _("ok")
    click.echo(f"{word:<6} {finding.subject}: {finding.sentence}")


if __name__ == "__main__":
    main()
