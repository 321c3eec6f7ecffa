"""The ``wakeful`` command, as typed (decision 9)."""

import contextlib
import logging
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest

from app import create_core
from app.alerts.worker import Worker
from app.commands.cli import Utc
from app.config import read
from app.db import db, liveness
from app.engine import silence, silence_watch
from app.engine.checker import Checker
from app.engine.silence_watch import SilenceWatch
from tests.lab.net import Listener
from tests.lab.tcp import greeting
from tests.support.typed import access, install_at, typing


@pytest.fixture
def home(tmp_path, monkeypatch):
    install_at(tmp_path / "instance", monkeypatch)
    return tmp_path / "instance"


@pytest.fixture
def type_(home, monkeypatch):
    return typing(monkeypatch)


def test_a_key_is_printed_alone_and_works_until_it_is_revoked(type_):
    code, out, _err = type_("key", "create", "ci", "--scope", "write")
    assert code == 0
    assert re.fullmatch(r"wk_[a-z0-9]{8}_\S+\n", out)
    secret = out.strip()
    with access() as parts:
        assert parts.keys.authenticate(secret).scope == "write"
    prefix = secret.split("_")[1]
    _code, listed, _err = type_("key", "list")
    assert listed.split("\t")[:3] == [prefix, "write", "ci"]
    assert secret not in listed
    assert type_("key", "revoke", prefix)[0] == 0
    assert "revoked" in type_("key", "list")[1]
    assert type_("key", "revoke", "nobody00") == (1, "", "There is no key with the id nobody00.\n")


@pytest.mark.parametrize(
    ("expires", "code", "sentence"),
    [
        ("2099-01-31T00:00:00+02:00", 0, ""),
        ("2099-01-31", 2, "2026-11-21T08:00:00"),
        ("2001-01-01T00:00:00", 1, "expired already"),
    ],
)
def test_when_a_key_expires(type_, expires, code, sentence):
    got, _out, err = type_("key", "create", "ci", "--scope", "read", "--expires", expires)
    assert (got, sentence in err) == (code, True), err


def test_an_account_is_made_with_a_password_from_standard_input(type_):
    words = ("user", "create", "ada@example.org", "--role", "admin")
    assert type_(*words, input="a long enough passphrase\n")[0] == 0
    with access() as parts:
        assert parts.people.login("ada@example.org", "a long enough passphrase").role == "admin"
    code, _out, err = type_(*words, input="a long enough passphrase\n")
    assert code == 1
    assert "already" in err or "taken" in err
    code, _out, err = type_("user", "create", "bob@example.org", "--role", "admin", input="short\n")
    assert code == 1
    assert "short" not in err.lower().split("password")[0]


def test_the_webhook_secret_stays_the_same_and_the_secret_key_is_its_owners_alone(type_, home):
    code, first, _err = type_("webhook-secret")
    assert code == 0
    assert first.startswith("whsec_")
    assert type_("webhook-secret")[1] == first
    assert stat.S_IMODE((home / "secret_key").stat().st_mode) == 0o600


