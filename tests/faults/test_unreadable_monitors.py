"""A monitor whose secrets cannot be read is not checked and says why. All others are checked, and
it can be corrected through the API and on the dashboard.
"""

from datetime import timedelta

import pytest
from sqlalchemy import select

from app.alerts import targets
from app.db import db, writing
from app.db.tables import DeliveryRow, DomainRow, IncidentRow, MonitorEvidenceRow, MonitorRow
from app.engine import domains, recorder
from app.records import SECRET_FIELDS, Event
from app.rules.unreadable import NOBODY_NOTIFIED
from app.stores import current_store
from tests.factories import make_incident, make_monitor, make_outcome, make_person, now
from tests.faults.broken import corrupt, raw_value
from tests.support.checkers import results, running, until
from tests.web.visitor import Visitor

ALERTS = [["email", "ops@example.test"]]
SECRETS = {
    "request_headers": [["X-Token", "a secret header"]],
    "request_auth_username": "shop",
    "request_auth_password": "a secret password",
    "request_body": "a secret body",
}
CHECKED = [
    (MonitorRow.request_headers, "null"),
    (MonitorRow.request_auth_password, "truncated"),
    (MonitorRow.request_body, "another key"),
]
# A value of each field, as the API takes it.
ANEW = {
    "request_headers": {"request_headers[0][key]": "X-Token", "request_headers[0][value]": "new"},
    "request_auth_password": {"request_auth_password": "new"},
    "request_body": {"request_body": "new"},
    "alerts": {"alerts[0][key]": "email", "alerts[0][value]": "new@example.test"},
}
ALL = [*CHECKED, (MonitorRow.alerts, "another shape")]


def named(param):
    return param if isinstance(param, str) else param.key


@pytest.fixture
def visitor(app):
    return Visitor(app).let_in(make_person(app, "editor"))


def open_incident(app, monitor):
    """The checks of an outage do this."""
    with app.app_context():
        for _ in range(monitor.confirmations + 1):
            recorder.record([(monitor.id, make_outcome("down"))], now())
        return db.session.scalar(select(IncidentRow.id).where(IncidentRow.ended_at.is_(None)))


@pytest.mark.parametrize(("column", "kind"), CHECKED, ids=named)
def test_its_neighbours_are_checked_and_so_is_it_once_it_is_corrected(
    app, settings, site, api, column, kind, caplog
):
    # An hour between checks: with a minute, one of them may be due again meanwhile.
    broken = make_monitor(app, url=site.url, interval=3600, **SECRETS)
    others = [make_monitor(app, url=site.url, interval=3600).id for _ in range(3)]
    corrupt(app, column, broken.id, kind)
    with running(app, settings):
        for id in (broken.id, *others):
            until(app, lambda id=id: results(id))
    with app.app_context():
        assert [results(id)[0].verdict for id in others] == ["up"] * 3
        result = results(broken.id)[0]
        assert (result.verdict, result.cause_code) == ("unknown", "check_error")
        assert result.cause.startswith("Not checked: the stored ")
        words = SECRET_FIELDS[column.key]
        assert result.cause.endswith(
            f" Edit the monitor and enter the {words} again, or remove the {words}."
        )
        assert not db.session.scalars(select(IncidentRow)).all()
    assert site.asked == 3, "nothing was sent with a secret missing"
    assert f"Monitor {broken.id}: Not checked: the stored " in caplog.text
    assert "is not checked" not in caplog.text, "it is said once"
    assert api.data("POST", f"/monitors/{broken.id}/check")["cause_code"] == "check_error"
    with running(app, settings):
        api.data("PATCH", f"/monitors/{broken.id}", data=ANEW[column.key])
        until(app, lambda: results(broken.id)[-1].verdict == "up")


