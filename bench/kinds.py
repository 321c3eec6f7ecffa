"""The requests that are measured: pages, their refreshed parts, and answers of the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.installation import DOWN, detailed, number_of

FRAGMENT = {"X-Fragment": "live"}
PAGES = {
    "home": "/",
    "list, 25": "/monitors?per_page=25",
    "list, 100": "/monitors?per_page=100",
    "list, 100, last page": "/monitors?per_page=100&page={last}",
    "list, search": "/monitors?search=shop+55&per_page=25",
    "list, state down": "/monitors?state=down",
    "monitor, 24 h": "/monitors/{up}",
    "monitor, 24 h, phases": "/monitors/{up}?phases",
    "monitor, 90 d": "/monitors/{up}?range=90d",
    "monitor, 7 d": "/monitors/{up}?range=7d",
    "monitor, 30 d": "/monitors/{up}?range=30d",
    "monitor, 1 year": "/monitors/{up}?range=365d",
    "monitor that is down": "/monitors/{down}",
    "incident": "/incidents/{incident}",
    "incidents, 100": "/incidents?per_page=100",
    "wall": "/wall",
}
REFRESHED = "home", "list, 25", "monitor, 24 h"
ANSWERS = {
    "me": "/me",
    "show": "/monitors/{up}",
    "list, 10": "/monitors",
    "list, 25": "/monitors?per_page=25",
    "list, 100": "/monitors?per_page=100",
    "list, 100, last page": "/monitors?per_page=100&page={last}",
    "search name": "/monitors?search=shop+{up}",
    "search URL, sort URL": "/monitors?search=shop{up}&search_by=url&sort_by=url",
    "sort name": "/monitors?sort_by=name&sort=asc&per_page=100",
    "incidents, 100": "/incidents?per_page=100",
    "incidents, search": "/incidents?search=shop+{up}",
    "statistics 24 h": "/monitors/{up}/statistics",
    "statistics 90 d": "/monitors/{up}/statistics?range=90d",
    "statistics 365 d": "/monitors/{up}/statistics?range=365d",
}


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks, by the cookie of a session or a key of the API; and an incident that is open."""

    cookie: str
    key: str
    incident: str


def pages(monitors: int, visitor: Visitor) -> list[Kind]:
    """Pages as a browser asks for them, of an installation of so many monitors."""
    person = {"Cookie": visitor.cookie, "Accept-Encoding": "gzip, deflate, br"}
    names = _names(monitors, visitor)
    whole = [Kind(name, path.format(**names), person) for name, path in PAGES.items()]
    parts = [
        Kind(f"{kind.name}, refreshed", kind.path, person | FRAGMENT)
        for kind in whole
        if kind.name in REFRESHED
    ]
    return whole + parts


def answers(monitors: int, visitor: Visitor) -> list[Kind]:
    """Answers of the API, of an installation of so many monitors."""
    headers = {"Authorization": f"Bearer {visitor.key}"}
    names = _names(monitors, visitor)
    return [
        Kind(f"API: {name}", "/api/v1" + path.format(**names), headers)
        for name, path in ANSWERS.items()
    ]


def _names(monitors: int, visitor: Visitor) -> dict[str, object]:
    return {
        "up": detailed(monitors),
        "down": number_of(monitors, DOWN),
        "incident": visitor.incident,
        "last": max(1, monitors // 100),
    }
