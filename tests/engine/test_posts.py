"""Posts that status pages write by themselves (decision 12)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest

from app.db import writing
from app.db.tables import IncidentRow, PostMonitorRow, PostUpdateRow
from app.engine import posts
from app.records import Classification, Ending
from app.stores.local import LocalStore
from tests.factories import make_incident, make_monitor
from tests.support.pages import Pages

T = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def pages(core):
    return Pages(core)


def write_due(app, now):
    with app.app_context():
        return posts.write_due(now)


def change(app, row, **fields):
    with app.app_context(), writing() as session:
        stored_row = session.get_one(type(row), row.id)
        for name, value in fields.items():
            setattr(stored_row, name, value)


def test_an_incident_that_lasts_is_posted_under_the_name_that_the_page_gives(core, pages):
    monitor = make_monitor(core, name="db-3.internal")
    page = pages.page(monitor, names=["Shop"], now=T, auto_post_after=5)
    incident = make_incident(core, monitor, started_at=T, cause="10.0.0.3 refused port 5432")

    assert write_due(core, T + 5 * MINUTE - timedelta(seconds=1)) == 0
    assert write_due(core, T + 5 * MINUTE) == 1
    [post] = pages.posts()
    assert (post.status_page_id, post.incident_id, post.automatic) == (page, incident.id, True)
    assert post.title == "Problems with Shop"
    assert pages.monitors_of(post.id) == {monitor.id}
    assert pages.updates() == [(post.id, "investigating")]
    with core.app_context(), writing() as session:
        body = session.query(PostUpdateRow).one().body
    assert body.startswith("The service does not respond.")
    assert "10.0.0.3" not in body

    assert write_due(core, T + 60 * MINUTE) == 0  # once


def test_the_post_is_resolved_with_the_incident(core, pages):
    monitor = make_monitor(core)
    pages.page(monitor, now=T, auto_post_after=1)
    incident = make_incident(core, monitor, started_at=T)
    write_due(core, T + MINUTE)
    assert write_due(core, T + 2 * MINUTE) == 0
    change(core, incident, ended_at=T + 2 * MINUTE)
    assert write_due(core, T + 3 * MINUTE) == 1
    [post] = pages.posts()
    assert post.state == "resolved"
    assert pages.updates() == [(post.id, "investigating"), (post.id, "resolved")]
    assert write_due(core, T + 4 * MINUTE) == 0


def test_a_problem_that_ended_only_by_silence_is_not_posted_as_resolved(core, pages):
    """An earlier incident of the monitor that ended so is not what the post is about."""
    monitor = make_monitor(core)
    pages.page(monitor, now=T, auto_post_after=1)
    early = T - 9 * MINUTE
    make_incident(core, monitor, started_at=early, ended_at=T - 8 * MINUTE, ending=Ending.SILENCE)
    for start, ending in ((T, Ending.RECOVERED), (T + 5 * MINUTE, Ending.SILENCE)):
        incident = make_incident(core, monitor, started_at=start)
        write_due(core, start + MINUTE)
        change(core, incident, ended_at=start + 2 * MINUTE, ending=ending)
        write_due(core, start + 3 * MINUTE)
    with core.app_context(), writing() as session:
        bodies = [row.body for row in session.query(PostUpdateRow) if row.state == "resolved"]
    assert bodies == ["The problem is resolved.", "The problem is no longer seen."]


@pytest.mark.parametrize("what", ["deleted", "a false alarm"])
def test_the_post_is_resolved_when_the_incident_is_none_any_more(core, pages, what):
    monitor = make_monitor(core)
    pages.page(monitor, now=T, auto_post_after=1)
    incident = make_incident(core, monitor, started_at=T)
    write_due(core, T + MINUTE)
    if what == "deleted":
        with core.app_context(), writing() as session:
            session.delete(session.get_one(IncidentRow, incident.id))
    else:
        change(core, incident, classification=Classification.FALSE_ALARM)
    write_due(core, T + 2 * MINUTE)
    assert [post.state for post in pages.posts()] == ["resolved"]


@pytest.mark.parametrize("how", ["update", "correction of the post", "correction of the text"])
def test_a_post_that_a_person_has_written_on_is_theirs(core, pages, how):
    monitor = make_monitor(core)
    pages.page(monitor, now=T, auto_post_after=1)
    incident = make_incident(core, monitor, started_at=T)
    write_due(core, T + MINUTE)
    [post] = pages.posts()
    if how == "update":
        pages.update(post.id, "investigating", "Still at it.", now=T + 2 * MINUTE)
    elif how == "correction of the post":
        change(core, post, corrected_at=T + 2 * MINUTE)
    else:
        with core.app_context(), writing() as session:
            session.query(PostUpdateRow).one().corrected_at = T + 2 * MINUTE
    change(core, incident, ended_at=T + 3 * MINUTE)
    assert write_due(core, T + 4 * MINUTE) == 0
    assert [post.state for post in pages.posts()] == ["investigating"]


def test_an_incident_that_a_person_has_posted_about_gets_no_second_post(core, pages):
    monitor = make_monitor(core)
    page = pages.page(monitor, now=T, auto_post_after=1)
    incident = make_incident(core, monitor, started_at=T)
    pages.post(page, now=T, incident_id=incident.id)
    assert write_due(core, T + 10 * MINUTE) == 0


def test_an_open_post_of_a_person_about_the_monitor_is_enough(core, pages):
    shop, till = make_monitor(core), make_monitor(core)
    page = pages.page(shop, till, now=T, auto_post_after=1)
    make_incident(core, shop, started_at=T)
    post = pages.post(page, now=T)
    plan = pages.post(page, now=T, state="in_progress")
    with core.app_context(), writing() as session:
        session.add(PostMonitorRow(post_id=post, monitor_id=shop.id))
        session.add_all(
            PostMonitorRow(post_id=plan, monitor_id=monitor.id) for monitor in (shop, till)
        )
    assert write_due(core, T + 10 * MINUTE) == 0
    make_incident(core, till, started_at=T + 10 * MINUTE)
    assert write_due(core, T + 20 * MINUTE) == 1, "maintenance tells nothing of an outage"


@pytest.mark.parametrize(
    ("of_monitor", "of_incident"),
    [
        ({}, {"classification": Classification.FALSE_ALARM}),
        ({}, {"classification": Classification.MAINTENANCE}),
        ({"maintenance_start_at": T, "maintenance_end_at": T + 60 * MINUTE}, {}),
        ({}, {"ended_at": T + MINUTE}),
    ],
    ids=["false alarm", "classified as maintenance", "within maintenance", "over"],
)
def test_what_is_no_outage_for_the_public_gets_no_post(core, pages, of_monitor, of_incident):
    monitor = make_monitor(core, **of_monitor)
    pages.page(monitor, now=T, auto_post_after=1)
    make_incident(core, monitor, started_at=T, **of_incident)
    assert write_due(core, T + 10 * MINUTE) == 0


def test_only_pages_that_ask_for_it_and_show_the_monitor_post(core, pages):
    shown, other = make_monitor(core), make_monitor(core, name="Other")
    pages.page(shown, now=T, slug="never")
    pages.page(other, now=T, slug="of-another", auto_post_after=1)
    make_incident(core, shown, started_at=T)
    assert write_due(core, T + 10 * MINUTE) == 0


def test_incidents_at_once_become_one_post_that_ends_with_the_last(core, pages):
    monitors = [make_monitor(core, name=name) for name in ("Shop", "Blog", "Mail", "Late")]
    pages.page(*monitors, now=T, auto_post_after=2)
    seconds = (0, 20, 59, 100)
    incidents = [
        make_incident(core, monitor, started_at=T + timedelta(seconds=after))
        for monitor, after in zip(monitors, seconds, strict=True)
    ]
    assert write_due(core, T + 2 * MINUTE) == 1
    assert write_due(core, T + 3 * MINUTE) == 0
    [post] = pages.posts()
    assert post.title == "Problems with Shop, Blog and Mail"
    assert pages.monitors_of(post.id) == {monitor.id for monitor in monitors[:3]}

    assert write_due(core, T + 4 * MINUTE) == 1  # the late one has a post of its own
    for incident in incidents[:2]:
        change(core, incident, ended_at=T + 4 * MINUTE)
    assert write_due(core, T + 5 * MINUTE) == 0
    change(core, incidents[2], ended_at=T + 5 * MINUTE)
    assert write_due(core, T + 6 * MINUTE) == 1
    assert [post.state for post in pages.posts()] == ["resolved", "investigating"]


def test_a_new_incident_of_the_same_monitor_is_posted_anew(core, pages):
    monitor = make_monitor(core)
    pages.page(monitor, now=T, auto_post_after=1)
    first = make_incident(core, monitor, started_at=T)
    write_due(core, T + MINUTE)
    change(core, first, ended_at=T + 2 * MINUTE)
    make_incident(core, monitor, started_at=T + 2 * MINUTE)
    assert write_due(core, T + 3 * MINUTE) == 2
    assert [post.state for post in pages.posts()] == ["resolved", "investigating"]


def test_after_the_clock_was_set_back_incidents_are_posted_as_before(core, pages):
    monitor = make_monitor(core)
    pages.page(monitor, now=T, auto_post_after=1)
    later = T + 60 * MINUTE
    incident = make_incident(core, monitor, started_at=later)
    assert write_due(core, later + MINUTE) == 1
    assert write_due(core, T + 2 * MINUTE) == 0, "still told of"
    change(core, incident, ended_at=later + 2 * MINUTE)
    assert write_due(core, T + 3 * MINUTE) == 1
    make_incident(core, monitor, started_at=T + 4 * MINUTE)
    assert write_due(core, T + 5 * MINUTE) == 1
    assert [post.state for post in pages.posts()] == ["resolved", "investigating"]


@pytest.mark.both_databases
def test_several_processes_at_once_write_one_post(core, pages):
    monitor = make_monitor(core)
    pages.page(monitor, now=T, auto_post_after=1)
    incident = make_incident(core, monitor, started_at=T)

    def together(now):
        start, counts = Barrier(4), []

        def post():
            start.wait(30)
            counts.append(write_due(core, now))

        threads = [Thread(target=post) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        return sorted(counts)

    assert together(T + MINUTE) == [0, 0, 0, 1]
    change(core, incident, ended_at=T + MINUTE)
    assert together(T + 2 * MINUTE) == [0, 0, 0, 1]
    assert [state for _post, state in pages.updates()] == ["investigating", "resolved"]


@pytest.mark.both_databases
def test_a_person_who_posts_at_the_same_moment_makes_the_automatic_post_needless(core, pages):
    monitor = make_monitor(core)
    page = pages.page(monitor, now=T, auto_post_after=1)
    make_incident(core, monitor, started_at=T)
    counts: list[int] = []
    engine = Thread(target=lambda: counts.append(write_due(core, T + MINUTE)))
    fields = {
        "title": "Away",
        "state": "investigating",
        "body": "We look.",
        "monitors": [monitor.id],
    }
    with core.app_context(), writing():
        LocalStore(core.extensions["wakeful.settings"]).posts.create(page, fields)
        engine.start()
        engine.join(0.5)  # it waits for the person's transaction
        assert engine.is_alive()
    engine.join(60)
    assert counts == [0]
    assert [post.automatic for post in pages.posts()] == [False]


def test_a_page_that_fails_does_not_stop_the_others(core, pages, monkeypatch, caplog):
    broken, sound = make_monitor(core, name="Broken"), make_monitor(core, name="Sound")
    pages.page(broken, now=T, slug="a", auto_post_after=1)
    pages.page(sound, now=T, slug="b", auto_post_after=1)
    make_incident(core, broken, started_at=T)
    make_incident(core, sound, started_at=T)
    draft = posts.draft

    def fails(names, *rest, **zone):
        if names == ["Broken"]:
            raise ValueError("broken")
        return draft(names, *rest, **zone)

    monkeypatch.setattr(posts, "draft", fails)
    assert write_due(core, T + MINUTE) == 1
    assert [post.title for post in pages.posts()] == ["Problems with Sound"]
    assert "Could not post on the status page" in caplog.text


def test_a_scheduled_post_moves_with_its_times(core, pages):
    page = pages.page(now=T)
    pages.post(page, now=T, state="scheduled", starts_at=T + MINUTE, ends_at=T + 3 * MINUTE)
    assert write_due(core, T) == 0
    assert write_due(core, T + MINUTE) == 1
    assert write_due(core, T + 2 * MINUTE) == 0
    assert write_due(core, T + 3 * MINUTE) == 1
    assert write_due(core, T + 9 * MINUTE) == 0
    states = [state for _post, state in pages.updates()]
    assert states == ["scheduled", "in_progress", "completed"]
    assert [post.state for post in pages.posts()] == ["completed"]


def test_maintenance_that_nobody_was_there_for_is_only_completed(core, pages):
    page = pages.page(now=T)
    pages.post(page, now=T, state="scheduled", starts_at=T + MINUTE, ends_at=T + 3 * MINUTE)
    assert write_due(core, T + 60 * MINUTE) == 1
    assert write_due(core, T + 60 * MINUTE) == 0
    assert [state for _post, state in pages.updates()] == ["scheduled", "completed"]


def test_a_scheduled_post_ends_also_if_the_clock_was_ahead_when_it_was_written(core, pages):
    page = pages.page(now=T)
    ahead = T + 60 * MINUTE
    pages.post(page, now=ahead, state="scheduled", starts_at=T + MINUTE, ends_at=T + 3 * MINUTE)
    for minute, moved in ((0, 0), (1, 1), (0, 0), (2, 0), (3, 1), (1, 0), (9, 0)):
        assert write_due(core, T + minute * MINUTE) == moved, minute
    assert [post.state for post in pages.posts()] == ["completed"]


def test_a_scheduled_post_that_a_person_moved_is_left_alone(core, pages):
    page = pages.page(now=T)
    times = {"starts_at": T + 2 * MINUTE, "ends_at": T + 4 * MINUTE}
    early = pages.post(page, now=T, state="scheduled", **times)
    done = pages.post(page, now=T, state="scheduled", **times)
    longer = pages.post(page, now=T, state="scheduled", **times)
    pages.update(early, "in_progress", "We begin early.", now=T + MINUTE)
    pages.update(done, "completed", "Done before it began.", now=T + MINUTE)
    assert write_due(core, T + 2 * MINUTE) == 1  # the third begins
    pages.update(longer, "in_progress", "It takes longer.", now=T + 4 * MINUTE)
    assert write_due(core, T + 5 * MINUTE) == 1  # the first is over
    assert {post.id: post.state for post in pages.posts()} == {
        early: "completed",
        done: "completed",
        longer: "in_progress",
    }


@pytest.mark.both_databases
def test_a_monitor_behind_an_outage_that_the_page_does_not_show_is_posted_about(core, pages):
    router = make_monitor(core, name="router-1.internal")
    behind = {"verdict": "down", "behind_id": router.id}
    shop = make_monitor(core, name="shop", state=behind)
    mail = make_monitor(core, name="mail", state=behind)
    pages.page(shop, mail, names=["Shop", "Mail"], now=T, auto_post_after=5)
    outage = make_incident(core, router, started_at=T, cause_code="http_status:503")

    assert write_due(core, T + 5 * MINUTE) == 1
    [post] = pages.posts()
    assert (post.title, post.incident_id) == ("Problems with Shop and Mail", outage.id)
    assert pages.monitors_of(post.id) == {shop.id, mail.id}
    with core.app_context(), writing() as session:
        body = session.query(PostUpdateRow).one().body
    assert body.startswith("The service does not respond.")
    assert write_due(core, T + 6 * MINUTE) == 0

    change(core, outage, ended_at=T + 7 * MINUTE)
    assert write_due(core, T + 8 * MINUTE) == 1
    assert pages.updates()[-1] == (post.id, "resolved")


def test_a_slow_incident_of_what_a_monitor_is_reached_through_is_not_its_own(core, pages):
    router = make_monitor(core)
    shop = make_monitor(core, state={"verdict": "down", "behind_id": router.id})
    pages.page(shop, now=T, auto_post_after=5)
    make_incident(core, router, started_at=T, severity="degraded")
    assert write_due(core, T + 5 * MINUTE) == 0
