"""One damaged row never stops the others: it is named and left out, and the rest is processed.

Each damage is written directly into the database, as a broken disk or another program would.
"""

from __future__ import annotations

import re
import threading
from datetime import timedelta

import pytest
from sqlalchemy import select, text

from app.alerts import claims, digests, lanes
from app.alerts.chores import CHORES
from app.commands.doctor import examine
from app.db import db, unreadable, writing
from app.db.tables import IncidentRow, MaintenanceWindowRow
from app.engine import recorder
from app.records import Event
from app.stores import health
from tests.alerts.conftest import Outbox
from tests.api.conftest import Api
from tests.factories import make_key, make_monitor, make_outcome, make_person, now
from tests.support.checkers import results, running, until
from tests.web.visitor import Visitor

FAR = 900_000_000_000_000_000
BAD_TEXT = "cast(x'ff41' as text)"


@pytest.fixture
def box(app):
    return Outbox(app)


def damage(app, table, id, sql):
    with app.app_context(), writing() as session:
        session.execute(text(f"UPDATE {table} SET {sql} WHERE id = {id}"))


def named(app):
    """Table, row and field of all that cannot be read."""
    return {(damage.table, damage.id, damage.field) for damage in unreadable_in(app)}


def unreadable_in(app):
    with app.app_context():
        return list(unreadable.scan())


def faults(app):
    findings = examine(app, app.extensions["wakeful.settings"])
    return [finding.sentence for finding in findings if finding.is_problem]


def pages(app, *paths):
    visitor = Visitor(app).let_in(make_person(app, "editor"))
    return {path: visitor.open(path).status for path in paths}


# Damage of a delivery, by the field that doctor names: one of each kind; tests/db/test_types.py has
# the values of each type.
DELIVERIES = [
    ("attempts", """'[{"at": 7}]'"""),
    ("attempts", "'{broken'"),
    ("value", BAD_TEXT),
    ("created_at", FAR),
    ("next_attempt_at", -FAR),
]


@pytest.mark.parametrize(("field", "value"), DELIVERIES)
def test_a_damaged_delivery_stops_no_other_alert(box, sink, field, value):
    shops = [box.monitor(("webhook", f"{sink.url}/{n}"), name=f"Shop {n}") for n in range(3)]
    same_lane = box.monitor(("webhook", f"{sink.url}/0"), name="Shop 3")
    for shop in (*shops, same_lane):
        box.open(shop)
    hit = box.rows()[0].id
    damage(box.app, "deliveries", hit, f"{field} = {value}")
    assert ("deliveries", hit, field) in named(box.app)
    names = [str(damage) for damage in unreadable_in(box.app) if damage.table == "deliveries"]
    sentences = [
        finding.sentence for finding in examine(box.app, box.app.extensions["wakeful.settings"])
    ]
    assert all(any(sentence.startswith(name) for sentence in sentences) for name in names)
    api = Api(box.app.test_client(), make_key(box.app))
    assert len(api.get("/deliveries")["data"]) == 4
    assert api.get(f"/deliveries/{hit}")["data"]["id"] == hit
    assert set(pages(box.app, "/deliveries", f"/deliveries/{hit}", "/").values()) == {200}
    box.turn(70)
    assert [row.status for row in box.rows()][1:] == ["delivered"] * 3
    assert [len(sink.to(f"/{n}")) for n in (1, 2)] == [1, 1]
    first = box.rows()[0]
    assert first.status in ("delivered", "failed"), "it waits for nothing"
    assert first.status == "delivered" or "cannot be read" in first.reason


MONITORS = [("interval", 0), ("maintenance_end_at", FAR), ("name", BAD_TEXT), ("alerts", "x'ff41'")]


@pytest.mark.parametrize(("field", "value"), MONITORS)
def test_a_damaged_monitor_stops_no_other_check(app, settings, site, field, value):
    shops = [make_monitor(app, url=site.url, interval=3600) for _ in range(3)]
    hit, *others = [shop.id for shop in shops]
    if field == "maintenance_end_at":
        damage(app, "monitors", hit, "maintenance_start_at = 0")
    damage(app, "monitors", hit, f"{field} = {value}")
    assert ("monitors", hit, field) in named(app)
    with running(app, settings):
        for id in (hit, *others):
            until(app, lambda id=id: results(id))
    assert app.test_client().get("/readyz").json["unreadable"] == 1
    api = Api(app.test_client(), make_key(app))
    (row,) = (record for record in api.get("/monitors")["data"] if record["id"] == hit)
    assert row["status"] != "maintenance", "a window that cannot be read does not apply"
    paths = ("/monitors", f"/monitors/{hit}", "/", "/incidents")
    assert set(pages(app, *paths).values()) == {200}
    field_sent = {"name": "Mended", "interval": 60, "timeout": 10}
    assert api.data("PATCH", f"/monitors/{hit}", json=field_sent)["interval"] == 60
    assert api("DELETE", f"/monitors/{hit}").status_code == 200


