"""Jobs that call another tool are imported with the secrets that they call (decision 18)."""

from __future__ import annotations

import json

import pytest

from app.forms.imported import ImportDefaults, validate
from app.forms.schema import FormContext
from app.imports import files

UUID = "5f2c1e34-0000-4000-8000-00000000000a"
CHECK = {
    "name": "Nightly", "slug": "nightly", "tags": "prod db", "desc": "", "grace": 900,
    "n_pings": 7, "status": "up", "started": False, "last_ping": None, "next_ping": None,
    "manual_resume": False, "methods": "", "subject": "", "start_kw": "", "success_kw": "",
    "failure_kw": "", "filter_subject": False, "filter_body": False, "uuid": UUID,
    "ping_url": f"https://hc.example/ping/{UUID}", "update_url": "https://hc.example/x",
    "pause_url": "https://hc.example/y", "resume_url": "https://hc.example/z", "channels": "a,b",
    "timeout": 3600,
}  # fmt: skip
CRON = {"timeout": None, "schedule": "30 2 * * *", "tz": "Europe/Berlin", "status": "paused"}
PUSH = {"type": "push", "name": "Nightly", "interval": 3600, "maxretries": 2, "retryInterval": 60,
        "pushToken": "k7Yz0PqRs1TuVwXy2AbCd3EfGh4IjKlM", "active": True}  # fmt: skip
STACK = {
    "id": "1", "type": "heartbeat",
    "attributes": {
        "url": "https://uptime.example/api/v1/heartbeat/aBcDeF0123456789", "name": "Nightly",
        "period": 3600, "grace": 300, "call": False, "sms": False, "email": True, "push": True,
        "team_wait": None, "heartbeat_group_id": None, "sort_index": None, "paused_at": None,
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
        "status": "up",
    },
}  # fmt: skip
GATUS = {
    "name": "Nightly", "group": "prod", "token": "k7Yz0PqRs1TuVwXy2AbC", "enabled": False,
    "heartbeat": {"interval": "30m"},
    "alerts": [{"type": "slack", "failure-threshold": 5, "send-on-resolved": True}],
}  # fmt: skip


def validated(data):
    [candidate] = files.read(json.dumps(data).encode()).candidates
    return validate(candidate, ImportDefaults(), FormContext()), candidate


@pytest.mark.parametrize(
    ("data", "token", "expected"),
    [
        ({"checks": [CHECK]}, UUID, {"period": 3600, "grace": 900, "max_run": 900,
                                     "slug": "nightly",
                                     "tags": ("prod", "db")}),
        ({"checks": [CHECK | CRON]}, UUID, {"period": None, "schedule": ("30 2 * * *",),
                                            "zone": "Europe/Berlin"}),
        ({"checks": [CHECK | {"schedule": "Mon 02:00\nhourly", "timeout": None, "tz": ""}]}, UUID,
         {"schedule": ("Mon 02:00", "hourly"), "zone": "UTC"}),
        ({"monitorList": [PUSH]}, PUSH["pushToken"], {"period": 3600, "grace": 60}),
        ({"data": [STACK]}, "aBcDeF0123456789", {"period": 3600, "grace": 300}),
        ({"external-endpoints": [GATUS]}, GATUS["token"], {"period": 1800, "grace": 60,
                                                           "tags": ("prod",)}),
        ({"external-endpoints": [GATUS | {"heartbeat": None}]}, GATUS["token"],
         {"period": 31_536_000}),
        ({"external-endpoints": [GATUS | {"token": "short"}]}, None, {"period": 1800}),
    ],
)  # fmt: skip
def test_a_job_keeps_its_secret_and_its_times(data, token, expected):
    monitor, candidate = validated(data)
    assert monitor.fits, monitor.faults
    assert (monitor.url, monitor.name) == ("heartbeat:", "Nightly")
    fields = dict(monitor.fields)
    assert fields["heartbeat_token"] == token
    assert {name: fields[name] for name in expected} == expected
    assert candidate.paused == ("external-endpoints" in data or data == {"checks": [CHECK | CRON]})
    assert str(token) not in str([*monitor.sentences, monitor.settings])
    settings = dict(line.split(": ", 1) for line in monitor.settings)
    end = settings.get("Secret of the ping URL", "••••None").removeprefix("••••")
    assert (len(end), str(token)[-4:]) == (4, end), "the preview says that it is kept"
    assert settings.get("Name in ping addresses") == fields["slug"]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"checks": [CHECK | {"name": "", "slug": ""}]}, "Check 1"),
        ({"checks": [CHECK | {"name": ""}]}, "nightly"),
        ({"monitorList": [PUSH | {"name": ""}]}, "Monitor 1"),
        ({"data": [STACK | {"attributes": STACK["attributes"] | {"name": None}}]}, "Monitor 1"),
        ({"external-endpoints": [GATUS | {"name": ""}]}, "External endpoint 1"),
    ],
)
def test_a_job_without_a_name_is_not_named_by_its_secret(data, name):
    monitor, _candidate = validated(data)
    assert monitor.fits, monitor.faults
    assert monitor.name == name
    secret = monitor.fields["heartbeat_token"]
    assert secret not in str({**monitor.fields, "heartbeat_token": None})


def test_more_tags_than_a_monitor_has_are_dropped_and_named():
    [candidate] = files.read(
        json.dumps([CHECK | {"tags": " ".join(f"t{n}" for n in range(22))}]).encode()
    ).candidates
    monitor = validate(candidate, ImportDefaults(tags=("moved",)), FormContext())
    assert monitor.fits, monitor.faults
    assert {"moved", "t0", "t18"} <= {*monitor.tags}
    assert len(monitor.tags) == 20
    [remark] = [remark for remark in monitor.remarks if "Tags" in remark]
    assert remark.endswith(": t19, t20, t21.")


@pytest.mark.parametrize(
    ("more", "remarked"),
    [
        ({"status": "paused"}, True),  # there, a ping resumes it
        ({"status": "paused", "manual_resume": True}, False),
        ({"manual_resume": True}, False),
    ],
)
def test_a_paused_check_that_a_ping_resumed_is_remarked_on(more, remarked):
    monitor, _candidate = validated({"checks": [CHECK | more]})
    assert ("stays paused" in str(monitor.remarks)) == remarked


def test_what_healthchecks_has_besides_is_named():
    more = {"desc": "At night", "methods": "POST", "failure_kw": "ERROR"}
    monitor, _candidate = validated({"checks": [CHECK | more | {"uuid": "", "ping_url": ""}]})
    assert monitor.fits
    assert monitor.fields["notes"] == "At night"
    assert monitor.fields["heartbeat_token"] is None
    for word in ("methods", "Keywords", "ping URL is new"):
        assert word in str(monitor.remarks)


def test_a_check_without_a_grace_gets_the_usual_one():
    monitor, _candidate = validated({"checks": [CHECK | {"grace": None}]})
    assert (monitor.fields["grace"], monitor.fields["max_run"]) == (300, None)
    assert "Grace becomes 5 min." in monitor.remarks
