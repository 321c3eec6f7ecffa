"""Charts: nothing is drawn without a measurement, and nothing outside of the frame."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.records import PHASES
from app.web.shown import axis, charts, monitor_rows, plot

START = datetime(2026, 11, 1, tzinfo=UTC)


def bucket(place: int, ms: int | None, **more: Any) -> dict[str, Any]:
    start = START + timedelta(hours=place)
    return {
        "start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat(),
        "response_time": ms, "p95": ms and ms * 2, "timings": dict.fromkeys(PHASES, ms and ms // 5),
        "maintenance": 0, **more,
    }  # fmt: skip


def answer(*times: int | None) -> dict[str, Any]:
    measured = [ms for ms in times if ms is not None]
    figures = {name: max(measured, default=None) for name in ("avg", "p50", "p95", "p99", "max")}
    return {
        "response_time": figures,
        "buckets": [bucket(place, ms) for place, ms in enumerate(times)],
    }


def hour(moment: datetime) -> str:
    return f"{moment:%H:%M}"


def test_a_gap_in_the_data_is_a_gap_in_the_line() -> None:
    chart = charts.response_chart(answer(100, 120, None, 90, 80), hour)
    assert len([path for name, path in chart.lines if name == "average"]) == 2


def test_a_chart_without_data_says_so() -> None:
    chart = charts.response_chart(answer(None, None), hour)
    assert chart.empty
    assert chart.label == "No response times in this range."


def test_an_incident_is_marked_where_it_was_and_only_there() -> None:
    hour_later, day = START + timedelta(hours=1), timedelta(days=1)
    incidents = [
        (hour_later, START + timedelta(hours=2), "Down for an hour", "/incidents/1", "down"),
        (START - 9 * day, START - 8 * day, "Long ago", "/incidents/2", "down"),
        (START + timedelta(hours=3), None, "Still slow", "/incidents/3", "degraded"),
    ]
    chart = charts.response_chart(answer(10, 10, 10, 10), hour, incidents=incidents)
    closed, open_ = chart.incidents
    quarter = (chart.right - chart.left) / 4
    assert closed.x == pytest.approx(chart.left + quarter, abs=0.1)
    assert closed.width == pytest.approx(quarter, abs=0.1)
    assert open_.x + open_.width == pytest.approx(chart.right, abs=0.1)
    assert (closed.begins, open_.begins) == (False, True), "a line where slowness began"


@given(st.lists(st.none() | st.integers(1, 60_000), min_size=1, max_size=370), st.booleans())
def test_nothing_is_drawn_outside_of_the_frame(times: list[int | None], stacked: bool) -> None:
    chart = charts.response_chart(answer(*times), hour, stacked=stacked)
    for _, path in [*chart.areas, *chart.lines]:
        for x, y in re.findall(r"[ML](-?[\d.e+]+) (-?[\d.e+]+)", path):
            assert chart.left <= float(x) <= chart.right
            assert chart.top <= float(y) <= chart.bottom


@pytest.mark.parametrize(
    ("highest", "labels"),
    [
        (0, "0 ms, 1 ms"),
        (7, "0 ms, 2 ms, 4 ms, 6 ms, 8 ms"),
        (201, "0 ms, 50 ms, 100 ms, 150 ms, 200 ms, 250 ms"),
        (260, "0 ms, 100 ms, 200 ms, 300 ms"),
        (5_100, "0 ms, 1,500 ms, 3,000 ms, 4,500 ms, 6,000 ms"),
        (60_000, "0 ms, 15,000 ms, 30,000 ms, 45,000 ms, 60,000 ms"),
        (61_000, "0 s, 15 s, 30 s, 45 s, 60 s, 75 s"),
        (299_000, "0 min, 1 min, 2 min, 3 min, 4 min, 5 min"),
        (39_600_000, "0 h, 3 h, 6 h, 9 h, 12 h"),
    ],
)
def test_an_axis_has_round_steps_in_one_unit(highest: int, labels: str) -> None:
    assert ", ".join(text for _, text in plot.axis_lines(highest)) == labels


@given(st.integers(3, 10**9))
def test_what_is_highest_fills_three_quarters_of_the_chart(highest: int) -> None:
    values = [ms for ms, _ in plot.axis_lines(highest)]
    assert 0.74 * values[-1] < highest <= values[-1]
    assert 2 <= len(values) <= 6


def test_a_strip_draws_each_state_once_however_many_cells_it_has() -> None:
    strip = charts.cells([an_hour(up=3600)] * 23 + [an_hour(down=3600)])
    assert [state for state, _ in strip.paths] == ["down", "up"]
    assert dict(strip.paths)["up"] == "M0 11h228"
    up, down = an_hour(up=3600), an_hour(down=3600)
    split = dict(charts.cells([up, down, down, up]).paths)
    assert split == {"up": "M0 11h8M30 11h8", "down": "M10 11h18"}


def test_a_strip_shows_degraded_hours_and_how_much_of_an_hour_was_down() -> None:
    hours = [
        an_hour(up=3600, degraded=60), an_hour(up=3590, down=10),
        an_hour(up=1800, down=1800, degraded=5), an_hour(up=600, down=3000),
        an_hour(maintenance=2000, down=1600), an_hour(),
    ]  # fmt: skip
    assert charts.cells(hours).paths == [
        ("degraded", "M0 11h8M20 11h8"),
        ("down", "M30 11h8"),
        ("maintenance", "M40 11h8"),
        ("none", "M50 11h8"),
        ("up", "M10 11h8"),
        ("down-1", "M10 20h8"),  # in front of the rest of its hour, from the bottom
        ("down-2", "M20 17h8M40 17h8"),
    ]
    down = an_hour(up=1800, down=1800)
    assert [state for state, _ in charts.cells([down]).paths] == ["up", "brief-2"], "as on pages"
    assert [state for state, _ in charts.cells([down, down]).paths] == ["up", "down-2"]
    two_days = charts.cells([down, down], days=True)
    assert [state for state, _ in two_days.paths] == ["up", "brief-2"]
    assert [state for state, _ in charts.cells([an_hour(down=600)]).paths] == ["brief"]
    assert monitor_rows.in_words(hours[:3], "Today") == (
        "Today: up 2 h 28 min, degraded 1 min 5 s, down 30 min 10 s."
    )


def an_hour(**seconds: int) -> dict[str, Any]:
    return dict.fromkeys(("up", "down", "unknown", "maintenance", "degraded"), 0) | seconds


def test_a_sparkline_of_nothing_is_nothing() -> None:
    assert charts.sparkline((None, None)) == ""
    assert charts.sparkline((1, None, 4)) == (
        '<path class="lone" d="M0 70l0 0"/><path class="lone" d="M384 15l0 0"/>'
    )
    assert charts.sparkline((4, 1, 4)) == '<path d="M0 15l192 55 192 -55"/>'


def test_a_single_measurement_is_a_dot() -> None:
    chart = charts.response_chart(answer(None, 120, None, 90, 80), hour)
    assert len(chart.dots) == 1
    assert not chart.empty
    stacked = charts.response_chart(answer(None, 120, None), hour, stacked=True)
    for _, path in stacked.areas:
        xs = {float(x) for x, _ in re.findall(r"[ML](-?[\d.e+]+) (-?[\d.e+]+)", path)}
        assert len(xs) == 2, "an area of no width is not seen"


def test_several_places_are_a_line_each_in_place_of_their_average() -> None:
    figures = answer(100, 110, 120, 130, None, 150)
    for bucket, down in zip(figures["buckets"], (0, 0, 0, 0, 60, 0), strict=True):
        bucket |= {"down": down}
    near = charts.PlaceSeries("Oslo", "place-0", [20, 30, 20, 30, None, 40], bridged=1)
    far = charts.PlaceSeries("Sydney", "place-1", [300, None, 310, None, None, None], bridged=1)
    silent = charts.PlaceSeries("Bergen", "place-2", [None] * 6)
    chart = charts.response_chart(figures, hour, places=[near, far, silent])
    drawn = [(name, path.count("L") + 1) for name, path in chart.lines if name != "p95"]
    assert drawn == [("place-0", 4), ("place-1", 2)], "not across the outage"
    assert [name for name, _x, _y in chart.dots] == ["place-0"]
    assert chart.areas == []
    assert chart.places == [("place-0", "Oslo"), ("place-1", "Sydney"), ("place-2", "Bergen")]
    assert chart.label.endswith("Oslo: 20 ms to 40 ms. Sydney: 300 ms to 310 ms.")
    stacked = charts.response_chart(figures, hour, stacked=True, places=[near, far])
    assert not stacked.places
    assert not stacked.lines, "the phases are of all places together"


@pytest.mark.parametrize(
    ("slow_after", "drawn"), [(None, None), (150, True), (350, True), (500, False)]
)
def test_the_slow_threshold_is_a_line_unless_it_would_flatten_the_chart(slow_after, drawn) -> None:
    chart = charts.response_chart(answer(100, 120), hour, slow_after=slow_after)
    if drawn is None:
        assert chart.slow is None
        return
    assert chart.slow is not None
    assert (chart.slow.y is not None) is drawn
    if chart.slow.y is not None:
        assert chart.top <= chart.slow.y <= chart.bottom
    assert max(tick.at for tick in chart.y_ticks) == chart.bottom


@pytest.mark.parametrize(
    ("times", "highest", "clipped"),
    [
        ([100] * 59 + [30_000], "200 ms", [894]),  # one of 60
        ([100] * 58 + [30_000] * 2, "60,000 ms", []),  # as often as that, it belongs to the figures
        ([100] * 298 + [15_000, 30_000, 30_000], "200 ms", [888, 890, 893]),  # 1 in 100
        ([100] * 59 + [250], "500 ms", []),  # not far above
        ([100] * 3 + [30_000], "200 ms", [791]),  # the first minutes of a monitor
        ([100] * 2 + [30_000], "60,000 ms", []),  # too few to say what is usual
    ],
)
def test_a_few_times_far_above_the_others_end_above_the_chart(times, highest, clipped) -> None:
    chart = charts.response_chart(answer(*times), hour)
    assert chart.y_ticks[-1].text == highest
    assert [int(dot.x) for dot in chart.clipped] == [pytest.approx(x, abs=8) for x in clipped]
    above = [sentence for sentence in chart.label.split(". ") if "above the chart" in sentence]
    assert len(above) == bool(clipped)
    if clipped:
        assert {dot.y for dot in chart.clipped} == {chart.top}
        assert chart.clipped[-1].title.endswith(": 60,000 ms"), "the time itself, in its title"


def test_what_is_usual_is_the_99th_percentile_of_all_checks() -> None:
    """A chart of a day has 96 parts of 15 checks: two slow checks are 2% of its parts."""
    figures = answer(*[100] * 94, 10_000, 10_000)
    assert not charts.response_chart(figures, hour).clipped
    figures["response_time"] |= {"p99": 110}
    chart = charts.response_chart(figures, hour)
    assert (len(chart.clipped), chart.y_ticks[-1].text) == (2, "200 ms")
    assert "2 times are above the chart, the longest 20,000 ms." in chart.label


def test_a_line_of_a_place_and_one_of_an_earlier_time_end_above_the_chart_too() -> None:
    now = answer(*[100] * 20)
    for bucket in now["buckets"]:
        bucket |= {"down": 0}
    oslo = charts.PlaceSeries("Oslo", "place-0", [100] * 19 + [20_000])
    before = charts.EarlierSeries(
        "Last week", START, timedelta(hours=1), [100] * 20, (), now["response_time"]
    )
    assert not charts.response_chart(now, hour, earlier=before).clipped
    late = replace(before, times=[20_000, *[100] * 19])
    (dot,) = charts.response_chart(now, hour, earlier=late).clipped
    assert dot.title == "00:00: 20,000 ms"
    (dot,) = charts.response_chart(now, hour, places=[oslo]).clipped
    assert dot.title == "19:00: 20,000 ms"


def test_the_last_label_of_the_axis_ends_with_the_chart() -> None:
    marks = [(START + timedelta(hours=1), "one"), (START + timedelta(hours=2), "23 Nov")]
    first, last = charts.response_chart(answer(10, 10), hour, marks=marks).x_ticks
    assert (first.anchor, last.anchor) == ("middle", "end")
    assert last.at <= charts.Chart.width


def test_each_moment_has_a_sentence() -> None:
    figures = answer(100, 100, None, None, None, 90)
    more = [
        {"checks": 4, "down": 0, "unknown": 0},
        {"checks": 1, "down": 0, "unknown": 0},
        {"checks": 4, "down": 3600, "unknown": 0},
        {"checks": 2, "down": 0, "unknown": 1800},
        {"checks": 0, "down": 0, "unknown": 0},
        {"checks": 4, "down": 0, "unknown": 0, "maintenance": 600},
    ]
    for bucket, fields in zip(figures["buckets"], more, strict=True):
        bucket |= fields
    before = answer(200, None, None, None, None, None) | {"bucket_seconds": 3600}
    before["buckets"][0]["checks"] = 1
    earlier = charts.earlier_series("The day before", before, timedelta(), 3600)
    words = {"dns": "DNS lookup", "ttfb": "answer"}
    sentences = axis.readings(figures["buckets"], hour, words, earlier)
    assert sentences == [
        "00:00: 100 ms, p95 200 ms, 4 checks, DNS lookup 20 ms, answer 20 ms,"
        " The day before: 200 ms",
        "01:00: 100 ms, DNS lookup 20 ms, answer 20 ms",
        "02:00: down 1 h",
        "03:00: unknown 30 min, no response time",
        "04:00: no check",
        "05:00: 90 ms, p95 180 ms, 4 checks, maintenance 10 min, DNS lookup 18 ms, answer 18 ms",
    ]
    titles = charts.titles(sentences)
    assert titles.count("<title>") == 6
    assert "04:00: no check" in titles


def test_an_earlier_time_lies_where_it_would_be_now() -> None:
    """Its buckets may be narrower or wider than the chart's, and it may be higher."""
    now = answer(100, 100, 100, 100)
    for seconds, times, expected in (
        (3600, (400, 200, None, 300), [400, 200, None, 300]),
        (1800, (100, 300, 200, None, None, None, 50, 50), [200, 200, None, 50]),
        (7200, (400, 200), [400, 400, 200, 200]),
    ):
        before = answer(*times) | {"bucket_seconds": seconds}
        for place, entry in enumerate(before["buckets"]):
            start = START - timedelta(days=7) + timedelta(seconds=place * seconds)
            entry |= {"checks": 1, "start": start.isoformat()}
        series = charts.earlier_series("Last week", before, timedelta(days=7), 3600)
        at = [series.at(START + timedelta(hours=place)) for place in range(4)]
        assert at == expected, seconds
        chart = charts.response_chart(now, hour, earlier=series)
        assert chart.earlier == "Last week"
        drawn = [name for name, _ in chart.lines if name == "earlier"]
        assert len(drawn) + len(chart.dots) == 1 + (None in expected)
        assert f"Last week: {max(filter(None, times))} ms on average" in chart.label
