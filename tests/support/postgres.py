"""One PostgreSQL server for a test session, and a database of its own for each test.

A pytest plugin; `tests/conftest.py` names it once:

    pytest_plugins = ["tests.support.postgres"]

Fixtures:

    postgres_server    (session) the running server; skips, saying why, where PostgreSQL is missing
    postgres_template  (session) the name of the database that tests get copies of: an empty one.
                       Override it to run the migrations once instead of once a test:

                           @pytest.fixture(scope="session")
                           def postgres_template(postgres_server):
                               return postgres_server.template("migrated", upgrade)

    postgres_url       (test) a SQLAlchemy URL of a database that holds what the template holds

A copy costs a few hundred files, so each process makes one and puts it back for the next test: rows
and sequences as in the template. A test that changes the schema costs a new copy.

The server is started by the first test that asks, in whichever xdist worker that is, and shared by
all workers of the run. It runs without fsync, in a directory of its own under /tmp, and listens on
a Unix socket there: two runs at once never meet. The process that pytest was started in stops it;
what a killed run leaves behind is swept away by the next one.
"""

import fcntl
import grp
import itertools
import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

BINARIES = Path("/usr/lib/postgresql")
# Not TMPDIR: a Unix socket's path has room for 107 characters, and the account that the server
# runs as must be able to get there.
TEMPORARY = Path("/tmp")
DIRECTORIES = "wakeful-postgres-"
EMPTY = "template0"  # nobody can connect to it, so copying it never fails on a stray session

SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "200",
    "shared_buffers": "64MB",
    # The data is thrown away in minutes: nothing has to survive a power cut. Commits stay
    # synchronous, because tests stop a server at once and expect what was committed before.
    "fsync": "off",
    "full_page_writes": "off",
}

_names = (f"test_{os.getpid()}_{number}" for number in itertools.count())

# The parts of a database that a test may have changed beside rows: columns, constraints, triggers,
# functions. A row of a catalogue that has changed has another transaction in ``xmin``; to write its
# definition out takes six times as long.
_SHAPE = """
SELECT sum(hashtextextended(line, 0)) FROM (
  SELECT concat_ws(' ', c.relkind, c.relname, a.attname, a.attnum, a.xmin) AS line
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
  WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0
  UNION ALL SELECT concat_ws(' ', 'default', oid, xmin) FROM pg_attrdef
  UNION ALL SELECT concat_ws(' ', 'constraint', oid, xmin) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', 'trigger', oid, xmin) FROM pg_trigger
  UNION ALL SELECT concat_ws(' ', 'function', oid, xmin) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
) AS lines
"""
_NO_TABLE = "SELECT '' WHERE false"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_NUMBERS = "SELECT sequencename, start_value, last_value FROM pg_sequences"


def find_binaries() -> Path | None:
    """The newest installed server's programs. Debian keeps them off the PATH."""
    paths = [
        initdb.parent
        for initdb in BINARIES.glob("*/bin/initdb")
        if initdb.with_name("postgres").exists()
    ]
    return max(paths, key=lambda path: float(path.parent.name), default=None)


