"""``wakeful secrets``: a change of the secret key."""

from __future__ import annotations

import sys

import click

from app.access import actors
from app.commands import rotating
from app.commands.opened import opened
from app.config import read
from app.i18n import N_


@click.group()
def secrets() -> None:
    pass


@secrets.command(
    help=N_(
        "Encrypt all stored secrets with the first key of WAKEFUL_SECRET_KEY=NEW,OLD.\n\n"
        "Start every process with both keys first; then run this while they run. It may be run "
        "again at any time. Exit code 0: the old key can be removed. 1: it says what is left."
    ),
)
def rotate() -> None:
    settings = read(make=False)
    with opened(settings), actors.acting_as(actors.by_command()):
        sys.exit(0 if rotating.rotate(settings) else 1)
