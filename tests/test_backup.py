"""``wakeful backup`` and ``wakeful restore`` (decision 16)."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import shutil
import sqlite3
import stat
import tarfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests
from flask import Flask
from sqlalchemy import func, select
from werkzeug import Request, Response

from app import create_core
from app.commands.restoring import Restored, restore
from app.config import SettingError, Settings, read
from app.db import db, liveness, schema, writing
from app.db.tables import DeliveryRow, MonitorRow
from app.errors import WakefulError
from app.records import Channel, DeliveryStatus, Event
from app.stores.keeping import archive, backup, sealed
from tests.alerts.conftest import Outbox
from tests.conftest import SECRET_KEY
from tests.factories import make_monitor, make_person, now
from tests.support.command import wakeful
from tests.support.loopback import serving
from tests.support.service import Service, eventually
from tests.web.visitor import Visitor

ADMIN, PASSWORD = "admin@wakeful.test", "correct horse battery"
RUNS = r"Wakeful runs at (http://127\.0\.0\.1:\d+) "

PASSPHRASE = "correct horse battery"


def back_up(app: Flask, target: Path, **options) -> Path:
    with app.app_context():
        backup.make(app.extensions["wakeful.settings"], target, **options)
    return target


def restore_from(
    path: Path, settings: Settings, *, passphrase: str = "", force: bool = False
) -> Restored:
    with path.open("rb") as file:
        return restore(settings, file, passphrase=passphrase, force=force)


def names_in(settings: Settings) -> list[str]:
    app = create_core(settings)
    with app.app_context():
        names = list(db.session.scalars(select(MonitorRow.name).order_by(MonitorRow.id)))
        db.session.remove()
        db.engine.dispose()
    return names


@pytest.fixture
def elsewhere(tmp_path: Path, settings: Settings) -> Settings:
    """The settings of a second installation, which has nothing yet, with SQLite."""
    folder = tmp_path / "elsewhere"
    return dataclasses.replace(
        settings, instance=folder, database_url=f"sqlite:///{folder / 'wakeful.db'}", secret_key=""
    )


@pytest.fixture
def same(core: Flask, settings: Settings) -> Settings:
    """The settings of the installation itself; its own connections are closed."""
    with core.app_context():
        db.session.remove()
        db.engine.dispose()
    return settings


def files_of(path: Path) -> dict[str, bytes]:
    with tarfile.open(path, "r:gz") as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


# --- Making one


@pytest.mark.both_databases
def test_a_backup_has_what_was_committed_while_others_use_the_database(core, tmp_path):
    make_monitor(core, name="Shop")
    with core.app_context():
        db.session.execute(select(MonitorRow.id))  # a reader, so that nothing is checkpointed
        make_monitor(core, name="Blog")
        back_up(core, tmp_path / "backup")
        db.session.remove()
    files = files_of(tmp_path / "backup")
    kind = core.config["SQLALCHEMY_DATABASE_URI"].partition(":")[0].partition("+")[0]
    assert set(files) == {"manifest.json", "secret_key", archive.DATABASES[kind]}
    assert files["secret_key"].decode() == SECRET_KEY
    assert stat.S_IMODE(os.stat(tmp_path / "backup").st_mode) == 0o600


@pytest.mark.both_databases
def test_a_restored_backup_is_the_database_as_it_was(core, same, tmp_path):
    make_monitor(core, name="Shop")
    path = back_up(core, tmp_path / "backup")
    make_monitor(core, name="Made later")
    with core.app_context():
        db.session.remove()
        db.engine.dispose()
    with pytest.raises(WakefulError, match=r"is not empty. Use --force"):
        restore_from(path, same)
    assert names_in(same) == ["Shop", "Made later"]
    done = restore_from(path, same, force=True)
    assert names_in(same) == ["Shop"]
    assert [copy.exists() for copy in done.copies] == [True]


def test_what_has_ended_since_the_backup_stays_ended(app, same, tmp_path):
    person, access = make_person(app), app.extensions["wakeful.access"]
    with app.app_context():
        session = access.sessions.begin(person.id).session
        half, link = access.pending_logins.begin(person.id), access.recovery.make_link(person.id)
        liveness.write("checker:there:1", now())
        path = back_up(app, tmp_path / "backup")
        access.sessions.end_all(person.id)
        db.session.remove()
        db.engine.dispose()
    restore_from(path, same, force=True)
    with app.app_context():
        assert access.people.get(person.id).email == person.email
        assert access.sessions.person(session) is None
        assert access.pending_logins.person(half) is None
        assert access.recovery.person(link) is None
        assert liveness.newest() is None, "of processes of another machine"


def test_no_file_is_left_of_a_backup_that_fails(core, tmp_path):
    target = tmp_path / "backup"
    with pytest.raises(WakefulError, match=r"could not be written to .*: No such file"):
        back_up(core, tmp_path / "missing" / "backup")
    target.write_text("an older backup")
    with pytest.raises(WakefulError, match=r"exists already. Choose another name"):
        back_up(core, target)
    assert target.read_text() == "an older backup"
    assert not list(tmp_path.glob(".backup-*"))


def test_a_file_that_is_created_meanwhile_is_not_overwritten(core, tmp_path, monkeypatch):
    path, write = tmp_path / "backup", archive.write

    def meanwhile(*arguments):
        path.write_text("another")
        write(*arguments)

    monkeypatch.setattr(archive, "write", meanwhile)
    with pytest.raises(WakefulError, match="exists already"):
        back_up(core, path)
    assert path.read_text() == "another"


def test_a_damaged_database_is_not_backed_up_in_silence(core, tmp_path):
    make_monitor(core)
    with core.app_context():
        db.session.remove()
        db.engine.dispose()
        file = Path(db.engine.url.database)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    damaged = bytearray(file.read_bytes())
    damaged[-4096:] = b"\xff" * 4096
    file.write_bytes(damaged)
    with pytest.raises(WakefulError, match=r"is damaged: .* Restore a backup"):
        back_up(core, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_the_settings_say_when_the_last_backup_was_made(app, tmp_path):
    admin = Visitor(app).log_in(make_person(app, "admin").email)
    assert "No backup has been made yet." in admin.open("/settings/backup").text
    assert '<a href="/settings" aria-current="page">' in admin.page.text
    back_up(app, tmp_path / "backup")
    assert "No backup has been made yet." not in admin.open("/settings/backup").text
    editor = Visitor(app).log_in(make_person(app, "editor").email)
    assert editor.open("/settings/backup").status == 403


def test_an_admin_downloads_one_that_can_be_restored(app, elsewhere, tmp_path):
    make_monitor(app, name="Shop")
    admin = Visitor(app).log_in(make_person(app, "admin").email)
    page = admin.open("/settings/backup").page.text
    assert f"WAKEFUL_INSTANCE={app.extensions['wakeful.settings'].instance} " in page
    assert "/bin/wakeful backup wakeful-$(date +%F).backup" in page
    answer = admin.press("Download a backup").page
    assert answer.headers["Cache-Control"] == "no-store"
    assert re.fullmatch(
        r"attachment; filename=wakeful-\d{4}-\d\d-\d\d\.backup",
        answer.headers["Content-Disposition"],
    )
    assert len(answer.data) == answer.content_length
    (tmp_path / "downloaded").write_bytes(answer.data)
    answer.close()
    restore_from(tmp_path / "downloaded", elsewhere)
    assert names_in(elsewhere) == ["Shop"]
    left = app.extensions["wakeful.settings"].instance.glob(".*")
    assert [path.name for path in left] == []


def test_a_download_fills_no_disk_and_removes_what_a_killed_one_left(app, monkeypatch):
    instance = app.extensions["wakeful.settings"].instance
    killed, running = instance / ".download-killed", instance / ".download-running"
    for folder in (killed, running):
        folder.mkdir()
        (folder / "wakeful.backup").write_bytes(b"half")
    os.utime(killed, (0, 0))
    admin = Visitor(app).log_in(make_person(app, "admin").email)
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=0))
        admin.open("/settings/backup").press("Download a backup").shows("and 0 MB are free")
    answer = admin.press("Download a backup").page
    answer.close()
    assert answer.mimetype == "application/octet-stream"
    assert [path.name for path in instance.glob(".*")] == [".download-running"]


# --- Onto a second installation


def test_a_backup_brings_its_key_to_a_second_installation(core, elsewhere, tmp_path):
    make_monitor(core, name="Shop", request_body="a secret body")
    restore_from(back_up(core, tmp_path / "backup"), elsewhere)
    key = elsewhere.instance / "secret_key"
    assert key.read_text() == SECRET_KEY
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    app = create_core(dataclasses.replace(elsewhere, secret_key=SECRET_KEY))
    with app.app_context():
        assert db.session.scalar(select(MonitorRow.request_body)) == "a secret body"
        db.session.remove()
        db.engine.dispose()
    # Nothing is left beside the database, and the installation knows its own.
    assert {path.name for path in elsewhere.instance.iterdir()} == {
        "secret_key",
        "wakeful.db",
        "databases",
    }
    assert (elsewhere.instance / "databases").read_text() == f"{elsewhere.instance}/wakeful.db\n"


def test_a_backup_without_the_key_needs_the_right_one(core, elsewhere, tmp_path):
    make_monitor(core, request_body="a secret body")
    path = back_up(core, tmp_path / "backup", with_key=False)
    assert "secret_key" not in files_of(path)
    with pytest.raises(SettingError, match="has no secret key"):
        restore_from(path, elsewhere)
    other = dataclasses.replace(elsewhere, secret_key="another key, which is wrong")
    with pytest.raises(SettingError, match="is not the one that this database was written with"):
        restore_from(path, other)
    assert not (elsewhere.instance / "wakeful.db").exists()
    restore_from(path, dataclasses.replace(elsewhere, secret_key=SECRET_KEY))
    assert (elsewhere.instance / "wakeful.db").exists()


def test_another_key_is_replaced_only_by_force_and_kept(core, elsewhere, tmp_path, monkeypatch):
    path = back_up(core, tmp_path / "backup")
    elsewhere.instance.mkdir()
    (elsewhere.instance / "secret_key").write_text("the key that was here")
    there = dataclasses.replace(elsewhere, secret_key="the key that was here")
    with pytest.raises(WakefulError, match=r"is not the secret key of this backup. Use --force"):
        restore_from(path, there)
    with monkeypatch.context() as patch:
        patch.setenv("WAKEFUL_SECRET_KEY", "the key that was here")
        with pytest.raises(SettingError, match="WAKEFUL_SECRET_KEY is not the secret key of this"):
            restore_from(path, there, force=True)
    (copy,) = restore_from(path, there, force=True).copies
    assert copy.read_text() == "the key that was here"
    assert (elsewhere.instance / "secret_key").read_text() == SECRET_KEY


# --- Encrypted


@pytest.fixture
def cheap_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is slow to derive on purpose; the test of the command derives it so."""
    monkeypatch.setattr(sealed, "PASSES", 1)
    monkeypatch.setattr(sealed, "MEMORY", 16 * 1024)


