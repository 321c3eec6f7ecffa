"""Maintenance windows on the dashboard: once or repeated, for some monitors or for all."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine
from flask import Flask, g

from app.db import writing
from app.db.tables import PersonRow
from app.errors import Invalid
from app.records import MaintenanceWindow, PageQuery
from app.rules.time import iso
from app.web.shown import months, planned
from tests.factories import make_monitor, now
from tests.support.store import store_of

START = datetime(2026, 12, 1, 22, 0, tzinfo=UTC)


def plan(app: Flask, **fields: Any) -> int:
    values = {"name": "Works", "start_at": START, "end_at": START + timedelta(hours=4)} | fields
    return store_of(app).windows.create(values).id


def stored(app: Flask) -> MaintenanceWindow:
    return store_of(app).windows.list(PageQuery()).items[0]


def live_in(app: Flask, zone: str) -> None:
    with app.app_context(), writing() as session:
        session.query(PersonRow).update({"time_zone": zone})


def test_status_pages_show_a_window_by_choice_and_by_another_name(app, editor):
    editor.open("/maintenance").shows("No maintenance is planned")
    editor.open("/maintenance/new").press("Save", name="db-3 move").shows("db-3 move saved.")
    assert (stored(app).public, stored(app).repeat, stored(app).monitors) == (False, "none", ())
    assert "Not shown" in editor.text
    editor.open("/maintenance/1/edit")
    editor.press("Save", "", public=True, public_name="New disks", public_text="An hour.")
    window = stored(app)
    assert (window.public, window.public_name, window.public_text) == (
        True, "New disks", "An hour.",
    )  # fmt: skip
    editor.shows("Shown as New disks An hour.")


def test_it_repeats_on_the_clocks_of_the_zone_where_it_was_planned(app, editor):
    live_in(app, "Europe/Berlin")
    typed = {"start_at": "2027-03-27T03:30", "end_at": "2027-03-27T04:00", "often": "daily"}
    assert "Next times" not in editor.open("/maintenance/new").text
    editor.press("Preview", name="Works", **typed).shows("Next times")
    assert "28 Mar 2027 03:30 CEST" in editor.text  # the clocks went forward in this night
    editor.press("Save")
    assert stored(app).zone == "Europe/Berlin"
    live_in(app, "Asia/Tokyo")
    assert "29 Mar 2027 10:30 JST" in editor.open("/maintenance/1").text
    editor.shows("Time zone Europe/Berlin", "29 Mar 2027 03:30 CEST (Mon 29 Mar 2027 10:30 JST")
    editor.open("/maintenance/1/edit")
    editor.form_with("Save")[0].choices["zone"].append("Mars/Base")  # of a page that lists more
    editor.press("Save", zone="Mars/Base").shows(
        "Time zone: This time zone is not known", status=422
    )


def test_all_times_of_a_window_are_typed_and_shown_in_its_zone(app, editor):
    live_in(app, "Asia/Tokyo")
    typed = {"start_at": "2027-07-01T22:00", "end_at": "2027-07-01T23:00"}
    until = {"often": "weekly", "repeat_until": "2027-08-01T00:00"}
    editor.open("/maintenance/new").press(
        "Save", name="Works", zone="Europe/Berlin", **typed, **until
    )
    window = stored(app)
    assert window.start_at == datetime(2027, 7, 1, 20, 0, tzinfo=UTC)
    assert window.repeat_until == datetime(2027, 7, 31, 22, 0, tzinfo=UTC)
    editor.shows("Thu 1 Jul 2027 22:00 CEST (Fri 2 Jul 2027 05:00 JST for you)")
    values = dict(editor.open("/maintenance/1/edit").form_with("Save")[0].values)
    assert (values["start_at"], values["zone"]) == ("2027-07-01T22:00:00", "Europe/Berlin")


@pytest.mark.parametrize(
    ("zone", "reader", "first"),
    [
        ("Europe/Berlin", "UTC", "2026-03-29T01:00:00Z"),  # 02:30 does not exist
        ("UTC", "Europe/Berlin", "2026-03-29T02:30:00Z"),
        ("UTC", "Asia/Tokyo", None),
    ],
)
def test_the_first_date_after_the_next_change_of_the_clocks_is_shown(app, zone, reader, first):
    start = datetime(2026, 1, 1, 2, 30, tzinfo=ZoneInfo(zone)).astimezone(UTC)
    window = MaintenanceWindow(
        1, "Works", start, start + timedelta(hours=1), repeat="daily", zone=zone
    )
    noon = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
    with app.test_request_context(), time_machine.travel(noon, tick=False):
        g.zone = reader
        dates = planned.next_dates(window)
    after = [date for date in dates if date.changed]
    assert [iso(date.start) for date in after] == ([first] if first else [])
    assert len(dates) == (6 if first else 5)


def test_the_one_date_of_a_window_that_does_not_repeat_is_no_first_after_a_change(app):
    start = datetime(2026, 4, 1, 2, 30, tzinfo=UTC)
    window = MaintenanceWindow(1, "Works", start, start + timedelta(hours=1), zone="Europe/Berlin")
    noon = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
    with app.test_request_context(), time_machine.travel(noon, tick=False):
        assert [date.changed for date in planned.next_dates(window)] == [None]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ({"often": "daily"}, "daily"),
        ({"often": "weekly", "repeat": "half a cron line"}, "weekly"),
        ({"often": "monthly"}, "monthly"),
        ({"often": "cron", "repeat": "30 4 * * 1-5"}, "30 4 * * 1-5"),
    ],
)
def test_it_repeats_as_chosen_and_an_edit_shows_the_choice(app, editor, typed, kept):
    shop, blog = make_monitor(app, name="Shop"), make_monitor(app, name="Blog")
    editor.open("/maintenance/new").press(
        "Save", name="Works", scope="chosen", monitors=blog.id, repeat_until="2030-01-01T00:00",
        **typed,
    )  # fmt: skip
    assert stored(app).repeat == kept
    assert stored(app).monitors == (blog.id,)
    values = editor.open("/maintenance/1/edit").form_with("Save")[0].values
    assert ("often", typed["often"]) in values
    assert ("repeat", typed["repeat"] if typed["often"] == "cron" else "") in values
    assert ("monitors", str(blog.id)) in values
    assert ("monitors", str(shop.id)) not in values
    editor.press("Save", scope="all")
    assert (stored(app).monitors, stored(app).repeat) == ((), kept)


def test_faults_stand_at_their_fields_and_nothing_typed_is_lost(app, editor):
    for typed, sentence in (
        ({"end_at": "2020-01-01T00:00"}, "The end must be later than the start."),
        ({"often": "cron", "repeat": "daily"}, "Enter a cron expression such as"),
        ({"scope": "chosen"}, "Choose a monitor or enter a tag"),
    ):
        editor.open("/maintenance/new").press("Save", **{"name": "Kept"} | typed)
        assert (editor.status, sentence in editor.text) == (422, True), typed
        values = dict(editor.form_with("Save")[0].values)
        assert {name: values[name] for name in typed} == typed
    assert not store_of(app).windows.list(PageQuery()).items


def test_the_next_five_are_shown_before_saving_and_after(app, editor):
    soon = (datetime.now(UTC) + timedelta(days=2)).replace(hour=3, minute=0)
    times = {"start_at": f"{soon:%Y-%m-%dT%H:%M}", "end_at": f"{soon:%Y-%m-%dT04:30}"}
    editor.open("/maintenance/new").press("Preview", name="Backups", often="weekly", **times)
    editor.shows("Nothing is saved yet.", status=200)
    days = [soon + timedelta(weeks=n) for n in range(6)]
    shown = [f"{day.day} {day:%b %Y} 03:00 UTC" for day in days]
    assert all(day in editor.text for day in shown[:5])
    assert shown[5] not in editor.text
    assert not store_of(app).windows.list(PageQuery()).items
    editor.press("Save")
    assert all(day in editor.text for day in shown[:5])
    assert "1 h 30 min" in editor.text


def test_what_is_on_stands_first_and_what_is_over_last(app, viewer):
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    plan(app, name="Later", start_at=now + 48 * hour, end_at=now + 49 * hour)
    plan(app, name="Past", start_at=now - 9 * hour, end_at=now - 8 * hour)
    plan(app, name="Present", start_at=now - hour, end_at=now + hour)
    plan(app, name="Again", start_at=now - 9 * hour, end_at=now - 8 * hour, repeat="daily")
    text = viewer.open("/maintenance").text.partition("November")[0]
    places = [text.index(f" {name} ") for name in ("Present", "Again", "Later", "Past")]
    assert places == sorted(places)
    assert "In progress" in text
    assert "Over" in text
    assert "Plan a window" not in viewer.text
    assert viewer.open("/maintenance/new").status == 403


def test_a_window_that_begins_is_in_the_part_that_pages_refresh(app, viewer):
    store, live = store_of(app), {"X-Fragment": "live"}
    fields = {"name": "Works", "start_at": now(), "end_at": now() + timedelta(hours=1)}
    window = store.windows.create(fields)
    for path, sentence in (
        ("/maintenance", "In progress"),
        ("/maintenance/1", "In progress until"),
    ):
        assert "data-live" in viewer.open(path).page.text
        part = viewer.client.get(path, headers=live)
        assert (sentence in part.text, "<title>" in part.text) == (True, False), path
    hour = timedelta(hours=1)
    store.windows.update(window.id, {"start_at": now() - 2 * hour, "end_at": now() - hour})
    assert "In progress" not in viewer.client.get("/maintenance/1", headers=live).text


def test_the_calendar_shows_a_month_in_the_zone_of_the_person(app, viewer):
    live_in(app, "Asia/Tokyo")  # 22:00 to 02:00 UTC is 7:00 to 11:00 on the next day
    plan(app, name="Works")
    plan(app, name="Long", start_at=START, end_at=START + timedelta(hours=50))
    page = viewer.open("/maintenance?month=2026-12").page.text
    assert "December 2026" in viewer.text
    cells = {cell.partition("day-number")[2]: cell for cell in page.split("<td")}
    second = next(cell for start, cell in cells.items() if "Wednesday </span>2<" in start)
    assert "07:00</span> Works" in second
    assert "07:00</span> Long" in second
    third = next(cell for start, cell in cells.items() if "Thursday </span>3<" in start)
    assert "all day</span> Long" in third
    assert "Works" not in third
    fourth = next(cell for start, cell in cells.items() if "Friday </span>4<" in start)
    assert "to 09:00</span> Long" in fourth
    assert 'href="/maintenance?month=2027-01#calendar"' in page
    assert "Nothing is planned in March 2027" in viewer.open("/maintenance?month=2027-03").text
    for odd in ("2026-13", "now", "0001-01", "9999-12"):
        assert viewer.open(f"/maintenance?month={odd}").status == 422, odd


def test_months_know_their_neighbours_and_their_moments():
    december = months.read("2026-12", months.Month(2026, 1))
    assert str(december.plus(1)) == "2027-01"
    assert str(december.plus(-12)) == "2025-12"
    assert months.Month(2199, 12).plus(1) is None
    start, end = months.Month(2026, 10).span(ZoneInfo("Europe/Berlin"))
    assert (start.isoformat(), end.isoformat()) == (
        "2026-09-30T22:00:00+00:00",
        "2026-10-31T23:00:00+00:00",
    )
    assert months.read(None, december) == december
    with pytest.raises(Invalid, match="2026-11"):
        months.read("2026-00", december)


def test_many_times_on_one_day_are_one_entry():
    sheet = months.Sheet()
    spans = [(START + timedelta(minutes=5 * n), START + timedelta(minutes=5 * n + 1))
             for n in range(10)]  # fmt: skip
    sheet.put(1, "Often", spans, UTC)
    assert sheet.entries_on(START.date()) == [months.DayEntry(1, "Often", "22:00", 9)]


def test_a_window_is_for_tags_and_for_monitors_that_are_searched_for(app, editor):
    for name in ("Shop", "Blog", "Mail"):
        make_monitor(app, name=name, tags="\nprod\n" if name != "Mail" else "")
    editor.open("/maintenance/new")
    editor.press("Search", name="Works", scope="chosen", tags="prod", search="mai", monitors="2")
    assert editor.status == 200
    assert "This field is required" not in editor.text
    assert "1 selected" in editor.text
    assert "Shop" not in editor.page.text.split("data-choices")[1]  # found: Mail; chosen: Blog
    editor.press("Save", monitors=["2", "3"])
    editor.shows("Works saved.", "Monitors with the tag prod , and Blog , Mail")
    window = store_of(app).windows.get(1)
    assert (window.tags, window.monitors) == (("prod",), (2, 3))
    editor.open("/maintenance/1/edit").press("Save", scope="all")
    window = store_of(app).windows.get(1)
    assert (window.tags, window.monitors) == ((), ())


def test_the_page_of_a_monitor_names_its_windows_shared_and_by_tag(app, editor):
    make_monitor(app, name="Shop", tags="\nprod\n")
    make_monitor(app, name="Blog")
    start = datetime.now(UTC) + timedelta(days=6)
    for name, days, more in (
        ("Of its tag", 0, {"tags": ("prod",)}),
        ("Of another", 0, {"monitors": (2,)}),
        ("Of all", 1, {}),
        ("Much later", 9, {}),
    ):
        begin = start + timedelta(days=days)
        fields = {"name": name, "start_at": begin, "end_at": begin + timedelta(hours=2)}
        store_of(app).windows.create(fields | more)
    text = editor.open("/monitors/1").text
    assert "Of its tag" in text
    assert "in 5 days , for 2 h" in text or "in 5 days, for 2 h" in text
    assert f"{start:%a} {start.day} {start:%b %Y}" in text
    assert text.index("Of its tag") < text.index("Of all")
    assert "Of another" not in text
    assert "Much later" not in text


def test_maintenance_is_scheduled_for_the_ticked_monitors_or_all_of_a_tag(app, editor):
    for number in range(12):
        make_monitor(app, name=f"m{number}", tags="\nprod\n")
    windows = store_of(app).windows
    editor.open("/monitors").press("Apply", action="maintenance", ids=["11", "12"])
    assert "2 selected" in editor.text
    editor.press("Save", name="Works")
    assert windows.get(1).monitors == (11, 12)
    editor.open("/monitors?tag=prod&per_page=10")
    editor.press("Apply", action="maintenance", everything="1")
    editor.press("Save", name="More works")
    assert (windows.get(2).tags, windows.get(2).monitors) == (("prod",), ())
    editor.open("/maintenance/new?monitor_id=3").press("Save", name="From its page")
    assert windows.get(3).monitors == (3,)
    assert editor.open("/maintenance/new?monitor_id=x").status == 200
    editor.open("/maintenance/1/delete").shows("Delete Works?")
    editor.press("Delete this window")
    assert editor.open("/maintenance/1").status == 404
