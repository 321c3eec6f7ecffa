"""The exports of other tools, read from samples of their real forms."""

from __future__ import annotations

import json
import sqlite3

import pytest

from app.forms.imported import ImportDefaults, validate
from app.forms.schema import FormContext
from app.imports import files
from app.imports.candidates import NotReadable
from app.records import Assertion, Pair
from tests.support.kuma import ROWS, SAMPLES, TABLES, kuma_db

# The secrets of each sample: no sentence about it may repeat one of these.
SECRETS = ("secret", "password", "kumabasicpass", "token", "pagerkey", "hooks.slack")
FORMATS = {
    "kuma-backup.json": "Uptime Kuma",
    "uptimerobot.json": "UptimeRobot",
    "uptimerobot.csv": "CSV",
    "betterstack.json": "Better Stack",
    "gatus.yaml": "Gatus",
}


RECHECKS = (
    "The pause of {} between rechecks is dropped: WAKEFUL_CONFIRM_SECONDS sets one for all"
    " monitors."
)


def validated(reading):
    return {
        candidate.name: validate(candidate, ImportDefaults(), FormContext())
        for candidate in reading.candidates
    }


def sample(name):
    return validated(files.read_path(SAMPLES / name))


@pytest.mark.parametrize(("name", "source"), FORMATS.items())
def test_the_source_of_a_file_is_found_out(name, source):
    assert files.read_path(SAMPLES / name).source == source


@pytest.mark.parametrize("name", FORMATS)
def test_no_sentence_and_no_repr_of_a_candidate_repeats_a_secret(name):
    reading = files.read_path(SAMPLES / name)
    text = " ".join(
        [repr(reading), *reading.remarks]
        + [
            " ".join([repr(verdict), *verdict.faults, *verdict.remarks])
            for verdict in validated(reading).values()
        ]
    )
    # The word of a way to log in is no secret.
    text = text.replace("user name and password", "")
    assert [secret for secret in SECRETS if secret in text.lower()] == []


