"""``wakeful backup``: the database and the key in a file."""

from __future__ import annotations

from pathlib import Path

import click

from app.commands.keeping import backup as keeping
from app.commands.opened import opened, typed_line
from app.config import read
from app.errors import WakefulError
from app.i18n import N_, _

NO_PASSPHRASE = N_("The passphrase must have 8 characters or more.")
DIFFERENT = N_("The two passphrases are different.")
SHORTEST_PASSPHRASE = 8


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
    if len(first) < SHORTEST_PASSPHRASE:
        raise WakefulError(_(NO_PASSPHRASE))
    if typed_line(_("Repeat the passphrase")) != first:
        raise WakefulError(_(DIFFERENT))
    return first
