"""Records in the forms of other servers: each is read, or its field is named as not understood."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from app.codec import MalformedData, foreign, json_of
from app.codec.values import moment
from app.records import MASK
from app.stores.remote.monitors import read

MIN = {"id": 7, "name": "Shop", "url": "https://shop.test/"}
ALERTS = [("email", "a@b"), ("slack", "https://hooks.test/x")]
AT = datetime(2026, 11, 21, 8, tzinfo=UTC)


def monitor(own: bool = False, **fields: Any) -> tuple[dict[str, Any], foreign.Gaps]:
    return foreign.monitor(MIN | fields, lambda: own)


def pairs(rows: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(row["key"], row["value"]) for row in rows]


@pytest.mark.parametrize(
    "sent",
    [
        [{"key": "email", "value": "a@b"}, {"key": "slack", "value": "https://hooks.test/x"}],
        [{"channel": "email", "target": "a@b"}, {"channel": "Slack", "target": ALERTS[1][1]}],
        [{"type": "email", "value": "a@b"}, {"type": "slack", "value": ALERTS[1][1], "id": 4}],
        [{"type": "email", "address": "a@b"}, {"type": "slack", "url": ALERTS[1][1]}],
        {"email": ["a@b"], "slack": [ALERTS[1][1]], "sms": []},
        {"email": "a@b", "slack": ALERTS[1][1], "sms": "", "teams": False},
        {"0": {"key": "email", "value": "a@b"}, "5": {"key": "slack", "value": ALERTS[1][1]}},
        {"data": [{"key": "email", "value": "a@b"}, {"key": "slack", "value": ALERTS[1][1]}]},
        [["email", "a@b"], ["slack", ALERTS[1][1]]],
        [{"email": "a@b"}, {"slack": ALERTS[1][1]}],
        ["email:a@b", f"slack: {ALERTS[1][1]}"],
        '[{"key": "email", "value": "a@b"}, {"key": "slack", "value": "https://hooks.test/x"}]',
        '{"email": ["a@b"], "slack": "https://hooks.test/x"}',
    ],
)
def test_alerts_are_read_in_the_forms_that_servers_use(sent: Any) -> None:
    fields, gaps = monitor(alerts=sent)
    assert pairs(fields["alerts"]) == ALERTS
    assert "alerts" not in gaps.misread


@pytest.mark.parametrize(
    "sent",
    [
        "********",
        "a@b, c@d",
        "[not json",
        ["a@b"],
        [3, 4],
        True,
        {"email": None},
        {"email": "a@b", "after_minutes": 5},
        [{"key": "email"}],
        [{"key": "email", "value": None}],
        [{"key": "email", "value": "a***@b.test"}],
        [{"key": "slack", "value": "[hidden]"}],
        [{"key": "slack", "value": "https://hooks.test/…"}],
        [{"key": "slack", "value": "https://hooks.test/xxxxxxxx"}],
        [{"key": "email", "value": "a@b", "enabled": False}],
        [{"email": "a@b", "name": "Ops"}],
        {"email": {"to": "a@b", "after": 5}},
        [{"key": "contact", "value": "Ops"}],
        [{"to": "a@b"}, {"id": 4}],
        [["", "a@b"]],
    ],
)
def test_alerts_that_are_hidden_or_say_more_are_not_taken_for_understood(sent: Any) -> None:
    _fields, gaps = monitor(alerts=sent)
    assert "alerts" in gaps.misread


@pytest.mark.parametrize(
    "sent",
    [
        [{"key": "X-One", "value": "1"}, {"key": "X-Two", "value": ""}],
        [{"name": "X-One", "value": "1"}, {"name": "X-Two", "value": ""}],
        [["X-One", "1"], ["X-Two", ""]],
        [{"X-One": "1"}, {"X-Two": ""}],
        {"X-One": 1, "X-Two": ""},
        {"X-One": ["1"], "X-Two": [""]},
        ["X-One: 1", "X-Two:"],
        "X-One: 1\r\nX-Two:\r\n",
        "X-One: 1\n\nX-Two:",
        '{"X-One": "1", "X-Two": ""}',
    ],
)
def test_headers_are_read_in_the_forms_that_servers_use(sent: Any) -> None:
    fields, gaps = monitor(request_headers=sent)
    assert pairs(fields["request_headers"]) == [("X-One", "1"), ("X-Two", "")]
    assert "request_headers" not in gaps.misread


@pytest.mark.parametrize(
    "mask", ["********", "[hidden]", "<redacted>", "•••", "****1234", "xxxx", None, True]
)
def test_masks_of_other_servers_are_no_values(mask: Any) -> None:
    fields, gaps = monitor(request_headers={"Authorization": mask}, request_auth_username=mask)
    assert pairs(fields["request_headers"]) == [("Authorization", MASK)]
    assert "request_headers" in gaps.misread
    if isinstance(mask, str) and mask != "****1234":
        assert "request_auth_username" in gaps.misread


def test_a_wakeful_takes_its_masks_back() -> None:
    _fields, gaps = monitor(own=True, alerts=[{"key": "email", "value": f"{MASK}.com"}])
    assert not gaps.misread or "alerts" not in gaps.misread


@pytest.mark.parametrize(
    ("name", "sent", "expected"),
    [
        *[("interval", sent, 300) for sent in (
            300, "300", 300.0, "5m", "5 minutes", "300s", "PT5M", "0:05:00", "00:05:00", "5m0s",
            {"value": 5, "unit": "minutes"}, {"seconds": 300}, "every 5 minutes", 300_000,
            300_000_000_000,
        )],
        ("interval", 120, 120),
        ("name", {"raw": "A & B", "rendered": "A &#038; B"}, "A & B"),
        ("name", {"rendered": "A &#038; B"}, "A & B"),
        *[("maintenance_end_at", sent, None) for sent in (
            "0001-01-01T00:00:00Z", "0000-00-00 00:00:00", 0,
        )],
        ("interval", "1h30m", 5400),
        ("request_method", "post", "POST"),
        ("request_method", "TRACE", "TRACE"),
        ("alert_condition", "URL-NO-TEXT", "url_no_text"),
        ("alert_condition", "keyword", "keyword"),
        *[("cache_buster", sent, True) for sent in (1, "1", "yes", "on", True, "enabled", "True")],
        *[("cache_buster", sent, False) for sent in (0, "0", "no", "off", False)],
        *[("ssl_alert_days", sent, 5) for sent in (5, "5", "5 days", "5d", 5.0)],
        *[("domain_alert_days", sent, None) for sent in (False, "off", "never", "", None)],
        ("alert_text_lookup", 404, "404"),
    ],
    ids=repr,
)  # fmt: skip
def test_values_are_read_in_the_forms_that_servers_use(name: str, sent: Any, expected: Any) -> None:
    fields, gaps = monitor(**{name: sent})
    assert name not in (*gaps.missing, *gaps.misread)
    assert fields.get(name) == expected


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("interval", "often"), ("interval", -5), ("interval", 0), ("interval", [60]),
        ("interval", True), ("interval", "5 parsecs"), ("interval", "90m and more"),
        ("cache_buster", "perhaps"), ("ssl_alert_days", [7, 14]), ("ssl_alert_days", -1),
        ("ssl_alert_days", True), ("ssl_alert_days", 2.5), ("request_method", {"a": 1}),
        ("maintenance_start_at", "next week"), ("alert_text_lookup", ["a"]),
        ("maintenance_end_at", 5),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_named(name: str, sent: Any) -> None:
    fields, gaps = monitor(**{name: sent})
    assert name in gaps.misread
    assert name not in fields


def test_what_was_not_sent_is_named() -> None:
    fields, gaps = monitor(interval=None, ssl_alert_days=None, alerts=None)
    assert {"interval", "alerts", "request_headers", "request_method", "paused"} <= set(
        gaps.missing
    )
    assert "ssl_alert_days" not in gaps.missing, "null is off"
    assert "domain_alert_days" in gaps.missing
    assert not gaps.misread
    assert "interval" not in fields


@pytest.mark.parametrize(
    "sent",
    [
        {"data": {"type": "monitors"}, "id": "7", "attributes": {"name": "Shop", "interval": 60}},
        {"monitor": {"id": 7, "name": "Shop", "interval": 60}, "status": 200},
        {"id": 7, "name": "Shop", "interval": 60, "requestMethod": "PUT", "sslAlertDays": 3},
        {"ID": 7, "Name": "Shop", "Interval": 60},
    ],
)
def test_what_surrounds_the_fields_is_taken_off(sent: Any) -> None:
    fields, _gaps = foreign.monitor(sent, lambda: False)
    assert (int(fields["id"]), fields["name"], fields["interval"]) == (7, "Shop", 60)
    if "requestMethod" in sent:
        assert (fields["request_method"], fields["ssl_alert_days"]) == ("PUT", 3)


def test_lists_under_the_names_of_a_form_are_read() -> None:
    fields, gaps = monitor(**{"alerts[1][key]": "email", "alerts[1][value]": "a@b"})
    assert pairs(fields["alerts"]) == ALERTS[:1]
    assert "alerts" not in gaps.missing


@pytest.mark.parametrize(
    ("sent", "paused", "status"),
    [
        ({"paused": "1"}, True, "paused"),
        ({"is_paused": False, "is_ok": True}, False, "up"),
        ({"paused_at": None, "up": False}, False, "down"),
        ({"paused_at": "2026-11-21 08:00:00", "up": True}, True, "up"),
        ({"active": True, "status": "OK"}, False, "up"),
        ({"enabled": "no"}, True, "paused"),
        ({"status": "paused"}, True, "paused"),
        ({"status": "up"}, None, "up"),
        ({"status": {"value": "failing"}}, None, "down"),
        ({"is_up": 1}, None, "up"),
        ({"is_down": True}, None, "down"),
        ({"status": False}, None, "down"),
        ({}, None, "unknown"),
        ({"status": "zzz"}, None, "unknown"),
    ],
)
def test_pause_and_status_are_read_from_what_servers_call_them(
    sent: Any, paused: bool | None, status: str
) -> None:
    fields, gaps = monitor(**sent)
    assert (fields["paused"], fields["status"]) == (paused, status)
    assert ("paused" in gaps.missing) is (paused is None)


@pytest.mark.parametrize(
    "sent",
    [
        "2026-11-21T08:00:00", "2026-11-21T08:00:00Z", "2026-11-21 08:00:00",
        "2026-11-21T08:00:00.000000Z", "2026-11-21T09:00:00+0100", "2026-11-21 08:00:00 UTC",
        "2026/11/21 08:00:00", "Sat, 21 Nov 2026 08:00:00 GMT", AT.timestamp(),
        int(AT.timestamp()), str(int(AT.timestamp())), int(AT.timestamp()) * 1000,
        {"date": "2026-11-21 08:00:00.000000", "timezone_type": 3, "timezone": "UTC"},
        [2026, 11, 21, 8, 0], [2026, 11, 21, 8, 0, 0, 123_000_000],
        f"/Date({int(AT.timestamp()) * 1000})/",
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.usefixtures("tokyo")
def test_times_are_read_in_the_forms_that_servers_use(sent: Any) -> None:
    assert moment(sent) == AT


@pytest.mark.parametrize(
    "sent",
    [5, True, "5", "soon", None, [], [2026], [2026, 13, 1], ["a"] * 6, {}, "08:00", 2**62, -1,
     {"date": "2026-11-21 08:00:00.000000", "timezone": "Europe/Berlin"}],
    ids=repr,
)  # fmt: skip
def test_what_is_no_time_is_not_taken_for_one(sent: Any) -> None:
    assert moment(sent) is None


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"ended_at": "0000-00-00 00:00:00"}, None),
        ({"status": "open"}, "unresolved"),
        ({"status": "closed"}, "resolved"),
        ({"resolved": True}, "resolved"),
        ({"is_open": False}, "resolved"),
        ({"acknowledged": True}, "acknowledged"),
        ({"ongoing": True}, "unresolved"),
        ({"ended_at": None}, None),
    ],
)
def test_the_state_of_an_incident_is_read(sent: Any, expected: str | None) -> None:
    fields, gaps = foreign.incident({"id": 9, "monitor_id": 7, "started_at": "2026-11-21"} | sent)
    assert fields["status"] == expected
    assert "status" not in gaps.missing
    assert "comment" in gaps.missing


def test_an_incident_names_its_monitor_in_several_ways() -> None:
    start = {"id": 9, "started_at": int(AT.timestamp())}
    for of in (
        {"monitor_id": "7"},
        {"monitor": {"id": 7, "name": "Shop"}},
        {"monitor": 7},
        {"monitorId": 7},
        {"relationships": {"monitor": {"data": {"id": "7"}}}, "attributes": start},
    ):
        fields, gaps = foreign.incident(start | of)
        assert int(fields["monitor_id"]) == 7
        assert fields["started_at"].startswith("2026-11-21T08:00:00")
        assert "status" in gaps.missing, "neither its state nor its end was sent"


def test_a_start_that_is_no_time_is_not_known() -> None:
    fields, _gaps = foreign.incident({"id": 9, "monitor_id": 7, "started_at": "yesterday"})
    assert fields["started_at"] is None


def test_one_alert_or_none_needs_no_list() -> None:
    for sent, read_pairs in (("", []), ({"key": "email", "value": "a@b"}, [("email", "a@b")])):
        fields, gaps = monitor(alerts=sent)
        assert pairs(fields["alerts"]) == read_pairs
        assert "alerts" not in gaps.misread


@pytest.mark.parametrize("sent", [None, [], "x", {}, {"id": 7}, {"id": "a", "name": "Shop"}])
def test_what_is_no_monitor_is_refused(sent: Any) -> None:
    with pytest.raises(MalformedData):
        foreign.monitor(sent, lambda: False)


def test_the_json_of_a_record_has_no_default_for_what_its_server_does_not_say() -> None:
    sent = MIN | {"interval": 300, "alerts": "********", "cache_buster": 1}
    shown = json_of(read(sent))
    assert (shown["interval"], shown["cache_buster"]) == (300, 1)
    for name in ("alerts", "request_headers", "request_method", "alert_condition", "paused"):
        assert shown[name] is None, name
