"""Markers as vertical lines on a chart: where each is, and its name where it fits. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.rules.text import shortened

MOST_NAMED = 4
NAME_LENGTH = 24
LEFT_FROM = 0.7  # of the width: names further right would stick out


@dataclass(frozen=True, slots=True)
class MarkerLine:
    """``row``: in which of the rows at the top its name stands, so that neighbours do not cover
    each other; None where there are too many names. ``left``: the name stands left of the line.
    """

    x: float
    name: str
    title: str
    row: int | None
    left: bool


def marker_lines(markers: Sequence[tuple[float, str, str]], right: float) -> list[MarkerLine]:
    """``markers``: place, name and title of each, in order. ``right``: the end of the chart."""
    named = len(markers) <= MOST_NAMED
    return [
        MarkerLine(x, _short(name), title, row if named else None, x > LEFT_FROM * right)
        for row, (x, name, title) in enumerate(markers)
    ]


def _short(name: str) -> str:
    return shortened(name, NAME_LENGTH)
