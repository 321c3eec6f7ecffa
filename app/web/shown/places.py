"""Titles and line styles of the places that checks run from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from flask import g

from app.i18n import N_, _
from app.records import DELETED_LOCATION, Monitor, Result
from app.stores import current_store
from app.web.frame.store_errors import if_answered

DELETED = N_("Deleted place")

Name = TypeVar("Name", bound=str | None)


def titles() -> Mapping[str, str]:
    """The title of each place by its name, read once for a page; empty if a server does not list
    them: pages then show the names.
    """
    if "place_titles" not in g:
        g.place_titles = if_answered(lambda: current_store().monitors.locations(), {})
    names: Mapping[str, str] = g.place_titles
    return names


def choose_from(names: Collection[str]) -> None:
    """Offer these places as choices if the server lists none."""
    if not titles():
        g.place_titles = {name: name for name in names}


def title(name: str | None) -> str:
    """The title of the place of this name, which may have been deleted."""
    if name is None:
        return "–"
    return titles().get(name) or (_(DELETED) if name == DELETED_LOCATION else name)


STYLES = 8  # of lines in charts: ``place-0`` and so on in charts.css


def styles(names: Iterable[Name]) -> dict[Name, str]:
    """The class of each place's line in a chart, in the order of the list of places. With more than
    ``STYLES`` places, the classes repeat.
    """
    order = list(titles())
    last = len(order)
    ordered = sorted(
        set(names), key=lambda name: (order.index(name) if name in order else last, name or "")
    )
    return {name: f"place-{number % STYLES}" for number, name in enumerate(ordered)}


def has_several_places(monitor: Monitor, results: Sequence[Result]) -> bool:
    """Whether a list of checks must show the place of each: they may be from several places."""
    return len(monitor.locations) > 1 or any(
        result.location not in (None, *monitor.locations) for result in results
    )
