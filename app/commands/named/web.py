"""``wakeful web``: the dashboard and the API, by gunicorn."""

from __future__ import annotations

import logging

import click
from sqlalchemy.exc import SQLAlchemyError

from app.commands.opened import ready
from app.commands.web.webserver import WebServer
from app.config import read
from app.db import faults

EARLY = "Until it works, status pages come from their last copies, and all other requests get 503."

log = logging.getLogger(__name__)


@click.command()
@click.option("--fd", type=int, hidden=True)
def web(fd: int | None) -> None:
    settings = read()
    early = False
    try:
        ready(settings)
    except SQLAlchemyError as fault:
        if not faults.is_server_away(fault):
            raise
        early = True
        if fd is None:  # otherwise "wakeful serve" says it
            log.error("%s %s", faults.cause_of(fault), EARLY)
    WebServer(settings, fd, early=early).run()
