"""An incident on a phone: what failed, in few lines, and what to do about it under the thumb."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from app.records import Incident, Result, Timings, Verdict
from app.web.shown import hour, timeline
from tests.factories import keep_results, make_incident, make_monitor, now
from tests.support.store import store_of
from tests.web import scene

START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
REFUSED = "The connection was refused by 192.0.2.1: nothing listens there."


def incident(*again: tuple[int, str], **fields: object) -> Incident:
    """``again``: seconds after the first failing check, and the cause of each repeat."""
    checks = [
        {"checked_at": (START + timedelta(seconds=after)).isoformat(), "cause": cause}
        for after, cause in again
    ]
    values = {"cause": REFUSED, "evidence": {"failing": None, "confirming": checks}} | fields
    return Incident(1, 1, started_at=START, **values)


def titles(shown: Incident) -> list[str]:
    return [step.title for step in timeline.steps(shown)]


def test_rechecks_that_failed_in_the_same_way_are_one_line():
    assert titles(incident((10, REFUSED), (21, REFUSED))) == ["Failed 3 times in 21 s"]
    late = "No answer came within 29998 ms."
    assert titles(incident((10, "No answer came within 30001 ms."), cause=late)) == [
        "Failed 2 times in 10 s"
    ]


def test_a_recheck_that_failed_in_another_way_has_its_own_line():
    other = "The server answered 503."
    assert titles(incident((10, other), (21, other), (30, REFUSED))) == [
        "First failing check",
        "Failed 2 times in 11 s",
        "Recheck 3 failed too",
    ]
    assert titles(incident(by_hand=True)) == ["Reported manually"]


def result(minutes: float, ms: int | None, verdict: Verdict = Verdict.UP) -> Result:
    at = START + timedelta(minutes=minutes)
    return Result(at, verdict, response_time=ms, cause=None if ms else REFUSED)


def test_the_hour_is_around_the_start_and_ends_now_for_a_young_incident():
    late, young = START + timedelta(days=1), START + timedelta(minutes=10)
    half = timedelta(minutes=30)
    assert hour.around(incident(), late) == (START - half, START + half)
    assert hour.around(incident(), young) == (young - 2 * half, young)
    assert hour.around(incident(), young - timedelta(seconds=20)) == (young - 2 * half, young)


HOUR = (START - timedelta(minutes=30), START + timedelta(minutes=30))


def test_no_line_is_drawn_across_an_outage(app):
    down, unknown = result(0, None, Verdict.DOWN), result(-5, None, Verdict.UNKNOWN)
    results = [result(-10, 100), result(-5, 120), down, result(5, 90), result(10, 95)]
    with app.test_request_context():
        drawn = hour.hour_chart(incident(), results, *HOUR)
        other = hour.hour_chart(incident(), [result(-10, 100), unknown, down], *HOUR)
    assert (len(other.good), len(other.failed), len(other.unknown)) == (1, 1, 1)
    assert other.label.endswith("3, of which 1 failed, 100 ms on average. 1 could not be made.")
    assert [style for style, _path in drawn.lines] == ["average"] * 2
    assert not drawn.places
    assert (len(drawn.good), len(drawn.failed)) == (4, 1)
    assert drawn.failed[0].x == drawn.incident.x
    assert drawn.label.startswith("Checks from")
    assert "5, of which 1 failed, 101 ms on average." in drawn.label


def test_checks_of_several_places_are_a_line_each_and_say_where_they_were_made(app):
    from_oslo = [replace(result(minute, 300), location="oslo") for minute in (-10, -5)]
    results = [result(-10, 100), from_oslo[0], result(-5, 100), from_oslo[1]]
    with app.test_request_context():
        drawn = hour.hour_chart(incident(), results, *HOUR)
    assert [style for style, _path in drawn.lines] == ["place-0", "place-1"]
    assert [check.style for check in drawn.good] == ["place-0", "place-1"] * 2
    assert drawn.places == [("place-0", "default"), ("place-1", "oslo")]
    assert drawn.label.endswith(
        "default: 2, 0 failed, 100 ms on average. oslo: 2, 0 failed, 300 ms on average."
    )
    assert [check.title.partition(", ")[2] for check in drawn.good[:2]] == [
        "default: 100 ms",
        "oslo: 300 ms",
    ]


def test_one_check_that_took_far_longer_ends_above_the_hour(app):
    results = [result(-minute, 100) for minute in range(30, 10, -1)]
    with app.test_request_context():
        drawn = hour.hour_chart(incident(), [*results, result(-5, 20_000)], *HOUR)
    (dot,) = drawn.clipped
    assert len(drawn.good) == 20, "it is no dot besides"
    assert (dot.y, dot.title.endswith(": 20,000 ms")) == (drawn.top, True)
    assert drawn.y_ticks[-1].text == "100 ms"
    assert drawn.label.endswith("One time is above the chart: 20,000 ms.")


def with_hour(app, **fields):
    """An incident of ten minutes ago, with a check every minute since an hour ago."""
    monitor = make_monitor(app, name="Shop")
    started = now() - timedelta(minutes=10)
    rows = [
        Result(
            now() - timedelta(minutes=ago), Verdict.UP if ago > 10 else Verdict.DOWN,
            monitor_id=monitor.id, timings=Timings(),
            response_time=None if ago <= 10 else 20_000 if ago == 50 else 100,
        )
        for ago in range(60, 0, -1)
    ]  # fmt: skip
    keep_results(app, rows)
    return make_incident(
        app, monitor, started_at=started, created_at=started, evidence=scene.EVIDENCE, **fields
    )


def test_the_hour_is_on_the_page_while_its_results_are_kept(app, editor, viewer):
    with_hour(app)
    assert "Hour around the incident" in viewer.open("/incidents/1").text
    # With its date if the hour began on the day before.
    time = r"(\d+ \w+ \d{4} )?[\d:]+"
    assert re.search(f"Above the chart: {time}: 20,000 ms", viewer.page.text)
    assert "thumb-bar" not in viewer.page.text, "who only looks presses nothing"
    make_incident(app, make_monitor(app, name="Old"), started_at=now() - timedelta(days=300))
    assert "Hour around the incident" in editor.open("/incidents/1").text
    assert editor.page.text.count('class="failed"') == 11, "ten checks and the legend"
    assert "Hour around the incident" not in editor.open("/incidents/2").text


# Everything that is pressed, without links within a sentence and what the page hides.
SMALL = """() => [...document.querySelectorAll('main a, main button, main summary')]
  .map((one) => [one.textContent.trim(), one.getBoundingClientRect()])
  .filter(([_text, box]) => box.height > 0 && box.height < 44)
  .map(([text, box]) => `${text}: ${box.height}`)"""
PHONE = pytest.mark.parametrize("screen", [(390, "dark")], indirect=True)


@pytest.mark.browser
@PHONE
def test_the_bar_stays_under_the_thumb_and_hides_nothing(app, visit):
    with_hour(app)
    page = visit("/incidents/1")
    bar = page.locator(".thumb-bar")
    height = page.viewport_size["height"]
    assert [button.inner_text() for button in bar.locator(".btn").all()] == [
        "Acknowledge",
        "Comment",
        "Resolve",
    ]
    more = page.locator(".more summary")
    for width in (360, 390):  # small phones and others
        page.set_viewport_size({"width": width, "height": height})
        ends = [button.bounding_box() for button in bar.locator(".btn").all()]
        end = max(button["x"] + button["width"] for button in ends)
        assert end <= more.bounding_box()["x"], "no button covers another"
    for place in (0, 100_000):
        page.evaluate("(place) => window.scrollTo(0, place)", place)
        box = bar.bounding_box()
        assert round(box["y"] + box["height"]) == height
    last = page.get_by_role("button", name="Add comment").bounding_box()
    assert last["y"] + last["height"] <= box["y"], "the end of the page stays above the bar"
    assert page.evaluate(SMALL) == []
    assert more.bounding_box()["y"] >= box["y"], "More is in the bar"
    expect(more.get_by_text("⋯")).to_be_visible()
    more.click()
    expect(page.get_by_role("link", name="Delete")).to_be_visible()
    assert page.evaluate(SMALL) == []
    bar.get_by_role("link", name="Comment").click()
    page.locator("#text:focus").wait_for()
    field = page.locator("#text").bounding_box()
    assert field["y"] + field["height"] <= bar.bounding_box()["y"]
    store = store_of(app)
    store.incidents.update(1, {"ended_at": store.now()})
    page = visit("/incidents/1")
    expect(page.locator(".thumb-bar")).to_have_count(0)
    above = page.get_by_role("button", name="Add comment").bounding_box()
    title = page.get_by_role("heading", name="Was it a real incident?").bounding_box()
    assert title["y"] - above["y"] - above["height"] >= 24, "it does not touch the form"
