"""/api/v1/markers and /api/v1/post-templates over HTTP."""

from __future__ import annotations

import pytest

from tests.api.conftest import BASE

AT = "2026-11-21T08:00:00"
DEPLOY = {"name": "shop v2.1", "link": "https://ci.example/7", "tags": "shop, api", "time": AT}
SLOW = {"name": "Slow", "title": "Slow answers", "state": "investigating", "body": "a\r\nb"}


@pytest.mark.parametrize(
    ("kind", "sent", "stored", "change"),
    [
        ("marker", DEPLOY, {"time": AT + "Z", "tags": ["shop", "api"]},
         {"tags": ["api"], "link": None}),
        ("post-template", SLOW, {"body": "a\nb"}, {"state": "completed"}),
    ],
)  # fmt: skip
def test_one_is_stored_from_a_form_shown_updated_and_deleted(api, kind, sent, stored, change):
    answer = api("POST", f"/{kind}s", data=sent)
    assert answer.status_code == 201
    record = answer.json["data"]
    path, created = f"/{kind}s/{record['id']}", record["created_at"]
    assert answer.headers["Location"] == f"{BASE}{path}"
    times = {"created_at": created, "updated_at": created}
    assert record == sent | stored | times | {"id": record["id"]}
    assert api.get(path)["data"] == record
    changed = api.data("PATCH", path, json=change)
    assert changed == record | change | {"updated_at": changed["updated_at"]}
    assert api.get(f"/{kind}s")["data"] == [changed]
    gone = {"id": record["id"], "object": kind, "deleted": True, "status": 200}
    assert api("DELETE", path).json == gone
    assert api.get(f"/{kind}s")["meta"]["total"] == 0


def test_a_faulty_marker_is_refused_by_field(api):
    assert list(api.errors("POST", "/markers", json={})) == ["name"]
    for field, value in (
        ("name", " "), ("name", "x" * 256), ("link", "javascript:alert(1)"),
        ("link", "https:///path"), ("link", "https://x.example/" + "x" * 2048),
        ("time", "yesterday"), ("tags", "x" * 51), ("colour", "red"),
    ):  # fmt: skip
        assert list(api.errors("POST", "/markers", json=DEPLOY | {field: value})) == [field]
    assert api.get("/markers")["meta"]["total"] == 0


def test_a_faulty_post_template_is_refused_by_field(api):
    api.data("POST", "/post-templates", data=SLOW | {"name": "Taken"})
    faults = api.errors("POST", "/post-templates", json={})
    assert sorted(faults) == ["body", "name", "state", "title"]
    for field, value in (
        ("name", " "), ("name", "x" * 81), ("name", "TAKEN"), ("title", "x" * 256),
        ("state", "broken"), ("body", "x" * 10_001), ("colour", "red"),
    ):  # fmt: skip
        assert list(api.errors("POST", "/post-templates", json=SLOW | {field: value})) == [field]
    assert api.get("/post-templates")["meta"]["total"] == 1
    longest = SLOW | {"name": "x" * 80, "title": "x" * 255, "body": "x" * 10_000}
    assert api.data("POST", "/post-templates", json=longest).items() >= longest.items()


def test_the_list_is_of_a_time_and_of_a_monitor(api, reader):
    monitor = api.monitor(tags="shop")
    api.data("POST", "/markers", data=DEPLOY)
    api.data("POST", "/markers", data={"name": "mail v3", "tags": "mail"})
    markers = api.get("/markers", monitor_id=monitor["id"], **{"from": AT, "to": AT})["data"]
    assert [marker["name"] for marker in markers] == ["shop v2.1"]
    answer = api("GET", "/markers?from=2026-11-22T00:00:00&to=2026-11-21T00:00:00")
    assert list(answer.json["errors"]) == ["to"]
    assert reader("POST", "/markers", data=DEPLOY).status_code == 403
