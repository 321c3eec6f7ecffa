"""What measurements have in common: the machine, their options, and figures as JSON and SVG."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from app.version import __version__

COLOURS = "#2f6f9f", "#9fc3dd", "#d59a3d", "#7a9a5b"
NAME_WIDTH, BAR_WIDTH, BAR_HEIGHT = 190, 330, 14


@dataclass(frozen=True, slots=True)
class Bars:
    """A group of bars in a chart: the figures of one thing, in the same order in each group.
    ``note`` stands below.
    """

    name: str
    figures: Sequence[float]
    unit: str = ""
    note: str = ""


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of every measurement that keeps its figures."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    made.add_argument("--svg", type=Path, metavar="FILE", help="draw them")
    return made


def machine() -> dict[str, Any]:
    """Where and when figures were measured. ``load`` is that of the last minute."""
    return {
        "date": datetime.now(UTC).date().isoformat(), "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1), "system": platform.platform(),
        "python": platform.python_version(), "wakeful": __version__,
    }  # fmt: skip


def keep(
    options: argparse.Namespace,
    found: dict[str, Any],
    title: str,
    groups: Sequence[Bars],
    key: Sequence[str] = (),
) -> None:
    """Write the files that were asked for. ``key``: what the bars of a group are, if several."""
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), **found}, indent=2) + "\n")
    if options.svg:
        options.svg.write_text(drawn(title, groups, key))


def drawn(title: str, groups: Sequence[Bars], key: Sequence[str] = ()) -> str:
    """A bar for each figure. The longest is as long as the chart is wide."""
    widest = max((figure for group in groups for figure in group.figures), default=0.0) or 1.0
    lines, y = [_small(_where(), 10, 40)], 56
    if key:
        lines += _legend(key, y)
        y += 24
    for group in groups:
        lines.append(f'<text x="10" y="{y + 12}">{escape(group.name)}</text>')
        for figure, colour in zip(group.figures, cycle(COLOURS), strict=False):
            width = figure / widest * BAR_WIDTH
            lines += [
                f'<rect x="{NAME_WIDTH}" y="{y}" height="{BAR_HEIGHT}" width="{width:.1f}"'
                f' fill="{colour}"/>',
                f'<text x="{NAME_WIDTH + 5 + width:.0f}" y="{y + 12}">{figure:.3g}'
                f"{escape(group.unit)}</text>",
            ]
            y += BAR_HEIGHT + 2
        if group.note:
            lines.append(_small(group.note, NAME_WIDTH, y + 10))
            y += 12
        y += 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {y}" font-family="sans-serif"'
        ' font-size="13">'
    )
    named = f'<title>{escape(title)}</title>\n<text x="10" y="20">{escape(title)}</text>'
    return (
        "\n".join([head, '<rect width="640" height="100%" fill="#fff"/>', named, *lines, "</svg>"])
        + "\n"
    )


def _small(text: str, x: int, y: int) -> str:
    return f'<text x="{x}" y="{y}" font-size="11" fill="#555">{escape(text)}</text>'


def _where() -> str:
    """The machine and its programs, on one line."""
    here = machine()
    return (
        f"{here['date']}, {here['cores']} cores, load {here['load']}, {here['system']}, "
        f"Python {here['python']}, Wakeful {here['wakeful']}"
    )


def _legend(key: Sequence[str], y: int) -> list[str]:
    width = (640 - 20) // len(key)
    lines = []
    for number, (name, colour) in enumerate(zip(key, cycle(COLOURS), strict=False)):
        x = 10 + number * width
        lines += [
            f'<rect x="{x}" y="{y}" height="12" width="12" fill="{colour}"/>',
            f'<text x="{x + 18}" y="{y + 11}">{escape(name)}</text>',
        ]
    return lines
