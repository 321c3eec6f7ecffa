"""The program that ``test_full_disk.py`` runs on a small disk of its own: the folder and a part of
it by name.

Each function fills the disk for real, says on a line of JSON what it saw, and makes room again.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select

from app import create_app
from app.config import Settings
from app.db import db, schema
from app.db.tables import IncidentRow, ResultRow
from app.engine.agent.buffer import Buffer, MadeResult
from app.engine.checker import Checker
from app.errors import WakefulError
from app.stores import health
from tests.factories import make_key, make_monitor
from tests.support.checkers import Site
from tests.support.older import OLDEST, make_oldest
from tests.support.service import eventually

LARGE = {
    "name": "Shop",
    "url": "http://127.0.0.1:9/",
    "interval": "60",
    "request_body": "x" * 60_000,
}
FULL_SECONDS = 4.0
INTERVAL = 1
NO_DISK = 77  # the exit code where no disk can be mounted
NEW_USER, NEW_MOUNTS = 0x1000_0000, 0x2_0000  # CLONE_NEWUSER and CLONE_NEWNS of <sched.h>


@contextmanager
def full(folder: Path, left: int = 0) -> Iterator[None]:
    """The disk has this many bytes left."""
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
        file.truncate(max(0, file.tell() - left))
    try:
        yield
    finally:
        filler.unlink(missing_ok=True)


def mount(folder: Path) -> None:
    """Mount 4 MB there that this process alone sees, which has one thread as yet."""
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()
    if libc.unshare(NEW_USER | NEW_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"0 {user} 1"),
        ("gid_map", f"0 {group} 1"),
    ):
        Path("/proc/self", name).write_text(text)
    if libc.mount(b"none", str(folder).encode(), b"tmpfs", 0, b"size=4m"):
        raise OSError(ctypes.get_errno(), "mount")


def say(*words: object) -> None:
    print(json.dumps(words), flush=True)


def requests_of(app, folder: Path) -> None:
    """Reads, small writes and large ones through the API, and what /readyz says."""
    key = {"Authorization": f"Bearer {make_key(app)}"}
    client = app.test_client()
    small = LARGE | {"request_body": ""}

    def ask(method: str, data: dict[str, str] | None = None) -> None:
        answer = client.open("/api/v1/monitors", method=method, headers=key, data=data)
        say(answer.status_code, answer.json.get("message"))

    def ready() -> None:
        answer = client.get("/readyz")
        say(answer.status_code, *answer.json["faults"])

    with full(folder):
        for method, data in (("GET", None), ("POST", LARGE), ("GET", None)):
            ask(method, data)
        ready()
    ask("POST", LARGE)
    with full(folder, left=100_000):
        ask("POST", small)
        ready()
    ready()


def checks_of(app, folder: Path) -> None:
    """A checker, while the disk is full and afterwards."""
    site, stop = Site(), threading.Event()
    settings = app.extensions["wakeful.settings"]
    for _ in range(3):
        make_monitor(app, url=site.url, interval=INTERVAL, timeout=60, confirmations=0)
    checker = threading.Thread(target=Checker(app, settings).run, args=[stop])
    checker.start()

    def stored(table) -> int:
        with app.app_context():
            return db.session.scalar(select(func.count()).select_from(table))

    eventually(lambda: stored(ResultRow) >= 6, "the first results")
    with full(folder):
        before = site.asked
        threading.Event().wait(FULL_SECONDS)
        say("asked", site.asked - before)
        say(*app.test_client().get("/readyz").json["faults"])
    after = stored(ResultRow)
    eventually(lambda: stored(ResultRow) > after + 6, "results are stored again", 60)
    stop.set()
    checker.join()
    site.close()
    say("lost", site.asked - stored(ResultRow))
    say("incidents", stored(IncidentRow))


def upgrade_of(app, folder: Path) -> None:
    """An upgrade without room for its copy, and one that makes none."""
    with app.app_context():
        make_oldest()
        with full(folder, left=200_000):
            try:
                schema.upgrade()
            except WakefulError as fault:
                say(str(fault))
            say("unchanged", schema.stored_revision() == OLDEST)
            schema.upgrade(copy=False)
            say("upgraded", schema.stored_revision() == schema.newest_revision())
        say(*sorted(path.name for path in folder.glob("*.bak*")))


def agent_of(_app, folder: Path) -> None:
    """The results of an agent, which ends with one in its file and starts again."""

    def made(number: int) -> MadeResult:
        return MadeResult(number, 1, datetime.now(UTC), number)

    def send(count: int) -> list[str]:
        batch = buffer.newest(count, 1000)
        buffer.remove(batch)
        return list(batch.bodies)

    buffer = Buffer(folder)
    buffer.add([made(0), made(1)])
    with full(folder):
        for number in range(2, 6):
            buffer.add([made(number)])
        say("newest", *buffer.newest(3, 1000).bodies)
        sent = send(3)
        buffer.add([made(6)])
        say("sent", *sent, *send(3), *send(3))
        buffer.add([made(7)])
    buffer.add([])
    buffer.close()
    buffer = Buffer(folder)
    say("on disk", *buffer.newest(3, 1000).bodies)
    buffer.close()
    with full(folder):
        buffer = Buffer(folder)
        buffer.last_checks()
        buffer.add([made(2)])
        say("newest", *buffer.newest(3, 1000).bodies, "opened", buffer._file is not None)
    say("newest", *buffer.newest(3, 1000).bodies)
    buffer.close()


def main() -> None:
    folder, part = Path(sys.argv[1]), sys.argv[2]
    try:
        mount(folder)
    except OSError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(NO_DISK)
    health.PROBE_EVERY = 0.0
    url = f"sqlite:///{folder / 'wakeful.db'}"
    settings = Settings(folder, url, "a secret for tests only", allow_networks="loopback")
    app = create_app(settings)
    with app.app_context():
        schema.upgrade()
    parts = (requests_of, checks_of, upgrade_of, agent_of)
    {function.__name__.removesuffix("_of"): function for function in parts}[part](app, folder)
    os._exit(0)  # connections to a database that goes with its disk
