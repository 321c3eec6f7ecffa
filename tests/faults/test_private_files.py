"""What Wakeful makes, only its owner reads and writes, also where a container or a service manager
starts it with umask 0.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.commands.doctor import examine
from tests.support.service import Service

pytestmark = pytest.mark.sqlite
PROGRAM = Path(sys.executable).with_name("wakeful")


def open_to_others(folder):
    """What below the folder somebody else may use, and the folder itself."""
    return [
        f"{path.name} {stat.filemode(path.stat().st_mode)}"
        for path in (folder, *folder.rglob("*"))
        if path.stat().st_mode & 0o077
    ]


@pytest.mark.slow
def test_a_service_that_starts_without_a_umask_keeps_its_files_to_itself(tmp_path):
    service = Service(tmp_path / "instance", CANARIES="")
    before = os.umask(0)
    try:
        service.start()
        service.await_line("Wakeful runs at")
        made = {path.name for path in service.instance.iterdir()}
        found = open_to_others(service.instance)
    finally:
        os.umask(before)
        service.stop()
    assert {"secret_key", "databases", "wakeful.db", "wakeful.db-wal"} <= made
    assert found == []


@pytest.mark.parametrize("mask", ["000", "022"])
def test_a_command_makes_a_database_for_its_owner_alone(tmp_path, mask):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)  # a folder that was there before is left as it is
    script = f'umask {mask}; exec "$0" db upgrade'
    environ = {"WAKEFUL_INSTANCE": str(folder), "PATH": "/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-c", script, PROGRAM], env=environ, check=True, timeout=60)
    folder.chmod(0o700)
    assert (folder / "wakeful.db").exists()
    assert open_to_others(folder) == []


@pytest.mark.parametrize(
    ("mode", "folder", "told"),
    [(0o644, 0o755, True), (0o602, 0o701, True), (0o640, 0o755, False), (0o644, 0o700, False)],
)
def test_doctor_tells_of_a_file_that_everybody_can_open(app, settings, mode, folder, told):
    file = Path(settings.database_url.removeprefix("sqlite:///"))
    file.chmod(mode)
    file.parent.chmod(folder)
    said = [one for one in examine(app, settings) if "Everybody" in one.sentence]
    assert [one.fault for one in said] == [True] * told
    assert all(f"Run: chmod o= {file}*" in one.sentence for one in said)
