"""``wakeful import``: what a file holds becomes monitors, or a dry run says what would.

The plan and the summary go to standard output, progress to standard error. No line repeats a
secret, and what the file says is printed without control characters, which a terminal would obey.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from app.errors import WakefulError
from app.i18n import _
from app.imports import files
from app.imports.candidates import NotReadable, Reading, shown
from app.stores.importing import Importer, Row, counts

ALL_CREATED, FAILED, SOME_LEFT_OUT = 0, 1, 3
STDIN = "-"


def read(path: str, format: str) -> Reading:
    """Read FILE, or standard input for ``-``. Raises WakefulError with a sentence."""
    try:
        if path == STDIN:
            return files.read(sys.stdin.buffer.read(files.MOST_BYTES + 1), format)
        return files.read_path(Path(path), format)
    except NotReadable as fault:
        raise WakefulError(str(fault)) from None
    except OSError as fault:
        raise WakefulError(
            _("The file cannot be read: %(strerror)s.", strerror=fault.strerror)
        ) from None


def run(importer: Importer, reading: Reading, *, dry_run: bool, duplicates: bool) -> int:
    """Print what each entry becomes and create those that can be. Returns the exit code."""
    rows = importer.dry_run(reading.candidates)
    click.echo(f"{reading.source}: {_number(len(rows), 'entry', 'entries')}.")
    for line in (*reading.remarks, *_lines(rows, duplicates)):
        click.echo(line)
    chosen = [row for row in rows if _is_chosen(row, duplicates)]
    if dry_run:
        click.echo(
            _(
                "Dry run, nothing is created: %(summary)s",
                summary=_summary(rows, len(chosen), "would be created"),
            )
        )
        return _code(len(rows), len(chosen))
    refused = _create(importer, chosen)
    made = len(chosen) - len(refused)
    for row, why in refused:
        click.echo(f"not created  {_place(row)}: {why}")
    click.echo(_summary(rows, made, "created"))
    return _code(len(rows), made)


def _create(importer: Importer, chosen: Sequence[Row]) -> list[tuple[Row, str]]:
    refused = []
    # What was created before the store was lost is said, so that nobody creates it twice.
    made = 0
    if not chosen:
        return []
    with click.progressbar(chosen, label=_("Creating monitors"), file=sys.stderr) as bar:
        for row in bar:
            try:
                why = importer.create(row.judged)
            except WakefulError as fault:
                sentence = f"{_number(made, 'monitor', 'monitors')} created, then it stopped at"
                raise WakefulError(f"{sentence} {_place(row)}: {fault}") from fault
            if why:
                refused.append((row, why))
            made += not why
    return refused


def _is_chosen(row: Row, duplicates: bool) -> bool:
    return row.judged.fits if duplicates else row.is_new


def _lines(rows: Sequence[Row], duplicates: bool) -> Iterator[str]:
    for row in rows:
        word = "create" if _is_chosen(row, duplicates) else "skip"
        yield f"{word:<7} {_place(row)}"
        for sentence in (*row.judged.faults, *_twin(row), *row.judged.remarks):
            yield f"        - {sentence}"
        if row.judged.fits and row.judged.candidate.paused:
            yield _("        - Starts paused.")


def _twin(row: Row) -> Iterator[str]:
    if row.watched_by:
        yield f"Duplicate: already monitored as {shown(row.watched_by)}."
    elif row.repeats:
        yield f"Duplicate: same URL as {row.repeats[:1].lower()}{row.repeats[1:]}."


def _place(row: Row) -> str:
    one = row.judged
    name = f"{shown(one.name)} " if one.name else ""
    return f"{one.candidate.place}: {name}{shown(one.url)}".rstrip()


def _summary(rows: Sequence[Row], made: int, word: str) -> str:
    found = counts(rows)
    parts = [f"{_number(made, 'monitor', 'monitors')} {word}"]
    if found.unfit:
        parts.append(f"{found.unfit} cannot be imported")
    if found.duplicates:
        parts.append(_number(found.duplicates, "duplicate", "duplicates"))
    return f"{', '.join(parts)}."


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _code(count: int, made: int) -> int:
    if made == count:
        return ALL_CREATED
    return SOME_LEFT_OUT if made else FAILED
