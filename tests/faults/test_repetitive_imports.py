"""Files that repeat a little very often: reading them takes no more than time in proportion.

Each was a small file that kept the server busy for minutes.
"""

from __future__ import annotations

import json
import sqlite3

import pytest

from app.imports import candidates, channels, files, gatus, kuma, table
from app.imports.candidates import Draft, NotReadable
from app.records import Pair
from tests.support.kuma import TABLES, kuma_db


def counted(monkeypatch, module, name):
    """How often a function of ``module`` is called, as a list that grows."""
    calls, real = [], getattr(module, name)

    def counting(*args, **kwargs):
        calls.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, counting)
    return calls


def kuma_backup(monitors, notification):
    entry = {"type": "http", "name": "a", "url": "https://a.example"}
    return json.dumps(
        {
            "monitorList": [entry | {"notificationIDList": {"1": True}}] * monitors,
            "notificationList": [{"id": 1, "name": "n", "config": json.dumps(notification)}],
        }
    ).encode()


def gatus_file(endpoints, provider, alert):
    monitor_line = f"- {{url: 'https://a.example', alerts: [{alert}]}}\n"
    return f"alerting:\n  {provider}\nendpoints:\n{monitor_line * endpoints}".encode()


def test_a_notification_of_many_monitors_is_judged_once(monkeypatch):
    calls = counted(monkeypatch, channels, "check_value")
    mails = ",".join(f"a{n}@b.example" for n in range(5))
    candidates = files.read(kuma_backup(50, {"type": "smtp", "smtpTo": mails})).candidates
    assert len(calls) == 5
    assert [candidate.fields["alerts"] for candidate in candidates] == [
        (Pair("contact", "n"),)
    ] * 50


def test_an_alert_of_many_endpoints_is_judged_once(monkeypatch):
    calls = counted(monkeypatch, channels, "check_value")
    data = gatus_file(50, "email: {to: 'a@b.example,c@b.example'}", "{type: email}")
    candidates = files.read(data).candidates
    assert len(calls) == 2
    assert [candidate.fields["alerts"] for candidate in candidates] == [
        (Pair("contact", "email"),)
    ] * 50


def test_an_endpoint_keeps_its_own_settings_of_an_alert():
    hook = "https://discord.com/api/webhooks/1/{}"
    own = f"{{type: discord, provider-override: {{webhook-url: '{hook.format('own')}'}}}}"
    data = gatus_file(1, f"discord: {{webhook-url: '{hook.format('shared')}'}}", own)
    data += b"- {url: 'https://b.example', alerts: [{type: discord}]}\n"
    values = [candidate.fields["alerts"][0].value for candidate in files.read(data).candidates]
    assert values == [hook.format("own"), hook.format("shared")]


def test_an_alert_with_a_variable_is_dropped_and_said_to_be():
    data = gatus_file(2, "slack: {webhook-url: '${HOOK}'}", "{type: slack}")
    for candidate in files.read(data).candidates:
        assert "alerts" not in candidate.fields
        assert (
            'Notification "slack" needs the environment variable HOOK, which is not in the file.'
            " Give it with wakeful import FILE --env VARIABLES. It is dropped."
        ) in candidate.remarks


def test_a_long_list_of_addresses_is_read_up_to_what_a_monitor_has(monkeypatch):
    calls = counted(monkeypatch, channels, "check_value")
    mails = ",".join(f"a{n}@b.c" for n in range(700))
    files.read(kuma_backup(1, {"type": "smtp", "smtpTo": mails}))
    assert len(calls) <= candidates.MAX_ROWS


def test_of_merged_mappings_the_first_counts():
    data = b"endpoints:\n- <<: [{name: first}, {name: second, url: https://a.example}]\n"
    (candidate,) = files.read(data).candidates
    assert (candidate.name, candidate.url) == ("first", "https://a.example")


def test_a_row_is_kept_once():
    draft = Draft("Line 1", "a")
    for value in ("one", "two", "one"):
        draft.add_pair("alerts", "contact", value)
    assert [alert.value for alert in draft.fields["alerts"]] == ["one", "two"]


@pytest.mark.parametrize(
    ("module", "name", "data"),
    [
        (table, "_draft", b"https://a.example\n" * 10_001),
        (kuma, "_monitor", json.dumps({"monitorList": [{"type": "http"}] * 10_001}).encode()),
        (gatus, "_endpoint", b"endpoints:\n" + b"- {url: a}\n" * 10_001),
    ],
)
def test_of_too_many_entries_none_is_read(monkeypatch, module, name, data):
    calls = counted(monkeypatch, module, name)
    with pytest.raises(NotReadable, match="10,000"):
        files.read(data)
    assert calls == []


def test_of_too_many_rows_of_a_database_none_is_read(monkeypatch, tmp_path):
    path = kuma_db(tmp_path / "kuma.db", TABLES)
    with sqlite3.connect(path) as connection:
        connection.executemany("INSERT INTO monitor (type) VALUES (?)", [("http",)] * 10_001)
    connection.close()
    calls = counted(monkeypatch, kuma, "_monitor")
    with pytest.raises(NotReadable, match="10,000"):
        files.read_path(path)
    assert calls == []
