"""The examples of /docs/api, run as somebody who has copied them runs them, and what it says."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from flask import Flask

from app.api.reference import Reference, references
from tests.factories import make_delivery, make_heartbeat, make_key, make_monitor
from tests.support.loopback import serving

pytestmark = pytest.mark.settings(rate_limit=0)

CLOSED = "http://127.0.0.1:9/"  # in place of shop.example, which a test must not look for
# Records are made before they are read, and deleted last: those that are part of another first.
METHODS = ("POST", "GET", "PATCH", "DELETE")
FIRST = ("monitors_store", "contacts_store", "status_pages_store", "posts_store", "incidents_store")
LAST = ("posts_delete", "contacts_delete", "status_pages_delete", "monitors_delete")
# A person puts the mark of a channel in, which another answer has, and an incident of the page.
NOT_AS_IT_IS = {"shared_channels_store": 422, "posts_draft": 404}


def in_shell(reference: Reference, root: str) -> str:
    command = reference.curl(root).replace("curl", "curl --silent", 1)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    return done.stdout


def in_python(reference: Reference, root: str) -> str:
    with redirect_stdout(StringIO()) as printed:
        exec(compile(reference.python(root), reference.name, "exec"), {})  # noqa: S102
    return printed.getvalue().partition(" ")[2]


def by_both(reference: Reference, root: str) -> str:
    """In the shell where it has something to quote."""
    quoted = reference.example is not None or "?" in reference.target
    return (in_shell if quoted else in_python)(reference, root)


def in_order() -> Iterator[Reference]:
    def order(reference: Reference) -> tuple[bool, int, bool]:
        name, method = reference.name, reference.method
        first = FIRST.index(name) if name in FIRST else len(FIRST)
        last = LAST.index(name) if name in LAST else -1
        return METHODS.index(method), first, last

    return iter(sorted(references().values(), key=order))


class Records:
    """The ids that answers gave, by the first part of the path; some records are made here."""

    def __init__(self, app: Flask) -> None:
        self.ids: dict[str, int] = {}
        heartbeat = make_heartbeat(app, "a" * 32)
        app.test_client().post(f"/ping/{'a' * 32}")
        key = {"Authorization": f"Bearer {make_key(app, 'admin', 'first')}"}
        place = {"name": f"bergen-{heartbeat.id}", "carrier": "agent"}
        agent = app.test_client().post("/api/v1/locations", json=place, headers=key)
        quick = make_monitor(app, url=CLOSED, alerts=[["email", "ops@example.com"]])
        self.own = {
            "monitors_check": quick.id,
            "monitors_test_alert": quick.id,
            "monitors_heartbeat_token": heartbeat.id,
            "monitors_ping": heartbeat.id,
            "deliveries_show": make_delivery(app),
            "deliveries_retry": make_delivery(app, status="failed"),
            "deliveries_give_up": make_delivery(app, status="pending"),
            "locations_token": agent.json["data"]["id"],
        }

    def put_into(self, reference: Reference) -> Reference:
        path, _sign, query = reference.target.partition("?")
        parts = path.split("/")
        for index, part in enumerate(parts):
            if part == "1":
                own = self.own.get(reference.name) if index == 2 else None
                parts[index] = str(own or self.ids.get(parts[index - 1], 1))
        query = query.replace("incident_id=1", f"incident_id={self.ids.get('incidents')}")
        body = json.loads(json.dumps(reference.example).replace("https://shop.example", CLOSED))
        if body and "monitor_id" in body:
            body["monitor_id"] = self.ids["monitors"]
        if body and "ids" in body:
            body["ids"] = [self.ids["incidents"]]
        target = "/".join(parts) + (f"?{query}" if query else "")
        return replace(reference, target=target, example=body)

    def note(self, reference: Reference, answer: dict[str, Any]) -> None:
        if answer.get("status") == 201 and isinstance(answer["data"], dict):
            self.ids.setdefault(reference.path.rpartition("/")[2], answer["data"]["id"])


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(
            by_both, marks=pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
        ),
        in_python,
    ],
)
def test_every_example_does_what_it_says(
    app: Flask, monkeypatch: pytest.MonkeyPatch, run: Callable[[Reference, str], str]
):
    monkeypatch.setenv("KEY", make_key(app, "admin"))
    records = Records(app)
    wrong = []
    with serving(app) as root:
        for reference in in_order():
            text = run(records.put_into(reference), root)
            answer = json.loads(text)
            status = answer.get("status", 200)
            expected = NOT_AS_IT_IS.get(reference.name, reference.statuses[0][0])
            if status != expected:
                wrong.append(f"{reference.name}: {text[:300]}")
            records.note(reference, answer)
    assert not wrong, "\n".join(wrong)


def test_fields_say_their_values_limits_and_defaults():
    new = {field.name: field for field in references()["monitors_store"].body}
    assert (new["name"].values, new["name"].required) == ("text, 1 to 255 characters", True)
    assert new["interval"].values == "60 | 180 | 300 | 600 | 900 | 1800 | 3600"
    assert (new["timeout"].values, new["timeout"].default) == ("integer, 1 to 60, or null", "30")
    assert new["alerts"].values == "list, up to 20 of: {key, value}, or null"
    assert new["quiet_start"].values == "time of day, as 08:30, or null"
    assert new["verify_tls"].default == "true"
    assert "read as UTC" in new["maintenance_start_at"].description
    report = {field.name: field.required for field in references()["reports_show"].parameters}
    assert (report["from"], report["monitors"]) == (True, False)


def test_each_operation_says_its_scope_and_its_level():
    base = {name for name, reference in references().items() if reference.level == 0}
    five = {"list_", "store", "show", "update", "delete"}
    assert base == {f"{name}_{act}" for name in ("monitors", "incidents") for act in five}
    scopes = {name: reference.scope for name, reference in references().items()}
    assert (scopes["monitors_list_"], scopes["monitors_delete"]) == ("read", "write")
    assert (scopes["subscribers_list_"], scopes["locations_token"]) == ("write", "admin")
    assert scopes["openapi_show"] == ""
