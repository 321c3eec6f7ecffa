"""A disk that is really full: 4 MB of memory, mounted in a name space of the test's process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.db import faults
from tests.faults import full_disk
from tests.support.command import environ_of, python

pytestmark = pytest.mark.timeout(200)
SCRIPT = "from tests.faults import full_disk; full_disk.main()"


def recorded(folder: Path, part: str) -> list:
    """The output of a part of ``full_disk`` on a disk of its own."""
    done = python(SCRIPT, [str(folder), part], environ_of(), 180)
    if done.returncode == full_disk.NO_DISK:
        pytest.skip(f"this machine lets no process mount a small disk of its own: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_full_disk_can_be_read_and_readyz_says_what_it_is_also_while_small_writes_fit(tmp_path):
    full = [503, faults.FULL]
    assert recorded(tmp_path, "requests") == [
        *([200, None], full, [200, None], full),
        [201, None],
        *([201, None], full),
        [200],
    ]


@pytest.mark.slow
def test_checks_go_on_while_the_disk_is_full_and_their_results_are_stored_later(tmp_path):
    asked, results, lost, incidents = recorded(tmp_path, "checks")
    assert asked[1] >= full_disk.FULL_SECONDS / full_disk.INTERVAL
    assert results == [faults.FULL]
    assert (lost, incidents) == (["lost", 0], ["incidents", 0])


def test_an_upgrade_without_room_for_its_copy_changes_nothing_and_names_the_way_out(tmp_path):
    refused, unchanged, upgraded, copies = recorded(tmp_path, "upgrade")
    assert "MB are free. Nothing was changed. Make room there, or " in refused[0]
    assert refused[0].endswith("wakeful db upgrade --no-copy")
    assert (unchanged, upgraded, copies) == (["unchanged", True], ["upgraded", True], [])


def test_an_agent_on_a_full_disk_sends_each_result_once_and_starts_there(tmp_path):
    """When it starts, its file of results cannot be opened. It ended until there was room."""
    asked, sent, written, first, rest = recorded(tmp_path, "agent")
    assert asked == ["newest", "5", "4", "3"]
    assert sent == ["sent", "5", "4", "3", "6", "2", "1", "0"]
    assert written == ["on disk", "7"]
    assert first == ["newest", "2", "opened", False]
    assert rest == ["newest", "2", "7"]
