"""POST /monitors/batch creates many monitors, each with an answer of its own (API 3.5)."""

from __future__ import annotations

import json
from typing import Any

from flask import Flask

from app.db import db
from app.db.tables import AuditRow
from app.records import MAX_BATCH_BYTES, MAX_IN_BATCH, MonitorQuery
from tests.api.conftest import MONITOR, Api
from tests.factories import make_key

PATH = "/monitors/batch"
MAIL = {"key": "email", "value": "ops@shop.example"}


def named(*names: str, **more: Any) -> dict[str, list[dict[str, Any]]]:
    return {"monitors": [{**MONITOR, "name": name, **more} for name in names]}


def names_stored(api: Api) -> list[str]:
    page = api.get("/monitors", sort="asc", per_page="100")
    return [monitor["name"] for monitor in page["data"]]


def test_each_monitor_is_stored_and_answered_as_by_itself(api: Api) -> None:
    api.data("POST", "/contacts", json={"name": "Ops", "channels": [MAIL]})
    whole = {
        **MONITOR, "alerts": [MAIL, {"key": "contact", "value": "ops"}], "tags": "shop,prod",
        "request_headers": [{"key": "X-Shop", "value": "1"}], "request_auth_username": "ada",
        "request_auth_password": "secret", "locations": ["default"],
    }  # fmt: skip
    alone = api.data("POST", "/monitors", json=whole)
    answer = api("POST", PATH, json={"monitors": [whole, whole]})
    assert (answer.status_code, answer.json["status"]) == (201, 201)
    assert [row["status"] for row in answer.json["data"]] == [201, 201]
    own = dict.fromkeys(("id", "created_at", "updated_at", "next_check_at"))
    for row in answer.json["data"]:
        assert row["data"] | own == alone | own
        assert row["data"] == api.get(f"/monitors/{row['data']['id']}")["data"]


AS_FORM = {
    "monitors[7][name]": "Blog", "monitors[7][url]": "http://127.0.0.1:9/",
    "monitors[7][interval]": "60",
    "monitors[10][name]": "Docs", "monitors[10][url]": "http://127.0.0.1:9/",
    "monitors[10][interval]": "60",
    "monitors[2][name]": "Shop", "monitors[2][url]": "http://127.0.0.1:9/",
    "monitors[2][interval]": "300", "monitors[2][alerts][5][key]": "email",
    "monitors[2][alerts][5][value]": "ops@shop.example", "monitors[2][tags]": "a,b",
}  # fmt: skip


def test_a_form_orders_them_by_their_indices(api: Api) -> None:
    monitors = [row["data"] for row in api("POST", PATH, data=AS_FORM).json["data"]]
    assert [monitor["name"] for monitor in monitors] == ["Shop", "Blog", "Docs"]
    assert (monitors[0]["alerts"], monitors[0]["tags"]) == ([MAIL], ["a", "b"])


WRONG = [
    {"url": "ftp://shop.example"},
    {"interval": "61"},
    {"name": ""},
    {"pause": True},
    {"alerts": [MAIL, {"key": "contact", "value": "nobody"}]},
    {"locations": ["default", "mars"]},
    {"url": ["a", "b"], "what": {"is": "this"}},
    {"url": "tcp://db.example:5432", "request_method": "POST"},
]


def test_a_refused_monitor_gets_the_error_of_a_single_one_and_the_others_are_stored(
    api: Api,
) -> None:
    bad = [{**MONITOR, "name": "Wrong", **wrong} for wrong in WRONG]
    alone = [api("POST", "/monitors", json=monitor).json for monitor in bad]
    answer = api("POST", PATH, json={"monitors": [*named("First")["monitors"], *bad, MONITOR]})
    assert (answer.status_code, answer.json["status"]) == (207, 207)
    first, *refused, last = answer.json["data"]
    assert (first["status"], last["status"]) == (201, 201)
    assert refused == alone
    assert {row["status"] for row in refused} == {422}
    assert names_stored(api) == ["First", "Shop"]


