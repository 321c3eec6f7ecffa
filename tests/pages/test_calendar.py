"""The calendar of maintenance, read with icalendar."""

from dataclasses import replace
from datetime import timedelta

import icalendar
import pytest
from hypothesis import given

from app.pages.calendar import ics
from app.rules.calendar_entries import sequence, series, uid
from tests.pages.a_page import (
    HOUR,
    LINK,
    NASTY,
    NOW,
    PAGE,
    TEXT,
    page,
    planned_post,
    window,
    window_of_post,
    with_text,
)


def read(data):
    calendar = icalendar.Calendar.from_ical(data)
    assert not calendar.errors
    assert all(not event.errors for event in calendar.walk("VEVENT"))
    return calendar


def events(data):
    return read(data).walk("VEVENT")


def test_the_calendar_says_what_it_is_and_how_often_to_ask():
    calendar = read(ics(page()))
    assert calendar["VERSION"] == "2.0"
    assert calendar["METHOD"] == "PUBLISH"
    assert calendar["X-WR-CALNAME"] == "Acme: maintenance"
    assert calendar["REFRESH-INTERVAL"].dt == timedelta(minutes=15)
    assert calendar["REFRESH-INTERVAL"].params["VALUE"] == "DURATION"
    assert ics(page()) == ics(page(made_at=NOW + 24 * HOUR)), "whenever it was read"
    assert events(ics(page(windows=()))) == []


def test_windows_and_planned_posts_are_entries():
    backups, upgrade = events(ics(page(windows=(window(components=(1, 2)), page().windows[1]))))
    assert backups["SUMMARY"] == "Nightly backups"
    assert (backups["DTSTART"].dt, backups["DTEND"].dt) == (NOW + HOUR, NOW + 2 * HOUR)
    assert backups["DTSTAMP"].dt == backups["LAST-MODIFIED"].dt == NOW - 80 * HOUR
    assert backups["STATUS"] == "CONFIRMED"
    assert backups["TRANSP"] == "TRANSPARENT"
    assert backups["DESCRIPTION"] == "Affects: Front."
    assert backups["URL"] == LINK
    assert upgrade["SUMMARY"] == "Database upgrade"
    assert upgrade["DESCRIPTION"] == "A new database.\n\nAffects: Shop 2."


def test_a_cancelled_entry_says_so_under_its_uid_with_a_higher_sequence():
    [before] = events(ics(page(windows=(window(),))))
    gone = replace(window(), cancelled=True, sequence=sequence(NOW), updated_at=NOW)
    [after] = events(ics(page(windows=(gone,))))
    assert (before["UID"], after["STATUS"]) == (after["UID"], "CANCELLED")
    assert after["SEQUENCE"] > before["SEQUENCE"]


@given(text=TEXT)
def test_lines_are_folded_at_75_bytes_and_no_text_breaks_them(text):
    check_lines(ics(with_text(text)))


@pytest.mark.parametrize("text", [NASTY, "字" * 400, "👩‍🚒" * 100, "BEGIN:VEVENT\r\nEND:VEVENT"])
def test_long_and_hostile_text_stays_one_value(text):
    data = ics(with_text(text))
    check_lines(data)
    [event] = events(data)
    assert event["SUMMARY"] == " ".join(event["SUMMARY"].split())
    assert event["UID"] == window().uid


def check_lines(data):
    assert data.endswith(b"END:VCALENDAR\r\n")
    for line in data.removesuffix(b"\r\n").split(b"\r\n"):
        assert len(line) <= 75
        assert b"\n" not in line
        assert b"\r" not in line
        line.decode()  # no character is cut
    assert len(events(data)) == 1


@given(text=TEXT.filter(lambda text: text.isprintable()))
def test_text_comes_back_as_it_was(text):
    [event] = events(ics(with_text(text)))
    assert event["SUMMARY"] == " ".join(text.split())


def test_what_separates_values_is_escaped_as_rfc_5545_says():
    """Readers differ in what they take unescaped."""
    assert rb"SUMMARY:a\;b\,c\\d" in ics(with_text("a;b,c\\d"))


def test_a_post_has_the_same_uid_on_the_page_and_in_the_database():
    post = planned_post()
    assert window_of_post(post).uid == uid("post", post.id, post.created_at, post.status_page_id)


def test_uids_differ_by_page_and_share_their_series_by_occurrence():
    first, second = (uid("window", 1, NOW, PAGE.id, day) for day in ("20261121", "20261122"))
    assert first != second
    assert series(first) == series(second) != series(uid("window", 1, NOW, PAGE.id + 1))
    assert series(uid("window", 1, NOW, PAGE.id)) == series(first)


def test_a_sequence_grows_and_fits_into_31_bits():
    assert sequence(NOW) < sequence(NOW + timedelta(seconds=1)) < 2**31
    assert sequence(NOW.replace(year=2080)) < 2**31
    assert sequence(NOW.replace(year=9000)) == 2**31 - 1
    assert sequence(NOW.replace(year=1900)) == 0
