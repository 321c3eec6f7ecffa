"""Only the owner of Wakeful's files can read and write them, even if a container or a service
manager starts it with umask 0.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import requests

from app import create_core
from app.commands.doctor import examine
from app.config import Settings
from app.db import db
from app.pages.copies import FOLDER as COPIES
from tests.support.command import environ_of, python
from tests.support.older import OLDEST, make_oldest
from tests.support.service import Service, eventually

RUNS = r"Wakeful runs at (http://127\.0\.0\.1:\d+) "


def open_to_others(folder):
    """The files below the folder that somebody else may use, and the folder itself."""
    return [
        f"{path.name} {stat.filemode(path.stat().st_mode)}"
        for path in (folder, *folder.rglob("*"))
        if path.stat().st_mode & 0o077
    ]


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_that_an_installation_writes_is_its_owners_alone(tmp_path, site, no_umask):
    service = Service(tmp_path / "instance", CANARIES="")
    database = service.instance / "wakeful.db"
    service.command("db", "upgrade")
    make_older(service.instance, database)
    key = service.command("key", "create", "tests", "--scope", "admin")  # which upgrades it
    headers = {"Authorization": f"Bearer {key}"}
    agent = None
    try:
        service.start()
        base = service.await_line(RUNS)[1]

        def post(path, **fields):
            answer = requests.post(f"{base}/api/v1/{path}", fields, headers=headers, timeout=30)
            assert answer.status_code == 201, answer.text
            return answer.json()["data"]

        token = post("locations", name="oslo", carrier="agent")["token"]
        fields = {"name": "Shop", "url": site.url, "interval": "60", "locations[0]": "oslo",
                  "alert_condition": "url_unavailable"}  # fmt: skip
        shop = post("monitors", **fields)["id"]
        page = post("status-pages", **{"name": "Ours", "slug": "ours", "monitors[0]": str(shop)})
        assert requests.get(page["link"], timeout=30).ok
        agent = Service(tmp_path / "agent", CANARIES="", SERVER=base, AGENT_TOKEN=token)
        agent.start("agent")
        eventually(lambda: site.asked, "the agent's check")
        backups = tmp_path / "backups"
        backups.mkdir(mode=0o700)
        service.command("backup", str(backups / "plain"))
        service.command("backup", str(backups / "sealed"), "--encrypt", input="a passphrase\n" * 2)
        made = {path.name for path in tmp_path.rglob("*")}
        while_running = [*map(open_to_others, (service.instance, agent.instance, backups))]
    finally:
        for running in (agent, service):
            assert running is None or running.stop() == 0
    (service.instance / "secret_key").write_text("another key than that of the backup")
    service.command("restore", "--force", str(backups / "plain"))
    kept = {path.name.partition(".2")[0] for path in service.instance.glob("*Z.bak")}

    assert {
        "secret_key", "databases", "wakeful.db", "wakeful.db-wal", "wakeful.db-shm",
        f"wakeful.db.{OLDEST}.bak", "agent_key", "agent.db", "agent.db-wal", "agent.db-shm",
        "plain", "sealed", COPIES,
    } <= made  # fmt: skip
    assert kept == {"wakeful.db", "secret_key"}
    assert while_running == [[], [], []]
    assert open_to_others(service.instance) == []


def make_older(instance, database):
    """Bring the database back to the oldest revision."""
    app = create_core(Settings(instance, f"sqlite:///{database}", "x" * 16))
    with app.app_context():
        make_oldest()
        db.session.remove()
        db.engine.dispose()


def test_a_command_makes_a_database_for_its_owner_alone(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)  # a folder that was there before is left as it is
    script = "import os; os.umask(0); from tests.support.command import be; be('db', 'upgrade')"
    done = python(script, [], environ_of(INSTANCE=str(folder)))
    assert done.returncode == 0, done.stderr
    folder.chmod(0o700)
    assert (folder / "wakeful.db").exists()
    assert open_to_others(folder) == []


def test_doctor_tells_of_a_file_that_everybody_can_open(app, settings):
    file = Path(settings.database_url.removeprefix("sqlite:///"))
    for mode, folder, fault in (
        (0o644, 0o755, True), (0o602, 0o701, True), (0o640, 0o755, False), (0o644, 0o700, False),
    ):  # fmt: skip
        file.chmod(mode)
        file.parent.chmod(folder)
        findings = [
            finding for finding in examine(app, settings) if "Everybody" in finding.sentence
        ]
        assert [finding.is_problem for finding in findings] == [True] * fault, (
            oct(mode),
            oct(folder),
        )
        assert all(f"Run: chmod o= {file}*" in finding.sentence for finding in findings), findings