@pytest.mark.usefixtures("cheap_key")
def test_an_encrypted_backup_needs_its_passphrase(core, elsewhere, tmp_path):
    make_monitor(core, name="Shop")
    path = back_up(core, tmp_path / "backup", passphrase=PASSPHRASE)
    assert SECRET_KEY.encode() not in path.read_bytes()
    with path.open("rb") as file:
        assert archive.is_encrypted(file)
    with pytest.raises(WakefulError, match="The passphrase is wrong"):
        restore_from(path, elsewhere, passphrase="another passphrase")
    restore_from(path, elsewhere, passphrase=PASSPHRASE)
    assert names_in(dataclasses.replace(elsewhere, secret_key=SECRET_KEY)) == ["Shop"]


def test_the_command_reads_the_passphrase_twice_and_the_restore_once(tmp_path):
    first, second = ({"WAKEFUL_INSTANCE": str(tmp_path / name)} for name in ("first", "second"))
    assert wakeful(["db", "upgrade"], first).returncode == 0
    target = tmp_path / "sealed"
    for typed, fault in (
        ("7 chars\n7 chars\n", "8 characters or more"),
        ("8 charss\n8 charts\n", "are different"),
    ):
        done = wakeful(["backup", str(target), "--encrypt"], first, typed)
        assert (done.returncode, fault in done.stderr, target.exists()) == (1, True, False)
    typed = "8 charss\n8 charss\n"
    assert wakeful(["backup", str(target), "--encrypt"], first, typed).returncode == 0
    with target.open("rb") as file:
        assert archive.is_encrypted(file)
    wrong = wakeful(["restore", str(target)], second, "8 chars?\n")
    assert (wrong.returncode, "passphrase is wrong" in wrong.stderr) == (1, True)
    assert wakeful(["restore", str(target)], second, typed).returncode == 0
    assert (tmp_path / "second" / "wakeful.db").exists()