@pytest.mark.parametrize(("column", "kind"), ALL, ids=named)
def test_the_api_names_the_field_and_corrects_empties_or_deletes_it(app, api, column, kind):
    neighbour = make_monitor(app, alerts=ALERTS)
    broken = make_monitor(app, alerts=ALERTS, **SECRETS)
    corrupt(app, column, broken.id, kind)
    listed = {record["id"]: record for record in api.get("/monitors")["data"]}
    assert listed[neighbour.id]["unreadable"] == []
    assert listed[broken.id]["unreadable"] == [column.key]
    assert api.data("GET", f"/monitors/{broken.id}") == listed[broken.id] | {"notes": ""}
    empty = {"request_headers": [], "alerts": [], "request_body": None}
    if column.key in empty:
        assert listed[broken.id][column.key] == empty[column.key]
    assert listed[broken.id]["request_auth_password_set"] is True

    path, before = f"/monitors/{broken.id}", raw_value(app, column, broken.id)
    changed = api.data("PUT", path, data={"name": "Renamed"})
    assert (changed["name"], changed["unreadable"]) == ("Renamed", [column.key])
    assert raw_value(app, column, broken.id) == before, "another key may still read it"
    assert api.data("PATCH", path, data=ANEW[column.key])["unreadable"] == []
    corrupt(app, column, broken.id, kind)
    assert api.data("PATCH", path, data={column.key: ""})["unreadable"] == []
    assert raw_value(app, column, broken.id) is None
    corrupt(app, column, broken.id, kind)
    assert api("DELETE", path).status_code == 200
    assert [monitor["id"] for monitor in api.get("/monitors")["data"]] == [neighbour.id]


def test_pages_with_several_monitors_open(app, visitor):
    neighbour = make_monitor(app, name="Neighbour")
    for column, kind in ALL:
        corrupt(app, column, make_monitor(app, alerts=ALERTS, **SECRETS).id, kind)
    for path in ("/", "/wall", "/reports", f"/monitors/{neighbour.id}", "/monitors"):
        assert visitor.open(path).status == 200, path
    assert visitor.text.count("cannot be read") == len(ALL)


@pytest.mark.parametrize(("column", "kind"), ALL, ids=named)
def test_its_pages_show_it_and_the_form_removes_it_when_asked(app, visitor, api, column, kind):
    broken = make_monitor(app, name="Broken", alerts=ALERTS, **SECRETS)
    corrupt(app, column, broken.id, kind)
    for path in ("", "/clone", "/edit"):
        assert "cannot be read" in visitor.open(f"/monitors/{broken.id}{path}").text
        assert visitor.status == 200
    visitor.press("Save", name="Renamed")
    assert "Renamed saved." in visitor.text
    assert api.data("GET", f"/monitors/{broken.id}")["unreadable"] == [column.key]
    visitor.open(f"/monitors/{broken.id}/edit").press("Save", remove_unreadable=True)
    assert api.data("GET", f"/monitors/{broken.id}")["unreadable"] == []
    assert "cannot be read" not in visitor.text


def test_the_form_replaces_what_cannot_be_read(app, visitor, api):
    broken = make_monitor(app, alerts=ALERTS, **SECRETS)
    for name in ANEW:
        corrupt(app, getattr(MonitorRow, name), broken.id)
    visitor.open(f"/monitors/{broken.id}/edit")
    visitor.press(
        "Save", **{name: value for fields in ANEW.values() for name, value in fields.items()}
    )
    mended = api.data("GET", f"/monitors/{broken.id}")
    assert mended["unreadable"] == []
    assert mended["alerts"] == [{"key": "email", "value": "new@example.test"}]
    assert mended["request_headers"] == [{"key": "X-Token", "value": "new"}]
    assert mended["request_body"] == "new"


def test_a_clone_asks_for_the_password_that_cannot_be_read(app, visitor, api):
    broken = make_monitor(app, **SECRETS)
    corrupt(app, MonitorRow.request_auth_password, broken.id)
    visitor.open(f"/monitors/{broken.id}/clone").press("Save")
    assert visitor.status == 422
    assert "Enter it again, or remove it." in visitor.text
    visitor.press("Save", remove_unreadable=True)
    assert "saved." in visitor.text
    clone = api.get("/monitors")["data"][0]
    assert (clone["unreadable"], clone["request_auth_password_set"]) == ([], False)


