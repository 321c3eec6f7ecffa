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
from app.i18n import _, _n
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
        raise WakefulError(_("The file cannot be read: %(error)s.", error=fault.strerror)) from None


def run(importer: Importer, reading: Reading, *, dry_run: bool, duplicates: bool) -> int:
    """Print what each entry becomes and create those that can be. Returns the exit code."""
    rows = importer.dry_run(reading.candidates)
    click.echo(_entries(reading.source, len(rows)))
    for line in (*reading.remarks, *_lines(rows, duplicates)):
        click.echo(line)
    chosen = [row for row in rows if _is_chosen(row, duplicates)]
    if dry_run:
        count = len(chosen)
        would = _n(
            "%(num)s monitor would be created",
            "%(num)s monitors would be created",
            count,
            num=f"{count:,}",
        )
        summary = _summary(rows, would)
        click.echo(_("Dry run, nothing is created: %(summary)s", summary=summary))
        return _code(len(rows), len(chosen))
    refused = _create(importer, chosen)
    made = len(chosen) - len(refused)
    for row, why in refused:
        click.echo(_("not created  %(entry)s: %(why)s", entry=_place(row), why=why))
    click.echo(_summary(rows, _created(made)))
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
                sentence = _(
                    "%(created)s, then it stopped at %(entry)s: %(fault)s",
                    created=_created(made),
                    entry=_place(row),
                    fault=fault,
                )
                raise WakefulError(sentence) from fault
            if why:
                refused.append((row, why))
            made += not why
    return refused


def _is_chosen(row: Row, duplicates: bool) -> bool:
    return row.judged.fits if duplicates else row.is_new


def _lines(rows: Sequence[Row], duplicates: bool) -> Iterator[str]:
    for row in rows:
        word = _("create") if _is_chosen(row, duplicates) else _("skip")
        yield f"{word:<7} {_place(row)}"
        for sentence in (*row.judged.faults, *_twin(row), *row.judged.remarks):
            yield f"        - {sentence}"
        if row.judged.fits and row.judged.candidate.paused:
            yield "        - " + _("Starts paused.")


def _twin(row: Row) -> Iterator[str]:
    if row.watched_by:
        yield _("Duplicate: already monitored as %(name)s.", name=shown(row.watched_by))
    elif row.repeats:
        place = f"{row.repeats[:1].lower()}{row.repeats[1:]}"
        yield _("Duplicate: same URL as %(place)s.", place=place)


def _place(row: Row) -> str:
    one = row.judged
    name = f"{shown(one.name)} " if one.name else ""
    return f"{one.candidate.place}: {name}{shown(one.url)}".rstrip()


def _summary(rows: Sequence[Row], made: str) -> str:
    """``made``: how many monitors came or would come of them, in words."""
    found = counts(rows)
    parts = [made]
    if found.unfit:
        parts.append(_n("%(num)s cannot be imported", "%(num)s cannot be imported", found.unfit))
    if found.duplicates:
        count = f"{found.duplicates:,}"
        parts.append(_n("%(num)s duplicate", "%(num)s duplicates", found.duplicates, num=count))
    return f"{', '.join(parts)}."


def _entries(source: str, count: int) -> str:
    return _n(
        "%(source)s: %(num)s entry.",
        "%(source)s: %(num)s entries.",
        count,
        source=source,
        num=f"{count:,}",
    )


def _created(count: int) -> str:
    return _n("%(num)s monitor created", "%(num)s monitors created", count, num=f"{count:,}")


def _code(count: int, made: int) -> int:
    if made == count:
        return ALL_CREATED
    return SOME_LEFT_OUT if made else FAILED
