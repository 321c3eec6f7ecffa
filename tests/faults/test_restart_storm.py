"""Every part of a running service is killed again and again; then it is left alone."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing, suppress

import pytest
import requests

from tests.support.service import Service, eventually, parts

RUNS = r"Wakeful runs at (http://127\.0\.0\.1:\d+) "
STORM_SECONDS = 12.0
INTERVAL = 3


@pytest.mark.more
@pytest.mark.timeout(300)
def test_after_a_storm_of_kills_everything_is_in_step_within_a_minute(tmp_path, site, sink):
    service = Service(tmp_path / "instance", CANARIES="", CONFIRM_SECONDS="0.1")
    key = service.command("key", "create", "tests", "--scope", "write")
    service.start()
    try:
        base = service.await_line(RUNS)[1]
        with requests.Session() as api:
            api.headers["Authorization"] = f"Bearer {key}"
            storm(service, api, base, site, sink)
    finally:
        assert service.stop() == 0


def storm(service, api, base, site, sink) -> None:
    def add(number: int) -> bool:
        """Whether the service said that it has stored a monitor."""
        fields = {
            "name": f"Shop {number}", "url": site.url, "interval": "60", "confirmations": "1",
            "alert_condition": "url_unavailable",
            "alerts[0][key]": "webhook", "alerts[0][value]": f"{sink.url}/{number}",
        }  # fmt: skip
        try:
            return api.post(f"{base}/api/v1/monitors", fields, timeout=60).status_code == 201
        except requests.RequestException:
            return False

    stored = [number for number in range(2) if add(number)]
    assert stored == [0, 1]
    eventually(lambda: site.asked >= 2, "the first checks")
    with closing(sqlite3.connect(service.instance / "wakeful.db")) as file:
        # Often enough for a test; the restarted checker reads it.
        file.execute(f"UPDATE monitors SET interval = {INTERVAL}")
        file.commit()

        until, number = time.monotonic() + STORM_SECONDS, 2
        while time.monotonic() < until:
            for pid in parts(service).values():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            stored += [number] if add(number) else []
            number += 1
        over = time.monotonic()
        site.status = 503
        eventually(
            lambda: all(sink.to(f"/{result}") for result in stored[:2]), "the outage is told", 60
        )
        eventually(lambda: requests.get(f"{base}/readyz", timeout=60).ok, "it is ready", 60)
        assert time.monotonic() - over < 60
        site.status = 200
        names = {row[0] for row in file.execute("SELECT name FROM monitors")}
        assert {f"Shop {result}" for result in stored} <= names, "what it said it stored is there"
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        before = file.execute("SELECT max(at) FROM results").fetchone()[0]
        assert before > (time.time() - 60) * 1000
        count = "SELECT count(*) FROM incidents WHERE monitor_id = ?"
        for id in (1, 2):
            assert file.execute(count, [id]).fetchone() == (1,), "the outage, and no other"
            types = [request.json["type"] for request in sink.to(f"/{id - 1}")]
            assert types.count("incident.opened") == 1
