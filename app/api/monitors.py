"""/api/v1/monitors (interface.md 4.1) and the resources of a monitor (decisions.md 11)."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response

from app.api.call import Call
from app.api.envelope import created, deleted, one, paged
from app.api.operations import operation
from app.checks.kinds import kind_of
from app.codec import json_of
from app.forms import binding
from app.forms.monitor import CheckForm, MonitorForm, MonitorUpdateForm
from app.forms.queries import (
    MonitorFilterForm,
    MonitorQueryForm,
    ResultQueryForm,
    StatisticsQueryForm,
)
from app.records import Monitor, MonitorStatus

MONITORS = "/monitors"
MONITOR = "/monitors/{id}"


def _shape(call: Call, record: Monitor) -> dict[str, Any]:
    kind = kind_of(record.url)
    return {**json_of(record, masked=call.masked), "kind": kind.name if kind else None}


@operation("GET", MONITORS, "List monitors", "Monitor", paged=True, query=MonitorQueryForm)
def list_(call: Call) -> Response:
    page = call.store.monitors.list(binding.monitor_query(call.query))
    return paged(page, partial(_shape, call), call.query)


@operation(
    "GET", "/overview", "Count the monitors in each state", "Overview", query=MonitorFilterForm
)
def overview(call: Call) -> Response:
    counts = call.store.monitors.overview(binding.monitor_filter(call.query))
    return one({status.value: counts.get(status, 0) for status in MonitorStatus})


@operation("POST", MONITORS, "Create a monitor", "Monitor", status=201, form=MonitorForm)
def store(call: Call) -> Response:
    return created(_shape(call, call.store.monitors.create(call.new(MonitorForm))))


@operation("GET", MONITOR, "Show a monitor", "Monitor")
def show(call: Call) -> Response:
    record = call.store.monitors.get(call.id)
    call.without_input()
    return one(_shape(call, record))


@operation("PUT PATCH", MONITOR, "Update a monitor", "Monitor", form=MonitorUpdateForm, update=True)
def update(call: Call) -> Response:
    fields = call.changes(MonitorUpdateForm, call.store.monitors.get(call.id))
    return one(_shape(call, call.store.monitors.update(call.id, fields)))


@operation("DELETE", MONITOR, "Delete a monitor", "Deleted")
def delete(call: Call) -> Response:
    call.store.monitors.require(call.id)
    call.without_input()
    call.store.monitors.delete(call.id)
    return deleted("monitor", call.id)


@operation("POST", MONITOR + "/check", "Check a monitor now", "CheckedNow", refusals=(409, 503))
def check(call: Call) -> Response:
    call.store.monitors.require(call.id)
    call.without_input()
    return one(json_of(call.store.checks.run(call.id)))


@operation("POST", "/checks", "Check a URL without storing it", "Result", form=CheckForm)
def check_unsaved(call: Call) -> Response:
    return one(json_of(call.store.checks.run_unsaved(call.new(CheckForm)).result))


@operation("GET", MONITOR + "/results", "List results", "Result", paged=True, query=ResultQueryForm)
def results(call: Call) -> Response:
    call.store.monitors.require(call.id)
    page = call.store.results.list(binding.result_query(call.id, call.query))
    return paged(page, json_of, call.query)


@operation("GET", MONITOR + "/certificates", "Show the certificate chain", "CertificateChain")
def certificates(call: Call) -> Response:
    call.store.monitors.require(call.id)
    call.without_input()
    return one(json_of(call.store.results.certificates(call.id)))


@operation(
    "GET", MONITOR + "/statistics", "Show statistics", "Statistics", query=StatisticsQueryForm
)
def statistics(call: Call) -> Response:
    call.store.monitors.require(call.id)
    asked = binding.query_values(StatisticsQueryForm, call.query)
    if asked["from"]:
        found = call.store.results.statistics_between(call.id, asked["from"], asked["to"])
    else:
        found = call.store.results.statistics(call.id, str(asked["range"]))
    return one(found)


@operation("POST", MONITOR + "/test-alert", "Send a test alert", "DeliveryIds")
def test_alert(call: Call) -> Response:
    call.store.monitors.require(call.id)
    call.without_input()
    return one({"deliveries": list(call.store.channels.test_all(call.id))})