@pytest.mark.parametrize("size", [0, sealed.CHUNK, 200_000])
def test_an_encrypted_stream_is_read_as_it_was_written(cheap_key, size):
    content, file = os.urandom(size), io.BytesIO()
    stream = sealed.Sealer(file, PASSPHRASE)
    for start in range(0, size, 10_000):
        stream.write(content[start : start + 10_000])
    stream.close()
    file.seek(len(sealed.MAGIC))
    assert io.BufferedReader(sealed.Opener(file, PASSPHRASE)).read() == content


@pytest.fixture
def whole(cheap_key) -> bytes:
    """An encrypted stream of more than two chunks."""
    file = io.BytesIO()
    stream = sealed.Sealer(file, PASSPHRASE)
    stream.write(bytes(150_000))
    stream.close()
    return file.getvalue()


def opened(raw: bytes) -> bytes:
    file = io.BytesIO(raw)
    file.seek(len(sealed.MAGIC))
    return io.BufferedReader(sealed.Opener(file, PASSPHRASE)).read()


def test_an_encrypted_stream_that_was_cut_is_refused(whole):
    start = len(sealed.MAGIC) + sealed.SALT + sealed.HEADER
    chunk = sealed.CHUNK + sealed.ADDED
    for end in (start - 1, start, start + chunk, len(whole) - 1):
        with pytest.raises(WakefulError, match=r"incomplete|damaged"):
            opened(whole[:end])
    assert len(opened(whole)) == 150_000


