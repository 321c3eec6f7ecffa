"""When a heartbeat's next ping is due, by cron and OnCalendar lines (decision 18)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.rules.schedules import check_line, next_due


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# In Berlin the clocks skip from 02:00 to 03:00 on 2026-03-29 (01:00 UTC), and show 02:00 to 03:00
# twice on 2026-10-25 (00:00 to 02:00 UTC).
DUE = [
    ("*/5 * * * *", "UTC", "2026-05-01 10:02:30", "2026-05-01 10:05"),
    ("*/5 * * * *", "UTC", "2026-05-01 10:05:00", "2026-05-01 10:10"),
    ("0 3 * * 1-5", "UTC", "2026-05-01 03:00", "2026-05-04 03:00"),
    ("0 3 * * *", "Europe/Berlin", "2026-05-01 00:00", "2026-05-01 01:00"),
    ("0 3 * * *", "Asia/Kathmandu", "2026-05-01 00:00", "2026-05-01 21:15"),
    ("0 0 29 2 *", "UTC", "2026-05-01 00:00", "2028-02-29 00:00"),
    # a time that does not exist that day is due at the next that does
    ("30 2 * * *", "Europe/Berlin", "2026-03-29 00:59", "2026-03-29 01:00"),
    ("30 2 * * *", "Europe/Berlin", "2026-03-29 01:00", "2026-03-30 00:30"),
    ("*/30 * * * *", "Europe/Berlin", "2026-03-29 00:30", "2026-03-29 01:00"),
    ("*/30 * * * *", "Europe/Berlin", "2026-03-29 01:00", "2026-03-29 01:30"),
    ("02:30", "Europe/Berlin", "2026-03-29 00:59", "2026-03-29 01:00"),
    # one that exists twice is due once
    ("30 2 * * *", "Europe/Berlin", "2026-10-24 22:00", "2026-10-25 00:30"),
    ("30 2 * * *", "Europe/Berlin", "2026-10-25 00:30", "2026-10-26 01:30"),
    ("30 2 * * *", "Europe/Berlin", "2026-10-25 01:10", "2026-10-26 01:30"),
    ("*/30 * * * *", "Europe/Berlin", "2026-10-25 01:10", "2026-10-25 02:00"),
    ("02:30", "Europe/Berlin", "2026-10-25 00:30", "2026-10-26 01:30"),
    # half an hour is skipped, at midnight
    ("0 0 * * *", "America/Santiago", "2026-09-05 12:00", "2026-09-06 04:00"),
    # OnCalendar
    ("daily", "UTC", "2026-05-01 00:00", "2026-05-02 00:00"),
    ("Hourly", "UTC", "2026-05-01 00:30", "2026-05-01 01:00"),
    ("weekly", "UTC", "2026-05-01 00:00", "2026-05-04 00:00"),
    ("Mon..Fri 02:30", "UTC", "2026-05-01 02:30", "2026-05-04 02:30"),
    ("Sat,Sun 10:00:30", "UTC", "2026-05-01 00:00", "2026-05-02 10:00:30"),
    ("Mon-Wed *-*-* 12:00", "UTC", "2026-05-01 00:00", "2026-05-04 12:00"),
    ("*-*-01 04:00:00", "UTC", "2026-05-01 04:00", "2026-06-01 04:00"),
    ("*-02~01", "UTC", "2026-05-01 00:00", "2027-02-28 00:00"),
    ("*:0/15", "UTC", "2026-05-01 00:50", "2026-05-01 01:00"),
    ("8..18/2:00", "UTC", "2026-05-01 08:00", "2026-05-01 10:00"),
    ("*:*:0/10", "UTC", "2026-05-01 00:00:11", "2026-05-01 00:00:20"),
    ("26-05-02 03:00", "UTC", "2026-05-01 00:00", "2026-05-02 03:00"),
    ("03:00 Europe/Berlin", "UTC", "2026-05-01 00:00", "2026-05-01 01:00"),
    ("2026-01-01", "UTC", "2026-05-01 00:00", None),
]


@pytest.mark.parametrize(("line", "zone", "after", "due"), DUE)
def test_a_line_is_due_next_at(line: str, zone: str, after: str, due: str | None):
    assert next_due([check_line(line)], zone, at(after)) == (due and at(due))


def test_of_several_lines_the_first_that_comes_counts():
    lines = ["0 12 * * *", "0 9 * * *"]
    assert next_due(lines, "UTC", at("2026-05-01 08:00")) == at("2026-05-01 09:00")
    assert next_due(lines, "UTC", at("2026-05-01 09:00")) == at("2026-05-01 12:00")


BAD = [
    "", "* * * *", "60 * * * *", "0 0 30 2 *", "0 0 * * MON#9", "every day", "Mon..Sun..Tue",
    "25:00", "*-13-01", "*-02-30", "Fri..Mon", "*-*~31", "12:00:00:00", "*:0/0", "5/",
    "1 2 3 4 5 6", "@daily", "x" * 101, " ", "Mon Tue *-01-01", "17..9:00", "x:00",
]  # fmt: skip


@pytest.mark.parametrize("line", BAD)
def test_what_is_no_schedule_is_refused_with_a_sentence(line: str):
    with pytest.raises(ValueError, match=r"no schedule|never comes"):
        check_line(line)
