"""/api/v1/locations over HTTP (decision 14)."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from sqlalchemy import select

from app.access.keys import agent_of
from app.codec.sealing import new_private_key, public_key_of
from app.db import db, places, writing
from app.db.tables import AuditRow, PlaceRow
from app.engine import recorder
from tests.api.conftest import BASE, Api
from tests.factories import make_monitor, make_outcome, now


def test_a_place_is_stored_from_a_form_shown_updated_and_deleted(api):
    answer = api("POST", "/locations", data={"name": "eu-north-1", "label": "Stockholm"})
    assert answer.status_code == 201
    place = answer.json["data"]
    path = f"/locations/{place['id']}"
    assert answer.headers["Location"] == f"{BASE}{path}"
    assert place == {
        "id": place["id"], "name": "eu-north-1", "label": "Stockholm", "carrier": "local",
        "state": "never_seen", "last_seen_at": None, "version": None, "clock_offset_ms": None,
        "checks_per_minute": None, "monitors": 0, "trouble": None,
        "created_at": place["created_at"],
    }  # fmt: skip
    assert api.get(path)["data"] == place
    assert api.data("PATCH", path, json={"label": None}) == place | {"label": None}
    assert [record["name"] for record in api.get("/locations")["data"]] == ["default", "eu-north-1"]
    gone = {"id": place["id"], "object": "location", "deleted": True, "status": 200}
    assert api("DELETE", path).json == gone


def test_a_faulty_place_is_refused_by_field(api):
    assert list(api.errors("POST", "/locations", json={})) == ["name"]
    for name in ("Oslo", "oslo 1", "x" * 65, "default", "deleted"):
        assert list(api.errors("POST", "/locations", json={"name": name})) == ["name"]
    for field, value in (("label", "x" * 81), ("carrier", "pigeon"), ("token", "mine")):
        sent = {"name": "oslo", field: value}
        assert list(api.errors("POST", "/locations", json=sent)) == [field]
    assert api.get("/locations")["meta"]["total"] == 1


def test_storing_an_agent_returns_its_token_once_and_a_new_one_ends_it(admin, core):
    place = admin.data("POST", "/locations", json={"name": "oslo", "carrier": "agent"})
    path = f"/locations/{place['id']}"
    assert "token" not in admin.get(path)["data"]
    second = admin.data("POST", f"{path}/token")["token"]
    with core.app_context():
        assert agent_of(place["token"]) is None
        agent = agent_of(second)
        assert (agent.id, agent.name, agent.public_key) == (place["id"], "oslo", None)
        assert agent_of("wa_") is None
    admin.data("PATCH", path, json={"carrier": "local"})
    with core.app_context():
        assert agent_of(second) is None
    answer = admin("POST", f"{path}/token")
    assert answer.status_code == 409


def test_a_place_shows_what_its_processes_report(api, core):
    id = api.data("POST", "/locations", json={"name": "oslo"})["id"]
    moment = now()
    with core.app_context():
        for number, offset in ((1, 250), (2, None)):
            places.store_sign(
                "oslo",
                moment - timedelta(seconds=number),
                process=f"prober:host:{number}",
                version="1.2.3",
                clock_offset_ms=offset,
                checks_per_minute=30,
                last_check_at=moment,
            )
    place = api.get(f"/locations/{id}")["data"]
    assert (place["state"], place["version"]) == ("online", "1.2.3")
    assert (place["clock_offset_ms"], place["checks_per_minute"]) == (250, 60)
    assert place["last_seen_at"] == f"{moment - timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"


def test_a_place_is_silent_after_two_intervals_without_a_result(api, core):
    id = api.data("POST", "/locations", json={"name": "oslo"})["id"]
    long_ago = now() - timedelta(days=1)

    def state(minutes):
        with core.app_context():
            last = now() - timedelta(minutes=minutes)
            places.store_sign("oslo", now(), process="agent:oslo", last_check_at=last)
        return api.get(f"/locations/{id}")["data"]["state"]

    make_monitor(core, places=[id], interval=300, updated_at=long_ago)
    assert [state(minutes) for minutes in (11, 9)] == ["silent", "online"]
    make_monitor(core, places=[id], interval=60, updated_at=long_ago)
    assert state(4) == "silent"


def test_a_place_that_has_just_got_its_first_monitor_is_not_silent_yet(api, core):
    id = api.data("POST", "/locations", json={"name": "oslo"})["id"]
    with core.app_context():
        last = now() - timedelta(hours=5)
        places.store_sign("oslo", now(), process="agent:oslo", last_check_at=last)
    assert api.get(f"/locations/{id}")["data"]["state"] == "online", "it has nothing to check"
    make_monitor(core, places=[id])
    assert api.get(f"/locations/{id}")["data"]["state"] == "online"


def test_a_queue_is_seen_when_its_probers_are_and_not_when_its_checker_is(api, core):
    place = api.data("POST", "/locations", json={"name": "eu", "carrier": "queue"})
    path, last = f"/locations/{place['id']}", now() - timedelta(minutes=4)
    make_monitor(core, places=[place["id"]], updated_at=now() - timedelta(days=1))

    def reported(process, at, result_at):
        with core.app_context():
            places.store_sign("eu", at, process=process, version="1", last_check_at=result_at)
        record = api.get(path)["data"]
        return record["state"], record["last_seen_at"]

    assert reported("checker:here:1", now(), None) == ("silent", None)
    at = now()
    assert reported("prober:there:1", at, at) == ("online", f"{at:%Y-%m-%dT%H:%M:%SZ}")
    written = f"{last:%Y-%m-%dT%H:%M:%SZ}"
    assert reported("prober:there:1", last, last) == ("silent", written)
    assert reported("checker:here:1", now(), last) == ("silent", written)


def test_a_place_whose_checks_all_say_nothing_says_why(api, core):
    id = api.data("POST", "/locations", json={"name": "oslo"})["id"]
    ids = [make_monitor(core, places=[id]).id for _ in range(3)]

    def check(verdict, monitor, **fields):
        with core.app_context():
            outcome = make_outcome(verdict, now(), location="oslo", **fields)
            recorder.record([(monitor, outcome)], now(), location="oslo")
        return api.get(f"/locations/{id}")["data"]["trouble"]

    assert check("unknown", ids[0]).startswith("The last check of its monitor could not be made.")
    assert check("unknown", ids[1]).startswith("The last checks of all its 2 monitors could not")
    other = check("unknown", ids[2], cause="The address is a private one.")
    assert other.endswith("all its 3 monitors could not be made. Our own network failed."), (
        "the cause is that of most of them"
    )
    assert check("down", ids[1]) is None, "one that fails has been made"


@pytest.mark.parametrize("change", ["carrier", "token"])
def test_the_trouble_of_a_place_ends_when_others_make_its_checks(admin, core, change):
    fields = {"name": "oslo", "carrier": "agent" if change == "token" else "local"}
    id = admin.data("POST", "/locations", json=fields)["id"]
    monitor = make_monitor(core, places=[id, 1], confirmations=0)
    with core.app_context():
        for name, verdict in (("default", "down"), ("oslo", "unknown")):
            outcome = make_outcome(verdict, now(), location=name)
            recorder.record([(monitor.id, outcome)], now(), location=name)
    path = f"/locations/{id}"
    assert admin.get(path)["data"]["trouble"] is not None
    if change == "carrier":
        admin.data("PATCH", path, json={"carrier": "queue"})
    else:
        admin.data("POST", f"{path}/token")
    assert admin.get(path)["data"]["trouble"] is None
    assert admin.get(f"/monitors/{monitor.id}")["data"]["status"] == "down", "no verdict changes"


def test_an_agent_that_lost_its_token_tells_nothing_more(admin, core):
    place = admin.data("POST", "/locations", json={"name": "oslo", "carrier": "agent"})
    with core.app_context():
        places.store_sign("oslo", now(), process="agent:oslo", version="1", clock_offset_ms=1)
    path = f"/locations/{place['id']}"
    assert admin.get(path)["data"]["version"] == "1"
    changed = admin.data("PATCH", path, json={"carrier": "local"})
    assert (changed["version"], changed["clock_offset_ms"]) == (None, None)
    assert changed["last_seen_at"] is not None


def test_what_a_place_was_outlasts_its_processes(api, core):
    id = api.data("POST", "/locations", json={"name": "oslo"})["id"]
    before = now() - timedelta(days=3)
    with core.app_context():
        places.store_sign("oslo", before, process="agent:oslo", last_check_at=before)
        places.store_signs(now())
        with writing() as session:
            assert session.get(PlaceRow, id).result_at == before
    place = api.get(f"/locations/{id}")["data"]
    assert (place["state"], place["last_seen_at"]) == ("silent", f"{before:%Y-%m-%dT%H:%M:%SZ}")


NEEDS_ADMIN = [
    (None, {"name": "oslo", "carrier": "agent"}),
    (None, {"name": "NOT A NAME", "carrier": "agent"}),
    ("local", {"carrier": "agent"}),
    ("queue", {"carrier": "agent"}),
    ("local", {"carrier": "queue"}),
    ("agent", {"carrier": "local"}),
    ("agent", {"carrier": ""}),
    ("agent", {"carrier": "NO CARRIER"}),
    ("agent", None),  # a new token
]


def test_section_14_a_place_with_an_agent_needs_the_scope_admin(api, admin, reader):
    """Somebody who has the token of an agent gets the secrets of its monitors (section 6)."""
    for number, (carrier, fields) in enumerate(NEEDS_ADMIN):
        method, path, name = "POST", "/locations", f"oslo-{number}"
        if fields and fields.get("name") == "oslo":
            fields = fields | {"name": f"new-{number}"}
        if carrier is not None:
            id = admin.data("POST", path, json={"name": name, "carrier": carrier})["id"]
            method, path = ("PATCH", f"{path}/{id}") if fields else ("POST", f"{path}/{id}/token")
        before = admin.get("/locations")
        for encoding in ("data", "json"):
            answer = api(method, path, **{encoding: fields})
            assert answer.status_code == 403, (carrier, fields)
            assert "Use a key with the scope admin" in answer.json["message"]
        assert reader(method, path, json=fields).status_code == 403
        assert admin.get("/locations") == before
        assert admin(method, path, json=fields).status_code in (200, 201, 422)
    assert reader("GET", "/locations").status_code == 200


def test_what_gives_no_secrets_away_needs_no_more_than_the_scope_write(api, admin):
    id = admin.data("POST", "/locations", json={"name": "oslo", "carrier": "agent"})["id"]
    fields = {"carrier": "agent", "label": "Oslo"}
    assert api.data("PATCH", f"/locations/{id}", json=fields)["label"] == "Oslo"
    api.data("POST", "/locations", json={"name": "bonn", "carrier": "queue"})
    assert api("DELETE", f"/locations/{id}").status_code == 200


def test_the_audit_log_says_who_made_an_agent_its_token_and_its_key(app, admin):
    place = admin.data("POST", "/locations", json={"name": "oslo", "carrier": "agent"})
    token = admin.data("POST", f"/locations/{place['id']}/token")["token"]
    key = base64.b64encode(public_key_of(new_private_key())).decode()
    agent = Api(app.test_client(), token)
    assert agent("POST", "/agent/hello", json={"public_key": key}).status_code == 200
    other = base64.b64encode(public_key_of(new_private_key())).decode()
    assert agent("POST", "/agent/hello", json={"public_key": other}).status_code == 409
    admin.data("PATCH", f"/locations/{place['id']}", json={"carrier": "local"})
    with app.app_context():
        rows = db.session.scalars(
            select(AuditRow).where(AuditRow.object_kind == "location").order_by(AuditRow.id)
        )
        lines = [(row.actor_kind, row.action, sorted(row.changes or {})) for row in rows]
    assert lines == [
        ("key", "created", ["carrier", "name", "token"]),
        ("key", "changed", ["token"]),
        ("agent", "changed", ["public_key"]),
        ("key", "changed", ["carrier", "public_key", "token"]),
    ]
    assert token not in str(lines)
