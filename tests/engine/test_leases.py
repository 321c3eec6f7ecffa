"""Due monitors are handed out once, and come back when whoever took them is gone."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from app.db import db, leases, writing
from app.db.tables import MonitorRow, MonitorStateRow
from app.records import CheckSpec, Pair
from tests.factories import make_monitor

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


@pytest.fixture
def context(core):
    with core.app_context():
        yield core


def due(core, seconds=0, **fields):
    state = {"next_check_at": NOW + timedelta(seconds=seconds)}
    return make_monitor(core, state=state, **fields).id


def claimed(seconds=0, token="me", limit=100):
    return [s.monitor_id for s in leases.claim(NOW + timedelta(seconds=seconds), token, limit)]


def test_only_what_is_due_is_handed_out_the_longest_waiting_first(context):
    late, soon, paused = due(context, -10), due(context, 10), due(context)
    with writing() as session:
        session.get(MonitorStateRow, paused).next_check_at = None
    latest = due(context, -60)
    assert claimed(limit=1) == [latest]
    assert claimed() == [late]
    assert claimed() == []
    assert claimed(10) == [soon]


def test_a_lease_ends_by_itself_after_the_time_limit_and_a_margin(context):
    id = due(context, timeout=20)
    assert claimed() == [id]
    assert claimed(49) == []
    assert claimed(51, "another") == [id]


def test_what_is_given_back_is_due_at_once_but_only_by_its_holder(context):
    id = due(context)
    claimed()
    leases.release([id], "another")
    assert claimed() == []
    leases.release([id], "me")
    assert leases.next_due(NOW) == NOW
    assert claimed() == [id]


def test_next_due_passes_over_what_is_taken(context):
    due(context, -5)
    due(context, 30)
    claimed()
    assert leases.next_due(NOW) == NOW + timedelta(seconds=30)


def test_two_checkers_that_claim_at_once_never_get_the_same(context):
    ids = [due(context) for _ in range(60)]
    start = threading.Barrier(2)
    got = {"a": [], "b": []}
    faults = []

    def run(token):
        with context.app_context():
            start.wait()
            try:
                while one := claimed(token=token, limit=7):
                    got[token] += one
            except Exception as fault:
                faults.append(fault)

    threads = [threading.Thread(target=run, args=[token]) for token in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    # PostgreSQL passes over rows that the other is taking: what both missed is still there.
    rest = claimed(token="c")
    assert sorted(got["a"] + got["b"] + rest) == ids


def test_a_spec_holds_all_that_a_check_needs(context):
    id = due(
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
    )
    assert leases.specs([id, 404]) == [
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


def test_after_an_outage_of_our_own_what_could_not_be_checked_is_due(context):
    broken, fine, paused = due(context, 30), due(context, 30), due(context, 30)
    with writing() as session:
        session.get(MonitorStateRow, broken).cause_code = "network_down"
        session.get(MonitorStateRow, paused).cause_code = "network_down"
        session.get(MonitorStateRow, paused).next_check_at = None
    assert leases.due_after_outage(NOW) == 1
    assert claimed() == [broken]
    assert db.session.get(MonitorStateRow, fine).next_check_at > NOW


def test_the_pace_follows_the_monitors_that_are_watched(context):
    due(context, interval=60)
    due(context, interval=600)
    due(context, interval=60, paused=True)
    assert leases.checks_per_second() == pytest.approx(1 / 60 + 1 / 600)
    with writing() as session:
        session.query(MonitorRow).delete()
    assert leases.checks_per_second() == 0