def test_a_backup_is_not_written_to_a_file_that_is_called_minus(type_, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert type_("db", "upgrade")[0] == 0
    code, _out, err = type_("backup", "-")
    assert (code, "not to standard output" in err) == (1, True)
    assert not (tmp_path / "-").exists()


def test_check_shows_every_phase_and_fails_unless_the_target_is_up(type_, site):
    code, out, _err = type_("check", site.url)
    assert code == 0
    words = ("up", "200", "127.0.0.1", "DNS lookup", "Connect", "TLS", "First byte", "Body")
    for word in words:  # those of the pages
        assert word in out
    site.status = 503
    code, out, _err = type_("check", site.url)
    assert code == 1
    assert "http_status:503" in out


def test_check_of_a_port_shows_its_own_phases(type_):
    with contextlib.closing(Listener(greeting)) as mail:
        code, out, _err = type_("check", f"tcp://127.0.0.1:{mail.port}", "--no-text", "ESMTP")
    assert code == 0
    assert out.splitlines()[0] == f"tcp://127.0.0.1:{mail.port}"
    assert "220 mail.lab.test ESMTP ready" in out
    assert "First byte" in out
    assert "TLS" not in out
    code, _out, err = type_("check", "tcp://127.0.0.1:25", "--method", "POST")
    assert code == 2
    assert "--method" in err
    assert "kind tcp" in err


def test_check_says_what_policy_keeps_it_from_and_what_to_do(type_, site, monkeypatch):
    monkeypatch.setenv("WAKEFUL_ALLOW_NETWORKS", "")
    code, out, _err = type_("check", site.url)
    assert code == 1
    assert "blocked_by_policy" in out
    assert "WAKEFUL_ALLOW_NETWORKS" in out
    assert site.asked == 0


def test_check_looks_for_text_and_refuses_what_is_no_plain_url(type_, site):
    code, out, _err = type_("check", site.url, "--text", "ok")
    assert (code, "text_found" in out) == (1, True)
    assert type_("check", site.url, "--no-text", "ok")[0] == 0
    for url, fault in (("ftp://example.test/", "http"), ("https://u:p@example.test/", "password")):
        code, _out, err = type_("check", url)
        assert (code, fault in err) == (2, True), (url, err)


def test_a_wrong_setting_stops_the_start_with_a_sentence_that_names_it(type_, monkeypatch):
    for name in ("DATABASE_URL", "INTERVALL"):
        with monkeypatch.context() as environment:
            environment.setenv(f"WAKEFUL_{name}", "mysql://x")
            code, out, err = type_("db", "upgrade")
        assert (code, out) == (2, ""), name
        assert f"WAKEFUL_{name}" in err
        assert "Traceback" not in err, name


def test_a_database_that_does_not_answer_is_reported_without_a_trace(type_, monkeypatch, tmp_path):
    monkeypatch.setenv("WAKEFUL_DATABASE_URL", f"sqlite:///{tmp_path}/no/such/folder.db")
    code, _out, err = type_("db", "upgrade")
    assert code == 1
    path = tmp_path / "no" / "such" / "folder.db"
    assert err.startswith(f"The database at {path} cannot be opened.")
    assert "Traceback" not in err


def test_doctor_names_what_is_wrong(type_, monkeypatch, home):
    monkeypatch.setenv("WAKEFUL_CANARIES", "")
    monkeypatch.setenv("WAKEFUL_DNS_SERVERS", "127.0.0.1:9")
    code, out, _err = type_("doctor")
    assert code == 1
    assert re.search("WRONG +database: No database exists at ", out)
    assert re.search("WRONG +names: ", out)
    type_("db", "upgrade")
    (home / "secret_key").chmod(0o644)
    code, out, _err = type_("doctor")
    assert re.search("ok +tables: ", out)
    assert re.search("WRONG +secret key: .*chmod 600", out)


def test_doctor_says_of_a_checker_whether_it_runs(type_, monkeypatch):
    monkeypatch.setenv("WAKEFUL_CANARIES", "")
    type_("db", "upgrade")
    assert re.search("ok +checker: None has run yet", type_("doctor")[1])
    settings = read()
    core = create_core(settings)
    checker = Checker(core, settings)
    with core.app_context():
        checker._shards.look(datetime.now(UTC), time.monotonic())
    assert re.search("ok +checker: It runs", type_("doctor")[1])
    stop = threading.Event()
    stop.set()
    checker.run(stop)
    with core.app_context():
        db.engine.dispose()
    assert re.search(
        "ok +checker: None is running. The last sign of one is from", type_("doctor")[1]
    )


def test_nothing_starts_with_another_secret_key_than_the_database_was_written_with(
    type_, home, monkeypatch
):
    monkeypatch.setenv("WAKEFUL_BIND", "127.0.0.1:0")
    assert type_("checker")[2].startswith(f"No database exists at {home / 'wakeful.db'}.")
    type_("db", "upgrade")
    with access() as parts:
        parts.settings.set("webhook_secret", "whsec_abc")
    (home / "secret_key").write_text("another key than before, long enough")
    for part in ("serve", "web", "checker", "worker"):
        code, _out, err = type_(part)
        assert code == 2, part
        assert "WAKEFUL_SECRET_KEY is not the one" in err, part
        assert "Traceback" not in err, part


def test_the_alert_worker_looks_for_silence_once_no_checker_runs(type_, monkeypatch):
    """And goes on after a fault."""
    looks, tended = threading.Semaphore(0), threading.Semaphore(0)
    look, name = SilenceWatch.look, liveness.process_name(liveness.CHECKER)

    def counted(watch, at):
        look(watch, at)
        looks.release()

    def tend(*_times):
        tended.release()
        raise OSError("a fault")

    def run(worker, _stop):
        with worker.app.app_context():
            assert looks.acquire(timeout=30)
            assert looks.acquire(timeout=30)
            assert not tended.acquire(blocking=False), "the checker looks itself"
            liveness.note_end(name, datetime.now(UTC))
            assert tended.acquire(timeout=30)
            assert tended.acquire(timeout=30), "again, after the fault"

    type_("db", "upgrade")
    with access():
        now = datetime.now(UTC)
        liveness.write(name, now, now, location="default")
    monkeypatch.setattr(silence_watch, "EVERY_SECONDS", 0.02)
    monkeypatch.setattr(SilenceWatch, "look", counted)
    monkeypatch.setattr(silence, "act_on_silence", tend)
    monkeypatch.setattr(Worker, "run", run)
    monkeypatch.setattr(signal, "signal", lambda *_arguments: None)
    assert type_("worker")[0] == 0


STOPPED_WHILE_IT_IMPORTS = """
import os, signal, sys
from app.commands.entry import main
assert "flask" not in sys.modules, "too late: Ctrl-C would show where the imports were"
class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == "app.commands.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, CtrlC())
main()
"""


def test_ctrl_c_during_the_start_prints_no_trace():
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_WHILE_IT_IMPORTS],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


