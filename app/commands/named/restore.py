"""``wakeful restore``: a backup becomes the database."""

from __future__ import annotations

from typing import BinaryIO

import click

from app.commands.keeping import archive
from app.commands.keeping.restore import restore as restore_from
from app.commands.opened import typed_line
from app.config import read
from app.i18n import N_, _, _n


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option(
    "--force",
    is_flag=True,
    help=N_("Replace a database that is not empty, or a different secret key."),
)
def restore(file: BinaryIO, force: bool) -> None:
    passphrase = typed_line(_("Passphrase")) if archive.is_encrypted(file) else ""
    done = restore_from(read(make=False), file, passphrase=passphrase, force=force)
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
