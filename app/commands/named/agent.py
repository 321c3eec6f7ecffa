"""``wakeful agent``: the checks of a place, for a server."""

from __future__ import annotations

import click

from app.commands import arenas, watchdog
from app.commands.stopping import until_stopped
from app.config import read
from app.engine.agent.agent import Agent


@click.command()
def agent() -> None:
    arenas.use_one()
    part = Agent(read(make=False))
    with watchdog.watching("agent") as part.checks.on_turn:
        until_stopped(part.run)
