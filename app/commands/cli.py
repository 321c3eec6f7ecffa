"""The ``wakeful`` command (decision 9): the table of its commands, and how each of them ends.

An error ends a command with one sentence: exit code 2 for a wrong setting, option or argument, 1
for everything else.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from importlib import import_module
from typing import cast

import click

from app.commands.loading import loading
from app.commands.masking import mask_streams
from app.config import SettingError
from app.errors import Invalid, WakefulError
from app.i18n import N_
from app.version import __version__

# Only its owner can read and write what a command creates (database, keys, folders). A container or
# a service manager may start it with umask 0.
OWNER_ONLY = 0o077

# Each command: its module and function in this package, and its help. The module is imported when
# the command is typed, so that no command waits for the imports of another.
COMMANDS = {
    "serve": (
        "processes.serve",
        N_("Run everything on this machine: dashboard, API, checks and alerts."),
    ),
    "web": ("processes.web", N_("Run the dashboard and the API.")),
    "checker": ("processes.checker", N_("Run checks until stopped.")),
    "prober": (
        "processes.prober",
        N_("Make the checks that checkers send through the queue. Needs no database."),
    ),
    "agent": (
        "processes.agent",
        N_("Make the checks of a place for the server at WAKEFUL_SERVER. Needs no database."),
    ),
    "worker": ("processes.worker", N_("Send alerts until stopped.")),
    "db": ("installation.db", N_("Manage the database.")),
    "backup": (
        "installation.backup",
        N_(
            "Write the database and the secret key to FILE, while Wakeful runs.\n\n"
            "The passphrase is prompted for, or read from the first two lines of standard "
            "input."
        ),
    ),
    "restore": (
        "installation.restore",
        N_(
            "Restore a backup from FILE. Stop Wakeful first.\n\n"
            "The passphrase of an encrypted backup is prompted for, or read from standard "
            "input. Messages older than an hour are held, until somebody retries them under "
            "Alerts sent."
        ),
    ),
    "secrets": ("rotating.secrets", N_("Manage the secret key.")),
    "user": ("accounts.user", N_("Manage people.")),
    "key": ("accounts.key", N_("Manage API keys.")),
    "webhook-secret": (
        "accounts.webhook_secret",
        N_("Print the secret that webhooks are signed with."),
    ),
    "import": (
        "importing.import_file",
        N_(
            "Create monitors from FILE: lines or CSV, an Uptime Kuma backup or kuma.db, or an "
            "export of UptimeRobot, Better Stack, healthchecks or Gatus."
            ' "-" reads standard input.\n\n'
            "Exit code 0: all were created. 3: some were skipped, as the output says. 1: "
            "none."
        ),
    ),
    "check": (
        "check.check",
        N_(
            "Check URL once, now, and show every phase. Nothing is stored. Exit code 1 unless it "
            "is up."
        ),
    ),
    "doctor": (
        "installation.doctor",
        N_("Examine everything that this installation needs, and report what is wrong."),
    ),
}


class Utc(logging.Formatter):
    """Writes the times of log lines in UTC, with a Z: people compare the logs of machines in
    several zones.
    """

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"


LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main() -> None:
    """The entry point. Errors are shown as sentences, without a traceback."""
    os.umask(OWNER_ONLY)
    mask_streams()
    try:
        cli(standalone_mode=True)
    except Exception as fault:
        sentence, code = _sentence_and_code(fault)
        if not sentence:
            raise
        click.echo(sentence, err=True)
        sys.exit(code)


def _sentence_and_code(fault: Exception) -> tuple[str, int]:
    """The sentence and the exit code for an error; an unexpected error has no sentence."""
    if isinstance(fault, SettingError):
        return str(fault), 2
    if isinstance(fault, Invalid):
        return " ".join(sentence for field in fault.errors.values() for sentence in field), 1
    if isinstance(fault, WakefulError):
        return str(fault), 1
    # Imported here: some commands have no database, and this import takes longer than they do.
    from sqlalchemy.exc import SQLAlchemyError

    from app.db.faults import sentence_of

    return sentence_of(fault) if isinstance(fault, SQLAlchemyError) else "", 1


class Commands(click.Group):
    """A group that lists its commands without importing them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, arguments = super().resolve_command(ctx, args)
        return name, command and load(command), arguments


def load(stub: click.Command) -> click.Command:
    """Import the command for ``stub``, which has only its name and its help."""
    path, help = COMMANDS[str(stub.name)]
    module, _dot, function = path.partition(".")
    with loading():
        command = getattr(import_module(f"app.commands.{module}"), function)
    command.help = help
    return cast("click.Command", command)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=N_("Wakeful monitors URLs and alerts people when they fail."),
    commands=[click.Command(name, help=help) for name, (_path, help) in COMMANDS.items()],
)
@click.version_option(__version__, prog_name="wakeful")
def cli() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(Utc(LOG_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for noisy in ("alembic", "urllib3", "apprise"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


if __name__ == "__main__":
    main()
