"""/api/v1/openapi.json documents what the API does (decision 11), from the same forms."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings

from app.api import operations
from app.api.openapi import document
from app.api.operations import PATHS
from app.db.tables import MonitorRow
from app.records import (
    ALERT_DAYS,
    AUTO,
    CONTACT,
    INTERVALS,
    PAGE_SIZES,
    AlertCondition,
    AssertionOp,
    Channel,
    RequestMethod,
    StatisticsRange,
)
from app.stats import RANGES
from tests import samples
from tests.factories import make_incident, make_key, make_monitor, make_subscriber
from tests.faults.broken import corrupt

MAIL = [{"key": "email", "value": "ops@shop.example"}]

pytestmark = pytest.mark.settings(rate_limit=0)


BROKEN = {"started_at": "2026-01-01T00:00:00"}


@pytest.fixture
def written(stranger):
    return stranger.get("/openapi.json")


@pytest.mark.settings(public_url=None)
def test_the_document_needs_no_key_and_names_the_requested_url(stranger):
    answer = stranger("GET", "/openapi.json", headers={"Host": "status.example"})
    assert answer.json["servers"] == [{"url": "http://status.example/api/v1"}]
    assert answer.json["openapi"] == "3.1.0"
    assert stranger("POST", "/openapi.json").status_code == 405


def test_the_document_has_every_operation_under_a_unique_name(written):
    described = {
        (path, method.upper())
        for path, path_item in written["paths"].items()
        for method in path_item
    }
    assert described == {
        (p, method) for p, path_item in PATHS.items() for method in path_item.operations
    }
    names = [
        op["operationId"] for path_item in written["paths"].values() for op in path_item.values()
    ]
    assert len(names) == len(set(names))


def test_the_document_is_the_same_without_docstrings(written, monkeypatch):
    """``wakeful serve`` runs so."""
    monkeypatch.setattr(operations, "_docstring", operations._docstring.__wrapped__)  # not cached
    for path in PATHS.values():
        for operation in path.operations.values():
            if operation.described is None:
                monkeypatch.setattr(operation.handler, "__doc__", None)
    assert json.loads(json.dumps(document.__wrapped__()))["paths"] == written["paths"]


def test_every_operation_says_what_it_does_and_what_it_may_answer(written):
    tags = {tag["name"]: tag["description"] for tag in written["tags"]}
    calls = [call for path_item in written["paths"].values() for call in path_item.values()]
    assert {call["operationId"] for call in calls if not call["description"]} == set()
    assert {tag for call in calls for tag in call["tags"]} == tags.keys()
    with_key = [call for call in calls if call.get("security") != []]
    for call in with_key:
        expected = {"401", "403", "413", "415", "422", "429", "500", "503"}
        assert expected <= call["responses"].keys(), call["operationId"]
    assert {call["operationId"] for call in calls if "409" in call["responses"]} == {
        "contacts_delete", "contacts_test", "deliveries_give_up", "deliveries_retry",
        "incidents_store", "incidents_update", "incidents_update_put", "locations_delete",
        "locations_token", "monitors_check", "monitors_heartbeat_token",
        "monitors_test_alert", "status_pages_store",
        "status_pages_update", "status_pages_update_put",
    }  # fmt: skip


def test_the_manual_names_every_path_parameter_field_and_word(written):
    manual = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    code = re.findall(r"`([^`]+)`|^ {4,}(.+)$", manual, re.MULTILINE)
    words = set(re.findall(r"[\w.-]+", " ".join(inline + block for inline, block in code)))
    schemas = written["components"]["schemas"].values()
    calls = [call for path_item in written["paths"].values() for call in path_item.values()]
    names = {word for path in written["paths"] for word in path.split("/") if "{" not in word}
    names |= {parameter["name"] for call in calls for parameter in call.get("parameters", ())}
    names |= {name for schema in schemas for name in schema.get("properties", ())}
    names |= {
        word for schema in schemas for word in schema.get("enum", ()) if isinstance(word, str)
    }
    signs = {op for op in AssertionOp if f"`{op}`" in manual}  # "=" is no word
    assert names - words - signs == {""}


def test_updates_have_no_defaults_that_a_client_would_send(written):
    """A generated client's update of a name made a closed status page public."""
    changes = {
        name: schema
        for name, schema in written["components"]["schemas"].items()
        if name.endswith("Changes")
    }
    assert {"MonitorChanges", "StatusPageChanges", "ContactChanges"} <= changes.keys()
    fields = [part for schema in changes.values() for part in schema["properties"].values()]
    assert not [part for part in fields if "default" in part]