def test_an_encrypted_stream_that_was_changed_is_refused(whole):
    for at in (len(sealed.MAGIC), 100, 70_000):
        changed = bytearray(whole)
        changed[at] ^= 1
        with pytest.raises(WakefulError, match=r"wrong|damaged"):
            opened(bytes(changed))


# --- What is refused


@pytest.mark.parametrize("cut", [0, 10, 3000, -1])
def test_a_backup_that_was_cut_is_refused(core, elsewhere, tmp_path, cut):
    path = back_up(core, tmp_path / "backup")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(WakefulError, match=r"is not a backup of Wakeful|damaged or incomplete"):
        restore_from(path, elsewhere)
    assert not list(elsewhere.instance.iterdir())


def test_a_file_that_is_no_backup_is_refused(elsewhere, tmp_path):
    path = tmp_path / "backup"
    path.write_text("root:x:0:0:root")
    with pytest.raises(WakefulError, match="is not a backup of Wakeful"):
        restore_from(path, elsewhere)
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../../outside"), io.BytesIO())
    with pytest.raises(WakefulError, match="is not a backup of Wakeful"):
        restore_from(path, elsewhere)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"revision": "9999"}, "was written by a newer version of Wakeful .revision 9999"),
        ({"revision": "0047"}, f"Check out commit {schema.BETWEEN} of Wakeful"),
        ({"format": 2, "wakeful": "9.0"}, "made by Wakeful 9.0, whose format"),
        ({"database": "postgresql"}, "backup of PostgreSQL, but WAKEFUL_DATABASE_URL names SQLite"),
        ({"sha256": "0" * 64}, "damaged or incomplete"),
    ],
)
def test_a_backup_that_does_not_fit_is_refused(core, elsewhere, tmp_path, changes, sentence):
    database = tmp_path / "database"
    with core.app_context():
        backup._copy(database)
    manifest = archive.Manifest(
        "sqlite",
        schema.newest_revision(),
        "2026-01-01T00:00:00Z",
        True,
        archive.digest_of(database),
        "1",
    )
    path = tmp_path / "backup"
    with path.open("wb") as file:
        archive.write(file, dataclasses.replace(manifest, **changes), database, SECRET_KEY, "")
    with pytest.raises(WakefulError, match=sentence):
        restore_from(path, elsewhere)
    assert not list(elsewhere.instance.iterdir())


