"""``wakeful serve``: everything on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from app.commands import cli
from app.commands.serve import Supervisor
from app.config import read


@click.command()
def serve() -> None:
    sys.exit(Supervisor(read(), _part).run())


def _part(words: Sequence[str]) -> None:
    """Run the command of these words in this process."""
    sys.argv = [sys.argv[0], *words]
    cli.main()
