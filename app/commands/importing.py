"""``wakeful import``: create monitors from a file, or list them in a dry run.

The plan and the summary go to standard output, progress to standard error. No line repeats a
secret. Texts of the file are printed without control characters, which a terminal would obey.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from app import create_app
from app.access import actors
from app.commands.opened import opened
from app.config import read
from app.db import schema
from app.errors import WakefulError
from app.forms.imported import ImportDefaults
from app.i18n import N_, _, _n
from app.imports import files
from app.imports.candidates import FORMATS, NotReadable, Reading
from app.imports.values import cut_line
from app.records import CHECK_EVERY_SECONDS, Pair, masked_alert
from app.stores.importing import Importer, ImportRow, alert_nobody, counts, notes

if TYPE_CHECKING:
    from flask import Flask

    from app.stores import Store

ALL_CREATED, FAILED, SOME_LEFT_OUT = 0, 1, 3
STDIN = "-"
STOPPED = N_("%(created)s, then it stopped at %(entry)s: %(fault)s")
NOTE = N_("Note %(number)s (%(entries)s): %(sentence)s")


def read_file(path: str, format: str, variables: Mapping[str, str]) -> Reading:
    """Read FILE, or standard input for ``-``. Raises WakefulError with a sentence."""
    try:
        if path == STDIN:
            return files.read(sys.stdin.buffer.read(files.MAX_BYTES + 1), format, variables)
        return files.read_path(Path(path), format, variables)
    except NotReadable as fault:
        raise WakefulError(str(fault)) from None
    except OSError as fault:
        raise WakefulError(_("The file cannot be read: %(error)s.", error=fault.strerror)) from None


def variables_of(path: str | None) -> dict[str, str]:
    """The variables of the environment, and of a file with lines ``NAME=value``, which count before
    them. The environment's WAKEFUL_* are left out: a file of somebody else must not read them.
    """
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")
    }
    if path is None:
        return variables
    try:
        lines = Path(path).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        raise WakefulError(_("The file of variables cannot be read.")) from None
    for number, line in enumerate(map(str.strip, lines), 1):
        name, equals, value = line.removeprefix("export ").partition("=")
        if equals and name.strip():
            quoted = len(value.strip()) > 1 and value.strip()[0] == value.strip()[-1]
            value = value.strip()
            variables[name.strip()] = value[1:-1] if quoted and value[0] in "\"'" else value
        elif line and not line.startswith("#"):
            raise WakefulError(_("Line %(line)s of the variables is not NAME=value.", line=number))
    return variables


def run(importer: Importer, reading: Reading, *, dry_run: bool, duplicates: bool) -> int:
    """Print what each entry becomes, and create the monitors. Returns the exit code."""
    rows = importer.dry_run(reading.candidates)
    click.echo(
        _n("%(source)s: %(num)s entry.", "%(source)s: %(num)s entries.", len(rows),
           source=reading.source, num=f"{len(rows):,}")
    )  # fmt: skip
    shared = notes(rows)
    lines = _lines(rows, duplicates, list(shared))
    for line in (*reading.remarks, *_contacts(importer), *_notes(shared), *lines):
        click.echo(line)
    to_create = [row for row in rows if _is_chosen(row, duplicates)]
    if silent := sum(not row.validated.alerts for row in to_create):
        click.echo(alert_nobody(silent))
    if dry_run:
        planned = _n("%(num)s monitor would be created", "%(num)s monitors would be created",
                   len(to_create), num=f"{len(to_create):,}")  # fmt: skip
        summary = _summary(rows, planned, len(to_create), 0)
        click.echo(_("Dry run, nothing is created: %(summary)s", summary=summary))
        return _exit_code(len(rows), len(to_create))
    created_count, refused = _create(importer, to_create)
    click.echo(_summary(rows, _created(created_count), len(to_create), refused))
    return _exit_code(len(rows), created_count)


def _contacts(importer: Importer) -> Iterator[str]:
    for name, channels in importer.new_contacts.items():
        values = ", ".join(map(_alert, map(masked_alert, channels)))
        yield _(
            "Contact to be created: %(name)s (%(channels)s).", name=cut_line(name), channels=values
        )


def _create(importer: Importer, rows: Sequence[ImportRow]) -> tuple[int, int]:
    """Create monitors. Returns how many were created, and how many were not. If the store fails,
    the error says where, so that nobody creates the earlier monitors twice.
    """
    created_count, problems = 0, []
    if not rows:
        return 0, 0
    with click.progressbar(rows, label=_("Creating monitors"), file=sys.stderr) as bar:
        for row in bar:
            try:
                created = importer.create(row.validated)
            except WakefulError as fault:
                so_far = {"created": _created(created_count), "entry": _position(row)}
                raise WakefulError(_(STOPPED, fault=fault, **so_far)) from fault
            if created.problem:
                problems.append((row, created))
            created_count += created.stored
    for row, created in problems:
        word = _("created") if created.stored else _("not created")
        click.echo(f"{word}  {_position(row)}: {created.problem}")
    return created_count, len(rows) - created_count


def _is_chosen(row: ImportRow, duplicates: bool) -> bool:
    return row.validated.fits if duplicates else row.is_new


def _notes(shared: Mapping[str, int]) -> Iterator[str]:
    for number, (sentence, count) in enumerate(shared.items(), 1):
        entries = _n("%(num)s entry", "%(num)s entries", count, num=f"{count:,}")
        yield _(NOTE, number=number, entries=entries, sentence=sentence)


def _lines(rows: Sequence[ImportRow], duplicates: bool, shared: Sequence[str]) -> Iterator[str]:
    """The lines about each row. ``shared``: the sentences that are listed as notes."""
    for row in rows:
        word = _("create") if _is_chosen(row, duplicates) else _("skip")
        yield f"{word:<7} {_position(row)}"
        if row.validated.settings:
            yield f"        {' · '.join(row.validated.settings)}"
        if row.validated.tags:
            yield "        " + _("Tags: %(tags)s", tags=cut_line(", ".join(row.validated.tags)))
        if row.validated.alerts:
            alerts = ", ".join(map(_alert, row.validated.alerts))
            yield "        " + _("Alerts: %(alerts)s", alerts=alerts)
        single = [sentence for sentence in row.validated.sentences if sentence not in shared]
        for sentence in (*_twin(row), *single):
            yield f"        - {sentence}"
        numbers = [number for number, sentence in enumerate(shared, 1)
                   if sentence in row.validated.sentences]  # fmt: skip
        if numbers:
            yield "        - " + _("Notes: %(numbers)s.", numbers=", ".join(map(str, numbers)))
        if row.validated.fits and row.validated.candidate.paused:
            yield "        - " + _("Starts paused.")


def _twin(row: ImportRow) -> Iterator[str]:
    if row.watched_by:
        yield _("Duplicate: already monitored as %(name)s.", name=cut_line(row.watched_by))
    elif row.repeats:
        position = f"{row.repeats[:1].lower()}{row.repeats[1:]}"
        yield _("Duplicate: same check as %(position)s.", position=position)


def _alert(pair: Pair) -> str:
    return f"{cut_line(pair.key)} {cut_line(pair.value)}"


def _position(row: ImportRow) -> str:
    validated = row.validated
    name = f"{cut_line(validated.name)} " if validated.name else ""
    return f"{validated.candidate.position}: {name}{cut_line(validated.url)}".rstrip()


def _summary(rows: Sequence[ImportRow], created: str, count: int, refused: int) -> str:
    """``created``: how many monitors were or would be created, in words. ``refused``: how many of
    the chosen rows the store refused. Rows that are valid but were not chosen are duplicates.
    """
    unfit = counts(rows).unfit
    failed, duplicates = unfit + refused, len(rows) - unfit - count
    parts = [created]
    if failed:
        num = f"{failed:,}"
        parts.append(
            _n("%(num)s cannot be imported", "%(num)s cannot be imported", failed, num=num)
        )
    if duplicates:
        num = f"{duplicates:,}"
        parts.append(_n("%(num)s duplicate", "%(num)s duplicates", duplicates, num=num))
    return f"{', '.join(parts)}."


def _created(count: int) -> str:
    return _n("%(num)s monitor created", "%(num)s monitors created", count, num=f"{count:,}")


def _exit_code(count: int, created_count: int) -> int:
    if created_count == count:
        return ALL_CREATED
    return SOME_LEFT_OUT if created_count else FAILED


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help=N_("Show what would be created, and create nothing."))
@click.option(
    "--format",
    "format_",
    type=click.Choice(list(FORMATS)),
    help=N_("The format of FILE. Default: detected."),
)
@click.option(
    "--interval",
    type=click.IntRange(*CHECK_EVERY_SECONDS),
    default=60,
    help=N_("Seconds between checks, for entries without an interval."),
)
@click.option(
    "--tag", "tags", multiple=True, help=N_("Add this tag to every monitor. May be repeated.")
)
@click.option(
    "--contact",
    "contacts",
    multiple=True,
    help=N_("Add this contact to every monitor. May be repeated."),
)
@click.option(
    "--duplicates", is_flag=True, help=N_("Also create monitors whose check is already made.")
)
@click.option(
    "--env",
    "env",
    type=click.Path(exists=True, dir_okay=False),
    help=N_("A file of lines NAME=value for the environment variables in FILE."),
)
@click.option("--server", help=N_("The server to import into, if REMOTE_URL names several."))
def import_file(
    file: str,
    dry_run: bool,
    format_: str | None,
    interval: int,
    tags: tuple[str, ...],
    contacts: tuple[str, ...],
    duplicates: bool,
    env: str | None,
    server: str | None,
) -> None:
    settings = read()
    reading = read_file(file, format_ or "", variables_of(env))
    with opened(settings, create_app) as app:
        if settings.store == "local":
            schema.upgrade()
        importer = Importer(
            _store_of(app, server),
            ImportDefaults(interval, tags, contacts),
            reading.contacts,
            telegram_token_set=bool(settings.telegram_token),
        )
        with actors.acting_as(actors.by_command()):
            code = run(importer, reading, dry_run=dry_run, duplicates=duplicates)
    sys.exit(code)


def _store_of(app: Flask, server: str | None) -> Store:
    """The store of this installation; of several servers, the named one."""
    store = app.extensions["wakeful.store"]
    names = list(getattr(store, "names", ()))
    if server is None and len(names) < 2:
        return cast("Store", getattr(store, "chosen", store))
    if server not in names:
        hint = _("This installation has none.")
        if names:
            hint = _("It is one of: %(names)s.", names=", ".join(names))
        raise click.BadParameter(hint, param_hint="--server")
    return cast("Store", store.stores[names.index(server)])
