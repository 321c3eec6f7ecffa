"""The time zones that people choose from."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from app.rules import zones


def test_the_list_has_a_zone_for_each_place_and_nothing_odd():
    offered = zones.offered()
    assert offered[0] == "UTC"
    assert {"Europe/Berlin", "Europe/Oslo", "America/New_York", "Asia/Kolkata"} <= set(offered)
    odd = {"Factory", "posixrules", "localtime", "EST5EDT", "US/Eastern", "Europe/Kiev", "Zulu"}
    assert not odd & set(offered)
    assert not [
        zone for zone in offered if zone.startswith(("Etc/", "SystemV/", "posix/", "right/"))
    ]
    assert len(offered) == len(set(offered)) > 400


def test_each_offered_zone_is_valid_and_belongs_to_one_region():
    for name in zones.offered():
        ZoneInfo(name)
    regions = zones.by_region()
    assert list(regions)[:2] == ["UTC", "Africa"]
    assert sum(map(len, regions.values())) == len(zones.offered())
    assert zones.city_of("America/Argentina/Buenos_Aires") == "Argentina, Buenos Aires"
    assert zones.city_of("Antarctica/DumontDUrville") == "Dumont d'Urville"
    assert zones.city_of("UTC") == "UTC"


@pytest.mark.parametrize("was", zones.RENAMED)
def test_an_old_name_of_a_browser_has_a_present_one_in_the_list(was):
    assert zones.present_name(was) in zones.offered()


@pytest.mark.parametrize("name", [None, "", "Mars/Base", "../etc/passwd", "Europe"])
def test_an_unknown_time_zone_is_ignored(name):
    assert zones.present_name(name) is None


def test_a_zone_that_is_known_and_not_offered_stays_what_it_is():
    assert zones.present_name("Etc/GMT+5") == "Etc/GMT+5"