def test_where_all_are_refused_nothing_is_stored(api: Api) -> None:
    answer = api("POST", PATH, json={"monitors": [{}, {"name": "x"}]})
    assert answer.status_code == 207
    assert [row["status"] for row in answer.json["data"]] == [422, 422]
    assert answer.json["data"][0] == api("POST", "/monitors", json={}).json
    assert names_stored(api) == []


LISTS = [
    ({"json": named(*map(str, range(MAX_IN_BATCH + 1)))}, "monitors"),
    ({"json": {"monitors": []}}, "monitors"),
    ({"json": {"monitors": None}}, "monitors"),
    ({"json": {"monitors": {**MONITOR}}}, "monitors"),
    ({"json": {"monitors": [MONITOR, "Shop"]}}, "monitors"),
    ({"json": {"monitors": [MONITOR, [MONITOR]]}}, "monitors"),
    ({"json": {**named("Shop"), "name": "x"}}, "name"),
    ({"json": MONITOR}, "name"),
    ({"json": [MONITOR]}, "body"),
    ({"json": {}}, "monitors"),
    ({"data": AS_FORM | {"monitors[3]": "x"}}, "monitors"),
    ({"data": AS_FORM | {"monitors[]": "x"}}, "monitors"),
    ({"data": AS_FORM | {"dry_run": "1"}}, "dry_run"),
    ({"data": {}}, "monitors"),
    ({"data": b'{"monitors": [{}], "monitors": [{}]}', "content_type": "application/json"},
     "monitors"),
    ({"data": "&".join(f"monitors[0][f{n}]=" for n in range(50_001)),
      "content_type": "application/x-www-form-urlencoded"}, "body"),
]  # fmt: skip


def test_a_list_that_is_none_or_too_long_is_refused_whole(api: Api) -> None:
    for body, field in LISTS:
        assert field in api.errors("POST", PATH, **body), body.keys()
    assert api.errors("POST", f"{PATH}?dry_run=1", json=named("Shop")).keys() == {"dry_run"}
    assert names_stored(api) == []


def test_five_hundred_with_bodies_fit_into_one_request(app: Flask, api: Api) -> None:
    """More than the 1 MiB of other requests."""
    several = named(*(f"Shop {number}" for number in range(MAX_IN_BATCH)))
    for monitor in several["monitors"]:
        monitor |= {"request_method": "POST", "request_body": "x" * 6000}
    answer = api("POST", PATH, json=several)
    assert answer.status_code == 201
    ids = [row["data"]["id"] for row in answer.json["data"]]
    assert ids == sorted(set(ids))
    page = app.extensions["wakeful.store"].monitors.list
    with app.app_context():
        assert page(MonitorQuery()).total == MAX_IN_BATCH
        changes = db.session.scalars(db.select(AuditRow.object_id).order_by(AuditRow.object_id))
        assert [id for id in changes if id in ids] == ids, "a line of the audit log for each"
    too_long = json.dumps({"monitors": [{"name": "x" * MAX_BATCH_BYTES}]})
    refused = api("POST", PATH, data=too_long, content_type="application/json")
    assert (refused.status_code, "4 MiB" in refused.json["message"]) == (413, True)


def test_it_needs_a_key_that_may_write(reader: Api, stranger: Api) -> None:
    assert reader("POST", PATH, json=named("Shop")).status_code == 403
    assert stranger("POST", PATH, json=named("Shop")).status_code == 401


def test_a_key_of_a_tag_stores_only_those_with_it(app: Flask) -> None:
    api = Api(app.test_client(), make_key(app, "write", tag="shop"))
    several = named("Mine", tags="shop")["monitors"] + named("Other", tags="prod")["monitors"]
    answer = api("POST", PATH, json={"monitors": several})
    assert [row["status"] for row in answer.json["data"]] == [201, 422]
    assert answer.json["data"][1] == api("POST", "/monitors", json=several[1]).json
    assert names_stored(api) == ["Mine"]


def test_it_counts_as_one_request(api: Api) -> None:
    answers = [api("POST", PATH, json=named(f"{name} 1", f"{name} 2")) for name in "ABC"]
    first, second, third = (int(answer.headers["X-RateLimit-Remaining"]) for answer in answers)
    # A minute may end meanwhile, and the count restarts, but not twice.
    assert 1 in (first - second, second - third)
