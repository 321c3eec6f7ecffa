"""Run the demonstration until Ctrl-C. It starts from scratch each time, in ``instance/demo``."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import requests

from app import config, create_app
from app.commands.cli import OWNER_ONLY
from app.commands.serve import listen
from app.db import rollups, schema
from app.demo import history
from app.demo.monitors import PARENTS, PAST_INTERVAL, Pairs, contacts, monitors, status_page
from app.demo.targets import Targets
from app.forms.contact import ContactForm
from app.forms.monitor import MonitorForm
from app.forms.resources import MarkerForm, WindowForm
from app.forms.schema import bind
from app.forms.status_page import StatusPageForm
from app.records import HEARTBEAT_URL, Notice, Role
from app.stores import current_access, current_store

DAYS = 90
INTERVAL = 60
JOB_SECONDS = 40
JOB = [("name", "Copy of the files"), ("url", HEARTBEAT_URL), ("period", "60"), ("grace", "60"),
       ("max_run", "30"), ("tags", "internal")]  # fmt: skip
FOLDER = Path("instance/demo")
EMAIL = "demo@wakeful.test"


def main() -> int:
    os.umask(OWNER_ONLY)
    # Check the port first: not after the minute that the history takes, and before the folder of a
    # demonstration that still runs is deleted.
    try:
        listen(config.read({**os.environ, "WAKEFUL_INSTANCE": str(FOLDER)}).bind).close()
    except config.SettingError as fault:
        print(fault, file=sys.stderr)
        return 2
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    targets = Targets(FOLDER)
    os.environ |= {
        "WAKEFUL_INSTANCE": str(FOLDER),
        "WAKEFUL_ALLOW_NETWORKS": "loopback",
        "WAKEFUL_CA_BUNDLE": str(targets.authority),
        "WAKEFUL_CONFIRM_SECONDS": "3",
        # The targets are on this machine: they may all fail although our network works.
        "WAKEFUL_CANARIES": targets.http.partition("://")[2],
    }
    password = secrets.token_urlsafe(9)
    app = create_app(config.read())
    with app.app_context():
        schema.upgrade()
        current_access().settings.set(Notice.DEMO, "1")
        current_access().people.create(EMAIL, password, Role.ADMIN)
        ping_url = _fill(targets)
    print(f"This is a demonstration. Log in as {EMAIL} with the password {password}", flush=True)
    service = subprocess.Popen([sys.executable, "-m", "app.commands.cli", "serve"])
    # Ctrl-C reaches the service too; a signal to this process alone is passed on.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: service.terminate())
    threading.Thread(target=_call, args=(ping_url,), daemon=True).start()
    code = service.wait()
    targets.close()
    return max(code, 0)


def _call(url: str) -> None:
    """Call the heartbeat as a job would: at the start and the end of each run. Every fifth run
    fails.
    """
    for number in count(1):
        time.sleep(JOB_SECONDS)
        for end in ("/start", "/3" if number % 5 == 0 else ""):
            with suppress(requests.RequestException):  # while the service starts
                requests.post(url + end, data=b"Copied 214 files.", timeout=5)
            time.sleep(2)


def _fill(targets: Targets) -> str:
    """Create all records and their past. Return the ping URL of the heartbeat."""
    now = datetime.now(UTC)
    store = current_store()
    for contact in contacts(targets):
        store.contacts.create(bind(ContactForm, contact))
    pasts = monitors(targets)
    ids: dict[str, int] = {}
    for number, (pairs, past) in enumerate(pasts, 1):
        print(f"\rMaking up {DAYS} days of history: {number} of {len(pasts)}", end="", flush=True)
        monitor = store.monitors.create(bind(MonitorForm, pairs))
        history.write(monitor.id, past, PAST_INTERVAL, DAYS, now, seed=number)
        ids[monitor.name] = monitor.id
        if monitor.name == "Data warehouse":
            store.windows.create(bind(WindowForm, _planned(monitor.id, now)))
        if monitor.name == "Newsletter":
            store.monitors.update(monitor.id, {"pause": True})
    heartbeat = store.monitors.create(bind(MonitorForm, JOB))
    store.status_pages.create(bind(StatusPageForm, status_page(ids)))
    for marker in _deploys(now):
        store.markers.create(bind(MarkerForm, marker))
    print()
    while rollups.roll(now):
        pass
    for id in ids.values():
        store.monitors.update(id, {"interval": INTERVAL})
    store.monitors.update(ids["Public API"], {"check_every": 20})
    for name, parent in PARENTS.items():
        store.monitors.update(ids[name], {"depends_on": (ids[parent],)})
    return str(heartbeat.ping_url)


def _deploys(now: datetime) -> list[Pairs]:
    return [
        [("name", name), ("time", (now - ago).strftime("%Y-%m-%dT%H:%M:%S"))]
        for name, ago in (
            ("Release 2.1", timedelta(hours=1)),
            ("Release 2.0", timedelta(hours=22)),
            ("New firewall", timedelta(days=5)),
        )
    ]


def _planned(monitor_id: int, now: datetime) -> Pairs:
    start = now - timedelta(minutes=20)
    return [
        ("name", "Weekly backup"),
        ("start_at", start.strftime("%Y-%m-%dT%H:%M:%S")),
        ("end_at", (start + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S")),
        ("repeat", "weekly"),
        ("monitors[0]", str(monitor_id)),
        ("public", "true"),
        ("public_name", "Weekly backup"),
    ]


if __name__ == "__main__":
    sys.exit(main())