def test_what_the_document_says_of_places_explains_itself(written):
    """Their fields had names alone, such as "trouble"."""
    schemas = written["components"]["schemas"]
    place = schemas["Location"]["properties"]
    plain = {"id", "name", "label", "version", "created_at"}
    assert {name for name, schema in place.items() if "description" not in schema} == plain
    assert schemas["PlaceSeen"]["properties"]["state"] == place["state"]
    fields = schemas["NewMonitor"]["properties"]
    assert "default" in fields["locations"]["description"]
    assert "has none" in fields["location_rule"]["description"]


def test_the_documents_choices_and_limits_are_those_of_the_forms(written):
    schemas = written["components"]["schemas"]
    body = written["paths"]["/monitors"]["post"]["requestBody"]["content"]
    assert body == {"application/json": {"schema": {"$ref": "#/components/schemas/NewMonitor"}}}
    fields = schemas["NewMonitor"]
    assert fields["required"] == ["name", "url"]  # a heartbeat has an interval by default
    assert schemas["NewContact"]["required"] == ["name", "channels"]
    assert schemas["NewContact"]["properties"]["channels"]["minItems"] == 1
    properties = fields["properties"]
    assert properties["interval"]["enum"] == list(INTERVALS)
    assert schemas["AlertCondition"]["enum"] == list(AlertCondition)
    assert schemas["RequestMethod"]["enum"] == list(RequestMethod)
    days = [part.get("$ref", part.get("type")) for part in properties["ssl_alert_days"]["oneOf"]]
    assert [part.rpartition("/")[2] for part in days] == ["AlertDays", "Automatic", "null"]
    assert (schemas["AlertDays"]["enum"], schemas["Automatic"]["enum"]) == (
        list(ALERT_DAYS),
        [AUTO],
    )
    alerts = properties["alerts"]["items"]["properties"]
    assert alerts["key"]["enum"] == [*Channel, CONTACT]
    assert (properties["name"]["minLength"], properties["name"]["maxLength"]) == (1, 255)
    assert properties["timeout"]["default"] == 30
    assert "format" not in properties["url"]  # clients would write the URL in another spelling
    assert "date-time" in properties["maintenance_start_at"]["format"]
    assert "pause" not in properties
    assert "pause" in schemas["MonitorChanges"]["properties"]
    assert "required" not in schemas["MonitorChanges"]
    report = {p["name"]: p for p in written["paths"]["/report"]["get"]["parameters"]}
    assert [name for name, p in report.items() if p.get("required")] == ["from", "to"]
    query = {p["name"]: p["schema"] for p in written["paths"]["/monitors"]["get"]["parameters"]}
    assert query["per_page"] == {"type": "integer", "enum": list(PAGE_SIZES), "default": 10}


def test_the_documented_ranges_are_those_of_statistics():
    assert list(StatisticsRange) == list(RANGES)


