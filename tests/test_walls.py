"""The layers of app/: which package may import which, read from the source.

A wrong import does no harm on the day it is made. Later, testing statistics needs a database, a
rule of the API is in the view of a page, and installing Wakeful needs Redis.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from app.commands.cli import COMMANDS

ROOT = Path(__file__).parents[1]
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "app").rglob("*.py"))
}

WEB = {"flask", "flask_login", "flask_sqlalchemy", "flask_wtf", "jinja2", "werkzeug"}
DATABASE = {"alembic", "app.db", "flask_sqlalchemy", "psycopg", "sqlalchemy", "sqlite3"}


# The floors of app/, from the ground up: a room imports only from floors below its own, and rooms
# of one floor do not import each other. ``app`` is app/__init__.py, which puts them together.
FLOORS = (
    {"app.i18n"},
    {
        "app.environment",
        "app.errors",
        "app.lasting",
        "app.middleware",
        "app.paths",
        "app.records",
        "app.slots",
        "app.version",
    },
    {"app.rules"},
    {"app.codec", "app.judge"},
    {"app.stats", "app.imports"},
    {"app.net", "app.proxies"},
    {"app.checks"},
    {"app.config", "app.cookies", "app.headers", "app.secret_keys", "app.templating"},
    {"app.hosts"},
    {"app.db"},
    {"app.access"},
    {"app.alerts"},
    {"app.engine"},
    {"app.forms"},
    {"app.stores"},
    {"app.api", "app.web", "app.pages"},
    {"app"},
    {"app.commands"},
    {"app.demo"},
)
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


@dataclass(frozen=True)
class Wall:
    rooms: set[str]
    closed_to: set[str]
    why: str


WALLS = {
    "pure": Wall(
        {
            "app.records",
            "app.rules",
            "app.codec",
            "app.judge",
            "app.stats",
            "app.net",
            "app.checks",
        },
        WEB | DATABASE,
        "it is tested without a server or a database; clock, rows and journal come as arguments",
    ),
    "imports": Wall(
        {"app.imports"},
        WEB | (DATABASE - {"sqlite3"}) | {"app.codec", "requests"},
        "it reads files of strangers and nothing else; sqlite3 reads theirs, never ours",
    ),
    "faces": Wall(
        {"app.web", "app.pages", "app.api"},
        DATABASE | {"app.engine", "app.alerts"},
        "over a remote store there is no database; stores and forms are all that they share",
    ),
    "remote": Wall(
        {"app.stores.remote"},
        DATABASE | {"app.stores.local"},
        "a dashboard over somebody else's API runs without a database",
    ),
}

# Packages that are planned and do not exist yet.
TO_COME: set[str] = set()

# All that forms know beside the standard library: one schema for the browser and for the API.
FORMS_KNOW = {
    "app.checks.kinds",
    "app.errors",
    "app.forms",
    "app.i18n",
    "app.imports",
    "app.records",
    "app.rules",
    "flask_wtf",
    "markupsafe",
    "wtforms",
}

# The modules that may import what few should: libraries of an extra, and what must be replaceable.
ONLY = {
    "apprise": {"app.alerts"},
    "celery": {"app.engine.carriers.queue"},
    "kombu": {"app.engine.carriers.queue"},
    "pycurl": {"app.checks.curl", "app.checks.expiry"},
    "redis": {"app.engine.carriers.queue"},
    "yaml": {"app.imports.yaml_text"},
    # It overwrites urllib3 for everything else in the environment.
    "niquests": set(),
}

# 43 MB at first use: only those who use the channel pay for it.
INSIDE_FUNCTIONS = {"apprise"}

PAGES = {"app.api", "app.forms", "app.pages", "app.web", "wtforms"}
CHECKS = {"app.checks.curl", "app.checks.http", "dns", "pycurl"}
SENDING = {"app.alerts.channels", "requests"}

# The modules that a command must not import at its start, directly or indirectly: it would start
# later, and its process stay larger. The modules of "" are the start of every command.
NOT_AT_START = {
    "": DATABASE | WEB | PAGES | CHECKS | SENDING,
    "agent": (DATABASE - {"sqlite3"}) | WEB | PAGES | {"app.access", "app.alerts", "app.stores"},
    "prober": DATABASE | WEB | PAGES | SENDING | {"app.access", "app.alerts", "app.stores"},
    "checker": PAGES | {"app.api", "app.stores.local"},
    "worker": PAGES,
    "serve": PAGES,  # its parts share what it has loaded
    "web": PAGES,
    "backup": PAGES | CHECKS | SENDING,
    "check": SENDING,
    "db": PAGES | CHECKS | SENDING,
    "doctor": PAGES,
    "import": SENDING,
    "key": PAGES | CHECKS | SENDING,
    "restore": PAGES | CHECKS | SENDING,
    "secrets": PAGES | CHECKS | SENDING,
    "user": PAGES | CHECKS | SENDING,
    "webhook-secret": PAGES | CHECKS | SENDING,
}


@dataclass(frozen=True)
class Import:
    importer: str
    line: int
    module: str
    at_start: bool
    function: str = ""  # the function of the module that it is in

    def __str__(self) -> str:
        return f"{SOURCES[self.importer].relative_to(ROOT)}:{self.line} imports {self.module}"


def imports(importer: str) -> Iterator[Import]:
    path = SOURCES[importer]
    tree = ast.parse(path.read_bytes(), filename=str(path))
    package = importer if path.stem == "__init__" else importer.rpartition(".")[0]
    for part in tree.body:
        name = part.name if isinstance(part, ast.FunctionDef) else ""
        for node, at_start in statements(part, at_start=True):
            for module in imported(node, package):
                yield Import(importer, node.lineno, module, at_start, name)


def statements(node: ast.AST, *, at_start: bool) -> Iterator[tuple[ast.AST, bool]]:
    """The statement and those within it, and whether each runs when its module is imported. An
    import is never in an expression: those are most of a module's nodes.
    """
    later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or for_types_alone(node)
    at_start = at_start and not later
    yield node, at_start
    for blocks in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, blocks, ()):
            yield from statements(inner, at_start=at_start)


def for_types_alone(node: ast.AST) -> bool:
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def imported(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*up, *([node.module] if node.module else [])])
        inner = [f"{base}.{alias.name}" for alias in node.names]
        # `from app import db` is an import of app.db, `from app.db import Row` one of app.db alone.
        return [name if name in SOURCES else base for name in inner]
    return []


def within(module: str, rooms: Iterable[str]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


@cache
def every() -> list[Import]:
    """All imports of app/, read by the first test that asks: not in each worker that collects."""
    return [line for importer in SOURCES for line in imports(importer)]


@cache
def by_importer() -> dict[str, list[Import]]:
    grouped: dict[str, list[Import]] = {}
    for line in every():
        grouped.setdefault(line.importer, []).append(line)
    return grouped


# Each kind of check is a folder; what it is made of is its own business.
KINDS = [
    name.removesuffix(".checks")
    for name in SOURCES
    if name.startswith("app.checks.") and name.endswith(".checks")
]


def message_of(offenders: Iterable[Import], why: str) -> str:
    return "".join(f"\n  {offender}" for offender in offenders) + f"\nbut {why}"


def room(module: str) -> str:
    """The part of app/ that a module belongs to: ``app.checks`` for ``app.checks.http.checks``."""
    return ".".join(module.split(".")[:2])


def test_every_module_stands_on_a_floor():
    assert {room(name) for name in SOURCES} == set(LEVEL) - TO_COME


def test_no_import_runs_up():
    offenders = [
        line
        for line in every()
        if room(line.module) in LEVEL
        and room(line.module) != room(line.importer)
        and LEVEL[room(line.module)] >= LEVEL[room(line.importer)]
    ]
    assert not offenders, message_of(offenders, "a room imports only from the floors below its own")


def test_no_module_imports_itself_in_a_circle():
    below: dict[str, set[str]] = {name: set() for name in SOURCES}
    for line in every():
        below[line.importer].add(line.module)
    done: set[str] = set()

    def circle(name: str, above: tuple[str, ...]) -> tuple[str, ...]:
        if name in above:
            return (*above[above.index(name) :], name)
        if name in done or name not in below:
            return ()
        line = next(
            filter(None, (circle(module, (*above, name)) for module in sorted(below[name]))), ()
        )
        done.add(name)
        return line

    circles = [line for name in SOURCES if (line := circle(name, ()))]
    assert not circles, " imports ".join(circles[0])


@pytest.mark.parametrize("wall", WALLS.values(), ids=WALLS)
def test_a_room_does_not_know_what_is_behind_its_wall(wall):
    offenders = [
        line
        for line in every()
        if within(line.importer, wall.rooms) and within(line.module, wall.closed_to)
    ]
    assert not offenders, message_of(offenders, wall.why)


@pytest.mark.parametrize("wall", WALLS.values(), ids=WALLS)
def test_a_wall_guards_rooms_that_exist(wall):
    """A renamed folder would otherwise leave its wall guarding nothing."""
    missing = {room for room in wall.rooms if not any(within(name, [room]) for name in SOURCES)}
    assert missing <= TO_COME


def test_forms_know_wtforms_and_records_and_little_else():
    offenders = [
        line
        for line in every()
        if within(line.importer, ["app.forms"])
        and not within(line.module, FORMS_KNOW)
        and line.module.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert not offenders, message_of(
        offenders, "the browser and the API share them, whatever is behind"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_table_of_kinds_knows_what_a_kind_is_made_of(kind):
    offenders = [
        line
        for line in every()
        if within(line.module, [kind])
        and not within(line.importer, [kind])
        and line.importer != "app.checks.kinds"
    ]
    assert not offenders, message_of(offenders, "a new kind would then change more than its folder")


@pytest.mark.parametrize("library", ONLY)
def test_few_import_what_few_should(library):
    offenders = [
        line
        for line in every()
        if within(line.module, [library]) and not within(line.importer, ONLY[library])
    ]
    assert not offenders, message_of(offenders, f"only {sorted(ONLY[library])} may")


def test_one_module_says_which_stored_times_are_from_a_clock_that_was_ahead():
    users = [name for name, path in SOURCES.items() if re.search(r"\bSKEW\b", path.read_text())]
    assert users == ["app.rules.clocks"]


@pytest.mark.parametrize("library", INSIDE_FUNCTIONS)
def test_the_heavy_is_loaded_at_first_use(library):
    offenders = [line for line in every() if within(line.module, [library]) and line.at_start]
    assert not offenders, message_of(offenders, "everyone would pay for loading it")


def at_start(module: str) -> dict[str, list[str]]:
    """All that is loaded when ``module`` is imported, each with the way to it."""
    ways: dict[str, list[str]] = {}
    open_ = [(module, [module])]
    while open_:
        name, way = open_.pop(0)
        if name in ways:
            continue
        ways[name] = way
        package = name.rpartition(".")[0]
        below = [line.module for line in by_importer().get(name, ()) if line.at_start]
        open_ += [(imported, [*way, imported]) for imported in (*below, package) if imported]
    return ways


@pytest.mark.parametrize("command", NOT_AT_START)
def test_a_command_does_not_load_at_its_start_what_only_others_need(command):
    where = COMMANDS[command][0] if command else "cli.cli"
    module, _dot, function = f"app.commands.{where}".rpartition(".")
    ways = at_start(module)
    for line in by_importer()[module]:
        if line.function == function:
            ways |= at_start(line.module)
    wrong = [way for name, way in ways.items() if within(name, NOT_AT_START[command])]
    assert not wrong, "".join(f"\n  {' imports '.join(way)}" for way in wrong)


def test_each_command_has_a_line_for_what_it_must_not_load():
    assert set(NOT_AT_START) == {"", *COMMANDS}


def test_the_reader_of_imports_sees_every_spelling():
    tree = ast.parse(
        "import flask.views\n"
        "from app import db\n"
        "from app.db import Row\n"
        "from .. import db\n"
        "from ..db import Row\n"
        "from . import Row\n"
    )
    names = [name for node in tree.body for name in imported(node, "app.web")]
    assert names == ["flask.views", "app.db", "app.db", "app.db", "app.db", "app.web"]


def test_no_two_modules_of_records_define_the_same_name() -> None:
    """All are imported from the package: the later one would silently replace the other."""
    paths: dict[str, str] = {}
    for path in sorted((ROOT / "app" / "records").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            names = [getattr(node, "name", "")] if not isinstance(node, ast.Assign) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                if name and not name.startswith("_"):
                    assert paths.setdefault(name, path.name) == path.name, name