@dataclass(frozen=True)
class Server:
    """A server by its directory. Any process of the session can hold one."""

    directory: Path

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.directory}"

    def execute(self, *statements: str, **names: str) -> None:
        """Run statements, with {names} quoted as identifiers, outside any transaction."""
        quoted = {key: sql.Identifier(name) for key, name in names.items()}
        with psycopg.connect(
            host=str(self.directory), user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            for statement in statements:
                connection.execute(sql.SQL(statement).format(**quoted))

    def create(self, template: str = EMPTY) -> str:
        """Make a database that no other test has, and return its name."""
        name = next(_names)
        self.execute("CREATE DATABASE {name} TEMPLATE {template}", name=name, template=template)
        return name

    def drop(self, name: str) -> None:
        # FORCE: a test that leaves a connection open must not hang the next one's tidying.
        self.execute("DROP DATABASE {name} WITH (FORCE)", name=name)

    def stop(self) -> None:
        """Only for a server of the test's own: see ``own_server``."""
        _run("pg_ctl", "stop", "-m", "immediate", directory=self.directory)

    def start(self) -> None:
        """Again, with the data that is there."""
        _launch(self.directory)

    def connect(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(host=str(self.directory), user="postgres", dbname=database)

    def template(self, name: str, prepare: Callable[[str], None]) -> str:
        """Have `prepare(url)` fill the database `name` once in the session; return its name.

        Afterwards nobody can connect to it: one connection forgotten in `prepare` would make
        every later copy fail with "source database is being accessed by other users".
        """
        done = self.directory / f"{name}.template"
        with _locked(self.directory):
            if not done.exists():
                # Dropped first: what a `prepare` that failed in another worker left behind would
                # hide its error behind "already exists".
                self.execute(
                    "DROP DATABASE IF EXISTS {name} WITH (FORCE)",
                    "CREATE DATABASE {name} TEMPLATE {empty}",
                    name=name,
                    empty=EMPTY,
                )
                prepare(self.url(name))
                self.execute(
                    "ALTER DATABASE {name} ALLOW_CONNECTIONS false",
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    f" WHERE datname = '{name}'",
                    name=name,
                )
                done.touch()
        return name


class Lent:
    """This process's copy of a template, put back as it was before each test, on one connection:
    for each new one the server starts a process, which costs more than all else.
    """

    def __init__(self, server: Server, template: str) -> None:
        self.server = server
        self.name = server.create(template)
        self._connect()
        self._shape = self._connection.execute(_SHAPE).fetchone()
        self._rows = {table: _rows(self._connection, table) for table in _tables(self._connection)}
        # The tables that have rows: asking costs a fifth of deleting from all of them.
        self._filled = " UNION ALL ".join([_NO_TABLE, *map(_whether_filled, self._rows)]).encode()
        self._numbers = self._connection.execute(_NUMBERS).fetchall()

    def _connect(self) -> None:
        self._connection = self.server.connect(self.name)
        self._connection.autocommit = True

    def reset(self) -> bool:
        """Whether the database is as it was; False where a test has changed its schema."""
        try:
            # A test that left a transaction open would hold the rows that are deleted here.
            self._connection.execute(_OTHERS)
        except psycopg.OperationalError:  # a test has ended this connection too
            self._connection.close()
            self._connect()
            self._connection.execute(_OTHERS)
        if self._connection.execute(_SHAPE).fetchone() != self._shape:
            return False
        with self._connection.transaction():
            # A replica deletes in any order.
            self._connection.execute("SET LOCAL session_replication_role = replica")
            self._clear()
            for table, rows in self._rows.items():
                if rows:
                    _fill(self._connection, table, rows)
        return True

    def _clear(self) -> None:
        """Delete all rows, and set the sequences that have been used."""
        filled = self._connection.execute(self._filled, prepare=True).fetchall()
        used = set(self._connection.execute(_NUMBERS, prepare=True).fetchall()) - {*self._numbers}
        names = {name for name, *_ in used}
        numbers = [_set(*number) for number in self._numbers if number[0] in names]
        if statements := [*(_delete(table) for (table,) in filled), *numbers]:
            self._connection.execute(";".join(statements).encode())

    def close(self) -> None:
        self._connection.close()

    def drop(self) -> None:
        self.close()
        self.server.drop(self.name)


def _whether_filled(table: str) -> str:
    name = sql.Literal(table).as_string()
    return f"SELECT {name} WHERE EXISTS (SELECT FROM {_quoted(table)})"


def _delete(table: str) -> str:
    return f"DELETE FROM {_quoted(table)}"


def _set(sequence: str, first: int, last: int | None) -> str:
    number, used = (first, False) if last is None else (last, True)
    return f"SELECT setval('{_quoted(sequence)}', {number}, {used})"


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string()


def _tables(connection: psycopg.Connection[tuple[Any, ...]]) -> list[str]:
    return [table for (table,) in connection.execute(_TABLES)]


def _rows(connection: psycopg.Connection[tuple[Any, ...]], table: str) -> bytes:
    statement = sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(table))
    with connection.cursor().copy(statement) as copy:
        return b"".join(bytes(part) for part in copy)


def _fill(connection: psycopg.Connection[tuple[Any, ...]], table: str, rows: bytes) -> None:
    statement = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))
    with connection.cursor().copy(statement) as copy:
        copy.write(rows)


