"""Heartbeats on the dashboard (decision 18)."""

from __future__ import annotations

import pytest

from app.checks.kinds import HEARTBEAT, KINDS
from app.web.shown.calling import ways
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
    editor.open("/monitors/1").shows(*WAYS, job.ping_url)
    viewer.open("/monitors/1").shows("Its ping URL is a secret.").hides(job.ping_url)
    texts = {way.title: way.text for way in ways(job)}
    assert all(job.ping_url in text for text in texts.values())
    assert "-MaximumRetryCount" not in texts["PowerShell"], "Windows has 5.1, which lacks it"
    editor.open("/monitors/1").press("New ping URL").shows("The old ping URL has ended.")
    changed = store_of(app).monitors.get(1)
    editor.shows(changed.ping_url).hides(job.ping_url)


def test_its_pings_are_shown_with_what_they_sent(app, viewer, job):
    path = job.ping_url.removeprefix("http://wakeful.test")
    client = app.test_client()
    client.get(f"/api/push/{path.removeprefix('/ping/')}?status=up&msg=Copied&ping=7325000")
    client.post(f"{path}/start")
    client.post(f"{path}/3", data="disk full\non sda")
    viewer.open("/monitors/1").shows("disk full", "(3)", "2 h 2 min", "127.0.0.1")
    viewer.open("/monitors/1/pings").shows("disk full", "Copied", "3 pings")
    viewer.open("/monitors/1/pings/3").shows("disk full", "on sda")


def test_the_help_of_the_url_names_each_kind(editor):
    page = editor.open("/monitors/new")
    page.shows(*(kind.address for kind in KINDS if kind is not HEARTBEAT))
