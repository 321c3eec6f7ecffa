"""Monitors and incidents through the API (API 1, decisions 2, 3 and 4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.db import journal
from tests.api.conftest import MONITOR, masked
from tests.factories import make_incident, make_monitor

ALERT = "https://hooks.example/services/abcdef"
SECRETS = {
    "request_headers[0][key]": "Authorization",
    "request_headers[0][value]": "Bearer of a long secret", "request_headers[1][key]": "X-Short",
    "request_headers[1][value]": "short", "alerts[0][key]": "slack", "alerts[0][value]": ALERT,
    "request_body": "a body with a secret", "request_auth_username": "me",
    "request_auth_password": "not to be seen",
}  # fmt: skip


def test_section_3_a_monitor_is_returned_with_all_its_fields(api):
    record = api.monitor(
        alert_condition="url_no_text",
        alert_text_lookup="ok",
        request_method="POST",
        cache_buster="1",
        ssl_alert_days="7",
        maintenance_start_at="2026-01-01T00:00:00+01:00",
        maintenance_end_at="2026-01-01T02:00:00",
        check_every="45",
        timeout="5",
        accepted_statuses="200,404",
        follow_redirects="false",
        slow_after="900",
        slow_alert_after="5",
        confirmations="0",
        tags="prod, api",
        notes="Ask Ben",
        remind_after="30",
        quiet_start="22:00",
        quiet_end="07:00",
        quiet_zone="Europe/Berlin",
        **SECRETS,
    )
    moments = {name: record.pop(name) for name in ("created_at", "updated_at", "next_check_at")}
    assert all(datetime.fromisoformat(moment).tzinfo for moment in moments.values())
    assert record.pop("id") > 0
    assert record == {
        "name": "Shop",
        "url": "http://127.0.0.1:9/",
        "kind": "http",
        "interval": 60,
        "alert_condition": "url_no_text",
        "alert_text_lookup": "ok",
        "request_method": "POST",
        "request_headers": [
            {"key": "Authorization", "value": "Bearer of a long secret"},
            {"key": "X-Short", "value": "short"},
        ],
        "request_auth_username": "me",
        "request_auth_password_set": True,
        "unreadable": [],
        "request_body": "a body with a secret",
        "cache_buster": 1,
        "ssl_alert_days": 7,
        "domain_alert_days": None,
        "maintenance_start_at": "2025-12-31T23:00:00Z",
        "maintenance_end_at": "2026-01-01T02:00:00Z",
        "alerts": [{"key": "slack", "value": ALERT}],
        "check_every": 45,
        "timeout": 5,
        "accepted_statuses": "200,404",
        "follow_redirects": False,
        "verify_tls": True,
        "slow_after": 900,
        "slow_alert_after": 5,
        "confirmations": 0,
        "tags": ["prod", "api"],
        "notes": "Ask Ben",
        "remind_after": 30,
        "quiet_start": "22:00",
        "quiet_end": "07:00",
        "quiet_zone": "Europe/Berlin",
        "locations": ["default"],
        "location_rule": "majority",
        "depends_on": [],
        "behind_id": None,
        "assertions": [],
        "starttls": None,
        "ping_count": 3,
        "period": None,
        "schedule": [],
        "zone": "UTC",
        "grace": 300,
        "max_run": None,
        "slug": None,
        "ping_url": None,
        "last_ping_at": None,
        "expected_at": None,
        "running_since": None,
        "status": "pending",
        "failing": False,
        "status_since": None,
        "cause_code": None,
        "cause": None,
        "paused": False,
        "last_checked_at": None,
        "response_time": None,
        "uptime": {"24h": None, "7d": None, "30d": None, "90d": None},
        "ssl_expires_at": None,
        "ssl_issued_at": None,
        "domain": None,
        "domain_expires_at": None,
        "open_incident_id": None,
    }


def test_section_3_a_read_only_key_sees_secrets_masked(api, reader):
    id = api.monitor(**SECRETS)["id"]
    for record in (reader.get(f"/monitors/{id}")["data"], reader.get("/monitors")["data"][0]):
        assert record["request_headers"] == [
            {"key": "Authorization", "value": "••••cret"},
            {"key": "X-Short", "value": "••••"},
        ]
        assert record["alerts"] == [{"key": "slack", "value": masked(ALERT)}]
        assert record["request_body"] == "••••cret"
        assert "not to be seen" not in str(record)
    # A masked record that is sent back with write scope changes nothing.
    same = {"alerts": record["alerts"], "request_body": record["request_body"]}
    updated = api.data("PATCH", f"/monitors/{id}", json=same | {"name": "New"})
    assert updated["alerts"] == [{"key": "slack", "value": ALERT}]
    assert updated["request_body"] == SECRETS["request_body"]


def test_section_14_a_monitor_is_checked_from_the_places_that_it_names(app, api):
    with app.app_context():
        journal.place_id("oslo")
    monitor = api.monitor(**{"locations[0]": "oslo", "locations[7]": "default"})
    assert monitor["locations"] == ["default", "oslo"]
    path = f"/monitors/{monitor['id']}"
    assert api.data("PATCH", path, json={"locations": ["oslo"]})["locations"] == ["oslo"]
    assert api.data("PATCH", path, data={"name": "Other"})["locations"] == ["oslo"]
    assert api.data("PATCH", path, data={"locations": ""})["locations"] == ["default"]


def test_section_14_an_unknown_place_is_named_under_its_index(api):
    path = f"/monitors/{api.monitor()['id']}"
    for sent, name in (
        ({"locations[0]": "default", "locations[7]": "nowhere"}, "locations.7"),
        ({"locations": "default"}, "locations"),
        ({"locations[0]": "x" * 65}, "locations.0"),
        ({"locations[0]": "a\0b"}, "locations.0"),
    ):
        assert list(api.errors("POST", "/monitors", data=MONITOR | sent)) == [name]
        assert list(api.errors("PATCH", path, data=sent)) == [name]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_section_2_put_and_patch_are_the_same_partial_update(api, method):
    before = api.monitor(
        request_method="POST", tags="a", **{k: SECRETS[k] for k in list(SECRETS)[:6]}
    )
    path = f"/monitors/{before['id']}"
    after = api.data(method, path, data={"interval": "300"})
    for record in (before, after):
        record.pop("updated_at")
        record.pop("next_check_at")  # differs with the interval
    assert after == before | {"interval": 300}
    # any index replaces the whole list
    headers = {"request_headers[5][key]": "A", "request_headers[5][value]": ""}
    assert api.data(method, path, data=headers)["request_headers"] == [{"key": "A", "value": ""}]
    # an empty list clears it; an empty value clears or restores the default
    cleared = api.data(method, path, data={"request_headers": "", "alerts": "", "tags": "",
                                           "request_method": ""})  # fmt: skip
    assert (cleared["request_headers"], cleared["alerts"], cleared["tags"]) == ([], [], [])
    assert cleared["request_method"] == "GET"


def test_section_2_pause_ends_the_open_incident_and_resuming_checks_at_once(app, api):
    monitor = make_monitor(app, created_at=datetime(2026, 1, 1, tzinfo=UTC))
    incident = make_incident(app, monitor, comment="So far")
    paused = api.data("PATCH", f"/monitors/{monitor.id}", data={"pause": "true"})
    assert (paused["paused"], paused["status"]) == (True, "paused")
    assert paused["open_incident_id"] is None
    assert paused["next_check_at"] is None
    ended = api.get(f"/incidents/{incident.id}")["data"]
    assert ended["status"] == "resolved"
    assert ended["comment"].endswith("Watching stopped: the monitor was paused.")
    resumed = api.data("PATCH", f"/monitors/{monitor.id}", json={"pause": False})
    assert resumed["paused"] is False
    due = datetime.fromisoformat(resumed["next_check_at"])
    assert due <= datetime.now(UTC) + timedelta(seconds=1)
    assert api.get("/deliveries")["data"] == []


LISTED = [
    # search is a substring, ignoring case; %, _ and \ are ordinary characters
    ({"search": "SHOP"}, ["a shop", "Shop 2"]),
    ({"search": "%"}, ["100%"]),
    ({"search": "_"}, []),
    ({"search": "\\"}, ["back\\slash"]),
    ({"search": "öl"}, ["ÖL"]),
    ({"search": "x.test/2", "search_by": "url"}, ["Shop 2"]),
    ({"search_by": "url"}, ["100%", "a shop", "back\\slash", "Shop 2", "ÖL"]),
    ({"sort": "desc"}, ["ÖL", "Shop 2", "back\\slash", "a shop", "100%"]),
    ({"sort_by": "url"}, ["back\\slash", "ÖL", "Shop 2", "100%", "a shop"]),
    ({"status_page_id": "99"}, []),
    ({"status_page_id": "9" * 40}, []),
    ({"per_page": "25", "search": ""}, ["100%", "a shop", "back\\slash", "Shop 2", "ÖL"]),
]


def test_section_1_monitors_are_found_and_ordered(api):
    api.monitor(name="Shop 2", url="http://x.test/2")
    api.monitor(name="a shop", url="http://x.test/B")
    api.monitor(name="100%", url="http://x.test/a")
    api.monitor(name="back\\slash", url="http://a.test/")
    api.monitor(name="ÖL", url="http://B.test/")
    for query, names in LISTED:
        body = api.get("/monitors", **({"sort_by": "name", "sort": "asc"} | query))
        assert [monitor["name"] for monitor in body["data"]] == names, query


START, LATER = "2026-01-01T00:00:00", "2026-01-02T00:00:00"


def test_section_4_an_incident_is_returned_with_all_its_fields(api):
    monitor = api.monitor()
    sent = {
        "monitor_id": monitor["id"], "started_at": START, "acknowledged_at": START,
        "ended_at": LATER, "cause": "Power cut", "comment": "a\r\nb",
    }  # fmt: skip
    record = api.data("POST", "/incidents", data=sent)
    for name in ("id", "created_at", "updated_at"):
        assert record.pop(name)
    assert record == {
        "monitor_id": monitor["id"],
        "monitor": {"id": monitor["id"], "name": "Shop", "url": "http://127.0.0.1:9/"},
        "status": "resolved", "started_at": START + "Z", "acknowledged_at": START + "Z",
        "ended_at": LATER + "Z", "duration": 86_400, "cause": "Power cut", "cause_code": None,
        "comment": "a\nb", "evidence": None, "acknowledged_by": None, "by_hand": True,
        "found_late": False, "classification": None, "ending": "person", "seen_by": [],
        "severity": "down", "down_since": None,
        "affected": [],
        "changes": [], "unwatched": [], "unreadable": [],
    }  # fmt: skip


def test_section_4_one_open_incident_for_each_monitor_and_none_for_an_unknown_one(api):
    about = {"monitor_id": api.monitor()["id"], "started_at": START}
    closed = api.data("POST", "/incidents", data=about | {"ended_at": LATER})
    opened = api.data("POST", "/incidents", data=about)
    for answer in (
        api("POST", "/incidents", data=about),
        api("PATCH", f"/incidents/{closed['id']}", data={"ended_at": ""}),
    ):
        assert answer.status_code == answer.json["status"] == 409
        assert answer.json["open_incident_id"] == opened["id"]
    assert api.get("/incidents")["meta"]["total"] == 2
    for id in ("99", "0", "-1", "9" * 30):
        faults = api.errors("POST", "/incidents", data={"monitor_id": id, "started_at": START})
        assert list(faults) == ["monitor_id"], id


INCIDENTS = [
    ({}, ["open", "late", "early"]),  # with ended_at desc, open ones come first
    ({"sort": "asc"}, ["early", "late", "open"]),
    ({"sort_by": "started_at", "sort": "asc"}, ["late", "early", "open"]),
    ({"status": "unresolved"}, ["open"]),
    ({"status": "resolved"}, ["late", "early"]),
    ({"status": "acknowledged"}, []),
    ({"search": "SHOP"}, ["late", "early"]),  # without search_by: the monitor's name or URL
    ({"search": "bakery.test"}, ["open"]),
    ({"search": "bakery.test", "search_by": "url"}, ["open"]),
    ({"search": "bakery.test", "search_by": "monitor"}, []),
    ({"search": "LAT", "search_by": "cause"}, ["late"]),
    ({"monitor_id": "99"}, []),
]


def test_section_4_incidents_are_found_and_ordered(api):
    shop, bakery = api.monitor(), api.monitor(name="Cakes", url="http://bakery.test/")
    for monitor, cause, start, end in (
        (shop, "late", "2026-01-01", "2026-01-09"),
        (shop, "early", "2026-01-02", "2026-01-03"),
        (bakery, "open", "2026-01-04", None),
    ):
        times = {"started_at": f"{start}T00:00:00", "ended_at": f"{end}T00:00:00" if end else ""}
        api.data("POST", "/incidents", data={"monitor_id": monitor["id"], "cause": cause} | times)
    for query, causes in INCIDENTS:
        body = api.get("/incidents", **query)
        assert [incident["cause"] for incident in body["data"]] == causes, query


def test_the_evidence_of_an_automatic_incident_is_returned_in_lists_too(app, api):
    incident = make_incident(app, make_monitor(app), evidence={"status_line": "HTTP/1.1 503"})
    shown = api.get(f"/incidents/{incident.id}")["data"]
    assert shown["evidence"] == {"status_line": "HTTP/1.1 503"}
    assert shown["cause_code"] == "connection_refused"
    [listed] = api.get("/incidents")["data"]
    assert listed | {"duration": 0} == shown | {"duration": 0}, "it goes on while we ask"
