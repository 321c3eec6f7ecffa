"""A client that a generator makes of the document creates, reads, changes and deletes records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.factories import make_key
from tests.support.loopback import serving

pytestmark = pytest.mark.slow

# The code that a person would write with the client. It stops at the first answer that is not as
# documented.
PROGRAM = """
import importlib, pkgutil, sys
from datetime import datetime, timezone
import wakeful_client
from wakeful_client import AuthenticatedClient
from wakeful_client.api.incidents import (
    incidents_delete, incidents_list, incidents_show, incidents_store, incidents_update,
)
from wakeful_client.api.monitors import (
    monitors_delete, monitors_list, monitors_show, monitors_store, monitors_update,
)
from wakeful_client.models import (
    AlertDays, Deleted, IncidentChanges, Invalid, MonitorAnswer, MonitorChanges, NewIncident,
    NewMonitor, NewMonitorInterval, Pair,
)

for module in pkgutil.walk_packages(wakeful_client.__path__, "wakeful_client."):
    importlib.import_module(module.name)

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
new = NewMonitor(
    name="Shop", url="http://127.0.0.1:9/", interval=NewMonitorInterval.VALUE_60,
    ssl_alert_days=AlertDays.VALUE_14, request_headers=[Pair(key="X-Shop", value="1")],
)
made = monitors_store.sync(client=client, body=new)
assert isinstance(made, MonitorAnswer), made
monitor = made.data
assert (monitor.name, monitor.ssl_alert_days) == ("Shop", 14), monitor
assert MonitorChanges(name="Blog").to_dict() == {"name": "Blog"}
changed = monitors_update.sync(monitor.id, client=client, body=MonitorChanges(name="Blog"))
assert changed.data.name == "Blog", changed
assert monitors_show.sync(monitor.id, client=client).data.interval == 60
assert [one.name for one in monitors_list.sync(client=client).data] == ["Blog"]
refused = monitors_store.sync(
    client=client, body=NewMonitor(name="", url="x", interval=NewMonitorInterval.VALUE_60)
)
assert isinstance(refused, Invalid), refused

began = datetime(2026, 1, 1, tzinfo=timezone.utc)
reported = incidents_store.sync(
    client=client, body=NewIncident(monitor_id=monitor.id, started_at=began, cause="Power")
)
incident = reported.data
assert (incident.started_at, incident.ended_at) == (began, None), incident
ended = datetime(2026, 1, 2, tzinfo=timezone.utc)
resolved = incidents_update.sync(incident.id, client=client, body=IncidentChanges(ended_at=ended))
assert resolved.data.status == "resolved", resolved
assert incidents_show.sync(incident.id, client=client).data.ended_at == ended
assert len(incidents_list.sync(client=client).data) == 1
assert isinstance(incidents_delete.sync(incident.id, client=client), Deleted)
assert isinstance(monitors_delete.sync(monitor.id, client=client), Deleted)
assert monitors_list.sync(client=client).data == []
"""


def test_a_generated_client_works(app: Flask, client: FlaskClient, tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(client.get("/api/v1/openapi.json").json))
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"post_hooks": []}))
    made = _run(
        Path(sys.executable).parent / "openapi-python-client",
        *("generate", "--path", document, "--config", config, "--output-path", tmp_path / "made"),
    )
    assert "WARNING" not in made, made
    with serving(app) as url:
        _run(
            *(sys.executable, "-W", "error", "-c", PROGRAM, f"{url}/api/v1", make_key(app)),
            folder=tmp_path / "made",
        )


def _run(*command: object, folder: Path | None = None) -> str:
    """The output of the command, which must succeed."""
    done = subprocess.run(
        list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
