"""When maintenance takes place: repeated windows, their edges and their previews."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.records import MaintenanceWindow
from app.rules.quiet_hours import QuietHours
from app.rules.recurrence import (
    applies_to,
    check_repeat,
    covers,
    in_maintenance,
    next_occurrences,
    occurrences_between,
)
from app.rules.text import fault_of


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(start, end, repeat="none", until=None, monitors=(), zone="UTC", tags=()):
    last = None if until is None else at(until)
    return MaintenanceWindow(1, "w", at(start), at(end), monitors, repeat, last, zone, tags)


NIGHT = ("2026-01-31T23:00", "2026-02-01T01:00")

# A window, a moment, and whether the window covers it.
CASES = [
    (window(*NIGHT), "2026-01-31T22:59:59", False),
    (window(*NIGHT), "2026-01-31T23:00", True),
    (window(*NIGHT), "2026-02-01T00:59:59", True),
    (window(*NIGHT), "2026-02-01T01:00", False),
    (window(*NIGHT), "2026-02-01T23:30", False),
    (window(*NIGHT, "daily"), "2026-01-30T23:30", False),
    (window(*NIGHT, "daily"), "2026-02-01T23:00", True),
    (window(*NIGHT, "daily"), "2027-02-01T00:59:59", True),
    (window(*NIGHT, "daily"), "2027-02-01T01:00", False),
    (window(*NIGHT, "daily", "2026-02-02T23:00"), "2026-02-03T00:30", True),
    (window(*NIGHT, "daily", "2026-02-02T22:59"), "2026-02-03T00:30", False),
    (window(*NIGHT, "weekly"), "2026-02-07T23:30", True),
    (window(*NIGHT, "weekly"), "2026-02-08T23:30", False),
    (window(*NIGHT, "monthly"), "2026-02-28T23:30", True),  # the shorter month's last day
    (window(*NIGHT, "monthly"), "2026-03-01T00:30", True),
    (window(*NIGHT, "monthly"), "2026-03-28T23:30", False),
    (window(*NIGHT, "monthly"), "2026-03-31T23:30", True),
    (window(*NIGHT, "monthly"), "2028-02-29T23:30", True),
    (window(*NIGHT, "0 3 * * 1"), "2026-01-31T23:30", True),  # the first occurrence, as typed
    (window(*NIGHT, "0 3 * * 1"), "2026-02-02T04:59:59", True),  # a Monday, two hours long
    (window(*NIGHT, "0 3 * * 1"), "2026-02-02T05:00", False),
    (window(*NIGHT, "0 3 * * 1"), "2026-02-02T02:59:59", False),
    (window(*NIGHT, "0 3 * * 1"), "2026-01-26T03:30", False),  # a Monday before the start
    (window(*NIGHT, "0 3 * * 1", "2026-02-08T00:00"), "2026-02-09T03:30", False),
    (window("2026-01-01T00:00", "2026-01-03T00:00", "daily"), "2026-05-05T05:05", True),
    (window(*NIGHT, until="2026-01-01T00:00"), "2026-01-31T23:30", True),  # the first always counts
]


@pytest.mark.parametrize(("which", "moment", "expected"), CASES)
def test_a_window_covers_its_occurrences_and_nothing_else(which, moment, expected):
    assert covers(which, at(moment)) is expected


@pytest.mark.parametrize(
    ("repeat", "until", "expected"),
    [
        ("none", None, []),
        ("daily", None, ["2026-02-28T23:00", "2026-03-01T23:00", "2026-03-02T23:00"]),
        ("weekly", None, ["2026-02-28T23:00", "2026-03-07T23:00", "2026-03-14T23:00"]),
        ("monthly", None, ["2026-02-28T23:00", "2026-03-31T23:00", "2026-04-30T23:00"]),
        ("30 4 1 * *", None, ["2026-03-01T04:30", "2026-04-01T04:30", "2026-05-01T04:30"]),
        ("daily", "2026-03-01T23:00", ["2026-02-28T23:00", "2026-03-01T23:00"]),
        ("30 4 1 * *", "2026-03-20T00:00", ["2026-03-01T04:30"]),
    ],
)
def test_the_preview_begins_with_the_current_occurrence(repeat, until, expected):
    occurrences = next_occurrences(window(*NIGHT, repeat, until), 3, at("2026-03-01T00:30"))
    assert [start for start, _ in occurrences] == [at(text) for text in expected]
    assert {end - start for start, end in occurrences} <= {timedelta(hours=2)}


BERLIN = ZoneInfo("Europe/Berlin")  # forward on 2026-03-29 at 2:00, back on 2026-10-25 at 3:00


@pytest.mark.parametrize(
    ("first", "repeat", "after", "expected"),
    [
        ("2026-03-27T03:30", "daily", "2026-03-28T12:00", ["03-29 03:30", "03-30 03:30"]),
        ("2026-03-27T02:30", "daily", "2026-03-28T12:00", ["03-29 03:00", "03-30 02:30"]),
        ("2026-10-23T03:30", "daily", "2026-10-24T12:00", ["10-25 03:30", "10-26 03:30"]),
        ("2026-10-23T02:30", "daily", "2026-10-24T12:00", ["10-25 02:30", "10-26 02:30"]),
        ("2026-03-22T03:30", "weekly", "2026-03-22T12:00", ["03-29 03:30", "04-05 03:30"]),
        ("2026-01-31T23:00", "monthly", "2026-03-05T12:00", ["03-31 23:00", "04-30 23:00"]),
        ("2026-03-01T08:00", "0 3 * * 0", "2026-03-27T12:00", ["03-29 03:00", "04-05 03:00"]),
        ("2026-03-01T08:00", "30 2 * * 0", "2026-03-27T12:00", ["03-29 03:00", "04-05 02:30"]),
        ("2026-03-28T08:00", "0,30 2,3 * * *", "2026-03-29T00:30",
         ["03-29 03:00", "03-29 03:30", "03-30 02:00"]),
        ("2026-10-20T08:00", "30 2 * * *", "2026-10-24T12:00", ["10-25 02:30", "10-26 02:30"]),
    ],
)  # fmt: skip
def test_repeats_keep_their_time_of_day_where_the_clocks_change(first, repeat, after, expected):
    start = datetime.fromisoformat(first).replace(tzinfo=BERLIN).astimezone(UTC)
    which = MaintenanceWindow(
        1, "w", start, start + timedelta(minutes=20), (), repeat, None, BERLIN.key
    )
    occurrences = next_occurrences(which, len(expected), at(after))
    assert [f"{begin.astimezone(BERLIN):%m-%d %H:%M}" for begin, _ in occurrences] == expected
    assert {end - begin for begin, end in occurrences} == {timedelta(minutes=20)}
    assert all(covers(which, begin) and not covers(which, end) for begin, end in occurrences)


def test_a_window_in_an_hour_that_occurs_twice_takes_place_once():
    """2:30 occurs at 0:30 and at 1:30 UTC; the first counts."""
    which = window("2026-10-20T00:30", "2026-10-20T00:50", "daily", zone="Europe/Berlin")
    assert covers(which, at("2026-10-25T00:40"))
    assert not covers(which, at("2026-10-25T01:40"))
    assert covers(which, at("2026-10-26T01:40"))
    assert not covers(which, at("2026-10-26T00:40"))


# On what clocks, the first occurrence as typed there, the repeat, the day of a later one, and that
# one on the same clocks. "(2)": the second time that they show this.
ON_CLOCKS = [
    # Berlin: forward on 2026-03-29 at 2:00, back on 2026-10-25 at 3:00.
    ("Europe/Berlin", "03-01 22:00", "03-02 06:00", "daily", "03-28", "28 22:00", "29 06:00"),
    ("Europe/Berlin", "03-01 22:00", "03-02 06:00", "daily", "10-24", "24 22:00", "25 06:00"),
    ("Europe/Berlin", "03-28 22:00", "03-29 06:00", "daily", "04-20", "20 22:00", "21 06:00"),
    ("Europe/Berlin", "10-24 22:00", "10-25 06:00", "daily", "11-20", "20 22:00", "21 06:00"),
    ("Europe/Berlin", "10-24 22:00", "10-25 06:00", "weekly", "10-31", "31 22:00", "01 06:00"),
    ("Europe/Berlin", "03-01 22:00", "03-02 06:00", "0 22 * * *", "03-28", "28 22:00", "29 06:00"),
    ("Europe/Berlin", "03-28 22:00", "03-29 06:00", "0 22 * * 6", "04-04", "04 22:00", "05 06:00"),
    ("Europe/Berlin", "03-15 22:00", "03-16 06:00", "monthly", "10-15", "15 22:00", "16 06:00"),
    ("Europe/Berlin", "01-31 22:00", "02-01 06:00", "monthly", "02-28", "28 22:00", "01 06:00"),
    ("Europe/Berlin", "08-31 00:00", "09-01 00:00", "monthly", "10-31", "31 00:00", "01 00:00"),
    ("Europe/Berlin", "03-06 20:00", "03-09 06:00", "weekly", "03-27", "27 20:00", "30 06:00"),
    ("Europe/Berlin", "10-02 20:00", "10-05 06:00", "weekly", "10-23", "23 20:00", "26 06:00"),
    # Edges in the hour that is skipped or occurs twice.
    ("Europe/Berlin", "03-01 22:00", "03-02 02:30", "daily", "03-28", "28 22:00", "29 03:30"),
    ("Europe/Berlin", "03-01 02:30", "03-01 06:00", "daily", "03-29", "29 03:00", "29 06:00"),
    ("Europe/Berlin", "03-01 02:00", "03-01 03:00", "daily", "03-29", "29 03:00", "29 04:00"),
    ("Europe/Berlin", "03-01 02:10", "03-01 02:40", "daily", "03-29", "29 03:00", "29 03:30"),
    ("Europe/Berlin", "10-01 22:00", "10-02 02:30", "daily", "10-24", "24 22:00", "25 02:30(2)"),
    ("Europe/Berlin", "10-01 02:30", "10-01 06:00", "daily", "10-25", "25 02:30", "25 06:00"),
    ("Europe/Berlin", "10-01 02:10", "10-01 02:40", "daily", "10-25", "25 02:10", "25 02:40"),
    ("Europe/Berlin", "10-25 02:30", "10-25 02:10(2)", "daily", "10-26", "26 02:30", "26 03:10"),
    # Half an hour, forward on 2026-10-04 at 2:00, back on 2026-04-05 at 2:00.
    ("Australia/Lord_Howe", "03-01 22:00", "03-02 06:00", "daily", "04-04", "04 22:00", "05 06:00"),
    ("Australia/Lord_Howe", "03-01 22:00", "03-02 06:00", "daily", "10-03", "03 22:00", "04 06:00"),
    ("Australia/Lord_Howe", "04-04 22:00", "04-05 06:00", "daily", "04-06", "06 22:00", "07 06:00"),
    ("Australia/Lord_Howe", "03-01 22:00", "03-02 02:15", "daily", "10-03", "03 22:00", "04 02:45"),
    # The south.
    ("America/Santiago", "03-01 22:00", "03-02 06:00", "daily", "04-04", "04 22:00", "05 06:00"),
    ("America/Santiago", "03-01 00:30", "03-01 06:00", "weekly", "09-06", "06 01:00", "06 06:00"),
    ("Australia/Sydney", "03-01 22:00", "03-02 06:00", "daily", "10-03", "03 22:00", "04 06:00"),
    ("Asia/Kolkata", "03-01 22:00", "03-02 06:00", "daily", "03-28", "28 22:00", "29 06:00"),
    ("UTC", "03-01 22:00", "03-02 06:00", "daily", "03-28", "28 22:00", "29 06:00"),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "start", "end", "repeat", "day", "begins", "ends"), ON_CLOCKS)
def test_a_repeat_ends_at_its_time_of_day_however_long_that_night_is(
    zone, start, end, repeat, day, begins, ends
):
    which = MaintenanceWindow(
        1, "w", _typed(zone, start), _typed(zone, end), (), repeat, None, zone
    )
    midnight = _typed(zone, f"{day} 00:00")
    occurrences = occurrences_between(which, midnight, midnight + timedelta(days=1))
    begin, stop = next((a, b) for a, b in occurrences if a >= midnight)
    assert (_shown(zone, begin), _shown(zone, stop)) == (begins, ends)
    second = timedelta(seconds=1)
    moments = (begin - second, begin, stop - second, stop)
    assert [covers(which, moment) for moment in moments] == [False, True, True, False]


def _typed(zone, text):
    wall = datetime.fromisoformat(f"2026-{text.removesuffix('(2)')}")
    return wall.replace(tzinfo=ZoneInfo(zone), fold=text.endswith("(2)")).astimezone(UTC)


def _shown(zone, moment):
    local = moment.astimezone(ZoneInfo(zone))
    return f"{local:%d %H:%M}{'(2)' if local.fold else ''}"


def test_repeats_end_with_the_calendar_and_an_unknown_zone_is_utc():
    for repeat in ("daily", "monthly", "0 3 * * *"):
        last = window("9999-12-30T23:00", "9999-12-31T01:00", repeat)
        assert len(next_occurrences(last, 5, at("2026-01-01T00:00"))) in (1, 2)
    assert covers(window(*NIGHT, "daily", zone="Mars/Base"), at("2026-02-01T23:00"))


def test_the_calendar_of_a_month_has_the_windows_that_overlap_it():
    spans = occurrences_between(
        window(*NIGHT, "weekly"), at("2026-02-01T00:00"), at("2026-03-01T00:00")
    )
    assert [start.strftime("%m-%d") for start, _ in spans] == [
        "01-31",
        "02-07",
        "02-14",
        "02-21",
        "02-28",
    ]


@pytest.mark.parametrize(
    ("repeat", "good"),
    [
        ("none", True),
        ("daily", True),
        ("monthly", True),
        ("0 3 * * 1", True),
        ("*/5 0-4 1,15 * MON-FRI", True),
        ("", False),
        ("yearly", False),
        ("0 3 * *", False),
        ("0 0 3 * * 1", False),  # a field for seconds
        ("61 3 * * 1", False),
        ("0 0 31 2 *", False),  # a day that never occurs
        ("Daily", False),
    ],
)
def test_a_repeat_is_a_word_or_a_cron_line(repeat, good):
    fault = fault_of(lambda: check_repeat(repeat))
    assert (fault is None) is good
    assert fault is None or "cron expression such as" in fault


def test_a_window_without_monitors_and_tags_applies_to_all():
    assert applies_to(window(*NIGHT), 7, ())
    assert applies_to(window(*NIGHT, monitors=(7, 8)), 7, ())
    assert not applies_to(window(*NIGHT, monitors=(8,)), 7, ("prod",))
    assert applies_to(window(*NIGHT, monitors=(8,), tags=("prod",)), 7, ("eu", "prod"))
    assert not applies_to(window(*NIGHT, tags=("prod",)), 7, ("Prod",))


def test_a_monitor_is_in_maintenance_by_its_own_window_or_by_another():
    inside, outside = at("2026-01-31T23:30"), at("2026-01-31T12:00")
    own = (at("2026-01-31T11:00"), at("2026-01-31T13:00"))
    assert in_maintenance(outside, own, [])
    assert not in_maintenance(own[1], own, [])
    assert in_maintenance(inside, own, [window(*NIGHT)])
    assert not in_maintenance(outside, (None, None), [window(*NIGHT)])


CHANGES = timedelta(hours=2)  # the clocks change by an hour, perhaps in the first occurrence too
MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(
    start=MOMENTS,
    length=st.timedeltas(timedelta(minutes=1), timedelta(days=3)),
    repeat=st.sampled_from(
        ["none", "daily", "weekly", "monthly", "15 3 * * *", "0 */6 1 * *", "0,30 2,3 * * 0"]
    ),
    until=st.none() | MOMENTS,
    moment=MOMENTS,
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
)
def test_the_preview_shows_the_occurrence_that_covers_a_moment(
    start, length, repeat, until, moment, zone
):
    which = MaintenanceWindow(1, "w", start, start + length, (), repeat, until, zone)
    shown = next_occurrences(which, 1, moment)
    assert covers(which, moment) is any(begin <= moment < end for begin, end in shown)
    spans = next_occurrences(which, 5, moment)
    assert spans == sorted(spans)
    assert all(end > moment and abs(end - begin - length) <= CHANGES for begin, end in spans)
    assert all(covers(which, begin) for begin, _ in spans)


@given(
    begin=st.times().map(lambda time: time.replace(second=0, microsecond=0)),
    length=st.integers(1, 24 * 60 - 1),
    moment=MOMENTS,
    zone=st.sampled_from(["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"]),
)
def test_a_daily_window_is_what_quiet_hours_are(begin, length, moment, zone):
    """But for edges that the clocks skip or show twice."""
    first = datetime.combine(date(2026, 1, 1), begin, ZoneInfo(zone))
    last = first + timedelta(minutes=length)
    which = MaintenanceWindow(
        1, "w", first.astimezone(UTC), last.astimezone(UTC), (), "daily", None, zone
    )
    assume(moment >= which.start_at and all(edge.hour >= 4 for edge in (first, last)))
    quiet = QuietHours(f"{first:%H:%M}", f"{last:%H:%M}", zone)
    assert covers(which, moment) is (quiet.until(moment) is not None)
