"""``wakeful checker``: checks, until told to stop."""

from __future__ import annotations

import click

from app.commands import arenas, heartbeat, watchdog
from app.commands.opened import ready
from app.commands.queues import queue_carrier
from app.commands.stopping import until_stopped
from app.config import read
from app.engine.checker import Checker
from app.i18n import N_


@click.command()
@click.option(
    "--carrier",
    type=click.Choice(["local", "queue"]),
    default="local",
    help=N_("Who makes the checks: this process, or the probers behind WAKEFUL_BROKER_URL."),
)
def checker(carrier: str) -> None:
    arenas.use_one()
    settings = read()
    if carrier == "queue":
        make, network = queue_carrier(settings)
        part = Checker(ready(settings), settings, carrier=make, remote=network)
    else:
        part = Checker(ready(settings), settings)
    with heartbeat.sending(part.app, settings), watchdog.watching("checker") as part.checks.on_turn:
        until_stopped(part.run)
