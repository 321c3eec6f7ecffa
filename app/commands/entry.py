"""Where the installed ``wakeful`` command begins."""

from __future__ import annotations

from app.commands.loading import loading


def main() -> None:
    """Import the command and run it."""
    with loading():
        from app.commands import cli
    cli.main()
