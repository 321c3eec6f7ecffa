"""``wakeful worker``: sends alerts, until told to stop."""

from __future__ import annotations

import click

from app.alerts.worker import Worker
from app.commands import watchdog
from app.commands.opened import ready
from app.commands.stopping import until_stopped
from app.config import read
from app.engine.silence_watch import watching_silence


@click.command()
def worker() -> None:
    settings = read()
    part = Worker(ready(settings), settings)
    with watchdog.watching("alert worker") as part.on_turn, watching_silence(part.app):
        until_stopped(part.run)
