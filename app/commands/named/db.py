"""``wakeful db``: the database's tables."""

from __future__ import annotations

import click

from app.commands.opened import opened
from app.config import read
from app.db import schema
from app.i18n import N_, _


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
        click.echo(_("The database is up to date (%(revision)s).", revision=schema.present()))
