"""/api/v1/post-templates over HTTP."""

from __future__ import annotations

import pytest

from tests.api.conftest import BASE

SLOW = {"name": "Slow", "title": "Slow answers", "state": "investigating", "body": "a\r\nb"}


def test_a_post_template_is_stored_from_a_form_shown_updated_and_deleted(api):
    answer = api("POST", "/post-templates", data=SLOW)
    assert answer.status_code == 201
    template = answer.json["data"]
    path = f"/post-templates/{template['id']}"
    assert answer.headers["Location"] == f"{BASE}{path}"
    created = template["created_at"]
    times = {"created_at": created, "updated_at": created}
    assert template == SLOW | times | {"id": template["id"], "body": "a\nb"}
    assert api.get(path)["data"] == template
    changed = api.data("PATCH", path, json={"state": "completed"})
    assert changed == template | {"state": "completed", "updated_at": changed["updated_at"]}
    assert api.get("/post-templates")["data"] == [changed]
    assert api("DELETE", path).json == {
        "id": template["id"],
        "object": "post-template",
        "deleted": True,
        "status": 200,
    }
    assert api.get("/post-templates")["meta"]["total"] == 0


@pytest.mark.parametrize(
    ("sent", "faulty"),
    [
        ({}, ["body", "name", "state", "title"]),
        (SLOW | {"name": " "}, ["name"]),
        (SLOW | {"name": "x" * 81}, ["name"]),
        (SLOW | {"title": "x" * 256}, ["title"]),
        (SLOW | {"state": "broken"}, ["state"]),
        (SLOW | {"body": "x" * 10_001}, ["body"]),
        (SLOW | {"colour": "red"}, ["colour"]),
        (SLOW | {"name": "TAKEN"}, ["name"]),
    ],
)
def test_a_faulty_post_template_is_refused_by_field(api, sent, faulty):
    api.data("POST", "/post-templates", data=SLOW | {"name": "Taken"})
    assert sorted(api.errors("POST", "/post-templates", json=sent)) == faulty
    assert api.get("/post-templates")["meta"]["total"] == 1


def test_the_longest_post_template_is_stored(api):
    longest = SLOW | {"name": "x" * 80, "title": "x" * 255, "body": "x" * 10_000}
    assert api.data("POST", "/post-templates", json=longest).items() >= longest.items()


def test_me_names_post_templates(api):
    assert "post_templates" in api.get("/me")["data"]["features"]
