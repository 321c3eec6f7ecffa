"""The wall: a page for a screen on the wall."""

from datetime import timedelta

from app.records import MonitorStatus
from app.web.views import wall
from tests.factories import make_incident, make_monitor, now


def test_what_is_down_comes_first_with_its_cause_and_a_running_clock(app, viewer):
    for name, verdict in (("Alpha", "up"), ("Beta", "down"), ("Gamma", "degraded")):
        cause = {"cause": f"{name} broke"} if verdict != "up" else {}
        monitor = make_monitor(app, name=name, state={"verdict": verdict, **cause})
        if verdict == "down":
            make_incident(
                app, monitor, started_at=now() - timedelta(minutes=65),
                acknowledged_at=now(), acknowledged_by="grace@example.com",
            )  # fmt: skip
    make_monitor(app, name="Delta", paused=True)
    assert viewer.open("/wall").status == 200
    viewer.shows_in_order("1 down", "Beta", "Gamma", "Alpha", "Delta")
    viewer.shows("Beta broke", "Down for 1 h 5 min", "Acknowledged by grace@example.com")
    assert 'data-since="' in viewer.page.text


def test_what_people_reported_is_shown_where_no_check_said_why(app, viewer):
    monitor = make_monitor(app, name="Alpha", state={"verdict": "down"})
    make_incident(app, monitor, by_hand=True, cause="Labels come out empty")
    assert "Labels come out empty" in viewer.open("/wall").text


def test_what_people_reported_is_loud_although_the_checks_see_nothing(app, viewer):
    for name, verdict in (("Alpha", "degraded"), ("Beta", "up"), ("Gamma", "up")):
        monitor = make_monitor(app, name=name, state={"verdict": verdict})
    make_incident(
        app, monitor, by_hand=True, cause="Labels come out empty",
        started_at=now() - timedelta(minutes=65),
    )  # fmt: skip
    viewer.open("/wall").shows("1 incident open", "Incident for 1 h 5 min", "Labels come out empty")
    viewer.shows_in_order("Gamma", "Alpha", "Beta")
    make_incident(app, make_monitor(app, name="Delta", state={"verdict": "down"}))
    viewer.open("/wall").shows("1 down").hides("incidents open")
    assert viewer.text.index("Delta") < viewer.text.index("Gamma")


def test_a_monitor_with_an_incident_is_shown_although_it_is_not_among_the_first(
    app, viewer, monkeypatch
):
    monkeypatch.setattr(wall, "TILES", 1)
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    make_incident(app, make_monitor(app, name="Zulu", state={"verdict": "up"}), by_hand=True)
    viewer.open("/wall").shows("Zulu").hides("more")


def test_it_is_dark_unless_asked_otherwise_and_has_no_navigation(app, viewer):
    page = viewer.open("/wall").page.text
    assert 'data-theme="dark"' in page
    assert "Log out" not in viewer.text
    assert "No monitors yet" in viewer.text
    assert 'data-theme="light"' in viewer.open("/wall?theme=light").page.text
    assert viewer.open("/wall?theme=pink").status == 422


def test_it_refreshes_itself_with_and_without_a_script(app, viewer):
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    page = viewer.open("/wall")
    assert '<noscript><meta http-equiv="refresh"' in page.page.text
    assert "Everything is up" in viewer.text
    part = viewer.client.get("/wall", headers={"X-Fragment": "live"})
    assert "<html" not in part.text
    assert "Alpha" in part.text
    headers = {"X-Fragment": "live", "If-None-Match": part.headers["ETag"]}
    assert viewer.client.get("/wall", headers=headers).status_code == 304
    make_monitor(app, name="Beta", state={"verdict": "down"})
    assert viewer.client.get("/wall", headers=headers).status_code == 200


def test_among_more_monitors_than_fit_the_broken_ones_are_never_left_out(app, viewer, monkeypatch):
    monkeypatch.setattr(wall, "TILES", 2)
    for number in range(4):
        make_monitor(app, name=f"Fine {number}", state={"verdict": "up"})
    make_incident(app, make_monitor(app, name="Zulu", state={"verdict": "down"}))
    viewer.open("/wall").shows("Zulu", "Fine 0").hides("Fine 1").shows("and 3 more")


def test_one_sentence_says_it():
    for counters, sentence in (
        ({}, "No monitors yet"),
        ({MonitorStatus.UP: 3}, "All 3 up"),
        ({MonitorStatus.UP: 1}, "Everything is up"),
        ({MonitorStatus.UP: 3, MonitorStatus.PAUSED: 1}, "Nothing is down"),
        ({MonitorStatus.UP: 3, MonitorStatus.DEGRADED: 2}, "2 degraded"),
        ({MonitorStatus.UNKNOWN: 1, MonitorStatus.DOWN: 2}, "2 down"),
        ({MonitorStatus.FAILING: 1, MonitorStatus.DOWN: 2}, "2 down"),
        ({MonitorStatus.FAILING: 1, MonitorStatus.UP: 2}, "1 failing, checking again"),
        ({MonitorStatus.UP: 3, MonitorStatus.UNREACHABLE: 2}, "2 unreachable"),
        ({MonitorStatus.DOWN: 1, MonitorStatus.UNREACHABLE: 2}, "1 down"),
    ):
        assert wall.headline(counters, sum(counters.values()))[0] == sentence


def test_no_name_in_a_query_is_taken_for_a_part_of_the_address(app, admin):
    monitor = make_monitor(app)
    for path in (f"/monitors/{monitor.id}", "/wall", "/audit"):
        for name in ("endpoint", "_anchor", "_method", "_scheme", "_external", "id"):
            page = admin.open(f"{path}?{name}=77")
            assert (page.status, "/monitors/77" in page.text) == (200, False), f"{path}?{name}"
