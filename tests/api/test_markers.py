"""/api/v1/markers over HTTP."""

from __future__ import annotations

import pytest

from tests.api.conftest import BASE
from tests.factories import make_key

AT = "2026-11-21T08:00:00"
DEPLOY = {
    "name": "shop v2.1",
    "link": "https://ci.example/7",
    "tags": "shop, api",
    "time": AT,
}


def test_a_marker_is_stored_from_a_form_shown_updated_and_deleted(api):
    answer = api("POST", "/markers", data=DEPLOY)
    assert answer.status_code == 201
    marker = answer.json["data"]
    path = f"/markers/{marker['id']}"
    assert answer.headers["Location"] == f"{BASE}{path}"
    created = marker["created_at"]
    times = {"created_at": created, "updated_at": created}
    assert marker == {
        "id": marker["id"],
        "name": "shop v2.1",
        "time": AT + "Z",
        "link": "https://ci.example/7",
        "tags": ["shop", "api"],
        **times,
    }
    assert api.get(path)["data"] == marker
    changed = api.data("PATCH", path, json={"tags": ["api"], "link": None})
    expected = {"tags": ["api"], "link": None, "updated_at": changed["updated_at"]}
    assert changed == marker | expected
    assert api.get("/markers")["data"] == [changed]
    assert api("DELETE", path).json == {
        "id": marker["id"],
        "object": "marker",
        "deleted": True,
        "status": 200,
    }
    assert api.get("/markers")["meta"]["total"] == 0


def test_a_name_is_enough(api):
    marker = api.data("POST", "/markers", data={"name": "shop v2.1"})
    assert (marker["link"], marker["tags"]) == (None, [])
    assert marker["time"]


@pytest.mark.parametrize(
    ("sent", "faulty"),
    [
        ({}, ["name"]),
        (DEPLOY | {"name": " "}, ["name"]),
        (DEPLOY | {"name": "x" * 256}, ["name"]),
        (DEPLOY | {"link": "javascript:alert(1)"}, ["link"]),
        (DEPLOY | {"link": "https:///path"}, ["link"]),
        (DEPLOY | {"link": "https://x.example/" + "x" * 2048}, ["link"]),
        (DEPLOY | {"time": "yesterday"}, ["time"]),
        (DEPLOY | {"tags": "x" * 51}, ["tags"]),
        (DEPLOY | {"colour": "red"}, ["colour"]),
    ],
)
def test_a_faulty_marker_is_refused_by_field(api, sent, faulty):
    assert sorted(api.errors("POST", "/markers", json=sent)) == faulty
    assert api.get("/markers")["meta"]["total"] == 0


def test_the_list_is_of_a_time_and_of_a_monitor(api):
    monitor = api.monitor(tags="shop")
    api.data("POST", "/markers", data=DEPLOY)
    api.data("POST", "/markers", data={"name": "mail v3", "tags": "mail"})
    found = api.get("/markers", monitor_id=monitor["id"], **{"from": AT, "to": AT})["data"]
    assert [one["name"] for one in found] == ["shop v2.1"]
    answer = api("GET", "/markers?from=2026-11-22T00:00:00&to=2026-11-21T00:00:00")
    assert list(answer.json["errors"]) == ["to"]


def test_a_key_that_may_only_read_stores_none(app, api):
    key = make_key(app, "read", name="reader")
    headers = {"Authorization": f"Bearer {key}"}
    assert api("POST", "/markers", data=DEPLOY, headers=headers).status_code == 403


def test_me_names_markers(api):
    assert "markers" in api.get("/me")["data"]["features"]
