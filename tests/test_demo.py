"""The demonstration as a person starts it: it says what it is, really fails, and leaves nothing."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.support.service import eventually

pytestmark = pytest.mark.slow

# A short past: how it is made up is the same for ninety days.
START = "import sys; from app.demo import __main__ as demo; demo.DAYS = 0.1; sys.exit(demo.main())"
ALWAYS = {"Payments", "Blog", "Old intranet", "Printer"}  # broken at every minute


def start(folder: Path) -> tuple[subprocess.Popen[str], str, str]:
    """The process, its address and what it printed until then."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("WAKEFUL_")}
    environ |= {"WAKEFUL_BIND": "127.0.0.1:0", "PYTHONUNBUFFERED": "1"}
    demo = subprocess.Popen(
        [sys.executable, "-c", START],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a Ctrl-C of its own
    )
    assert demo.stdout
    printed = ""
    for line in demo.stdout:
        printed += line
        if url := re.search(r"http://127\.0\.0\.1:\d+", line):
            return demo, url[0], printed
    raise AssertionError(f"It ended. Printed:\n{printed}")


OPENED = "SELECT name FROM incidents i JOIN monitors m ON m.id = monitor_id WHERE ended_at IS NULL"
BEHIND = "SELECT name FROM monitor_states JOIN monitors m ON m.id = monitor_id WHERE behind_id > 0"


def names(folder: Path, statement: str) -> set[str]:
    with sqlite3.connect(folder / "instance/demo/wakeful.db") as db:
        names = {name for (name,) in db.execute(statement)}
    db.close()
    return names


def test_it_says_that_it_is_one_really_fails_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    earlier = tmp_path / "instance" / "demo"
    earlier.mkdir(parents=True)
    for name in ("wakeful.db", "wakeful.db-wal", "wakeful.log"):
        (earlier / name).write_text("of an earlier start, which was killed")
    demo, url, printed = start(tmp_path)
    try:
        assert "This is a demonstration. Log in as demo@wakeful.test" in printed
        assert requests.get(f"{url}/healthz", timeout=60).status_code == 200
        page = requests.get(f"{url}/status/shop", timeout=60).text
        assert '<a href="https://shop.example"><img src="shop/logo?v=' in page
        assert "Shop Ltd, 1 Harbour Street." in page
        assert all(name in page for name in ("For developers", "Accounts", "Payments"))
        contacts = names(tmp_path, "SELECT name FROM contacts")
        assert contacts == {"Shop team", "On call"}
        eventually(lambda: names(tmp_path, OPENED) >= ALWAYS, "the broken ones are down")
        eventually(lambda: names(tmp_path, BEHIND) == {"Intranet wiki"}, "one is unreachable")
        assert "Intranet wiki" not in names(tmp_path, OPENED), "behind the old intranet"
    finally:
        os.killpg(demo.pid, signal.SIGINT)
        code = demo.wait(60)
        assert demo.stdout
        demo.stdout.close()
    assert code == 0
    assert not (earlier / "wakeful.log").exists()
