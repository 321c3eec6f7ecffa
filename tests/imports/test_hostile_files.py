"""Files of strangers: each ends in a sentence, soon, and without a trace of what it holds."""

from __future__ import annotations

import copy
import json
import sqlite3
from contextlib import closing

import pytest

from app.forms.imported import ImportDefaults, validate
from app.forms.schema import FormContext
from app.imports import files, kuma_database, yaml_text
from app.imports.candidates import NotReadable
from tests.support.kuma import ROWS, TABLES, kuma_db


def refused(data, match):
    with pytest.raises(NotReadable, match=match) as error:
        files.read(data)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\x1f\x8b\x08secret", "compressed"),
        (b"PK\x03\x04secret", "compressed"),
        (b"\xff\xd8\xff\xe0secret", "UTF-8"),
        (b"a\0secret", "not text"),
        (b'{"monitorList": [', "not valid JSON. The first error is in line 1"),
        (b'{"monitorList": []}', "no monitors"),
        (b'{"secret": 1}', "does not know this JSON"),
        (b"[" * 200_000, "nested too deeply|not valid JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"endpoints: [secret", "not valid YAML. The first error is in line"),
        (b"endpoints: 7\n", "no endpoints"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(data, match):
    refused(data, match)


def test_a_yaml_tag_creates_no_python_object():
    (candidate,) = files.read(b"endpoints: !!python/object/apply:os.system ['secret']\n").candidates
    assert (candidate.name, candidate.url) == ("", "")


def test_aliases_that_stand_for_billions_of_values_are_refused():
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    refused("\n".join([*lines, "endpoints: *a11"]).encode(), "more values")
    merged = ["b0: &b0 {x: 1}"]
    merged += [f"b{n}: &b{n} {{<<: [{','.join([f'*b{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    refused("\n".join([*merged, "endpoints: *b11"]).encode(), "more values")


def test_a_yaml_value_that_contains_itself_is_refused():
    refused(b"endpoints: &e [*e]", "too deeply")


def test_deep_yaml_does_not_reach_the_reader_that_calls_itself():
    refused(b"endpoints: " + b"[" * 100_000, "too deeply")
    refused(b"endpoints: " + b"{a: " * 100_000, "too deeply")


def test_deep_json_of_a_known_shape_is_refused():
    deep = f'{{"a": {"[" * 900}{"]" * 900}, "url": "x", "conditions": []}}'
    refused(f'{{"endpoints": [{deep}]}}'.encode(), "too deeply")


def test_long_yaml_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(yaml_text, "MAX_CHARACTERS", 100)
    refused(b"endpoints:\n" + b"- name: a\n" * 20, "This is too large")
    monkeypatch.setattr(yaml_text, "MAX_CHARACTERS", 10_000)
    monkeypatch.setattr(yaml_text, "MAX_VALUES", 10)
    monkeypatch.setattr(yaml_text.yaml, "compose_all", None)
    refused(b"endpoints:\n" + b"- name: a\n" * 20, "more values")


def test_large_files_and_long_lists_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "MAX_BYTES", 1024)
    path = tmp_path / "large.csv"
    path.write_bytes(b"https://a.example\n" * 100)
    with pytest.raises(NotReadable, match="too large"):
        files.read_path(path)
    refused(b"https://a.example\n" * 10_001, "10,000 lines")
    refused(b"url\n" + b"a.example\n" * 10_001, "10,000 rows")
    check = b'{"grace": 60, "n_pings": 0}'
    refused(b'{"checks": [' + (check + b",") * 10_000 + check + b"]}", "10,000 entries")


def test_a_quote_that_is_not_closed_is_found_by_its_line():
    refused(b'url,name\na.example,"secret' + b"\nb.example,b" * 20_000, "a quote may be missing")


COUNTING = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
A_MONITOR = "INSERT INTO monitor (name, type) VALUES ('a', 'http');"
MANY = (
    f"{TABLES} WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9000)"
    " INSERT INTO monitor (name, type) SELECT 'a', 'http' FROM n;"
)


# --- SQLite --------------------------------------------------------------------------------------


def of_script(tmp_path, script):
    return kuma_db(tmp_path / "hostile.db", script).read_bytes()


def test_an_sqlite_file_of_something_else_is_refused_as_such(tmp_path):
    refused(of_script(tmp_path, "CREATE TABLE secret (x)"), "not an Uptime Kuma database")
    (tmp_path / "ids").mkdir()
    script = "CREATE TABLE monitor (name, type)"
    refused(of_script(tmp_path / "ids", script), "not an Uptime Kuma database")


def test_a_damaged_sqlite_file_is_refused(tmp_path):
    good = of_script(tmp_path, TABLES + ROWS)
    refused(good[:200] + b"\xff" * 4000 + good[4200:], "damaged")
    refused(kuma_database.HEADER + b"\x01" * 5000, "damaged")
    refused(good[:5000], "damaged|not an Uptime Kuma database")


def test_a_view_in_place_of_the_table_is_not_run(tmp_path):
    endless = f"{COUNTING} SELECT x AS id, 'a' AS name FROM n"
    script = f"CREATE VIEW monitor AS {endless}"
    refused(of_script(tmp_path, script), "not an Uptime Kuma database")
    tables = TABLES.replace("CREATE TABLE tag ", "CREATE TABLE other ")
    script = f"{tables} CREATE VIEW tag AS {endless};"
    (tmp_path / "tag").mkdir()
    data = of_script(tmp_path / "tag", f"{script} {A_MONITOR}")
    assert len(files.read(data).candidates) == 1


def test_a_virtual_table_and_computed_columns_are_not_run(tmp_path):
    refused(
        of_script(tmp_path, "CREATE VIRTUAL TABLE monitor USING fts5(id, name)"),
        "not an Uptime Kuma database",
    )
    script = """CREATE TABLE monitor (id INTEGER PRIMARY KEY, type TEXT, url TEXT,
          name TEXT GENERATED ALWAYS AS (hex(zeroblob(400000))) VIRTUAL);
        INSERT INTO monitor (type, url) VALUES ('http', 'https://a.example');"""
    (tmp_path / "computed").mkdir()
    (candidate,) = files.read(of_script(tmp_path / "computed", script)).candidates
    assert candidate.name == ""


@pytest.mark.parametrize(
    "schema",
    [
        f"CREATE TABLE other ({', '.join(f'c{n}' for n in range(501))})",
        f"CREATE TABLE other (c CHECK ({'+'.join('1' * 21)}))",
        f"CREATE VIEW other AS {' UNION ALL '.join(['SELECT 1'] * 3)}",
        f"CREATE VIEW other AS SELECT 1 IN ({','.join('1' * 60_000)})",
    ],
    ids=["columns", "depth of an expression", "compound", "length"],
)
def test_a_schema_that_is_costly_to_read_is_refused(tmp_path, schema):
    refused(of_script(tmp_path, f"{TABLES}{ROWS}{schema};"), "damaged|larger than Wakeful reads")


def test_ids_may_be_anything(tmp_path):
    script = """CREATE TABLE monitor (id, name, type, url);
        INSERT INTO monitor VALUES (NULL, 'a', 'http', 1), (NULL, X'ff', 'http', 2.5),
          ('x', NULL, X'00', NULL), (9e999, 'b', 7, ''), (2, 'c', 'http', 'https://c.example');
        CREATE TABLE tag (id, name); INSERT INTO tag VALUES (NULL, 3);
        CREATE TABLE monitor_tag (monitor_id, tag_id);
        INSERT INTO monitor_tag VALUES (NULL, NULL);"""
    assert len(files.read(of_script(tmp_path, script)).candidates) == 5


def test_triggers_of_the_file_never_run(tmp_path):
    script = f"""{TABLES}{ROWS}
        CREATE TRIGGER t AFTER INSERT ON monitor BEGIN SELECT load_extension('secret'); END;"""
    assert len(files.read(of_script(tmp_path, script)).candidates) == 3


def test_too_many_rows_and_too_long_values_are_refused(tmp_path, monkeypatch):
    data = of_script(tmp_path, MANY)
    monkeypatch.setattr(kuma_database, "MAX_ROWS", 200)
    refused(data, "larger than Wakeful reads")
    (tmp_path / "long").mkdir()
    long = f"{TABLES} INSERT INTO monitor (name, type) VALUES (hex(zeroblob(900000)), 'http');"
    refused(of_script(tmp_path / "long", long), "larger than Wakeful reads")


def test_reading_a_file_has_a_time_limit(tmp_path, monkeypatch):
    data = of_script(tmp_path, MANY)
    monkeypatch.setattr(kuma_database, "SECONDS", -1.0)
    refused(data, "larger than Wakeful reads")


def test_nothing_but_reading_the_named_tables_is_allowed(tmp_path):
    path = kuma_db(tmp_path / "kuma.db")
    with closing(sqlite3.connect(path)) as connection:
        kuma_database._guard(connection)
        for statement in (
            "SELECT msg FROM heartbeat",
            "INSERT INTO monitor (name) VALUES ('a')",
            "ATTACH DATABASE ':memory:' AS other",
            "SELECT load_extension('a')",
            "SELECT hex(name) FROM monitor",
            "PRAGMA writable_schema = ON",
        ):
            with pytest.raises(sqlite3.Error):
                connection.execute(statement)


# --- Values --------------------------------------------------------------------------------------

VALUES = (
    None, True, -1, 0.5, 10**300, float("nan"), float("inf"), "", "x" * 5000, "\x00\x1b[31m",
    "\ud800", "-1", "$", "${", "{}", "[[]]", '{"a": {"b": []}}', [], [[]], [None], {},
    {"a": None}, {"": {"": ""}}, [{"a": 1}], "https://", "tcp://:0", "99999999999999999999",
)  # fmt: skip
SHAPES = {
    "kuma": {
        "monitorList": [
            {"id": 1, "name": "m", "type": "keyword", "url": "https://a.example", "parent": 2,
             "method": "GET", "keyword": "k", "headers": "{}", "body": "b", "tags": [],
             "authMethod": "", "basic_auth_user": "", "maxredirects": 1, "maxretries": 1,
             "retryInterval": 1, "resendInterval": 1, "interval": 60, "timeout": 1, "active": 1,
             "accepted_statuscodes": ["200"], "notificationIDList": {"1": True}, "unknown": 1},
            {"id": 2, "type": "group", "name": "g", "parent": 2, "active": True},
            {"id": 3, "type": "port", "hostname": "a", "port": 1, "expectedTlsAlert": "none"},
        ],
        "notificationList": [{"id": 1, "name": "n", "config": {"type": "slack"}}],
    },
    "uptimerobot": {"monitors": [
        {"friendly_name": "m", "url": "https://a.example", "type": "keyword", "status": 1,
         "keyword_type": 1, "keyword_value": "k", "interval": 60, "timeout": 1, "tags": [],
         "http_method": 1, "post_value": {}, "post_type": 1, "http_auth_type": 1, "ssl": {},
         "http_username": "u", "custom_http_headers": {}, "custom_http_statuses": "404:1",
         "config": {}, "sslExpirationReminder": True, "responseTimeThreshold": 1,
         "alert_contacts": [{"id": 1, "type": 2, "value": "v", "threshold": 1, "recurrence": 1}]},
    ]},
    "betterstack": {"data": [{"type": "monitor", "attributes": {
        "pronounceable_name": "m", "monitor_type": "keyword", "url": "https://a.example",
        "required_keyword": "k", "request_headers": [{"name": "a", "value": "b"}], "port": 1,
        "check_frequency": 60, "request_timeout": 1, "ssl_expiration": 1, "recovery_period": 1,
        "expected_status_codes": [200], "paused_at": "x", "http_method": "get"}}]},
    "gatus": {
        "endpoints": [
            {"name": "m", "url": "https://a.example", "conditions": ["[STATUS] == 200"],
             "headers": {"a": "b"}, "client": {"timeout": "1s", "tls": {}}, "interval": "1m",
             "group": "g", "enabled": "true", "body": "b", "method": "GET",
             "alerts": [{"type": "slack", "failure-threshold": 1, "provider-override": {},
                         "minimum-reminder-interval": "1h"}]},
        ],
        "alerting": {"slack": {"webhook-url": "x", "overrides": [{"group": "g"}],
                               "default-alert": {"enabled": True}}},
        "external-endpoints": [{"name": "e"}],
        "suites": [{"name": "s"}],
        "maintenance": {"start": "23:00"},
    },
    "upptime": {"sites": [
        {"name": "m", "url": "https://a.example", "headers": ["a: b"], "maxRedirects": 1,
         "expectedStatusCodes": [200], "check": "http", "port": 1, "maxResponseTime": 1},
        {"url": "a"}], "workflowSchedule": {"uptime": "*/5 * * * *"}},
    "kuvasz": {
        "http-monitors": [{"name": "m", "url": "https://a.example", "uptime-check-interval": 60,
                           "integrations": ["slack:a"], "request-headers": {"a": "b"},
                           "expected-status-codes": [200], "ssl-expiry-threshold": 1}],
        "tcp-monitors": [{"host": "a", "port": 1, "timeout-ms": 1, "uptime-check-interval": 1}],
        "integrations": {"slack": [{"name": "a", "webhook-url": "x", "global": True}]},
    },
    "checkmate": [{"name": "m", "url": "https://a.example", "type": "http", "isActive": True,
                   "interval": 1, "port": 1, "group": "g", "matchMethod": "include"},
                  {"url": "a", "type": "port", "port": 1}],
    "file_sd": [{"targets": ["https://a.example"], "labels": {"a": "b"}}],
}  # fmt: skip


def spoilt(data, value):
    """``data`` with ``value`` in place of each of its parts, one after the other."""
    parts = data.items() if isinstance(data, dict) else enumerate(data)
    for key, part in list(parts):
        data[key] = value
        yield
        data[key] = part
        if isinstance(part, dict | list):
            yield from spoilt(part, value)


@pytest.mark.parametrize("format", SHAPES)
def test_any_value_in_any_part_of_a_file_is_read_or_refused_in_a_sentence(format):
    data = copy.deepcopy(SHAPES[format])
    plain = files.read(json.dumps(data).encode(), format).candidates
    assert plain
    for number, value in enumerate(VALUES):
        for part, _ in enumerate(spoilt(data, value)):
            if (number + part) % 3:
                continue  # a third of the values in each part, another third in the next one
            try:
                reading = files.read(json.dumps(data).encode())
            except NotReadable:
                continue
            for candidate in (
                candidate for candidate in reading.candidates if candidate not in plain
            ):
                validate(
                    candidate, ImportDefaults(), FormContext(contact_exists=lambda _name: True)
                )