WORDS = [
    ("request_method", "BREW", "GET", "method"),
    ("accepted_statuses", "all good ones", "200-399", "accepted status codes"),
    ("alert_condition", "never", "url_unavailable", "alert condition"),
    ("options", '{"starttls": "gopher"}', None, "options of its kind"),
]


@pytest.mark.parametrize(("field", "value", "default", "words"), WORDS)
def test_a_monitor_is_not_checked_by_a_word_that_nobody_chose(
    app, api, site, field, value, default, words
):
    """A method that is none was sent to the target, and its refusal opened an incident."""
    id = make_monitor(app, url=site.url, confirmations=0).id
    damage(app, "monitors", id, f"{field} = '{value}'")
    assert [finding for finding in faults(app) if finding.startswith(f"The {words} of ")]
    result = api.data("POST", f"/monitors/{id}/check")
    assert (result["verdict"], result["cause_code"]) == ("unknown", "check_error")
    assert result["cause"].endswith(f" Edit the monitor and enter the {words} again.")
    assert site.asked == 0
    renamed = api.data("PATCH", f"/monitors/{id}", json={"name": "Renamed"})
    shown = "starttls" if field == "options" else field
    assert (renamed[shown], renamed["unreadable"]) == (default, [field])
    mended = api.data("PATCH", f"/monitors/{id}", json={shown: default})
    assert mended["unreadable"] == []
    assert api.data("POST", f"/monitors/{id}/check")["verdict"] == "up"
    assert not [finding for finding in faults(app) if finding.startswith(f"The {words} of ")]


def test_the_form_names_the_words_that_nobody_chose_and_replaces_them(app):
    id = make_monitor(app).id
    for field, value, _default, _words in WORDS:
        damage(app, "monitors", id, f"{field} = '{value}'")
    visitor = Visitor(app).let_in(make_person(app, "editor"))
    visitor.open(f"/monitors/{id}/edit")
    named_in_form = re.search(r"The stored ([^.]+) cannot be read\.", visitor.text)
    assert named_in_form, visitor.text
    for _field, _value, _default, words in WORDS:
        assert words in named_in_form[1]
    assert "Delete the unreadable" not in visitor.text
    visitor.press("Save")
    assert "cannot be read" not in visitor.open(f"/monitors/{id}/edit").text
    assert not [row for row in named(app) if row[:2] == ("monitors", id)]


@pytest.mark.both_databases
@pytest.mark.parametrize(("field", "shown"), [("interval", 60), ("timeout", 30)])
def test_a_replaced_number_can_be_stored_as_it_is_shown(app, api, field, shown):
    id = make_monitor(app).id
    damage(app, "monitors", id, f"{field} = 0")
    assert api.data("PATCH", f"/monitors/{id}", json={field: shown})[field] == shown
    assert ("monitors", id, field) not in named(app)


WINDOWS = [("repeat", "'{x'"), ("zone", "'Mars/Base'"), ("start_at", FAR)]


@pytest.mark.parametrize(("field", "value"), WINDOWS)
def test_a_damaged_window_does_not_apply_and_says_so(app, api, field, value):
    shop = make_monitor(app)
    at = now()
    with app.app_context(), writing() as session:
        window = MaintenanceWindowRow(
            name="Night",
            start_at=at - timedelta(hours=1),
            end_at=at + timedelta(hours=1),
            created_at=at,
            updated_at=at - timedelta(hours=2),
        )
        session.add(window)
        session.flush()
        id = window.id
    damage(app, "maintenance_windows", id, f"{field} = {value}")
    assert ("maintenance_windows", id, field) in named(app)
    assert app.test_client().get("/readyz").json["unreadable"] == 1
    with app.app_context():
        for _ in range(shop.confirmations + 1):
            recorder.record([(shop.id, make_outcome("down"))], now())
        assert db.session.scalar(select(IncidentRow.id)), "the monitor is not in maintenance"
    (listed,) = api.get("/maintenance-windows")["data"]
    assert listed["unreadable"] == [field]
    for path in ("/monitors", "/overview", f"/monitors/{shop.id}/statistics"):
        assert api.get(path), path
    visitor = Visitor(app).let_in(make_person(app, "editor"))
    for path in ("/maintenance", f"/maintenance/{id}"):
        assert "cannot be read" in visitor.open(path).text, path
    assert visitor.open(f"/maintenance/{id}/edit").status == 200
    whole = {"repeat": "none", "zone": "UTC"}
    whole |= {"start_at": "2026-11-21T08:00:00Z", "end_at": "2026-11-21T09:00:00Z"}
    assert api.data("PATCH", f"/maintenance-windows/{id}", json=whole)["unreadable"] == []
    damage(app, "maintenance_windows", id, f"{field} = {value}")
    assert api("DELETE", f"/maintenance-windows/{id}").status_code == 200