def test_a_test_before_saving_does_not_go_out_without_its_password(app, site, visitor):
    broken = make_monitor(app, url=site.url, **SECRETS)
    corrupt(app, MonitorRow.request_auth_password, broken.id)
    visitor.open(f"/monitors/{broken.id}/edit").press("Check now")
    assert "the stored password cannot be read" in visitor.text
    assert site.asked == 0


def test_bulk_actions_include_it(app, visitor, api):
    ids = [make_monitor(app, alerts=ALERTS).id for _ in range(2)]
    corrupt(app, MonitorRow.alerts, ids[0])
    visitor.open("/monitors").press("Apply", ids=str(ids[0]), action="interval", interval="300")
    assert api.data("GET", f"/monitors/{ids[0]}")["interval"] == 300


def test_an_incident_opens_without_alerts_and_says_so(app, visitor, api, monkeypatch):
    monkeypatch.setattr(targets, "CACHE_SECONDS", 0.0)
    shop = make_monitor(app, name="Shop", alerts=ALERTS)
    assert "Nobody would be alerted" not in visitor.open("/").text
    ended = make_incident(app, shop, ended_at=now(), comment="Seen.")
    corrupt(app, MonitorRow.alerts, shop.id, "another shape")
    assert "Nobody would be alerted about Shop" in visitor.open("/").text
    assert "Edit the monitor and enter its alerts again." in visitor.text
    reopened = api.data("PATCH", f"/incidents/{ended.id}", data={"ended_at": ""})
    assert reopened["comment"].endswith(NOBODY_NOTIFIED)
    assert api("DELETE", f"/incidents/{ended.id}").status_code == 200
    by_hand = {"monitor_id": str(shop.id), "started_at": "2026-01-01T08:00:00"}
    by_hand = api.data("POST", "/incidents", data=by_hand)
    assert (by_hand["ended_at"], by_hand["comment"]) == (None, NOBODY_NOTIFIED)
    assert api("DELETE", f"/incidents/{by_hand['id']}").status_code == 200
    id = open_incident(app, shop)
    answer = api.data("GET", f"/incidents/{id}")
    assert answer["comment"] == NOBODY_NOTIFIED
    assert answer["evidence"]["failing"]["verdict"] == "down"
    with app.app_context():
        assert not db.session.scalars(select(DeliveryRow)).all()
    assert "Nobody was alerted when this began" in visitor.open(f"/incidents/{id}").text
    tested = api("POST", f"/monitors/{shop.id}/test-alert")
    assert tested.status_code == 409
    assert "alerts" in tested.json["message"]

    with app.app_context():
        assert [monitor.id for monitor in current_store().channels.unreadable_alerts()] == [shop.id]
        api.data("PATCH", f"/monitors/{shop.id}", data=ANEW["alerts"])
        assert list(current_store().channels.unreadable_alerts()) == [], "although it is cached"
        assert "Nobody would be alerted" not in visitor.open("/").text
        for _ in range(2):
            recorder.record([(shop.id, make_outcome("up"))], now())
        events = db.session.scalars(select(DeliveryRow.event)).all()
    assert events == [], "who was entered since was not told of the beginning"


@pytest.mark.parametrize("column", [MonitorEvidenceRow.last_good, MonitorEvidenceRow.failing],
                         ids=named)  # fmt: skip
