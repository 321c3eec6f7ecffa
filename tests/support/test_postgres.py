"""The tests' own PostgreSQL: fresh databases, quickly, and nothing left afterwards."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.support.postgres import DIRECTORIES, Lent, Server, find_binaries

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[2]


def run(url, statement):
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        result = connection.execute(sa.text(statement))
        return result.scalars().all() if result.returns_rows else None


@pytest.mark.parametrize("turn", ["first", "second"])
def test_every_test_gets_an_empty_database(postgres_url, turn):
    run(postgres_url, "CREATE TABLE mark (turn text)")
    run(postgres_url, f"INSERT INTO mark VALUES ('{turn}')")
    assert run(postgres_url, "SELECT turn FROM mark") == [turn]


@pytest.mark.parametrize("turn", ["first", "second"])
def test_every_test_finds_the_rows_and_numbers_of_the_template(postgres_server, turn):
    def prepare(url):
        run(url, "CREATE TABLE kept (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, word text)")
        run(url, "CREATE TABLE child (kept_id int REFERENCES kept)")
        run(url, "INSERT INTO kept OVERRIDING SYSTEM VALUE VALUES (-1, E'a\\tb')")

    lent = Lent(postgres_server, postgres_server.template("with_rows", prepare))
    url = postgres_server.url(lent.name)
    left_open = sa.create_engine(url).connect()
    left_open.execute(sa.text("INSERT INTO kept (word) VALUES ('left open')"))
    run(url, "INSERT INTO kept (word) VALUES ('new')")
    run(url, "INSERT INTO child SELECT id FROM kept")
    run(url, "DELETE FROM child WHERE kept_id = -1")
    assert lent.reset()
    assert run(url, "SELECT word FROM kept") == ["a\tb"]
    assert run(url, "INSERT INTO kept (word) VALUES ('one') RETURNING id") == [1]
    left_open.invalidate()
    run(url, "ALTER TABLE child ADD COLUMN more text")
    assert not lent.reset()
    lent.drop()


def test_a_database_is_put_back_after_a_test_that_ended_all_connections(postgres_server):
    lent = Lent(postgres_server, postgres_server.template("ended", lambda url: None))
    url = postgres_server.url(lent.name)
    ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    run(url, f"{ending} WHERE datname = current_database() AND pid <> pg_backend_pid()")
    assert lent.reset()
    lent.drop()


def test_a_template_is_prepared_once_and_copied(postgres_server: Server):
    calls = []

    def prepare(url):
        calls.append(url)
        run(url, "CREATE TABLE prepared AS SELECT 1 AS one")

    name = postgres_server.template("prepared_once", prepare)
    assert postgres_server.template("prepared_once", prepare) == name
    copies = [postgres_server.create(name), postgres_server.create(name)]
    assert [run(postgres_server.url(copy), "SELECT one FROM prepared") for copy in copies] == [
        [1],
        [1],
    ]
    assert len(calls) == 1


def test_a_connection_left_open_does_not_hold_up_the_tidying(postgres_server: Server):
    name = postgres_server.create()
    engine = sa.create_engine(postgres_server.url(name))
    connection = engine.connect()
    postgres_server.drop(name)
    connection.invalidate()
    engine.dispose()


@pytest.mark.more
def test_workers_share_one_server_and_a_finished_run_leaves_none(tmp_path):
    if find_binaries() is None:
        pytest.skip("no PostgreSQL server; to have one: apt-get install postgresql")
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.support.postgres"]\n')
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(
            textwrap.dedent(
                """
                from pathlib import Path

                def test_it(postgres_server, postgres_url):
                    with (Path(__file__).parent / "servers").open("a") as seen:
                        print(postgres_server.directory, file=seen)
                """
            )
        )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n2", str(tmp_path)]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    servers = (tmp_path / "servers").read_text().split()
    assert len(servers) == 2
    assert len(set(servers)) == 1
    assert DIRECTORIES in servers[0]
    assert not Path(servers[0]).exists()