@pytest.mark.both_databases
def test_a_database_in_use_is_not_replaced(core, same, tmp_path):
    make_monitor(core, name="Shop")
    path = back_up(core, tmp_path / "backup")
    with core.app_context():
        with writing():
            liveness.write(liveness.process_name(liveness.CHECKER), now())
        db.session.execute(select(func.count()).select_from(MonitorRow))  # an open connection
        with pytest.raises(WakefulError, match="Wakeful is running on this database"):
            restore_from(path, same, force=True)
        assert db.session.scalar(select(MonitorRow.name)) == "Shop"
        db.session.remove()


# --- A second installation that runs


@pytest.mark.both_databases
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.more])]
)
def test_a_restored_installation_logs_in_checks_and_alerts(tmp_path, request, kind):
    site = Site()

    def installation(name: str) -> Service:
        settings = {"CANARIES": "", "CONFIRM_SECONDS": "0"}
        if kind == "postgresql":
            server = request.getfixturevalue("postgres_server")
            settings["DATABASE_URL"] = server.url(server.create()).replace("+psycopg", "")
        return Service(tmp_path / name, **settings)

    with serving(site) as url:
        first = installation("first")
        first.command("user", "create", ADMIN, "--role", "admin", input=PASSWORD)
        core = create_core(read(first.environ))
        make_monitor(core, url=url, alerts=[["webhook", f"{url}/hook"]])
        with core.app_context():
            db.engine.dispose()
        first.command("backup", str(tmp_path / "backup"))

        second = installation("second")
        second.command("restore", str(tmp_path / "backup"))
        site.status = 503
        second.start()
        base = second.await_line(RUNS)[1]
        assert log_in(base).url == f"{base}/"
        [alert] = eventually(lambda: site.bodies, "the alert")
        assert (alert["type"], alert["data"]["monitor"]["name"]) == ("incident.opened", "Shop")
        assert second.stop() == 0


def log_in(base: str) -> requests.Response:
    with requests.Session() as browser:
        page = browser.get(f"{base}/login", timeout=30).text
        token = re.search(r'name="csrf_token"[^>]* value="([^"]+)"', page)[1]
        form = {"csrf_token": token, "email": ADMIN, "password": PASSWORD}
        return browser.post(f"{base}/login", form, timeout=30)


class Site:
    """A target that answers ``status``, and a webhook that keeps what it gets."""

    def __init__(self) -> None:
        self.status = 200
        self.bodies: list[dict] = []

    def __call__(self, environ, start_response):
        request = Request(environ)
        if request.method == "POST":
            self.bodies.append(request.get_json())
            return Response(status=204)(environ, start_response)
        return Response(status=self.status)(environ, start_response)


# --- What a restored installation does not do


@pytest.mark.both_databases
def test_messages_older_than_an_hour_wait_for_a_person(core, same, tmp_path):
    box = Outbox(core)
    box.clock.now = now() - timedelta(minutes=61)
    [old] = box.tell(Event.INCIDENT_OPENED, *outage(box))
    box.clock.now = now() - timedelta(minutes=58)
    [new] = box.tell(Event.INCIDENT_OPENED, *outage(box))
    path = back_up(core, tmp_path / "backup")
    with core.app_context():
        db.session.remove()
        db.engine.dispose()
    assert restore_from(path, same, force=True).on_hold == 1
    with core.app_context():
        rows = {row.id: row for row in db.session.scalars(select(DeliveryRow))}
        assert (rows[old].status, rows[old].reason) == (DeliveryStatus.HELD, "restored")
        assert rows[old].next_attempt_at is None
        assert rows[new].status == DeliveryStatus.PENDING
        db.session.remove()


def outage(box: Outbox):
    monitor = box.monitor((Channel.WEBHOOK, "http://127.0.0.1:9/hook"))
    return monitor, box.incident(monitor)
