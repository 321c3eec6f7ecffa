"""Times as pages show them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.records import MAX_COMMENT
from app.rules import comments
from app.web.shown import times
from tests.factories import make_incident, make_monitor

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-61, "in 1 minute"), (-4, "in a moment"), (0, "just now"), (4, "just now"),
     (5, "5 seconds ago")],
)  # fmt: skip
def test_what_comes_in_a_moment_is_not_called_past(seconds, words):
    assert times.relative(AT - timedelta(seconds=seconds), AT) == words


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue", "UTC"])
@pytest.mark.parametrize(
    "end", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
)
def test_the_ends_of_time_have_a_date_everywhere(zone, end):
    there = ZoneInfo(zone)
    assert times.relative(end, AT.astimezone(there)).endswith(f"{end.year:04}")
    assert times.day(end, there).endswith(f"{end.year:04}")


def test_an_incident_from_the_first_day_of_all_is_shown_to_somebody_in_the_west(app, editor):
    make_incident(app, make_monitor(app), started_at=datetime(1, 1, 1, tzinfo=UTC))
    editor.open("/profile").press("Save", time_zone="Pacific/Niue")
    for path in ("/", "/incidents", "/incidents/1", "/monitors/1"):
        assert editor.open(path).status == 200, path


def test_what_was_written_with_the_report_stays_at_its_beginning(app, editor):
    make_monitor(app)
    editor.open("/incidents/new?monitor_id=1").press(
        "Report an incident", comment="The shop is on fire"
    )
    assert "editor@wakeful.test wrote" in editor.text
    for button in ("Acknowledge", "Resolve"):
        editor.press(button)
    timeline = editor.text.partition("Timeline")[2]
    places = [
        timeline.index(title) for title in ("The shop is on fire", "Acknowledged by", "Resolved")
    ]
    assert places == sorted(places)


def test_a_comment_that_nobody_signed_stands_where_the_incident_opened(app, editor):
    make_incident(
        app, make_monitor(app), by_hand=True, comment="Sent by a script",
        started_at=AT - timedelta(hours=2), created_at=AT - timedelta(hours=1),
        acknowledged_at=AT - timedelta(minutes=30), ended_at=AT, updated_at=AT,
    )  # fmt: skip
    timeline = editor.open("/incidents/1").text.partition("Timeline")[2]
    places = [
        timeline.index(title)
        for title in ("Incident opened", "Sent by", "Acknowledged", "Resolved")
    ]
    assert places == sorted(places)


def test_a_first_comment_that_fills_the_room_is_kept_as_it_is():
    for length, signed in ((10, True), (MAX_COMMENT, False)):
        fields = comments.opening({"comment": "x" * length}, "ada@example.org", AT)
        assert ("ada@example.org" in fields["comment"]) is signed
        assert len(fields["comment"]) <= MAX_COMMENT
    assert comments.opening({"comment": None}, "ada@example.org", AT)["comment"] is None
