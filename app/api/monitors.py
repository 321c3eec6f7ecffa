"""/api/v1/monitors (API 3) and the resources of a monitor (decision 11)."""

from __future__ import annotations

from typing import Any

from flask import Response

from app.api.envelope import answer_rows, record_answer
from app.api.operations import Call, operation, register, shape
from app.checks.kinds import kind_of
from app.codec import json_of
from app.errors import Invalid
from app.forms.monitor import CheckForm, MonitorStoreForm, MonitorUpdateForm
from app.forms.queries import (
    MonitorFilterForm,
    MonitorQueryForm,
    PingQueryForm,
    ResultQueryForm,
    SlowAlertsQueryForm,
    StatisticsQueryForm,
    list_query,
)
from app.records import Monitor, MonitorStatus, counts_for_api
from app.records.resources import MONITORS
from app.stores import base

PATH = "/monitors/{id}"


def _shape(call: Call, record: Monitor) -> dict[str, Any]:
    kind, failing = kind_of(record.url), record.status == MonitorStatus.FAILING
    fields = {**shape(call, record), "kind": kind.name if kind else None, "failing": failing}
    return fields | {"status": MonitorStatus.DOWN.value} if failing else fields


register(MONITORS, update_form=MonitorUpdateForm, query=MonitorQueryForm, shape=_shape)


@operation(
    "POST",
    "/monitors/batch",
    "Create many monitors",
    MONITORS.schema,
    status=201,
    form=MonitorStoreForm,
    several=True,
    rows=MONITORS.name,
)
def batch(call: Call) -> Response:
    """Up to 500, in one transaction. `data` has the answer for each, in their order, as `POST
    /monitors` gives it. Those that are valid are stored, also where others are refused: then the
    status is 207. It counts as one request.
    """
    rows = call.new_rows(MonitorStoreForm, MONITORS.name)
    answers = base.create_valid(rows, call.store.monitors)
    return answer_rows(
        [answer if isinstance(answer, Invalid) else _shape(call, answer) for answer in answers], 201
    )


@operation(
    "GET", "/overview", "Count the monitors in each state", "Overview", query=MonitorFilterForm
)
def overview(call: Call) -> Response:
    """How many of the monitors that the parameters choose are in each state. Those that are
    `failing` are among those that are `down`.
    """
    counts = call.store.monitors.overview(list_query(MonitorFilterForm, call.query))
    return record_answer(counts_for_api(counts))


@operation("POST", PATH + "/check", "Check a monitor now", "CheckedNow", refusals=(409,))
def check(call: Call) -> Response:
    """Checks the monitor in all of its places. The results count like those of the schedule. The
    server makes the check of its own place; another place makes it if it was heard of in the last
    30 s. The answer waits for all of them, at most for the monitor's timeout and 10 s, but not for
    a place of which nothing is heard for 7 s. `places` has the result of each place, or a message
    that says why there is none. The other fields are those of the worst result; `location` says
    whose. If all places are silent, nothing is checked, and the answer is 409. If no result comes,
    it is 503; a result that comes later is among the monitor's results. A second request gets the
    results that places still have to bring for the first one, and a new result of each place that
    has brought it already, unless that was requested within the last second. If two requests wait
    for other places of this monitor already, the answer is 429. The server checks a paused monitor
    itself; that result does not count.
    """
    return record_answer(json_of(call.store.checks.run(call.id)))


@operation("POST", "/checks", "Check a URL without storing it", "Result", form=CheckForm)
def check_unsaved(call: Call) -> Response:
    """Takes the fields of a monitor, of which only `url` is required. The server makes the check,
    in its own place. Nothing is stored, and no incident opens.
    """
    return record_answer(json_of(call.store.checks.run_unsaved(call.new(CheckForm)).result))


@operation("GET", PATH + "/results", "List results", "Result", paged=True, query=ResultQueryForm)
def results(call: Call) -> Response:
    """Single checks, the newest first. They are kept for 90 days by default; statistics stay."""
    return call.page(ResultQueryForm, call.store.results.list, monitor_id=call.id)


@operation("GET", PATH + "/certificates", "Show the certificate chain", "CertificateChain")
def certificates(call: Call) -> Response:
    """The certificates that the last check over TLS saw, the server's own certificate first."""
    return record_answer(json_of(call.store.results.certificates(call.id)))


@operation("GET", PATH + "/statistics", "Show statistics", "Statistics", query=StatisticsQueryForm)
def statistics(call: Call) -> Response:
    """The figures of the range up to now, or of the time between `from` and `to`: uptime in
    percent, response times in ms, and buckets for a chart.
    """
    parameters = call.parameters(StatisticsQueryForm)
    if parameters["from"]:
        figures = call.store.results.statistics_between(
            call.id, parameters["from"], parameters["to"]
        )
    else:
        figures = call.store.results.statistics(call.id, str(parameters["range"]))
    return record_answer(figures)


@operation(
    "GET", PATH + "/slow-alerts", "Count alerts for slowness", "SlowAlerts",
    query=SlowAlertsQueryForm,
)  # fmt: skip
def slow_alerts(call: Call) -> Response:
    """How often it would have alerted in the last 30 days, with these values of the fields of the
    same names: `count`, since when its results were looked at, and the start of the last incident.
    """
    parameters = call.parameters(SlowAlertsQueryForm)
    values = parameters["slow_after"], parameters["slow_alert_after"]
    return record_answer(json_of(call.store.results.slow_alerts(call.id, *values)))


@operation("POST", PATH + "/test-alert", "Send a test alert", "DeliveryIds", refusals=(409,))
def test_alert(call: Call) -> Response:
    """To each channel of the monitor and of its contacts, once, as a delivery of its own."""
    return record_answer({"deliveries": list(call.store.channels.test_all(call.id))})


@operation(
    "GET", PATH + "/pings", "List the pings of a heartbeat", "Ping", paged=True, query=PingQueryForm
)
def pings(call: Call) -> Response:
    """The newest first, without their bodies. They are kept for as long as results are."""
    return call.page(PingQueryForm, call.store.heartbeats.list, monitor_id=call.id)


@operation("GET", PATH + "/pings/{ping}", "Show a ping", "Ping")
def ping(call: Call) -> Response:
    """With the first 10,000 bytes of its body."""
    call.store.monitors.require(call.id)
    record = call.store.heartbeats.get(call.id, call.ids["ping"])
    call.refuse_input()
    return record_answer(json_of(record))


@operation("POST", PATH + "/heartbeat-token", "Make a new ping URL", "Monitor", refusals=(409,))
def heartbeat_token(call: Call) -> Response:
    """The old one ends at once. A monitor of another kind has none: 409."""
    return record_answer(_shape(call, call.store.heartbeats.new_token(call.id)))
