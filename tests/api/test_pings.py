"""Heartbeats through the API, and the addresses that jobs call (decision 18)."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from app.db import db
from app.db.tables import AuditRow
from app.errors import Invalid
from app.stores import current_access
from tests.api.conftest import BASE, MONITOR, Api
from tests.factories import make_key
from tests.support.clock import clock_of

RID = "6c8b2a1e-0000-4000-8000-000000000001"
HEARTBEAT = {"name": "Nightly Backup", "url": "heartbeat:"}


@pytest.fixture
def job(api):
    """A heartbeat, and the path of its ping URL."""
    monitor = api.data("POST", "/monitors", data=HEARTBEAT)
    return monitor | {"token": monitor["ping_url"].rpartition("/")[2]}


def show(api: Api, job: dict) -> dict:
    return api.data("GET", f"/monitors/{job['id']}")


def test_a_new_heartbeat_waits_for_its_first_ping(job):
    assert job["kind"] == "heartbeat"
    assert (job["status"], job["interval"], job["grace"]) == ("pending", 3600, 300)
    assert (job["period"], job["schedule"], job["zone"], job["max_run"]) == (None, [], "UTC", None)
    assert (job["slug"], job["locations"]) == ("nightly-backup", [])
    assert job["ping_url"] == f"http://wakeful.test/ping/{uuid.UUID(job['token'])}"
    assert job["last_ping_at"] is job["expected_at"] is job["running_since"] is None


def test_its_fields_come_back_and_change(api):
    sent = {
        **HEARTBEAT, "schedule[0]": "30 2 * * *", "schedule[1]": "Mon..Fri 12:00",
        "zone": "Europe/Berlin", "grace": "600", "max_run": "3600", "slug": "night_1",
        "interval": "60", "heartbeat_token": "kumas-own-token_1",
    }  # fmt: skip
    job = api.data("POST", "/monitors", data=sent)
    assert job["schedule"] == ["30 2 * * *", "Mon..Fri 12:00"]
    assert (job["zone"], job["grace"], job["max_run"]) == ("Europe/Berlin", 600, 3600)
    assert (job["slug"], job["interval"]) == ("night_1", 60)
    assert job["ping_url"].endswith("/ping/kumas-own-token_1")
    path = f"/monitors/{job['id']}"
    job = api.data("PATCH", path, data={"schedule": "", "period": "7200", "name": "Other"})
    assert (job["schedule"], job["period"], job["slug"]) == ([], 7200, "night_1")


REFUSED = [
    ({"period": "59"}, "period"),
    ({"period": "31536001"}, "period"),
    ({"period": "60", "schedule[0]": "0 3 * * *"}, "schedule"),
    ({"schedule[0]": "every day"}, "schedule.0"),
    ({f"schedule[{n}]": f"{n} 3 * * *" for n in range(11)}, "schedule"),
    ({"zone": "Mars/Base"}, "zone"),
    ({"grace": "59"}, "grace"),
    ({"max_run": "0"}, "max_run"),
    ({"slug": "Not a slug"}, "slug"),
    ({"heartbeat_token": "short"}, "heartbeat_token"),
    ({"heartbeat_token": "x" * 65}, "heartbeat_token"),
    ({"heartbeat_token": "with a space"}, "heartbeat_token"),
    ({"assertions[0][source]": "status", "assertions[0][op]": "=", "assertions[0][value]": "200"},
     "assertions"),
    ({"domain_alert_days": "7"}, "domain_alert_days"),
    ({"check_every": "60"}, "check_every"),
    ({"url": "heartbeat:abc"}, "url"),
    ({"url": "heartbeat://abc"}, "url"),
    ({"timeout": "10"}, "timeout"),
    ({"confirmations": "0"}, "confirmations"),
    ({"request_method": "POST"}, "request_method"),
    ({"alert_condition": "url_text", "alert_text_lookup": "x"}, "alert_text_lookup"),
    ({"locations[0]": "default", "location_rule": "any"}, "location_rule"),
    ({"url": "https://example.com", "interval": "60", "period": "60"}, "period"),
    ({"url": "https://example.com", "interval": "60", "slug": "x"}, "slug"),
    ({"url": "https://example.com", "interval": "60", "heartbeat_token": RID}, "heartbeat_token"),
    ({"url": "https://example.com"}, "interval"),
]  # fmt: skip


def test_what_a_heartbeat_refuses(api):
    for fields, name in REFUSED:
        assert name in api.errors("POST", "/monitors", data=HEARTBEAT | fields), fields


@pytest.mark.both_databases
def test_a_token_is_unique_and_only_set_when_it_is_stored(api, job):
    taken = HEARTBEAT | {"heartbeat_token": job["token"]}
    assert api.errors("POST", "/monitors", data=taken).keys() == {"heartbeat_token"}
    path = f"/monitors/{job['id']}"
    assert api.errors("PATCH", path, data={"heartbeat_token": RID}).keys() == {"heartbeat_token"}
    assert api.errors("PATCH", path, data={"url": "https://example.com"}).keys() == {"url"}
    web = api.monitor()
    path = f"/monitors/{web['id']}"
    assert api.errors("PATCH", path, data={"url": "heartbeat:"}).keys() == {"url"}


def test_a_heartbeat_is_not_checked(api, job):
    assert api("POST", f"/monitors/{job['id']}/check").status_code == 409
    assert "url" in api.errors("POST", "/checks", data={"url": "heartbeat:"})


@pytest.mark.both_databases
def test_a_new_token_ends_the_old_one_and_is_in_the_audit_log(app, api, reader, job):
    path = f"/monitors/{job['id']}/heartbeat-token"
    assert reader("POST", path).status_code == 403
    changed = api.data("POST", path)
    assert changed["ping_url"] != job["ping_url"]
    assert api.client.get(f"/ping/{job['token']}").status_code == 404
    assert api.client.get(changed["ping_url"]).status_code == 200
    assert show(reader, job)["ping_url"] != changed["ping_url"], "a key that reads gets no secret"
    web = api.monitor()
    assert api("POST", f"/monitors/{web['id']}/heartbeat-token").status_code == 409
    with app.app_context():
        lines = str([row.changes for row in db.session.query(AuditRow)])
        assert "heartbeat_token" in lines
        assert job["token"] not in lines


# Each address with the answer, and the ping that is stored.
HC = {"Ping-Body-Limit": "10000", "Access-Control-Allow-Origin": "*"}
CALLS = [
    ("/ping/{}", 200, "OK", ("success", None)),
    ("/ping/{}/", 200, "OK", ("success", None)),
    ("/ping/{}/start", 200, "OK", ("start", None)),
    ("/ping/{}/fail", 200, "OK", ("fail", None)),
    ("/ping/{}/log", 200, "OK", ("log", None)),
    ("/ping/{}/0", 200, "OK", ("success", 0)),
    ("/ping/{}/3", 200, "OK", ("fail", 3)),
    ("/ping/{}/255", 200, "OK", ("fail", 255)),
    ("/ping/{}/256", 400, "invalid url format", None),
    ("/ping/{}/99999999999999999999", 400, "invalid url format", None),
    ("/ping/{}/-1", 404, "not found", None),
    ("/ping/{}/stop", 404, "not found", None),
    ("/ping/{}/start/", 404, "not found", None),
    ("/ping/{}?rid=" + RID, 200, "OK", ("success", None)),
    ("/ping/{}?rid=7", 400, "invalid uuid format", None),
    ("/ping/{}?rid=", 400, "invalid uuid format", None),
    ("/ping/{}?rid=7&rid=" + RID, 200, "OK", ("success", None)),
    ("/ping/{}?rid=" + RID.replace("-", ""), 400, "invalid uuid format", None),
    ("/ping/{}?rid={{" + RID + "}}", 400, "invalid uuid format", None),
    ("/ping/{}//", 404, "not found", None),
    ("/ping//{}", 404, "not found", None),
    ("/ping/../ping/{}", 404, "not found", None),
    ("/ping/{}/TERM", 404, "not found", None),
    ("/ping/{}/%D9%A1", 404, "not found", None),
    ("/ping/{}?create=1&x=y", 200, "OK", ("success", None)),
    ("/ping/{}x", 404, "not found", None),
    ("/ping/", 404, "not found", None),
    ("/api/v1/heartbeat/{}", 200, "OK", ("success", None)),
    ("/api/v1/heartbeat/{}/fail", 200, "OK", ("fail", None)),
    ("/api/v1/heartbeat/{}/2", 200, "OK", ("fail", 2)),
    ("/api/v1/heartbeat/{}/0", 200, "OK", ("success", 0)),
    ("/api/v1/heartbeat/x{}", 404, "not found", None),
    ("/api/push/{}", 200, '{"ok":true}', ("success", None)),
    ("/api/v1/heartbeat/{}/", 200, "OK", ("success", None)),
    ("/api/v1/heartbeat/{}/start", 404, "not found", None),
    ("/api/push/{}/", 200, '{"ok":true}', ("success", None)),
    ("/api/push/{}/x", 404, '{"ok":false,"msg":"Monitor not found or not active."}', None),
    ("/api/push/{}?status=", 200, '{"ok":true}', ("success", None)),
    ("/api/push/{}?status=UP", 200, '{"ok":true}', ("fail", None)),
    ("/api/push/{}?ping=nan", 200, '{"ok":true}', ("success", None)),
    ("/api/push/{}?status=up&msg=OK&ping=", 200, '{"ok":true}', ("success", None)),
    ("/api/push/{}?status=down&msg=broken", 200, '{"ok":true}', ("fail", None)),
    ("/api/push/x{}", 404, '{"ok":false,"msg":"Monitor not found or not active."}', None),
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.settings(rate_limit=0)
def test_each_address_answers_as_its_original_does(api, job, method):
    total = 0
    for path, status, text, stored in CALLS:
        answer = api.client.open(path.format(job["token"]), method=method, data="a line\nmore")
        assert (answer.status_code, answer.text) == (status, text), path
        assert "Set-Cookie" not in answer.headers
        if path.startswith("/ping"):
            assert {name: answer.headers[name] for name in HC} == HC
        if stored or path == CALLS[-1][0]:  # the next list shows what a refused one has stored
            total += stored is not None
            pings = api.get(f"/monitors/{job['id']}/pings")
            assert pings["meta"]["total"] == total, path
        if stored:
            ping = pings["data"][0]
            assert (ping["kind"], ping["exit_status"]) == stored, path
            assert (ping["method"], ping["address"]) == (method, "127.0.0.1")


def test_any_method_is_a_ping(api, job):
    for method in ("HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"):
        answer = api.client.open(f"/ping/{job['token']}", method=method)
        assert (answer.status_code, answer.text) == (200, "" if method == "HEAD" else "OK")
        assert api.get(f"/monitors/{job['id']}/pings")["data"][0]["method"] == method


@pytest.mark.both_databases
def test_pings_make_the_status_and_are_listed_with_what_they_sent(api, reader, job):
    url = f"/ping/{job['token']}"
    api.client.post(f"{url}/start?rid={RID}")
    assert show(api, job)["running_since"] is not None
    api.client.post(f"{url}?rid={RID}", data=f"Copied\n\nfor {job['token']}\x1b[1m\0")
    monitor = show(api, job)
    assert (monitor["status"], monitor["running_since"]) == ("up", None)
    assert monitor["last_ping_at"] <= monitor["expected_at"]
    for name in ("last_ping_at", "expected_at", "running_since"):
        assert show(reader, job)[name] == monitor[name], "to all"
    pings = api.get(f"/monitors/{job['id']}/pings")
    assert pings["meta"]["total"] == 2
    assert [ping["kind"] for ping in pings["data"]] == ["success", "start"], "the newest first"
    ping = pings["data"][0]
    assert (ping["rid"], ping["body_start"], ping["body"]) == (RID, "Copied", None)
    assert ping["duration"] is not None
    shown = reader.data("GET", f"/monitors/{job['id']}/pings/{ping['id']}")
    assert shown["body"] == "Copied\n\nfor ••••\ufffd[1m\ufffd", "without secret and controls"
    other = api.data("POST", "/monitors", data=HEARTBEAT)
    assert api("GET", f"/monitors/{other['id']}/pings/{ping['id']}").status_code == 404
    api.client.post(f"{url}/1", data=b"x" * 20_000 + b"\xff")
    assert show(api, job)["cause"] == "It reported failure: exit status 1."
    newest = api.get(f"/monitors/{job['id']}/pings")["data"][0]
    body = api.data("GET", f"/monitors/{job['id']}/pings/{newest['id']}")["body"]
    assert body == "x" * 10_000
    api.client.get(f"/api/push/{job['token']}?status=up&msg=fine&ping=12.4")
    assert show(api, job)["response_time"] == 12
    assert show(api, job)["status"] == "up"


def test_a_failed_job_counts_as_any_monitor_that_is_down(api, job):
    page = {"name": "Jobs", "monitors": [job["id"]]}
    slug = api.data("POST", "/status-pages", json=page)["slug"]
    for end, state, component in (("", "up", "operational"), ("/fail", "down", "major_outage")):
        api.client.get(f"/ping/{job['token']}{end}")
        assert show(api, job)["status"] == state
        summary = api.client.get(f"/status/{slug}.json").json
        assert [shown["status"] for shown in summary["components"]] == [component]
    [incident] = api.get("/incidents", status="unresolved")["data"]
    assert (incident["cause_code"], incident["severity"]) == ("heartbeat_failed", "down")
    statistics = api.get(f"/monitors/{job['id']}/statistics", range="24h")["data"]
    assert statistics["incidents"] == 1


def test_who_guesses_is_refused_and_a_right_name_is_always_taken(app, api, job):
    clock_of(app, datetime.now(UTC))  # otherwise the minute that is counted may end in between

    def status(path):
        return api.client.get(path).status_code

    paths = ["/ping/wrong-name", "/api/push/wrong-name", "/api/v1/heartbeat/wrong-name"]
    assert {status(paths[number % 3]) for number in range(60)} == {404}
    for path in paths:
        answer = api.client.get(path)
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) <= 60
    assert status(f"/ping/{job['token']}") == 200


def test_pings_are_not_answered_on_the_host_of_a_status_page(api, job):
    api.data("POST", "/status-pages", json={"name": "Shop", "domain": "status.example.org"})
    answer = api.client.get(f"/ping/{job['token']}", base_url="http://status.example.org")
    assert answer.status_code == 404
    assert api.get(f"/monitors/{job['id']}/pings")["data"] == []


def test_a_slash_or_another_path_of_the_api_stays_the_apis(api):
    assert api.client.get(f"{BASE}/heartbeats").status_code == 404
    assert api.client.get("/api/v1/heartbeat").json["status"] == 404


# --- Ping keys


@pytest.fixture
def ping_key(app):
    return make_key(app, "ping")


@pytest.mark.both_databases
def test_a_ping_key_calls_a_heartbeat_by_its_slug_and_does_nothing_else(app, api, job, ping_key):
    assert len(ping_key) == 22
    for end, text in (("", "OK"), ("/start", "OK"), ("/7", "OK"), ("/256", "invalid url format")):
        assert api.client.get(f"/ping/{ping_key}/nightly-backup{end}").text == text
    assert api.client.get(f"/ping/{ping_key}/other").status_code == 404
    assert api.client.get(f"/ping/{ping_key}").status_code == 404
    assert api.client.get(f"/ping/{make_key(app)}/nightly-backup").status_code == 404
    assert Api(api.client, ping_key)("GET", "/me").status_code == 401
    kinds = [ping["kind"] for ping in api.get(f"/monitors/{job['id']}/pings")["data"]]
    assert kinds == ["fail", "start", "success"]
    api.data("POST", "/monitors", data=HEARTBEAT)
    answer = api.client.get(f"/ping/{ping_key}/nightly-backup")
    assert (answer.status_code, answer.text) == (409, "ambiguous slug")


@pytest.mark.both_databases
def test_a_first_ping_may_create_its_heartbeat(api, ping_key):
    channels = [{"key": "email", "value": "ops@example.org"}]
    for name, default in (("Ops", True), ("Others", False)):
        api.data("POST", "/contacts", json={"name": name, "channels": channels, "default": default})
    url = f"/ping/{ping_key}/db-backup"
    assert api.client.get(f"{url}?create=0").status_code == 404
    assert api.client.get(f"{url}?create=1&rid=7").status_code == 404, "nothing is created"
    answer = api.client.get(f"{url}/start?create=1")
    assert (answer.status_code, answer.text) == (201, "Created")
    assert api.client.get(f"{url}?create=1").text == "OK"
    [monitor] = api.get("/monitors")["data"]
    assert (monitor["name"], monitor["slug"]) == ("db-backup", "db-backup")
    assert (monitor["period"], monitor["grace"], monitor["status"]) == (86_400, 3_600, "up")
    assert monitor["alerts"] == [{"key": "contact", "value": "Ops"}]
    assert api.client.get(f"/ping/{ping_key}/Not a slug?create=1").status_code == 404


def test_a_bound_ping_key_takes_neither_slugs_nor_contacts_of_others(app, api, job):
    contact = {"channels": [{"key": "email", "value": "ops@example.org"}], "default": True}
    for name in ("Ops", "Others"):
        api.data("POST", "/contacts", json={"name": name, **contact})
    ops = [{"key": "contact", "value": "Ops"}]
    api.data("POST", "/monitors", json={**MONITOR, "tags": ["prod"], "alerts": ops})
    everybody, of_tag = make_key(app, "ping"), make_key(app, "ping", tag="prod")
    writer = Api(app.test_client(), make_key(app, "write", tag="prod"))
    taken = api.client.get(f"/ping/{of_tag}/nightly-backup?create=1")
    assert (taken.status_code, taken.text) == (409, "ambiguous slug")
    assert api.client.get(f"/ping/{of_tag}/nightly-backup").status_code == 404
    assert api.client.get(f"/ping/{of_tag}/jobs?create=1").text == "Created"
    [created] = [row for row in api.get("/monitors")["data"] if row.get("slug") == "jobs"]
    assert (created["alerts"], created["tags"]) == (ops, ["prod"])
    # The name makes the slug where none is sent.
    new = {"name": "Nightly backup", "url": "heartbeat:", "tags": ["prod"]}
    for method, path, sent in (
        ("POST", "/monitors", new),
        ("POST", "/monitors", {**new, "name": "Mine", "slug": "nightly-backup"}),
        ("PATCH", f"/monitors/{created['id']}", {"slug": "nightly-backup"}),
    ):
        answer = writer(method, path, json=sent)
        assert (answer.status_code, list(answer.json["errors"])) == (422, ["slug"])
    writer.data("POST", "/monitors", json={**new, "slug": "mine"})
    writer.data("PATCH", f"/monitors/{created['id']}", json={"slug": "jobs", "grace": 60})
    assert api.client.get(f"/ping/{everybody}/nightly-backup").text == "OK"


def test_a_leaked_ping_key_does_not_create_heartbeats_without_limit(api, ping_key, monkeypatch):
    monkeypatch.setattr("app.stores.local.heartbeats.MAX_CREATED", 2)

    def call(slug):
        answer = api.client.get(f"/ping/{ping_key}/{slug}?create=1")
        return answer.status_code, answer.text

    created, refused = (201, "Created"), (403, "too many heartbeats")
    assert [call(slug) for slug in ("a", "b", "c")] == [created, created, refused]
    assert call("a") == (200, "OK"), "one that there is is called all the same"
    assert api.get("/monitors")["meta"]["total"] == 2


def test_a_ping_key_that_jobs_have_already_is_kept(app):
    own = "aBcDeFgHiJkLmNoPqRsT-_"
    with app.app_context():
        keys = current_access().keys
        key, text = keys.create("Jobs", "ping", own_secret=own)
        assert text == own
        stored = keys.ping_key(own, None)
        assert stored is not None
        assert stored.id == key.id
        for wrong, scope in ((own, "ping"), ("short", "ping"), (own[::-1], "read")):
            with pytest.raises(Invalid):
                keys.create("Other", scope, own_secret=wrong)
        keys.revoke(key.prefix)
        assert keys.ping_key(own, None) is None
