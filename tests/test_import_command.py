"""``wakeful import``, as typed."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest

from app import create_app, renew
from app.commands import importing
from app.config import read
from app.db import db
from app.records import MonitorQuery, Pair
from app.stores import current_store
from tests.factories import make_key
from tests.support.loopback import serving
from tests.support.typed import typing

SAMPLES = Path(__file__).parent / "imports" / "samples"
KUMA = str(SAMPLES / "kuma-backup.json")


made = lru_cache(maxsize=2)(create_app)


def application(settings):
    """An application that knows nothing of earlier commands, as that of a new process: routes and
    forms take longer to make than most imports.
    """
    app = made(settings)
    renew(app)
    return app


@pytest.fixture
def type_(tmp_path, monkeypatch, sqlite_template):
    monkeypatch.setenv("WAKEFUL_INSTANCE", str(tmp_path))
    monkeypatch.setattr(importing, "create_app", application)
    shutil.copyfile(sqlite_template, tmp_path / "wakeful.db")
    return typing(monkeypatch)


@contextmanager
def store():
    with application(read()).app_context():
        yield current_store()
        db.session.remove()
        db.engine.dispose()


def monitors():
    with store() as current:
        return {monitor.name: monitor for monitor in current.monitors.list(MonitorQuery()).items}


def test_a_dry_run_says_what_each_entry_becomes_and_stores_nothing(type_):
    code, out, err = type_("import", KUMA, "--dry-run")
    assert code == 3, "some entries do not fit"
    assert "create  Monitor 1: Shop https://shop.example.com/health\n" in out
    assert "Interval: 20 s" in out
    assert "create  Monitor 4: Router ping://192.0.2.1\n" in out
    assert out.endswith(
        "Dry run, nothing is created: 5 monitors would be created, 2 cannot be imported.\n"
    )
    assert "Creating" not in err
    assert monitors() == {}


def test_what_fits_is_created_once_with_what_all_of_them_get(type_):
    type_("user", "create", "a@example.org", "--role", "admin", input="a long password\n")
    with store() as current:
        current.contacts.create({"name": "Ops", "channels": (Pair("email", "ops@example.org"),)})
    code, out, err = type_("import", KUMA, "--tag", "moved", "--contact", "Ops")
    assert (code, out.splitlines()[-1]) == (3, "5 monitors created, 2 cannot be imported.")
    assert "Creating monitors" in err, "progress is no part of the output"
    assert "        Tags: prod, region: eu, moved" in out.splitlines()
    stored = monitors()
    assert set(stored) == {"Shop", "Front page", "Database", "No errors", "Router"}
    assert stored["Shop"].tags == ("prod", "region: eu", "moved")
    assert stored["Front page"].alerts == (Pair("contact", "Ops"),)
    assert [name for name, monitor in stored.items() if monitor.paused] == ["Database"]
    code, out, _err = type_("import", KUMA)
    assert code == 1, "there is nothing new"
    assert "Duplicate: already monitored as Shop." in out
    assert len(monitors()) == 5
    code, out, _err = type_("import", KUMA, "--duplicates")
    assert (code, out.splitlines()[-1].partition(",")[0]) == (3, "5 monitors created")


def test_variables_come_from_the_environment_and_from_a_file(type_, tmp_path, monkeypatch):
    config = tmp_path / "gatus.yaml"
    config.write_text(
        "endpoints:\n"
        "- {name: a, url: 'https://$HOST_A/', conditions: ['[STATUS] == 200']}\n"
        "- {name: b, url: 'https://${HOST_B}/', conditions: ['[STATUS] == 200']}\n"
        "- {name: c, url: 'https://${WAKEFUL_INSTANCE}/', conditions: ['[STATUS] == 200']}\n"
    )
    monkeypatch.setenv("HOST_A", "a.example")
    variables = tmp_path / "variables"
    variables.write_text("# hosts\nexport HOST_B='b.example'\n")
    code, out, _err = type_("import", str(config), "--env", str(variables))
    assert code == 3
    assert "Filled with environment variables: HOST_A, HOST_B." in out
    assert "needs the environment variable WAKEFUL_INSTANCE" in out, "it is Wakeful's own"
    assert {monitor.url for monitor in monitors().values()} == {
        "https://a.example/",
        "https://b.example/",
    }
    variables.write_text("HOST_B\n")
    code, _out, err = type_("import", str(config), "--env", str(variables))
    assert code == 1
    assert "Line 1 of the variables is not NAME=value." in err


def test_another_method_body_header_or_text_makes_another_check(type_, tmp_path):
    entry = {"type": "http", "url": "https://a.example", "interval": 60, "maxretries": 0}
    others = [{"method": "POST"}, {"body": "{}"}, {"headers": '{"X-Site": "b"}'},
              {"headers": '{"X-Site": "c"}'}, {"type": "keyword", "keyword": "ok"},
              {"accepted_statuscodes": ["404"]}, {"maxredirects": 0}, {}]  # fmt: skip
    file = tmp_path / "kuma.json"

    def write(names):
        entries = [entry | other | {"name": f"{names} {n}"} for n, other in enumerate(others)]
        file.write_text(json.dumps({"monitorList": [*entries, entries[0] | {"name": "twin"}]}))

    write("first")
    _code, out, _err = type_("import", str(file))
    assert "Duplicate: same check as monitor 1." in out
    assert out.splitlines()[-1] == "8 monitors created, 1 duplicate."
    write("second")
    code, out, _err = type_("import", str(file))
    assert (code, out.splitlines()[-1]) == (1, "0 monitors created, 9 duplicates.")


def test_the_plan_says_what_is_stored_whom_it_alerts_and_who_alerts_nobody(type_):
    _code, out, _err = type_("import", KUMA, "--dry-run")
    assert "Contact to be created: Ops Slack (slack ••••hook).\n" in out
    assert "Accepted status codes: 200-299,401 · Time limit in seconds: 48" in out
    assert "        Alerts: contact Ops Slack, email ••••.org" in out
    assert "3 of these monitors alert nobody. Choose a contact for them.\n" in out
    _code, out, _err = type_("import", KUMA, "--duplicates")
    assert out.splitlines()[-1] == "5 monitors created, 2 cannot be imported."
    _code, out, _err = type_("import", KUMA, "--duplicates")
    assert out.splitlines()[-1] == "5 monitors created, 2 cannot be imported."


def test_a_sentence_of_many_entries_is_printed_once(type_, tmp_path):
    path = tmp_path / "urls.csv"
    path.write_text("url,interval\n" + "".join(f"{name}.example,5\n" for name in "abc"))
    _code, out, _err = type_("import", str(path), "--dry-run")
    assert "Note 1 (3 entries): Interval: 5 s becomes 10 s.\n" in out
    assert out.count("becomes 10 s") == 1
    assert out.count("        - Notes: 1.\n") == 3


def test_no_output_repeats_a_secret(type_):
    for sample in ("kuma-backup.json", "gatus.yaml", "betterstack.json", "uptimerobot.json"):
        _code, out, err = type_("import", str(SAMPLES / sample))
        for word in ("secret", "kumabasicpass", "robotpassword", "stackpassword", "bot-token"):
            assert word not in out + err


def test_lines_may_come_from_standard_input_and_a_full_success_is_0(type_):
    lines = "https://a.example\nShop, shop.example.com\n"
    code, out, _err = type_("import", "-", "--interval", "300", input=lines)
    assert (code, out.splitlines()[-1]) == (0, "2 monitors created.")
    assert {monitor.interval for monitor in monitors().values()} == {300}


def test_control_characters_of_a_file_do_not_reach_the_terminal(type_, tmp_path):
    file = tmp_path / "kuma.json"
    entry = {"name": "\x1b]0;owned\x07Shop", "type": "\x1b[2Jx", "url": "https://\x1b[31m.example"}
    file.write_text(json.dumps({"monitorList": [entry]}))
    code, out, _err = type_("import", str(file))
    assert code == 1
    assert "\x1b" not in out


JOBS = [
    {"timeout": 86_400},
    {"timeout": 300, "status": "paused"},
    {"schedule": "30 2 * * *", "tz": "Europe/Berlin"},
    {"schedule": "Mon-Fri *-*-* 0/4:00", "tz": "UTC"},
    {"schedule": "0 4 * * 0", "tz": "Europe/Kiev"},
]  # fmt: skip


def test_jobs_of_healthchecks_are_moved_by_changing_their_host(type_, tmp_path):
    checks = [
        {"name": f"Job {n}", "slug": f"job-{n}", "grace": 900, "n_pings": 9, "channels": "a", **job}
        | {"ping_url": f"https://hc.example/{n}f2c1e34-0000-4000-8000-00000000000a"}
        for n, job in enumerate(JOBS)
    ]
    exported = tmp_path / "checks.json"
    exported.write_text(json.dumps({"checks": checks}))
    code, out, _err = type_("import", str(exported))
    assert code == 0, out
    assert out.endswith("5 monitors created.\n")
    code, out, _err = type_("import", str(exported))
    assert code == 1
    assert out.endswith("0 monitors created, 5 duplicates.\n")
    type_("key", "create", "jobs", "--scope", "ping", "--own", "AbCdEfGhIjKlMnOpQrStUv")
    app = create_app(read())
    client = app.test_client()
    for job in checks:
        path = job["ping_url"].replace("https://hc.example", "/ping")
        assert client.get(f"{path}/start").text == "OK"
        assert client.post(f"/ping/AbCdEfGhIjKlMnOpQrStUv/{job['slug']}/0").text == "OK"
    with app.app_context():
        db.engine.dispose()
    jobs = monitors()
    assert [jobs[f"Job {n}"].status for n in range(5)] == ["up", "paused", "up", "up", "up"]
    assert jobs["Job 0"].max_run == 900, "a run that begins may take as long as the grace there"


def test_faults_are_reported_in_a_sentence(type_, tmp_path):
    file = tmp_path / "list"
    for content, words, code, sentence in (
        (b'{"a"', [], 1, "not valid JSON"),
        (b"", [], 1, "The file is empty."),
        (b"https://a.example", ["--format", "kuma"], 1, "not in this format"),
        (b"https://a.example", ["--format", "excel"], 2, "Invalid value"),
        (b"https://a.example", ["--interval", "7"], 2, "Invalid value"),
        (b"https://a.example", ["--server", "a"], 2, "This installation has none."),
    ):
        file.write_bytes(content)
        exit_code, _out, err = type_("import", str(file), *words)
        assert (exit_code, sentence in err) == (code, True), err
    assert type_("import", str(tmp_path / "missing"))[0] == 2


def test_over_another_server_the_monitors_are_created_there(app, type_, monkeypatch):
    with serving(app) as url:
        monkeypatch.setenv("WAKEFUL_STORE", "remote")
        monkeypatch.setenv("WAKEFUL_REMOTE_URL", url)
        monkeypatch.setenv("WAKEFUL_REMOTE_KEY", make_key(app))
        code, out, _err = type_("import", KUMA)
        assert (code, out.splitlines()[-1]) == (3, "5 monitors created, 2 cannot be imported.")
    with app.app_context():
        stored = current_store().monitors.list(MonitorQuery()).items
    names = {"Shop", "Front page", "Database", "No errors", "Router"}
    assert {monitor.name for monitor in stored} == names


def test_entries_of_one_url_with_other_warnings_are_two(type_, tmp_path):
    """Else the warning of the second is lost, though the file has it."""
    entry = {"type": "http", "url": "https://a.example", "interval": 60, "maxretries": 0}
    monitors = [entry | {"name": "a"}, entry | {"name": "b", "domainExpiryNotification": True}]
    (tmp_path / "kuma.json").write_text(json.dumps({"monitorList": monitors}))
    _code, out, _err = type_("import", str(tmp_path / "kuma.json"))
    assert out.splitlines()[-1] == "2 monitors created."


def test_a_job_is_known_by_its_secret_and_not_by_its_name(type_, tmp_path):
    check = {"name": "backup", "slug": "backup", "grace": 60, "n_pings": 1, "timeout": 3600}

    def write(uuid, **more):
        checks = [check | {"uuid": uuid} | more]
        (tmp_path / "hc.json").write_text(json.dumps({"checks": checks}))
        return type_("import", str(tmp_path / "hc.json"))[1].splitlines()[-1]

    first = "99999999-7bde-4eee-af63-71a77c5723bc"
    assert write(first) == "1 monitor created."
    assert write(first, name="renamed") == "0 monitors created, 1 duplicate."
    assert write("88888888-7bde-4eee-af63-71a77c5723bc") == "1 monitor created."
    assert write("", name="renamed") == "0 monitors created, 1 duplicate.", "by its slug"
