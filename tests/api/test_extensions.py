"""Our own resources (decision 11), and the paths for monitoring this instance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.alerts import outbox
from app.db import db, journal, places, writing
from app.db.tables import DeliveryRow, SignOfLifeRow
from tests.factories import make_monitor

RESULT = [
    "id", "monitor_id", "checked_at", "verdict", "cause_code", "cause", "status_code",
    "response_time", "timings", "ip", "http_version", "redirects", "warnings", "location",
    "maintenance",
]  # fmt: skip
STATISTICS = ("uptime", "downtime", "incidents", "mttr", "response_time", "buckets")


@pytest.fixture
def target(httpserver):
    httpserver.expect_request("/").respond_with_data("All is well")
    return httpserver.url_for("/")


def test_a_check_now_is_recorded_and_counts(api, target):
    path = f"/monitors/{api.monitor(url=target)['id']}"
    result = api.data("POST", path + "/check")
    (place,) = result.pop("places")
    assert list(result) == RESULT
    assert place == {"name": "default", "label": None, "result": result, "message": None}
    assert (result["verdict"], result["status_code"], result["ip"]) == ("up", 200, "127.0.0.1")
    assert list(result["timings"]) == ["dns", "connect", "tls", "ttfb", "download"]
    assert api.get(path + "/results")["data"] == [result]
    monitor = api.get(path)["data"]
    assert (monitor["status"], monitor["last_checked_at"]) == ("up", result["checked_at"])
    assert api.get(path + "/results", verdict="down")["data"] == []
    assert api.get(path + "/results", to="2020-01-01T00:00:00")["data"] == []
    statistics = api.get(path + "/statistics", range="7d")["data"]
    assert set(STATISTICS) <= set(statistics)
    assert statistics["response_time"]["max"] == result["response_time"]


def test_a_paused_monitor_can_be_checked_without_counting(api, target):
    path = f"/monitors/{api.monitor(url=target)['id']}"
    api.data("PATCH", path, data={"pause": "1"})
    assert api.data("POST", path + "/check")["verdict"] == "up"
    assert api.get(path)["data"]["status"] == "paused"


def test_a_check_of_unsaved_fields_stores_nothing(api, target):
    result = api.data("POST", "/checks", data={"url": target})
    assert list(result) == RESULT
    assert (result["verdict"], result["id"], result["monitor_id"]) == ("up", None, None)
    result = api.data(
        "POST",
        "/checks",
        json={"url": target, "alert_condition": "url_text", "alert_text_lookup": "well"},
    )
    assert (result["verdict"], result["cause_code"]) == ("down", "text_found")
    assert api.get("/monitors")["data"] == []
    assert api.get("/incidents")["data"] == []


ASSERTED = [
    {"source": "status", "op": "=", "value": 200},
    {"source": "body", "op": "contains", "value": "well"},
    {"source": "header", "property": "X-Auth-Token", "op": "=", "value": "a very long secret"},
]


def test_section_19_assertions_are_stored_as_sent_judged_and_in_the_incident(api, reader, target):
    monitor = api.data("POST", "/monitors", json={
        "name": "Shop", "url": target, "interval": 60, "confirmations": 0, "assertions": ASSERTED,
    })  # fmt: skip
    stored = [{"property": None, **row, "value": str(row["value"])} for row in ASSERTED]
    assert monitor["assertions"] == stored
    shown = reader.data("GET", f"/monitors/{monitor['id']}")["assertions"]
    assert [row["value"] for row in shown] == ["200", "well", "••••cret"]

    path = f"/monitors/{monitor['id']}"
    result = api.data("POST", path + "/check")
    assert (result["verdict"], result["cause_code"]) == ("down", "assertion_failed")
    assert result["cause"] == 'Header X-Auth-Token is missing, expected "••••cret"'
    outcomes = [("200", "200", True), ("well", "All is well", True), ("••••cret", None, False)]
    checked = [
        {**row, "value": value, "found": text, "ok": ok}
        for row, (value, text, ok) in zip(stored, outcomes, strict=True)
    ]
    assert result["assertions"] == checked
    (incident,) = api.get("/incidents")["data"]
    failing = api.data("GET", f"/incidents/{incident['id']}")["evidence"]["failing"]
    assert failing["assertions"] == checked
    assert "assertions" not in api.get(path + "/results")["data"][0]

    # A mask keeps the stored value; an index replaces the whole list; sent empty, it is cleared.
    sent = [{**shown[2]}, {"source": "status", "op": "<", "value": 300}]
    changed = api.data("PATCH", path, json={"assertions": sent})["assertions"]
    assert [row["value"] for row in changed] == ["a very long secret", "300"]
    assert api.data("PATCH", path, data={"assertions": ""})["assertions"] == []
    bad = {"assertions[5][source]": "banner", "assertions[5][op]": "exists"}
    assert list(api.errors("PATCH", path, data=bad)) == ["assertions.5.source"]


@pytest.mark.settings(allow_networks="")
def test_section_9_a_target_that_policy_blocks_is_stored_and_unknown(api, target):
    path = f"/monitors/{api.monitor(url=target)['id']}"
    result = api.data("POST", path + "/check")
    assert (result["verdict"], result["cause_code"]) == ("unknown", "blocked_by_policy")


def test_a_monitor_has_its_last_hours_if_they_are_requested(api, target):
    api.data("POST", f"/monitors/{api.monitor(url=target)['id']}/check")
    assert "hours" not in api.get("/monitors")["data"][0]
    answer = api.get("/monitors", hours="true")
    (monitor,) = answer["data"]
    assert len(monitor["hours"]) == 24
    assert list(monitor["hours"][0]) == [
        "start", "up", "down", "unknown", "maintenance", "degraded", "response_time",
    ]  # fmt: skip
    assert "hours=true" in answer["links"]["first"]
    assert list(api.errors("GET", "/monitors?hours=all")) == ["hours"]


@pytest.mark.both_databases
def test_a_report_has_the_figures_of_monitors_between_two_hours(api):
    first, second = api.monitor()["id"], api.monitor()["id"]
    times = {"started_at": "2026-03-01T10:00:00", "ended_at": "2026-03-01T10:30:00"}
    api.data("POST", "/incidents", data={"monitor_id": first, **times})
    month = {"from": "2026-03-01T00:00:00", "to": "2026-04-01T00:00:00"}
    report = api.get("/report", **month)["data"]
    assert (report["from"], report["to"]) == ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z")
    assert {monitor["id"]: monitor["incidents"] for monitor in report["monitors"]} == {
        first: 1,
        second: 0,
    }
    assert (report["all"]["incidents"], report["all"]["longest"]) == (1, 1800)
    assert report["all"]["uptime"] is None, "nothing was checked"
    chosen = api.get("/report", **month, monitors=f"{second},{second},999")["data"]
    assert [monitor["id"] for monitor in chosen["monitors"]] == [second]
    assert chosen["all"]["incidents"] == 0


def test_a_report_takes_parameters_up_to_their_limits_and_names_what_is_beyond(api):
    day = "from=2026-03-01T00:00:00&to=2026-03-02T00:00:00"
    for query in (
        "from=2025-03-01T00:00:00&to=2026-03-02T00:00:00",  # 366 days
        "from=2026-03-01T00:00:00&to=2026-03-01T01:00:00",
        f"{day}&monitors={','.join(map(str, range(1, 501)))}",
        f"{day}&monitors={2**63 - 1}",
    ):
        assert api("GET", f"/report?{query}").status_code == 200
    for query, faulty in (
        ("", ["from", "to"]),
        ("from=2026-03-01T00:00:00&to=2026-03-01T00:00:00", ["to"]),
        ("from=2026-03-01T00:30:00&to=2026-03-01T02:00:01", ["from", "to"]),
        ("from=2025-03-01T00:00:00&to=2026-03-02T01:00:00", ["to"]),  # an hour more
        (f"{day}&monitors=1,x", ["monitors"]),
        (f"{day}&monitors=1,,2", ["monitors"]),
        (f"{day}&monitors=0", ["monitors"]),
        (f"{day}&monitors={2**63}", ["monitors"]),
        (f"{day}&monitors={','.join(map(str, range(1, 502)))}", ["monitors"]),
    ):
        assert list(api.errors("GET", f"/report?{query}")) == faulty


def test_an_incident_is_classified_by_a_word_or_by_none(api):
    times = {"started_at": "2026-03-01T10:00:00", "ended_at": "2026-03-01T10:30:00"}
    fields = {"monitor_id": api.monitor()["id"], **times}
    assert list(api.errors("POST", "/incidents", data={**fields, "classification": "maintenance"}))
    incident = api.data("POST", "/incidents", data=fields)
    assert (incident["classification"], incident["by_hand"]) == (None, True)
    path = f"/incidents/{incident['id']}"
    for sent, kept in (("false_alarm", "false_alarm"), ("maintenance", "maintenance"), ("", None)):
        changed = api.data("PATCH", path, data={"classification": sent})
        assert changed["classification"] == kept
    assert list(api.errors("PATCH", path, data={"classification": "oops"})) == ["classification"]


def test_results_and_statistics_refuse_unknown_parameters(api):
    path = f"/monitors/{api.monitor()['id']}"
    assert list(api.errors("GET", path + "/results?verdict=broken")) == ["verdict"]
    assert list(api.errors("GET", path + "/results?from=2026-01-01")) == ["from"]
    assert api.get(path + "/results", location="x" * 64)["data"] == []
    assert list(api.errors("GET", path + "/results?location=" + "x" * 65)) == ["location"]
    assert list(api.errors("GET", path + "/statistics?range=1y")) == ["range"]
    start, end = "2026-11-01T00:00:00", "2026-11-02T00:00:00"
    for query, field in (
        (f"from={start}", "to"),
        (f"to={end}", "from"),
        (f"from={end}&to={start}", "to"),
        (f"from=2024-01-01T00:00:00&to={end}", "to"),
        (f"from={start}&to={end}&range=24h", "range"),
        ("from=2999-01-01T00:00:00&to=2999-01-02T00:00:00", "from"),
        ("from=yesterday&to=today", "from"),
    ):
        assert field in api.errors("GET", f"{path}/statistics?{query}")
    assert list(api.errors("POST", path + "/check", data={"url": "http://x/"})) == ["url"]
    for tail in ("/results", "/statistics"):
        assert api("GET", f"/monitors/{10**40}{tail}").status_code == 404


def test_actions_need_a_key_with_write_scope(reader):
    for path in ("/monitors/1/check", "/checks", "/monitors/1/test-alert", "/alerts/test"):
        assert reader("POST", path).status_code == 403


def test_a_test_alert_goes_to_every_channel_and_its_deliveries_are_shown(app, api):
    channels = {
        "alerts[0][key]": "email",
        "alerts[0][value]": "somebody@shop.example",
        "alerts[1][key]": "webhook",
        "alerts[1][value]": "http://127.0.0.1:9/hook/secret",
    }
    monitor = api.monitor(**channels)
    ids = api.data("POST", f"/monitors/{monitor['id']}/test-alert")["deliveries"]
    listed = api.get("/deliveries", monitor_id=monitor["id"])["data"]
    assert sorted(row["id"] for row in listed) == sorted(ids)
    assert {row["channel"] for row in listed} == {"email", "webhook"}
    shown = api.get(f"/deliveries/{ids[0]}")["data"]
    assert shown["message"]
    assert shown | {"message": None} in listed
    assert (shown["event"], shown["status"], shown["attempts"]) == ("test", "pending", [])
    assert "secret" not in str(listed)
    assert api.get("/deliveries", channel="sms")["data"] == []
    assert api.get("/deliveries", status="failed")["data"] == []
    with app.app_context(), writing():
        db.session.get(DeliveryRow, ids[0]).status = "failed"
    assert api.data("POST", f"/deliveries/{ids[0]}/retry")["status"] == "pending"
    assert api("GET", "/deliveries/999").status_code == 404


def test_channels_that_are_not_saved_can_be_tested(api):
    email = {"alerts[3][key]": "email", "alerts[3][value]": "ops@shop.example"}
    ids = api.data("POST", "/alerts/test", data=email)["deliveries"]
    shown = api.get(f"/deliveries/{ids[0]}")["data"]
    assert (shown["event"], shown["channel"], shown["monitor_id"]) == ("test", "email", None)
    monitor = api.monitor()
    ids = api.data("POST", "/alerts/test", data=email | {"monitor_id": monitor["id"]})["deliveries"]
    assert api.get(f"/deliveries/{ids[0]}")["data"]["monitor_id"] == monitor["id"]
    for sent, faulty in (
        ({}, "alerts"),
        ({"alerts": ""}, "alerts"),
        (email | {"alerts[3][value]": "nobody"}, "alerts.3.value"),
        (email | {"alerts[3][value]": "••••mple"}, "alerts.3.value"),
        (email | {"monitor_id": 10**12}, "monitor_id"),
        (email | {"name": "x"}, "name"),
    ):
        assert list(api.errors("POST", "/alerts/test", data=sent)) == [faulty], sent


WINDOW = {"name": "Release", "start_at": "2026-01-01T00:00:00", "end_at": "2026-01-01T01:00:00"}


def test_maintenance_windows_are_stored_shown_updated_and_deleted(api):
    ids = [api.monitor()["id"] for _ in range(2)]
    sent = WINDOW | {"monitors[0]": ids[1], "monitors[1]": ids[0], "repeat": "daily"}
    window = api.data("POST", "/maintenance-windows", data=sent)
    path = f"/maintenance-windows/{window['id']}"
    assert sorted(window.pop("monitors")) == ids
    assert window.pop("created_at") == window.pop("updated_at")
    assert window == {
        "id": window["id"], "name": "Release", "start_at": "2026-01-01T00:00:00Z",
        "end_at": "2026-01-01T01:00:00Z", "repeat": "daily", "repeat_until": None, "tags": [],
        "unreadable": [], "zone": "UTC", "public": False, "public_name": None, "public_text": None,
    }  # fmt: skip
    assert list(api.errors("PATCH", path, json={"zone": "Mars/Base"})) == ["zone"]
    changed = {"monitors": [], "name": "New", "zone": "Europe/Berlin", "public": True}
    updated = api.data("PATCH", path, json=changed)
    assert changed.items() <= updated.items()
    assert updated["repeat"] == "daily"
    assert list(api.errors("PATCH", path, json={"end_at": WINDOW["start_at"]})) == ["end_at"]
    assert list(api.errors("PATCH", path, json={"monitors": [ids[0], 999]})) != []
    assert api.get("/maintenance-windows")["data"] == [updated]
    assert api("DELETE", path).json == {
        "id": window["id"],
        "object": "maintenance-window",
        "deleted": True,
        "status": 200,
    }
    assert api.get("/maintenance-windows")["meta"]["total"] == 0


def test_healthz_and_readyz_need_no_key_and_readyz_says_what_is_wrong(app, client):
    assert client.get("/healthz").json == {"status": "ok"}
    fresh = client.get("/readyz")
    assert (fresh.status_code, fresh.json["status"]) == (200, "ready")
    now = datetime.now(UTC)
    with app.app_context(), writing() as session:
        session.add(SignOfLifeRow(name="checker:here:1", at=now, last_check_at=now))
    ready = client.get("/readyz").json
    assert ready["status"] == "ready"
    assert 0 <= ready["last_check_age"] < 60
    with app.app_context(), writing() as session:
        session.get(SignOfLifeRow, "checker:here:1").at = now - timedelta(minutes=5)
    silent = client.get("/readyz")
    assert (silent.status_code, silent.json["faults"]) == (503, ["No checker is running."])
    with app.app_context(), writing() as session:
        session.add(SignOfLifeRow(name="checker:here:2", at=now))
    assert client.get("/readyz").status_code == 200, "another one lives"
    with app.app_context(), writing() as session:
        session.get(SignOfLifeRow, "checker:here:2").ended_at = now
    ended = client.get("/readyz")
    assert (ended.status_code, ended.json["faults"]) == (503, ["No checker is running."])
    assert ended.json["heartbeat_age"] < 60, "its age is told as it is"


def test_readyz_says_when_the_database_does_not_answer(app, client):
    with app.app_context(), writing() as session:
        session.execute(db.text("DROP TABLE heartbeats"))
    broken = client.get("/readyz")
    assert (broken.status_code, broken.json["faults"]) == (503, ["The database does not answer."])
    assert "wakeful_ready 0.0" in client.get("/metrics").text


def test_metrics_count_monitors_by_status(api, client):
    api.monitor()
    text = client.get("/metrics").text
    assert 'wakeful_monitors{status="pending"} 1.0' in text
    assert "wakeful_ready 0.0" in text, "no checker runs"


def test_metrics_tell_what_is_late_and_which_place_is_silent(app, client):
    at, hour = datetime.now(UTC).replace(microsecond=0), timedelta(hours=1)
    with app.app_context():
        oslo = journal.place_id("oslo")
        places.store_sign("oslo", at - hour, process="checker:oslo:1", checks_per_minute=7)
    make_monitor(app, places=[1], assignment={"scheduled_at": at})
    for scheduled in (at - timedelta(minutes=5), at - hour):
        make_monitor(app, places=[oslo], assignment={"scheduled_at": scheduled})
    make_monitor(app, places=[oslo], assignment={"scheduled_at": at - 2 * hour}, paused=True)

    def figures():
        return dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines())

    before = figures()
    assert float(before['wakeful_check_lag_seconds{place="default"}']) == 0
    assert 3540 <= float(before['wakeful_check_lag_seconds{place="oslo"}']) < 3600
    assert float(before["wakeful_oldest_alert_seconds"]) == 0
    assert float(before['wakeful_place_silent{place="oslo"}']) == 1
    assert float(before['wakeful_place_silent{place="default"}']) == 0, "it was never there"
    with app.app_context():
        places.store_sign(
            "oslo", at, process="checker:oslo:1", checks_per_minute=7, last_check_at=at
        )
        with writing() as session:
            for age, event in ((90, "test"), (30, "test")):
                columns = outbox.columns(event, "email", "a@b", {}, at - timedelta(seconds=age))
                session.add(DeliveryRow(**columns))
    before = figures()
    assert 90 <= float(before["wakeful_oldest_alert_seconds"]) < 150
    assert float(before['wakeful_place_silent{place="oslo"}']) == 0
    assert float(before['wakeful_place_checks_per_minute{place="oslo"}']) == 7


@pytest.mark.settings(metrics_token="sesame")
def test_metrics_can_require_a_token(client):
    assert client.get("/metrics").status_code == 401
    for header, status in (("Bearer sesame", 200), ("Bearer Sesame", 401), ("Basic sesame", 401)):
        answer = client.get("/metrics", headers={"Authorization": header})
        assert answer.status_code == status
