"""``wakeful import``: monitors from a file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import click

from app import create_app
from app.access import actors
from app.commands import importing
from app.commands.opened import opened
from app.config import read
from app.db import schema
from app.forms.imported import Shared
from app.i18n import N_, _
from app.imports.candidates import FORMATS
from app.records import INTERVALS
from app.stores.importing import Importer

if TYPE_CHECKING:
    from flask import Flask

    from app.stores import Store


@click.command()
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
    "--duplicates", is_flag=True, help=N_("Also create monitors whose check is already made.")
)
@click.option(
    "--env",
    "env",
    type=click.Path(exists=True, dir_okay=False),
    help=N_("A file of lines NAME=value for the environment variables in FILE."),
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
    env: str | None,
    server: str | None,
) -> None:
    settings = read()
    reading = importing.read(file, format_ or "", importing.variables_of(env))
    with opened(settings, create_app) as app:
        if settings.store == "local":
            schema.upgrade()
        importer = Importer(
            _store_of(app, server),
            Shared(int(interval), tags, contacts),
            reading.contacts,
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