RUNS_UNTIL_STOPPED = """
import threading, time
from app.commands.processes import until_stopped

def wait(stop):
    while not stop.wait(0.0005):
        pass

def run(stop):
    threads = [threading.Thread(target=wait, args=(stop,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    print("runs", flush=True)
    while not stop.is_set():
        time.sleep(0.0005)
    for thread in threads:
        thread.join()

until_stopped(run, lambda: None)
"""


def test_a_part_stops_however_many_signals_ask_for_it():
    """A service manager signals every process, and ``serve`` then its parts: a second signal broke
    into the first one's handler, which held a lock that it then waited for."""
    part = subprocess.Popen([sys.executable, "-c", RUNS_UNTIL_STOPPED], stdout=subprocess.PIPE)
    assert part.stdout
    with part.stdout as out:
        assert out.readline() == b"runs\n"
        for number in range(4000):
            part.send_signal(signal.SIGINT if number % 2 else signal.SIGTERM)
        try:
            # One of so many may come when Python has put its own answer back, on the way out.
            assert part.wait(30) in (0, -signal.SIGTERM, -signal.SIGINT)
        finally:
            part.kill()
            part.wait()


def test_times_in_the_log_are_in_utc_and_say_so(tokyo):
    record = logging.makeLogRecord({"msg": "Ready", "created": 0.25, "msecs": 250})
    assert Utc("%(asctime)s %(message)s").format(record) == "1970-01-01T00:00:00.250Z Ready"


def test_a_command_logs_in_that_form(type_, monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    type_("key", "list")
    (handler,) = root.handlers
    assert isinstance(handler.formatter, Utc)
