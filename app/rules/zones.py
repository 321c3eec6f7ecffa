"""The time zones that people choose from: UTC and the zones of regions, without old names, fixed
offsets and special entries (``Etc/GMT+5``, ``EST5EDT``, ``Factory``). Pure.

Any other zone that the machine has is accepted too, and shown if it is stored.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from zoneinfo import available_timezones

from app.i18n import N_, _

UTC = "UTC"
OTHER_REGION = N_("Other")  # the region of a stored zone that is not offered

# Old names that browsers still send, and the present ones.
RENAMED = {
    "Africa/Asmera": "Africa/Asmara", "America/Buenos_Aires": "America/Argentina/Buenos_Aires",
    "America/Catamarca": "America/Argentina/Catamarca", "America/Coral_Harbour": "America/Atikokan",
    "America/Cordoba": "America/Argentina/Cordoba", "America/Godthab": "America/Nuuk",
    "America/Indianapolis": "America/Indiana/Indianapolis",
    "America/Jujuy": "America/Argentina/Jujuy", "America/Louisville": "America/Kentucky/Louisville",
    "America/Mendoza": "America/Argentina/Mendoza", "Asia/Calcutta": "Asia/Kolkata",
    "Asia/Katmandu": "Asia/Kathmandu", "Asia/Rangoon": "Asia/Yangon",
    "Asia/Saigon": "Asia/Ho_Chi_Minh", "Atlantic/Faeroe": "Atlantic/Faroe",
    "Europe/Kiev": "Europe/Kyiv", "Pacific/Enderbury": "Pacific/Kanton",
    "Pacific/Ponape": "Pacific/Pohnpei", "Pacific/Truk": "Pacific/Chuuk", "Etc/GMT": UTC,
    "Etc/UTC": UTC, "GMT": UTC,
}  # fmt: skip
FORMER = {now: was for was, now in RENAMED.items() if now != UTC}


@cache
def zones() -> frozenset[str]:
    """The names of all time zones. Cached: reading them opens hundreds of files."""
    return frozenset(available_timezones())


@cache
def offered() -> tuple[str, ...]:
    """The names to choose from, in the order of the list: UTC, then by region and city."""
    # The zones of each country, as the time zone database lists them.
    table = (files("tzdata") / "zoneinfo" / "zone.tab").read_text(encoding="utf-8")
    named = (line.split("\t") for line in table.splitlines() if not line.startswith("#"))
    names = {fields[2] for fields in named if len(fields) > 2}
    return (UTC, *sorted(names & zones()))


def by_region() -> dict[str, list[str]]:
    """The names to choose from, by region."""
    regions: dict[str, list[str]] = {}
    for name in offered():
        regions.setdefault(name.partition("/")[0], []).append(name)
    return regions


# City names with signs that the time zone database does not allow.
SPELLED = {"DumontDUrville": N_("Dumont d'Urville")}


def city_of(name: str) -> str:
    """How a list shows a zone below its region: ``Argentina, Buenos Aires``."""
    city = (name.partition("/")[2] or name).replace("/", ", ").replace("_", " ")
    return _(SPELLED[city]) if city in SPELLED else city


def present_name(name: str | None) -> str | None:
    """The present name of a zone in a browser; None if there is no such zone."""
    present = RENAMED.get(name or "", name)
    return present if present in zones() else None