@pytest.mark.parametrize("data", ["'{broken'", """'{"warnings": 7}'"""])
def test_results_with_a_damaged_context_lose_only_the_context(app, api, data):
    shop = make_monitor(app)
    with app.app_context():
        recorder.record([(shop.id, make_outcome("up", ip="192.0.2.1"))], now())
    damage(app, "result_contexts", 1, f"data = {data}")
    (record,) = api.get(f"/monitors/{shop.id}/results")["data"]
    assert (record["verdict"], record["ip"]) == ("up", None)
    assert ("result_contexts", 1, "data") in named(app)


@pytest.mark.parametrize("value", ["x'ff41'", FAR])
def test_a_damaged_result_hides_no_other(app, api, value):
    shops = [make_monitor(app), make_monitor(app)]
    fields = ("verdict", "response_time", "covers_s", "dns", "status_code", "maintenance")
    damaged = ", ".join(f"{field} = {value}" for field in fields)
    with app.app_context():
        recorder.record([(shop.id, make_outcome("up")) for shop in shops], now())
        with writing() as session:
            session.execute(text(f"UPDATE results SET {damaged} WHERE monitor_id = 1"))
            session.execute(text("UPDATE monitor_states SET verdict = 'junk' WHERE monitor_id = 1"))
    assert len(api.get("/monitors")["data"]) == 2
    for path in ("results", "statistics"):
        assert api.get(f"/monitors/1/{path}")["data"]
    assert set(pages(app, "/monitors", "/monitors/1", "/reports").values()) == {200}
    with app.app_context():
        record = recorder.record([(shop.id, make_outcome("up")) for shop in shops], now())
    assert all(record), "the next results of both are recorded"


def test_a_key_with_damaged_networks_is_refused_everywhere(app):
    secret = make_key(app, networks="192.0.2.0/24")
    damage(app, "api_keys", 1, "networks = '192.0.2.0/x'")
    headers = {"Authorization": f"Bearer {secret}"}
    for address in ("127.0.0.1", "192.0.2.1"):
        environ = {"REMOTE_ADDR": address}
        answer = app.test_client().get("/api/v1/me", headers=headers, environ_overrides=environ)
        assert answer.status_code == 403
    assert ("api_keys", 1, "networks") in named(app)