@pytest.mark.parametrize("kind", ["truncated", "null"])
def test_an_incident_opens_without_the_evidence_that_cannot_be_read(app, api, column, kind):
    shop, neighbour = (make_monitor(app, alerts=ALERTS, confirmations=1) for _ in range(2))
    with app.app_context():
        for monitor in (shop, neighbour):
            recorder.record([(monitor.id, make_outcome("up"))], now())
            recorder.record([(monitor.id, make_outcome("down"))], now())
    corrupt(app, column, shop.id, kind)
    with app.app_context():
        both = [(monitor.id, make_outcome("down")) for monitor in (shop, neighbour)]
        recorded = recorder.record(both, now())
    assert None not in recorded
    kept = {record["monitor_id"]: record["evidence"] for record in api.get("/incidents")["data"]}
    assert kept[neighbour.id]["last_good"]["verdict"] == "up"
    assert kept[shop.id]["failing"]["verdict"] == "down"
    if column.key == "last_good":
        assert kept[shop.id]["last_good"] is None
    with app.app_context():
        assert len(db.session.scalars(select(DeliveryRow)).all()) == 2
    assert api.data("GET", f"/monitors/{shop.id}/certificates")["certificates"] == []


@pytest.mark.parametrize("kind", ["truncated", "another shape"])
def test_an_incident_whose_evidence_cannot_be_read_is_listed_shown_and_changed(
    app, api, visitor, kind
):
    shop = make_monitor(app, alerts=ALERTS)
    id = open_incident(app, shop)
    neighbour = make_incident(app, make_monitor(app), evidence={"failing": {"cause": "Refused."}})
    corrupt(app, IncidentRow.evidence, id, kind)
    listed = {record["id"]: record for record in api.get("/incidents")["data"]}
    assert (listed[id]["evidence"], listed[id]["unreadable"]) == (None, ["evidence"])
    assert listed[neighbour.id]["evidence"] == {"failing": {"cause": "Refused."}}
    assert listed[neighbour.id]["unreadable"] == []
    visitor.open(f"/incidents/{id}")
    assert "The stored evidence of this incident cannot be read." in visitor.text
    assert visitor.open(f"/monitors/{shop.id}").status == 200
    ended = api.data("PATCH", f"/incidents/{id}", data={"ended_at": f"{now():%Y-%m-%dT%H:%M:%S}"})
    assert ended["status"] == "resolved"


def test_an_expiry_is_alerted_once_the_alerts_can_be_read_again(app, api):
    days = {"ssl_alert_days": 30, "domain_alert_days": 30}
    shop, neighbour = (
        make_monitor(app, alerts=ALERTS, state={"domain": "x.test"}, **days) for _ in range(2)
    )
    corrupt(app, MonitorRow.alerts, shop.id)
    soon = now() + timedelta(days=3)

    def look():
        with app.app_context():
            with writing() as session:
                session.merge(DomainRow(domain="x.test", expires_at=soon))
            domains.alert_expiring(now())
            for monitor in (shop, neighbour):
                outcome = make_outcome("up", ssl_expires_at=soon, ssl_fingerprint="ab" * 32)
                recorder.record([(monitor.id, outcome)], now())
            rows = db.session.execute(select(DeliveryRow.monitor_id, DeliveryRow.event)).all()
            return sorted(tuple(row) for row in rows)

    both = [Event.CERTIFICATE_EXPIRING, Event.DOMAIN_EXPIRING]
    assert look() == [(neighbour.id, event) for event in both]
    api.data("PATCH", f"/monitors/{shop.id}", data=ANEW["alerts"])
    assert look() == sorted((monitor.id, event) for monitor in (shop, neighbour) for event in both)


def test_a_recovery_goes_to_those_who_were_alerted_to_the_outage(app, api):
    shop = make_monitor(app, alerts=ALERTS)
    open_incident(app, shop)
    corrupt(app, MonitorRow.alerts, shop.id)
    with app.app_context():
        for _ in range(2):
            recorder.record([(shop.id, make_outcome("up"))], now())
        rows = db.session.scalars(select(DeliveryRow).order_by(DeliveryRow.id)).all()
        deliveries = [(row.event, row.channel, row.value) for row in rows]
    pairs = [tuple(pair) for pair in ALERTS]
    assert deliveries == [
        *(("incident.opened", *pair) for pair in pairs),
        *(("incident.resolved", *pair) for pair in pairs),
    ]
