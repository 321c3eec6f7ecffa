"""``wakeful db``, ``backup``, ``restore`` and ``doctor``: the commands for an installation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

import click

from app.commands.loading import loading
from app.commands.opened import opened, typed_line
from app.commands.restoring import restore as restore_from
from app.config import read
from app.db import schema
from app.errors import WakefulError
from app.i18n import N_, _, _n
from app.stores.keeping import archive
from app.stores.keeping import backup as keeping

NO_PASSPHRASE = N_("The passphrase must have 8 characters or more.")
DIFFERENT = N_("The two passphrases are different.")
MIN_PASSPHRASE = 8


@click.group()
def db() -> None:
    pass


@db.command(help=N_("Bring the database's tables up to date. Safe to repeat."))
@click.option("--new", is_flag=True, help=N_("Create a new SQLite file in place of a lost one."))
@click.option(
    "--no-copy",
    is_flag=True,
    help=N_("Do not copy an older SQLite file first. Make a backup instead."),
)
def upgrade(new: bool, no_copy: bool) -> None:
    with opened(read()):
        schema.upgrade(new=new, copy=not no_copy)
        click.echo(
            _("The database is up to date (%(revision)s).", revision=schema.stored_revision())
        )


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--encrypt", is_flag=True, help=N_("Encrypt the file. Asks for a passphrase twice."))
@click.option(
    "--without-key", is_flag=True, help=N_("Leave the secret key out; keep it elsewhere.")
)
def backup(file: Path, encrypt: bool, without_key: bool) -> None:
    if str(file) == "-":  # elsewhere standard output; here a file of that name, with the key in it
        raise WakefulError(_("A backup is written to a file, not to standard output. Name one."))
    passphrase = _new_passphrase() if encrypt else ""
    settings = read(make=False)
    with opened(settings):
        keeping.make(settings, file, passphrase=passphrase, with_key=not without_key)
    size = file.stat().st_size
    click.echo(
        _("Backup written to %(file)s (%(size)s kB).", file=file, size=f"{size / 1000:,.0f}")
    )
    if not (encrypt or without_key):
        click.echo(_("It contains the secret key: keep it where only you can read it."), err=True)


def _new_passphrase() -> str:
    first = typed_line(_("Passphrase"))
    if len(first) < MIN_PASSPHRASE:
        raise WakefulError(_(NO_PASSPHRASE))
    if typed_line(_("Repeat the passphrase")) != first:
        raise WakefulError(_(DIFFERENT))
    return first


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option(
    "--force",
    is_flag=True,
    help=N_("Replace a database that is not empty, or a different secret key."),
)
def restore(file: BinaryIO, force: bool) -> None:
    passphrase = typed_line(_("Passphrase")) if archive.is_encrypted(file) else ""
    restored = restore_from(read(make=False), file, passphrase=passphrase, force=force)
    click.echo(
        _(
            "Restored the backup of %(at)s. Start Wakeful: wakeful serve",
            at=restored.manifest.made_at,
        )
    )
    for path in restored.copies:
        click.echo(_("What it replaced is kept in %(file)s", file=path))
    if restored.on_hold:
        click.echo(
            _n("%(num)s message is older than an hour and is held. See Alerts sent.",
               "%(num)s messages are older than an hour and are held. See Alerts sent.",
               restored.on_hold)
        )  # fmt: skip


@click.command()
def doctor() -> None:
    with loading():
        from app.commands.doctor import examine
    settings = read(make=False)
    _report(_("settings"), _("They are valid."))
    problems = 0
    with opened(settings) as app:
        for finding in examine(app, settings):
            problems += finding.is_problem
            _report(finding.label, finding.sentence, is_problem=finding.is_problem)
    sys.exit(1 if problems else 0)


def _report(label: str, sentence: str, *, is_problem: bool = False) -> None:
    word = _("WRONG") if is_problem else _("ok")
    click.echo(f"{word:<6} {label}: {sentence}")