# Fields of the monitors of each sample; ``paused`` is the candidate's. test_shapes.py has what each
# single setting becomes.
READ = [
    ("kuma-backup.json", "Shop", {
        "url": "https://shop.example.com/health", "request_method": "POST", "check_every": 20,
        "accepted_statuses": "200-299,401", "timeout": 48, "confirmations": 3, "paused": False,
        "tags": ("prod", "region: eu"), "request_auth_username": "watcher",
        "request_auth_password": "kumabasicpass", "request_body": '{"ping": "kumabodysecret"}',
        "request_headers": (
            Pair("X-Api-Key", "kumaheadersecret"),
            Pair("Content-Type", "application/json"),  # as Uptime Kuma sends it
        ),
        "alerts": (
            Pair("contact", "Ops Slack"), Pair("email", "ops@example.org"),
            Pair("email", "dev@example.org"),
            Pair("telegram", "123456:kuma-bot-token/-1001234567890"),
        )}),
    # Uptime Kuma wants to find the word; Wakeful's condition says what raises the alert.
    ("kuma-backup.json", "Front page", {
        "alert_condition": "url_no_text", "alert_text_lookup": "Welcome", "verify_tls": False,
        "follow_redirects": False, "tags": ("Public sites",)}),
    ("kuma-backup.json", "No errors", {"alert_condition": "url_text", "remind_after": 10}),
    ("kuma-backup.json", "Database", {"url": "tcp://db.example.com:5432", "paused": True}),
    ("kuma-backup.json", "Router", {"url": "ping://192.0.2.1"}),
    ("gatus.yaml", "website", {
        "accepted_statuses": "200-201,204", "ssl_alert_days": None, "domain_alert_days": 30,
        "slow_after": None,  # a slow answer is a failure there, not only degraded
        "interval": 300, "timeout": 10, "confirmations": 1, "verify_tls": False, "tags": ("core",),
        "follow_redirects": False,
        "request_headers": (
            Pair("Authorization", "Bearer gatusheadersecret"), Pair("X-Zone", "eu"),
        ),
        "assertions": (
            Assertion("json", "$.status", "=", "UP"),
            Assertion("response_time", None, "<", "300"),
            Assertion("certificate_days", None, ">=", "2"),
        )}),
    ("gatus.yaml", "header", {
        "alert_condition": "url_no_text", "alert_text_lookup": "<h1>Example Domain</h1>",
        "accepted_statuses": "100-599",  # no condition asks for a status
        "paused": True}),
    ("gatus.yaml", "redirect", {"accepted_statuses": "300-399", "alert_condition": "url_text"}),
    ("gatus.yaml", "cache", {"url": "tcp://cache.example.org:6379"}),
    ("gatus.yaml", "router", {"url": "ping://192.0.2.1"}),
    ("gatus.yaml", "names", {"url": "dns://1.1.1.1/example.org?type=A"}),
    ("uptimerobot.json", "Google", {"interval": 900, "request_auth_password": "robotpassword"}),
    ("uptimerobot.json", "My Web Page", {"paused": True}),
    ("uptimerobot.json", "My FTP Server", {"url": "tcp://ftp.mywebpage.example.com:21"}),
    ("uptimerobot.json", "PortTest", {"url": "tcp://mailpool.example.com:25"}),
    ("uptimerobot.csv", "Home page", {"interval": 300}),
    ("uptimerobot.csv", "Shop", {"alert_condition": "url_text", "paused": True}),
    ("uptimerobot.csv", "Mail", {"url": "tcp://mail.example.com:25"}),
    ("uptimerobot.csv", "Router", {"url": "ping://192.0.2.1"}),
    ("betterstack.json", "API", {"accepted_statuses": "200,204", "paused": True}),
    ("betterstack.json", "No error page", {"alert_condition": "url_text"}),
    ("betterstack.json", "Database", {"timeout": 5}),  # of TCP it is in milliseconds
    ("betterstack.json", "Uptime homepage", {"check_every": 30}),
    ("betterstack.json", "Router", {"url": "ping://192.0.2.1"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "monitor", "fields"), READ)
def test_a_monitor_comes_with_all_that_wakeful_has_too(name, monitor, fields):
    row = sample(name)[monitor]
    read = {**row.fields, "url": row.url, "paused": row.candidate.paused}
    assert {field: read[field] for field in fields} == fields


def test_what_wakeful_lacks_is_said_and_never_created_as_something_else():
    kuma = sample("kuma-backup.json")
    assert list(kuma["Shop"].remarks) == [
        "Certificate expiry: one alert, 14 days before.",
        RECHECKS.format("20 s"),
        'Notification "Ops Slack" (slack): "slackchannel" is dropped. It posts to the channel that'
        " its webhook was made for.",
        'Notification "Pager" (PagerTree) dropped: Wakeful has no matching channel.',
    ]
    assert list(kuma["No errors"].remarks) == [
        "Rechecks: 9 becomes 5.",
        RECHECKS.format("1 min"),
        "Proxy dropped: Wakeful checks without a proxy.",
    ]
    assert kuma["Backup job"].faults == ("Wakeful has no MQTT checks yet.",)
    assert "upside-down" in kuma["Must be closed"].faults[0]
    assert "Public sites" not in kuma, "a group is a tag of its monitors"
    assert files.read_path(SAMPLES / "kuma-backup.json").remarks[0].startswith("Groups become tags")
    assert "environment variable STAGE_HOST" in sample("gatus.yaml")["stage"].faults[0]
    robot = sample("uptimerobot.json")
    assert robot["Nightly"].fields["url"] == "heartbeat:"
    assert robot["My Web Page"].fields["assertions"][0].op == "matches", "it ignores case"
    pages = files.read_path(SAMPLES / "betterstack.json").remarks[1]
    assert "The file is one page of several" in pages


def test_several_answers_of_an_api_may_stand_in_one_list():
    document = json.loads((SAMPLES / "betterstack.json").read_text())
    reading = files.read(json.dumps([document, document]).encode())
    assert len(reading.candidates) == 10
    assert not [remark for remark in reading.remarks if "one page" in remark]


def test_a_login_in_a_url_moves_to_its_own_fields():
    reading = files.read(b"Shop, https://ada:p%40ss@shop.example.com/x?a=b@c")
    fields = validated(reading)["Shop"].fields
    assert fields["url"] == "https://shop.example.com/x?a=b@c"
    assert (fields["request_auth_username"], fields["request_auth_password"]) == ("ada", "p@ss")


# --- Uptime Kuma's database ----------------------------------------------------------------------


def test_the_database_of_uptime_kuma_is_read_from_a_path_and_from_an_upload(tmp_path):
    path = kuma_db(tmp_path / "kuma?#.db")
    before = path.read_bytes()
    for reading in (files.read_path(path), files.read(before)):
        rows = validated(reading)
        fields = rows["Shop"].fields
        assert (fields["interval"], fields["timeout"], fields["confirmations"]) == (60, 48, 2)
        assert fields["accepted_statuses"] == "200-299,418"
        assert fields["request_auth_password"] == "dbpassword"
        assert fields["request_headers"] == (Pair("X-Key", "dbheadersecret"),)
        assert fields["alerts"] == (Pair("discord", "https://discord.com/api/webhooks/1/dbhook"),)
        assert fields["tags"] == ("prod",)
        assert rows["Database"].fields["url"] == "tcp://[2001:db8::5]:5432"
        fields = rows["Database"].fields
        assert (fields["interval"], fields["check_every"]) == (60, 120)
        assert rows["Database"].candidate.paused
        assert rows["Router"].url == "ping://192.0.2.1"
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [path.name], "nothing is made beside it"


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_an_uploaded_database_is_read_where_no_file_can_be_written(tmp_path, monkeypatch, mode):
    """It has the passwords of all monitors."""
    script = f"PRAGMA journal_mode = {mode};" + TABLES + ROWS
    data = kuma_db(tmp_path / "kuma.db", script).read_bytes()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    assert len(files.read(data).candidates) == 3


def test_changes_that_are_still_in_the_log_are_named(tmp_path):
    """Uptime Kuma keeps its database in WAL mode, so its newest changes may be in another file."""
    path = kuma_db(tmp_path / "kuma.db", "PRAGMA journal_mode = WAL;" + TABLES + ROWS)
    assert len(files.read_path(path).candidates) == 3
    connection = sqlite3.connect(path)
    connection.execute("UPDATE monitor SET name = 'Newer' WHERE id = 1")
    connection.commit()
    try:
        reading = files.read_path(path)
    finally:
        connection.close()
    assert "-wal" in reading.remarks[-1]


def test_an_older_uptime_kuma_database_without_some_columns_is_read(tmp_path):
    script = """CREATE TABLE monitor
          (id INTEGER PRIMARY KEY, name TEXT, type TEXT, url TEXT, interval INTEGER);
        INSERT INTO monitor VALUES (1, 'Old', 'http', 'https://old.example.com', 60);"""
    rows = validated(files.read_path(kuma_db(tmp_path / "kuma.db", script)))
    assert rows["Old"].fields["url"] == "https://old.example.com"
    assert "request_auth_username" not in rows["Old"].candidate.fields


def test_a_chosen_format_is_not_overridden_by_detection():
    for name, format in (("kuma-backup.json", "betterstack"), ("uptimerobot.json", "kuma")):
        with pytest.raises(NotReadable, match="not in this format"):
            files.read_path(SAMPLES / name, format)
    assert files.read_path(SAMPLES / "uptimerobot.csv", "uptimerobot").source == "CSV"
