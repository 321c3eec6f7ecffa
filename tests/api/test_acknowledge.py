"""POST /incidents/acknowledge: many incidents, each with an answer of its own (API 4)."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select

from app.db import db
from app.db.tables import AuditRow, DeliveryRow
from app.records import MAX_IN_BATCH
from tests.api.conftest import MONITOR, Api
from tests.factories import make_key

PATH = "/incidents/acknowledge"


def outage(api: Api, **more: Any) -> int:
    monitor = api.data("POST", "/monitors", json={**MONITOR, **more})["id"]
    fields = {"monitor_id": monitor, "started_at": "2026-01-01T00:00:00"}
    id: int = api.data("POST", "/incidents", data=fields)["id"]
    return id


def test_each_has_an_answer_and_sent_again_nothing_changes(api: Api, app: Flask) -> None:
    mail = {"alerts": [{"key": "email", "value": "ops@shop.example"}]}
    first, second, ended = outage(api, **mail), outage(api, **mail), outage(api)
    api.data("PATCH", f"/incidents/{ended}", data={"ended_at": "2026-01-02T00:00:00"})
    answer = api("POST", PATH, json={"ids": [second, 4711, ended, first, second]})
    assert (answer.status_code, answer.json["status"]) == (207, 207)
    rows = answer.json["data"]
    assert [row["status"] for row in rows] == [200, 404, 409, 200], "each once, in their order"
    assert [rows[0]["data"]["id"], rows[3]["data"]["id"]] == [second, first]
    assert rows[1]["message"] == "There is no incident with the id 4711."
    assert rows[2]["message"] == "This incident has ended."
    for row in (rows[0], rows[3]):
        stored = api.get(f"/incidents/{row['data']['id']}")["data"]
        assert row["data"] == stored | {"duration": row["data"]["duration"]}
        assert row["data"]["acknowledged_by"] == "API key test"
    again = api("POST", PATH, data={"ids[0]": second, "ids[7]": first})
    assert again.status_code == 200
    times = [row["data"]["acknowledged_at"] for row in (rows[0], rows[3])]
    assert [row["data"]["acknowledged_at"] for row in again.json["data"]] == times
    with app.app_context():
        lines, times = select(AuditRow.object_id), select(DeliveryRow.created_at)
        messages = times.where(DeliveryRow.event == "incident.acknowledged")
        sent = db.session.scalars(messages).all()
        acknowledged = db.session.scalars(lines.where(AuditRow.action == "acknowledged")).all()
    assert (len(sent), len(set(sent))) == (2, 1), "with one time, so they become one message"
    assert sorted(acknowledged) == sorted([first, second])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"json": {"ids": []}}, "ids"),
        ({"json": {}}, "ids"),
        ({"json": {"ids": list(range(1, MAX_IN_BATCH + 2))}}, "ids"),
        ({"json": {"ids": [1, "x"]}}, "ids.1"),
        ({"json": {"ids": [1, 0]}}, "ids.1"),
        ({"data": {"ids": "1,2"}}, "ids"),
        ({"data": {"ids[0]": "1", "comment": "x"}}, "comment"),
    ],
)
def test_a_list_that_is_wrong_is_refused_as_a_whole(
    api: Api, body: dict[str, Any], field: str
) -> None:
    id = outage(api)
    assert list(api.errors("POST", PATH, **body)) == [field]
    assert api.get(f"/incidents/{id}")["data"]["status"] == "unresolved"


def test_an_id_that_none_can_have_is_called_an_incident(api: Api) -> None:
    fault = ["There is no incident with the id 0."]
    assert api.errors("POST", PATH, json={"ids": [0]}) == {"ids.0": fault}


def test_rights_are_those_of_an_update(api: Api, app: Flask) -> None:
    shop, other = outage(api, tags="shop"), outage(api)
    bound = Api(app.test_client(), make_key(app, "write", tag="shop"))
    rows = bound("POST", PATH, json={"ids": [other, shop]}).json["data"]
    assert [row["status"] for row in rows] == [404, 200]
    assert rows[0]["message"] == f"There is no incident with the id {other}."
    assert api.get(f"/incidents/{other}")["data"]["status"] == "unresolved"
    assert (
        Api(app.test_client(), make_key(app, "read"))(
            "POST", PATH, json={"ids": [shop]}
        ).status_code
        == 403
    )