def overwrite_root(app, table):
    """Garbage in place of a table's first page."""
    with app.app_context():
        page = db.session.scalar(
            text("SELECT rootpage FROM sqlite_master WHERE name = :name"), {"name": table}
        )
        size = db.session.scalar(text("PRAGMA page_size"))
        db.session.rollback()
        with db.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        path = db.engine.url.database
        db.session.remove()
        db.engine.dispose()
    with open(path, "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)


def test_doctor_readyz_and_every_answer_report_a_damaged_file(app, api):
    shop = make_monitor(app)
    overwrite_root(app, "results")
    damaged = "The database file is damaged. Restore a backup."
    answer = api("GET", f"/monitors/{shop.id}/results")
    assert (answer.status_code, answer.json["message"]) == (503, damaged)
    assert "Retry-After" not in answer.headers, "it does not pass by itself"
    visitor = Visitor(app).let_in(make_person(app))
    assert damaged in visitor.open(f"/monitors/{shop.id}").text
    ready = app.test_client().get("/readyz")
    assert (ready.status_code, ready.json["faults"]) == (503, [damaged])
    assert any(finding.startswith(damaged) for finding in faults(app)), faults(app)


def test_dropped_results_do_not_count_as_checks(app, settings, site):
    """Otherwise /readyz shows a fresh last check while nothing is recorded."""
    make_monitor(app, url=site.url)
    overwrite_root(app, "results")
    with running(app, settings) as checker:
        until(app, lambda: site.asked)
        until(app, lambda: not checker._outcomes.unrecorded())
    assert checker._outcomes.last_check_at is None
    with app.app_context():
        assert health.health(now()).faults


def test_doctor_reports_that_an_intact_file_is_intact(app):
    findings = examine(app, app.extensions["wakeful.settings"])
    assert "SQLite finds no damage." in [finding.sentence for finding in findings]


class Stubborn:
    """An unforeseen error when the rows of one event are read."""

    def __init__(self, monkeypatch, event, whole_lane=False):
        self.times = 0
        real = lanes.decide_next

        def decide(rows, *arguments):
            if any(row.event == event for row in rows):
                self.times += 1
                if not (whole_lane and len(rows) == 1):
                    raise LookupError("nobody has foreseen this")
            return real(rows, *arguments)

        monkeypatch.setattr(lanes, "decide_next", decide)


def test_a_row_that_stops_its_lane_is_given_up_and_the_lane_goes_on(box, sink, monkeypatch):
    shop = box.monitor(("webhook", f"{sink.url}/hook"))
    box.tell(Event.TEST, shop)
    box.open(shop)
    Stubborn(monkeypatch, Event.TEST)
    box.turn(5)
    box.turn(5)
    assert [row.status for row in box.rows()] == ["failed", "delivered"]
    assert box.rows()[0].reason == "Not sent: a fault in Wakeful (LookupError)."


def test_a_lane_that_fails_as_a_whole_stops_no_other_and_ends_the_heartbeat(
    box, sink, monkeypatch, caplog
):
    shop = box.monitor(("webhook", f"{sink.url}/hook"))
    other = box.monitor(("webhook", f"{sink.url}/other"))
    box.tell(Event.TEST, shop)
    box.open(shop)
    box.open(other)
    fault = Stubborn(monkeypatch, Event.TEST, whole_lane=True)
    box.turn(5)
    assert len(sink.to("/other")) == 1
    signs = []
    monkeypatch.setattr(box.worker, "_write_sign_of_life", lambda: signs.append(1))
    before = fault.times
    for _ in range(5):
        box.tell(Event.CERTIFICATE_EXPIRING, other, extra={"days_left": 3})  # this lane works
        box.turn(2)
    assert fault.times > before + 4, "it is tried again"
    assert not signs, "/readyz must not take this worker for one that works"
    errors = [record for record in caplog.records if "could not send in lane" in record.message]
    assert len(errors) == 1, "each second the same would hide everything else in the log"
    assert [row.status for row in box.rows()][:2] == ["pending", "pending"]


def test_the_chores_of_the_outbox_do_not_stop_what_is_due(box, sink, monkeypatch):
    def broken(*_arguments):
        raise LookupError("nobody has foreseen this")

    monkeypatch.setattr("app.alerts.worker.CHORES", [(what, broken, do) for what, _, do in CHORES])
    monkeypatch.setattr(digests, "put_on_hold", broken)
    box.open(box.monitor(("webhook", f"{sink.url}/hook")))
    box.turn(5)
    assert len(sink.to("/hook")) == 1


def test_a_chore_that_was_done_before_the_lock_is_not_done_again(box, monkeypatch):
    work, done = [[1]], []
    chore = ("", lambda *_: work.pop() if work else [], lambda *_: done.append(1))
    monkeypatch.setattr("app.alerts.worker.CHORES", [chore])
    box.open(box.monitor(("webhook", "https://hooks.example/")))  # so that there is work
    box.turn(1)
    assert (work, done) == ([], [])


def test_a_failed_turn_does_not_count_for_the_watchdog(box, monkeypatch):
    """A fault of ours that a restart may mend ends the worker; see app/commands/watchdog.py."""
    stop, turns = threading.Event(), []
    monkeypatch.setattr("app.alerts.worker.RETRY_SECONDS", 0.0)
    box.worker.on_turn = lambda: turns.append("turned")

    def due(*_arguments):
        turns.append("failed")
        if len(turns) == 3:
            stop.set()
        raise LookupError("nobody has foreseen this")

    box.open(box.monitor(("webhook", "https://hooks.example/")))  # so that there is work
    monkeypatch.setattr(claims, "due_lanes", due)
    box.worker.run(stop)
    assert turns == ["failed"] * 3
