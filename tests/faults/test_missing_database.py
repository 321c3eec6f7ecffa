"""An SQLite file that is moved, deleted or replaced is reported, never silently replaced by an
empty one: that would split the installation in two.
"""

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from app import create_core
from app.config import read
from app.db import connections, db, schema, writing
from app.db.tables import SettingRow
from tests.factories import make_key, make_monitor, make_person, now
from tests.support.checkers import running
from tests.support.command import wakeful
from tests.support.service import eventually
from tests.web.visitor import Visitor


@pytest.fixture
def file(settings):
    return Path(settings.database_url.removeprefix("sqlite:///"))


@pytest.fixture
def key(app):
    return {"Authorization": f"Bearer {make_key(app)}"}


@pytest.fixture
def elsewhere(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def move(file, folder):
    """Move the database and the files beside it."""
    for part in file.parent.glob(f"{file.name}*"):
        shutil.move(part, folder / part.name)


def absent(file):
    return connections.ABSENT % {"path": file}


def test_a_file_that_is_moved_while_it_is_open_is_noticed_at_once(app, key, file, elsewhere):
    make_person(app)
    visitor = Visitor(app).log_in("admin@wakeful.test")
    assert app.test_client().get("/readyz").status_code == 200
    move(file, elsewhere)
    ready = app.test_client().get("/readyz")
    assert (ready.status_code, ready.json["faults"]) == (503, [absent(file)])
    answer = app.test_client().get("/api/v1/monitors", headers=key)
    assert (answer.status_code, answer.json["message"]) == (503, absent(file))
    assert int(answer.headers["Retry-After"]) > 0
    visitor.open("/monitors")
    assert visitor.status == 503
    assert absent(file) in visitor.text
    assert not file.exists(), "nothing makes an empty one in its place"
    move(elsewhere / file.name, file.parent)
    assert visitor.open("/monitors").status == 200
    assert app.test_client().get("/readyz").status_code == 200


def test_a_checker_stores_nothing_in_a_file_that_was_moved_and_all_of_it_once_it_is_back(
    app, settings, site, file, elsewhere
):
    make_monitor(app, url=site.url, interval=1, timeout=60)

    def stored(path):
        with closing(sqlite3.connect(path)) as database:
            return database.execute("SELECT count(*) FROM results").fetchone()[0]

    with running(app, settings):
        eventually(lambda: stored(file) > 1, "checks are stored")
        move(file, elsewhere)
        asked = site.asked
        eventually(lambda: site.asked > asked + 1, "checks go on")
        before, asked = stored(elsewhere / file.name), site.asked
        eventually(lambda: site.asked > asked + 2, "checks go on")
        assert stored(elsewhere / file.name) == before
        assert not file.exists()
        for part in sorted(elsewhere.iterdir(), reverse=True):  # the database after its log
            shutil.move(part, file.parent / part.name)
        asked = site.asked
        eventually(lambda: stored(file) >= asked, "what was checked meanwhile is stored")


def test_many_requests_at_once_get_the_same_answer(app, key, file, elsewhere):
    def ask(_number):
        return app.test_client().get("/api/v1/monitors", headers=key).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {200}
        move(file, elsewhere)
        assert set(pool.map(ask, range(20))) == {503}


def test_a_file_that_is_replaced_by_a_copy_is_read_instead(core, file, elsewhere):
    make_monitor(core, name="in the copy")
    with core.app_context():
        db.session.rollback()
        db.session.remove()
        with (
            closing(sqlite3.connect(file)) as source,
            closing(sqlite3.connect(elsewhere / "copy")) as copy,
        ):
            source.backup(copy)
        with writing() as session:
            session.add(SettingRow(name="after the copy", value="x", updated_at=now()))
        db.session.remove()
        move(file, elsewhere)
        shutil.move(elsewhere / "copy", file)
        assert db.session.scalar(sa.text("SELECT name FROM monitors")) == "in the copy"
        assert db.session.scalar(sa.text("SELECT count(*) FROM settings")) == 0


def test_an_empty_file_is_no_database_and_one_without_our_tables_is_not_called_old(
    app, key, file, elsewhere
):
    move(file, elsewhere)
    file.touch()
    sentence = connections.EMPTY % {"path": file}
    answer = app.test_client().get("/api/v1/monitors", headers=key)
    assert (answer.status_code, answer.json["message"]) == (503, sentence)
    assert app.test_client().get("/readyz").json["faults"] == [sentence]
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE theirs (id INTEGER)")
    assert app.test_client().get("/readyz").json["faults"] == [schema.NO_TABLES]


# --- The start


@pytest.fixture(params=["a kept key", "a key of one's own"])
def environ(request, tmp_path):
    own = {"WAKEFUL_SECRET_KEY": "a secret key for tests only"}
    return {"WAKEFUL_INSTANCE": str(tmp_path / "new" / "instance"), "WAKEFUL_CANARIES": ""} | (
        {} if request.param == "a kept key" else own
    )


def command(environ, *words):
    done = wakeful(list(words), {"PATH": "/usr/bin:/bin"} | environ)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def upgraded(environ, **options):
    """Each start does this."""
    core = create_core(read(environ))
    with core.app_context():
        try:
            schema.upgrade(**options)
        finally:
            db.engine.dispose()


def test_only_a_first_start_creates_the_database(environ):
    file = Path(environ["WAKEFUL_INSTANCE"]) / "wakeful.db"
    read(environ)  # as `wakeful check` does, which makes a key: a first start all the same
    upgraded(environ)
    assert file.exists()
    upgraded(environ)
    file.unlink()
    for _ in range(2):
        with pytest.raises(sa.exc.OperationalError, match="No database exists at"):
            upgraded(environ)
        assert not file.exists()
    upgraded(environ, new=True)
    assert file.exists()


def test_the_path_of_a_new_database_is_printed(environ):
    """An instance folder whose disk is not mounted cannot be told from a first start."""
    file = Path(environ["WAKEFUL_INSTANCE"]) / "wakeful.db"
    sentence = f"No database was found. Creating a new one: {file}"
    code, out, err = command(environ, "key", "create", "ci", "--scope", "read")
    assert (code, len(out.splitlines()), err.count(sentence)) == (0, 1, 1)
    assert sentence not in command(environ, "db", "upgrade")[2]
    shutil.rmtree(environ["WAKEFUL_INSTANCE"])
    assert sentence in command(environ, "db", "upgrade")[2]


def test_the_set_up_page_names_the_database(app, file):
    with app.app_context():
        token = app.extensions["wakeful.access"].setup.token()
    page = Visitor(app).open(f"/setup/{token}")
    assert f"The database has no account yet: {file}" in page.text
    assert "Check that its disk is mounted" in page.text


def test_every_command_refuses_a_lost_database_with_a_sentence(environ):
    file = Path(environ["WAKEFUL_INSTANCE"]) / "wakeful.db"
    assert command(environ, "db", "upgrade")[0] == 0
    file.unlink()
    environ = environ | {"WAKEFUL_BIND": "127.0.0.1:0"}
    for words in (["serve"], ["web"], ["db", "upgrade"], ["key", "list"]):
        assert command(environ, *words) == (1, "", f"{absent(file)}\n"), words
    assert not file.exists()
    assert command(environ, "db", "upgrade", "--new")[0] == 0
    assert command(environ, "key", "list") == (0, "", "")
