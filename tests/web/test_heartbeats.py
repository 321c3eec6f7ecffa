"""Heartbeats on the dashboard (decision 18)."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from app.checks.kinds import HEARTBEAT, KINDS
from app.web.shown import times
from app.web.shown.calling import commands_of
from tests.factories import make_incident, make_monitor, now
from tests.support.store import store_of

WAYS = (
    "cron", "curl", "wget", "systemd", "PowerShell", "Python", "GitHub Actions",
    "Kubernetes CronJob",
)  # fmt: skip


@pytest.fixture
def job(app, editor):
    editor.open("/monitors/new").shows("; or heartbeat: for a job that calls Wakeful.")
    editor.press("Save", url="heartbeat:", name="Nightly backup", interval="3600")
    return store_of(app).monitors.get(1)


def test_several_are_added_and_a_copy_is_called_by_its_own_slug(app, editor, job):
    editor.open("/monitors/new").press("Save", url="heartbeat:", name="Other", interval="3600")
    assert editor.path == "/monitors/2", "nobody asks whether it is watched already"
    editor.open("/monitors/1/clone").press("Save")
    slugs = [store_of(app).monitors.get(id).slug for id in (1, 2, 3)]
    assert slugs == ["nightly-backup", "other", "nightly-backup-copy"]
    assert store_of(app).monitors.get(3).ping_url != job.ping_url


def test_its_page_shows_how_to_call_it_to_those_who_may_edit(app, editor, viewer, job):
    by_slug = "http://wakeful.test/ping/PING_KEY/nightly-backup"
    editor.open("/monitors/1").shows(*WAYS, job.ping_url, by_slug)
    viewer.open("/monitors/1").shows("Its ping URL is a secret.").hides(job.ping_url)
    texts = {way.title: way.text for way in commands_of(job)}
    assert all(job.ping_url in text for text in texts.values())
    assert "-MaximumRetryCount" not in texts["PowerShell"], "Windows has 5.1, which lacks it"
    editor.open("/monitors/1").press("New ping URL").shows("The old ping URL has ended.")
    changed = store_of(app).monitors.get(1)
    editor.shows(changed.ping_url).hides(job.ping_url)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
@pytest.mark.parametrize(("size", "status"), [(3, 0), (300_000, 3)])
def test_a_line_for_cron_pings_however_much_its_job_writes(job, tmp_path, shell, size, status):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    [line] = [way.text for way in commands_of(job) if "exit status" in way.title]
    assert "%" not in line, "cron would end the line there"
    command = line.split(" ", 5)[5]  # behind the five fields
    program = tmp_path / "job"
    program.write_text(f"#!/bin/sh\nhead -c {size} /dev/zero | tr '\\0' x\nexit {status}\n")
    program.chmod(0o700)
    called = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self):
            called.append((self.path, len(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"OK")

        def log_message(self, *_arguments):
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        command = command.replace("/usr/local/bin/job", str(program))
        command = command.replace("http://wakeful.test", here)
        environ = os.environ | {"TMPDIR": str(tmp_path)}
        done = subprocess.run([shell, "-c", command], capture_output=True, env=environ, check=False)
        server.shutdown()
    assert (done.stdout, done.stderr) == (b"", b""), "cron mails what is written"
    assert called == [(f"{job.ping_url.removeprefix('http://wakeful.test')}/{status}", size)]
    assert [*tmp_path.glob("tmp.*")] == []


def test_its_pings_are_shown_with_what_they_sent(app, viewer, job):
    path = job.ping_url.removeprefix("http://wakeful.test")
    client = app.test_client()
    client.get(f"/api/push/{path.removeprefix('/ping/')}?status=up&msg=Copied&ping=7325000")
    client.post(f"{path}/start")
    client.post(f"{path}/3", data="disk full\non sda")
    viewer.open("/monitors/1").shows("disk full", "(3)", "2 h 2 min", "127.0.0.1")
    viewer.open("/monitors/1/pings").shows("disk full", "Copied", "3 pings")
    viewer.open("/monitors/1/pings/3").shows("disk full", "on sda")


def test_its_incident_speaks_of_no_check_and_no_phases(app, viewer, job):
    app.test_client().post(f"{job.ping_url.removeprefix('http://wakeful.test')}/3")
    page = viewer.open("/incidents/1").shows("It reported failure: exit status 3.")
    page.shows("Down from here on").hides("First failing check", "DNS lookup")


def test_the_help_of_the_url_names_each_kind(editor):
    page = editor.open("/monitors/new")
    page.shows(*(kind.address for kind in KINDS if kind is not HEARTBEAT))


def test_pages_show_the_date_of_a_ping_that_was_missed_on_another_day(app, viewer):
    since = now() - timedelta(days=3)
    cause = f"No ping since {since:%H:%M}; one was due by {since:%H:%M}."
    state = {"verdict": "down", "cause": cause, "cause_code": "heartbeat_missed"}
    state |= {"status_since": since}
    monitor = make_monitor(app, url="heartbeat:", state=state)
    incident = make_incident(
        app, monitor, started_at=since, cause=cause, cause_code="heartbeat_missed"
    )
    dated = f"No ping since {since:%Y-%m-%d %H:%M}; one was due by {since:%Y-%m-%d %H:%M}."
    for path in ("/", "/wall", "/incidents", "/monitors/1", f"/incidents/{incident.id}"):
        viewer.open(path).shows(dated)


@pytest.mark.parametrize(
    ("cause", "since", "shown"),
    [
        ("No ping came; one was due by 07:05.", "2026-11-20T07:00",
         "No ping came; one was due by 2026-11-20 07:05."),
        ("No ping came; one was due by 07:05.", "2026-11-21T07:00", None),
        # The grace ended after midnight, in the zone that the sentence names.
        ("No ping since 00:01; one was due by 00:10 (Europe/Berlin).", "2026-11-18T22:50",
         "No ping since 2026-11-19 00:01; one was due by 2026-11-19 00:10 (Europe/Berlin)."),
        ("No ping since 2026-11-18 23:00; one was due by 00:10.", "2026-11-18T23:50",
         "No ping since 2026-11-18 23:00; one was due by 2026-11-19 00:10."),
        ("It started at 01:27 (Europe/Berlin) and had not ended after 30 min.", "2026-11-19T00:57",
         "It started at 2026-11-19 01:27 (Europe/Berlin) and had not ended after 30 min."),
        ("It started at 2026-11-18 23:50 and had not ended after 1 h.", "2026-11-19T00:50", None),
        ("The record says 10:30.", "2026-11-18T22:50", None),
    ],
)  # fmt: skip
def test_the_date_is_that_of_the_deadline_unless_it_is_today(app, monkeypatch, cause, since, shown):
    monkeypatch.setattr(times, "now", lambda: datetime.fromisoformat("2026-11-21T08:00Z"))
    moment = datetime.fromisoformat(f"{since}Z")
    with app.test_request_context():
        assert times.dated(cause, moment) == (shown or cause)
