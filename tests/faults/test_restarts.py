"""A restart postpones no checks, and waits for the address that the last run still holds."""

from __future__ import annotations

import json
import logging
import os
import queue
import signal
import socket
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from app.checks.http.outcome import Outcome
from app.commands.serve import listen
from app.db import assignments, liveness, shards
from app.engine import recorder
from app.engine.checker import Checker
from app.engine.own_shards import OwnShards, has_ended, make_token
from app.records import Result, Verdict
from tests.factories import make_monitor
from tests.support.command import environ_of, python, resting_after
from tests.support.service import Service, eventually

DEMO = "import os, runpy, sys; os.chdir(sys.argv[1]); runpy.run_module('app.demo', {}, '__main__')"


def now():
    return datetime.now(UTC)


def kill(running):
    running.kill()
    running.join(60)


# --- Leases


def test_only_a_process_of_this_machine_can_count_as_ended():
    running, token = resting_after(make_token)
    place, number, start, rest = token.split(".")
    try:
        assert len(token) <= 32, "the column's length"
        assert not has_ended(token)
        assert not has_ended(make_token()), "our own"
        reused = ".".join([place, number, f"{int(start, 16) + 1:x}", rest])
        assert has_ended(reused), "another process had this number before"
    finally:
        kill(running)
    assert has_ended(token)
    elsewhere = ".".join(["00000000", number, start, rest])
    for unknown in (elsewhere, "0123456789abcdef", ""):
        assert not has_ended(unknown)


def test_a_checker_takes_over_the_running_checks_of_a_killed_one_at_once(core, settings):
    with core.app_context():
        ids = {make_monitor(core, timeout=60).id for _ in range(3)}
        checker = Checker(core, settings)
        running, token = resting_after(make_token)
        killed = OwnShards(
            f"{liveness.process_name(liveness.CHECKER, running.pid)}:{token}", "default"
        )
        try:
            assert len(killed.look(now(), 0).gained) == shards.count()
            mine = assignments.piece(1, killed.tokens, 0)
            assert {check.spec.monitor_id for check in mine} == ids
            checker._keep_shards(time.monotonic())
            assert checker._plan.next() is None, "the other one still runs"
        finally:
            kill(running)
        checker._shards_at = 0
        checker._keep_shards(time.monotonic())
        taken = checker._plan.begin_due(now(), 10)
        assert {job.monitor_id for job in taken} == ids
        # Outcomes of the killed checker would be dropped: no scheduled check is recorded twice.
        late = Outcome(Result(checked_at=now(), verdict=Verdict.UP))
        claim = taken[0].claim()
        of_killed = replace(claim, token=killed.tokens[claim.shard])
        assert recorder.record_claimed([(of_killed, late)], now()) == [None]
        assert recorder.record_claimed([(claim, late)], now()) != [None]
        assert recorder.record_claimed([(claim, late)], now()) == [None]


# --- The address


def test_a_start_waits_while_the_last_run_still_holds_the_address(caplog):
    taken = socket.create_server(("127.0.0.1", 0))
    bind = f"127.0.0.1:{taken.getsockname()[1]}"
    got: queue.Queue[socket.socket] = queue.Queue()
    waiting = threading.Event()
    watch = logging.Handler()
    watch.emit = lambda record: waiting.set()
    log = logging.getLogger("app.commands.serve")
    log.addHandler(watch)
    try:
        starting = threading.Thread(target=lambda: got.put(listen(bind, 60)))
        starting.start()
        assert waiting.wait(30), "it says that it waits"
        assert got.empty()
        taken.close()
        starting.join(60)
        with got.get(timeout=1) as listener:
            assert listener.getsockname()[1] == int(bind.rpartition(":")[2])
    finally:
        log.removeHandler(watch)
    assert f"{bind} is in use" in caplog.text


def test_the_demo_refuses_a_taken_port_at_once_and_touches_nothing(tmp_path):
    kept = tmp_path / "instance" / "demo" / "wakeful.db"
    kept.parent.mkdir(parents=True)
    kept.write_text("of a demonstration that runs")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        done = python(DEMO, [str(tmp_path)], environ_of(BIND=bind))
    assert done.returncode == 2
    assert f"Wakeful cannot listen on {bind}" in done.stderr
    assert "Traceback" not in done.stderr
    assert "history" not in done.stdout
    assert kept.read_text() == "of a demonstration that runs"


# --- All of it


class Silent(ThreadingHTTPServer):
    """A target that takes each request, says so, and never answers until it is closed."""

    daemon_threads = True

    def __init__(self):
        self.asked: queue.Queue[str] = queue.Queue()
        self.over = threading.Event()
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                target.asked.put(self.path)
                target.over.wait()
                self.close_connection = True

            def log_message(self, *_arguments):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=[0.05], daemon=True).start()

    def close(self):
        self.over.set()
        self.shutdown()
        self.server_close()


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def add_monitor(service, base, url):
    key = service.command("key", "create", "tests", "--scope", "write")
    answer = requests.post(
        f"{base}/api/v1/monitors",
        headers={"Authorization": f"Bearer {key}"},
        data={"name": "Shop", "url": url, "interval": "3600", "timeout": "60"},
        timeout=60,
    )
    assert answer.status_code == 201, json.dumps(answer.json())


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_check_that_a_kill_interrupts_is_made_by_the_next_start(tmp_path):
    """Its shards stay leased for 20 seconds unless another checker sees that it has ended."""
    target = Silent()
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    service = Service(tmp_path / "instance", CANARIES="", BIND=bind)
    service.start()
    try:
        base = service.await_line(r"Wakeful runs at (http://127\.0\.0\.1:\d+) ")[1]
        add_monitor(service, base, f"http://127.0.0.1:{target.server_port}/")
        assert target.asked.get(timeout=60)
        for checker_too in (True, False):
            parts = children(service.process.pid)
            service.process.kill()
            if checker_too:  # as when the machine loses power: no lease is given up
                for pid in parts:
                    os.kill(pid, signal.SIGKILL)
            service.process.wait(30)
            service.stop()
            service.start()  # on the same port, which the old web server may hold for a moment
            assert target.asked.get(timeout=60)
        eventually(lambda: requests.get(f"{base}/healthz", timeout=30).ok, "it serves")
    finally:
        service.stop()
        target.close()