def test_answers_match_the_document(app, api, admin, written):
    """Every property is documented and every documented property is there."""
    monitor = make_monitor(app)
    make_incident(app, monitor)
    unreadable = make_monitor(app, alerts=[["email", "ops@shop.example"]])
    corrupt(app, MonitorRow.alerts, unreadable.id)
    channel = {"alerts[0][key]": "email", "alerts[0][value]": "ops@shop.example"}
    stored = api.monitor(**channel)
    api.data("POST", f"/monitors/{stored['id']}/test-alert")
    window = {"name": "w", "start_at": "2026-01-01T00:00:00", "end_at": "2026-01-02T00:00:00"}
    api.data("POST", "/maintenance-windows", data=window)
    for _ in range(2):
        api.monitor(**channel)  # with it, three have this channel
    page = api.data("POST", "/status-pages", json={"name": "p", "monitors": [stored["id"]]})
    described = {
        samples.SCHEMAS[name]: [api.data("POST", samples.PATHS[name], json=sample.fields)]
        for name, sample in samples.SAMPLES.items()
    }
    path = f"/status-pages/{page['id']}"
    post = {"title": "t", "state": "identified", "body": "b", "monitors[0]": stored["id"]}
    posted = api.data("POST", f"{path}/posts", data=post)
    broken = api.data("POST", "/incidents", data=BROKEN | {"monitor_id": stored["id"]})
    make_subscriber(app, page["id"])
    month = {"from": "2026-03-01T00:00:00", "to": "2026-04-01T00:00:00"}
    slow = {"slow_after": 1, "slow_alert_after": 1}
    shown = {
        "Monitor": api.get("/monitors", hours="true")["data"],
        "Incident": api.get("/incidents")["data"], "Delivery": api.get("/deliveries")["data"],
        "Contact": [api.data("POST", "/contacts", json={"name": "Shop", "channels": MAIL})],
        "MaintenanceWindow": api.get("/maintenance-windows")["data"], **described,
        "StatusPage": api.get("/status-pages")["data"], "Post": api.get(f"{path}/posts")["data"],
        "ReportMail": [api.data("POST", "/report-mails", json={"contact": "Shop"})],
        "PostUpdate": [api.get(f"{path}/posts/{posted['id']}/updates/1")["data"]],
        "PostDraft": [api.get(f"{path}/draft", incident_id=broken["id"])["data"]],
        "Subscriber": api.get(f"{path}/subscribers")["data"],
        "Cleared": [api("DELETE", f"{path}/subscribers").json], "Key": [api.get("/me")["data"]],
        "SharedChannels": [api.get(f"/monitors/{stored['id']}/shared-channels")["data"]],
        "ChannelSetup": [api.get("/alerts/channels")["data"]],
        "MonitorsNamed": [api.get("/alerts/unreadable")["data"]],
        "Location": [admin.data("POST", "/locations", json={"name": "oslo", "carrier": "agent"})],
        "PlacesOfMonitor": [api.get(f"/monitors/{stored['id']}/locations")["data"]],
        "Overview": [api.get("/overview")["data"]],
        "CertificateChain": [api.get(f"/monitors/{stored['id']}/certificates")["data"]],
        "Report": [api.get("/report", **month, days="true")["data"]],
        "CheckedNow": [api.data("POST", f"/monitors/{stored['id']}/check")],
        "Result": api.get(f"/monitors/{stored['id']}/results")["data"],
        "Statistics": [api.get(f"/monitors/{stored['id']}/statistics")["data"]],
        "SlowAlerts": [api.get(f"/monitors/{stored['id']}/slow-alerts", **slow)["data"]],
        "Links": [api.get("/monitors")["links"]], "Meta": [api.get("/monitors")["meta"]],
        "Deleted": [api("DELETE", f"/monitors/{stored['id']}").json],
        "Error": [api("GET", "/monitors/999").json],
        "Invalid": [api("POST", "/monitors", data={"timeout": "x"}).json],
    }  # fmt: skip
    schemas = written["components"]["schemas"]
    assert shown.keys() <= schemas.keys()
    for name, records in shown.items():
        assert records, name
        for record in records:
            jsonschema_rs.validate({**schemas[name], "components": written["components"]}, record)
            optional = schemas[name]["properties"].keys() - schemas[name]["required"]
            assert set(record) | optional == set(schemas[name]["properties"]), name


@pytest.mark.slow
@pytest.mark.parametrize("examples", [1, pytest.param(20, marks=pytest.mark.more)])
def test_generated_requests_get_documented_answers(app, examples):
    """Schemathesis generates valid and invalid ones from the document."""
    # Imported by the one worker that runs this, not by all that collect it: it takes a second.
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    expected = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    make_incident(app, make_monitor(app))
    # Called through WSGI, Schemathesis accepts gzip and does not decode it.
    headers = {"Authorization": f"Bearer {make_key(app)}", "Accept-Encoding": "identity"}
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app)
    tried = 0
    # Without this, a check would connect to generated URLs.
    for result in schema.exclude(path_regex="check").get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case):
            case.call_and_validate(checks=expected, headers=headers)

        ask()
        tried += 1
    assert tried > 20
