"""Files of strangers: each ends in a sentence, soon, and without a trace of what it holds."""

from __future__ import annotations

import sqlite3

import pytest

from app.imports import files, kuma_database, yaml_text
from app.imports.candidates import NotReadable
from tests.imports.test_sources import ROWS, TABLES, kuma_db


def refused(data, match):
    with pytest.raises(NotReadable, match=match) as told:
        files.read(data)
    assert "secret" not in str(told.value)


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
def test_what_cannot_be_read_is_told_in_a_sentence(data, match):
    refused(data, match)


def test_a_yaml_tag_creates_no_python_object():
    (one,) = files.read(b"endpoints: !!python/object/apply:os.system ['secret']\n").candidates
    assert (one.name, one.url) == ("", "")


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


def test_long_yaml_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(yaml_text, "MOST_CHARACTERS", 100)
    refused(b"endpoints:\n" + b"- name: a\n" * 20, "YAML is too long")


def test_large_files_and_long_lists_are_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "MOST_BYTES", 1024)
    path = tmp_path / "large.csv"
    path.write_bytes(b"https://a.example\n" * 100)
    with pytest.raises(NotReadable, match="too large"):
        files.read_path(path)
    refused(b"https://a.example\n" * 10_001, "10,000 lines")


COUNTING = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
ONE = "INSERT INTO monitor (name, type) VALUES ('a', 'http');"
MANY = (
    f"{TABLES} WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 9000)"
    " INSERT INTO monitor (name, type) SELECT 'a', 'http' FROM n;"
)


# --- SQLite --------------------------------------------------------------------------------------


def of_script(tmp_path, script):
    return kuma_db(tmp_path / "hostile.db", script).read_bytes()


def test_an_sqlite_file_of_something_else_is_told_apart(tmp_path):
    refused(of_script(tmp_path, "CREATE TABLE secret (x)"), "not an Uptime Kuma database")


def test_a_damaged_sqlite_file_is_told(tmp_path):
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
    data = of_script(tmp_path / "tag", f"{script} {ONE}")
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
    (one,) = files.read(of_script(tmp_path / "computed", script)).candidates
    assert one.name == ""


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
    monkeypatch.setattr(kuma_database, "MOST_ROWS", 200)
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
    with kuma_database._opened(path) as connection:
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