_lent: dict[tuple[Server, str], Lent] = {}


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    if find_binaries() is None:
        pytest.skip(
            f"no PostgreSQL server under {BINARIES}; to have one: apt-get install postgresql"
        )
    directory = _directory(pytestconfig)
    if not directory.exists():
        _sweep()
        _make(directory)
    with _locked(directory):
        if not (directory / "data" / "postmaster.pid").exists():
            _start(directory)
    yield Server(directory)
    for lent in _lent.values():
        lent.close()
    _lent.clear()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: Server) -> str:
    return EMPTY


@pytest.fixture
def postgres_url(postgres_server: Server, postgres_template: str) -> str:
    kept = (postgres_server, postgres_template)
    if kept in _lent and not _lent[kept].reset():
        _lent.pop(kept).drop()
    if kept not in _lent:
        _lent[kept] = Lent(*kept)
    return postgres_server.url(_lent[kept].name)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server when the whole run ends, not when one xdist worker does."""
    if not _is_worker(config):
        _stop(_directory(config))


def _is_worker(config: pytest.Config) -> bool:
    # Not asked of the environment: a pytest that a test starts inherits the worker's variables.
    return hasattr(config, "workerinput")


def _directory(config: pytest.Config) -> Path:
    """The server's place, named after the process that pytest was started in."""
    owner = os.getppid() if _is_worker(config) else os.getpid()
    return Path(TEMPORARY, f"{DIRECTORIES}{owner}")


def _make(directory: Path) -> None:
    directory.mkdir(mode=0o700, exist_ok=True)
    if os.getuid() == 0:
        shutil.chown(directory, **_account())


def _account() -> dict[str, str]:
    """Whom to run the server as: PostgreSQL refuses root; anyone else can only be themselves."""
    if os.getuid() != 0:
        return {}
    name = next(user for user in ("postgres", "nobody") if _has_user(user))
    return {"user": name, "group": grp.getgrgid(pwd.getpwnam(name).pw_gid).gr_name}


def _has_user(user: str) -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwnam(user))
    return False


def _run(program: str, *arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    binaries = find_binaries()
    assert binaries is not None
    account = _account()
    return subprocess.run(
        [binaries / program, "-D", directory / "data", *arguments],
        **account,
        extra_groups=[] if account else None,
        # The caller's directory may be closed to that account; PG* variables name other servers.
        cwd=directory,
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def _start(directory: Path) -> None:
    shutil.rmtree(directory / "data", ignore_errors=True)
    _check(
        directory, ["initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8"]
    )
    _launch(directory)


def _launch(directory: Path) -> None:
    settings = {**SETTINGS, "unix_socket_directories": str(directory)}
    options = " ".join(f"-c {key}={value}" for key, value in settings.items())
    log = directory / "log"
    _check(directory, ["pg_ctl", "start", "-w", f"--log={log}", f"--options={options}"])


def _check(directory: Path, command: list[str]) -> None:
    done = _run(*command, directory=directory)
    if done.returncode != 0:
        log = directory / "log"
        logged = log.read_text() if log.exists() else ""
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{logged}")


def _stop(directory: Path) -> None:
    if directory.exists():
        _run("pg_ctl", "stop", "-m", "immediate", directory=directory)
        shutil.rmtree(directory, ignore_errors=True)


def _sweep() -> None:
    """Stop the servers of runs that were killed before they could."""
    for directory in TEMPORARY.glob(f"{DIRECTORIES}*"):
        if not Path("/proc", directory.name.removeprefix(DIRECTORIES).partition("-")[0]).exists():
            _stop(directory)


@contextmanager
def own_server() -> Iterator[Server]:
    """One that a test may stop: nobody else uses it."""
    if find_binaries() is None:
        pytest.skip(f"no PostgreSQL server under {BINARIES}")
    directory = TEMPORARY / f"{DIRECTORIES}{os.getpid()}-own"
    _make(directory)
    _start(directory)
    try:
        yield Server(directory)
    finally:
        _stop(directory)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
