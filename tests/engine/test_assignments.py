"""The assignments that a checker reads for its shards."""

from datetime import UTC, datetime, timedelta

import pytest

from app.db import assignments, db, journal, shards, writing
from app.db.tables import AssignmentRow, MonitorRow
from app.records import CheckSpec, Pair
from tests.factories import make_monitor

pytestmark = pytest.mark.both_databases

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.fixture
def context(core):
    with core.app_context():
        yield core


def ids(read):
    return sorted(assignment.spec.monitor_id for assignment in read)


def test_only_assignments_of_the_place_are_read(context):
    oslo = journal.place_id("oslo")
    here, paused = make_monitor(context).id, make_monitor(context, paused=True).id
    there = make_monitor(context, places=[oslo]).id
    both = make_monitor(context, places=[1, oslo]).id
    assert ids(assignments.of_place(1)) == [here, both]
    assert ids(assignments.of_place(oslo)) == [there, both]
    assert ids(assignments.piece(oslo, [shards.of(there)], 0)) in ([there], [there, both])
    assert assignments.piece(1, [], 0) == []
    assert ids(assignments.of_monitors(1, [here, paused, there, both, 404])) == [here, both]


def test_what_is_read_in_pieces_is_read_whole(context, monkeypatch):
    made = [make_monitor(context).id for _ in range(5)]
    everything = range(shards.count())
    for size in (1, 2, 4, 5, 6):
        monkeypatch.setattr(assignments, "PIECE", size)
        monitor_ids, last = [], 0
        while last is not None:
            part = assignments.piece(1, everything, last)
            monitor_ids += [assignment.spec.monitor_id for assignment in part]
            last = assignments.last_of(part)
        assert monitor_ids == made
    monkeypatch.setattr(assignments, "PIECE", 2)
    assert ids(assignments.piece(1, everything, made[1])) == made[2:4]


def test_an_assignment_has_the_monitors_standing(context):
    assignment = {
        "generation": 5,
        "scheduled_at": NOW,
        "checked_at": NOW + timedelta(seconds=1),
        "blind": True,
    }
    state = {"unconfirmed_at": NOW + timedelta(seconds=2)}
    id = make_monitor(context, assignment=assignment, state=state, interval=300).id
    [read] = assignments.of_monitors(1, [id])
    stored = {name: getattr(read, name) for name in (*assignment, *state, "interval")}
    assert stored == {**assignment, **state, "interval": 300}


def test_a_place_is_added_and_removed(context):
    id, oslo = (
        make_monitor(context, assignment={"scheduled_at": NOW}).id,
        journal.place_id("oslo"),
    )
    with writing() as session:
        assert assignments.assign(session, id, [1, oslo], NOW)
    with writing() as session:
        assert not assignments.assign(session, id, [1, oslo], NOW), "as it is"
    assert db.session.get(AssignmentRow, (id, 1)).scheduled_at == NOW, "what is done stays done"
    assert db.session.get(AssignmentRow, (id, oslo)).scheduled_at is None, "due at once"
    with writing() as session:
        assert assignments.assign(session, id, [oslo], NOW)
    assert ids(assignments.of_monitors(1, [id])) == []
    with writing() as session:
        session.delete(session.get(MonitorRow, id))
    assert db.session.get(AssignmentRow, (id, oslo)) is None


def test_a_spec_has_every_field_that_a_check_needs(context):
    id = make_monitor(
        context,
        url="https://example.test/a?b=c",
        request_method="POST",
        request_headers=[["X-Token", "secret"]],
        request_auth_username="ada",
        request_auth_password="pw",
        request_body="{}",
        alert_condition="url_text",
        alert_text_lookup="broken",
        timeout=5,
        accepted_statuses="200,401",
        follow_redirects=False,
        verify_tls=False,
        cache_buster=1,
        slow_after=500,
        ssl_alert_days=7,
    ).id
    assert assignments.specs([id, 404]) == [
        CheckSpec(
            url="https://example.test/a?b=c",
            monitor_id=id,
            request_method="POST",
            request_headers=(Pair("X-Token", "secret"),),
            auth=("ada", "pw"),
            request_body="{}",
            alert_condition="url_text",
            alert_text_lookup="broken",
            timeout=5,
            accepted_statuses="200,401",
            follow_redirects=False,
            verify_tls=False,
            cache_buster=True,
            slow_after=500,
            ssl_alert_days=7,
        )
    ]
