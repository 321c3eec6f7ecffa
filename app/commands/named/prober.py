"""``wakeful prober``: the checks that come through a queue."""

from __future__ import annotations

import os
import sys

import click

from app.commands.queues import run_prober
from app.config import PREFIX, read
from app.i18n import N_


@click.command()
@click.option("--location", metavar="NAME", help=N_("The place; default: WAKEFUL_LOCATION."))
def prober(location: str | None) -> None:
    named = {} if location is None else {f"{PREFIX}LOCATION": location}
    sys.exit(run_prober(read({**os.environ, **named}, make=False)))
