"""``make audit``: known faults of the locked versions, asked of an index on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DAY = 24 * 3600
LOCK = """\
flask==3.1.3 \\
    --hash=sha256:00
uvicorn[standard]==0.30.1 ; python_version > "3.8" \\
    --hash=sha256:00
    # via flask==9.9.9
"""


class Index:
    """An index that has what a test puts into ``known``: an answer, or the code of an error."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.users: set[str | None] = set()
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                index.users.add(self.headers["Authorization"])
                answer = index.answers.get(self.path, 404)
                self.send_response(answer if isinstance(answer, int) else 200)
                self.end_headers()
                self.wfile.write(b"" if isinstance(answer, int) else json.dumps(answer).encode())

            def log_message(self, *_words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def has(self, name: str, version: str, *vulnerabilities: dict[str, Any]) -> None:
        self.answers[f"/pypi/{name}/{version}/json"] = {"vulnerabilities": list(vulnerabilities)}


@pytest.fixture
def index() -> Iterator[Index]:
    made = Index()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "lock.txt"
    file.write_text(LOCK)
    past = time.time() - 40 * DAY
    os.utime(file, (past, past))
    return file


def audit(lock: Path, url: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "PIP_INDEX_URL": url}
    words = [sys.executable, str(ROOT / "scripts" / "audit.py"), str(lock)]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    assert "lock.txt is 40 days old." in done.stdout
    return done


def test_versions_without_a_known_fault_pass(index: Index, lock: Path):
    index.has("flask", "3.1.3")
    index.has("uvicorn", "0.30.1", {"id": "PYSEC-1", "withdrawn": "2026-01-01T00:00:00Z"})
    done = audit(lock, index.url)
    assert done.returncode == 0, done.stderr
    assert "2 locked versions were looked up" in done.stdout
    assert sorted(index.asked) == ["/pypi/flask/3.1.3/json", "/pypi/uvicorn/0.30.1/json"]


def test_the_password_of_an_index_is_sent_and_not_shown(index: Index, lock: Path):
    index.has("flask", "3.1.3")
    done = audit(lock, index.url.replace("://", "://reader:hunter2@"))
    assert index.users == {"Basic cmVhZGVyOmh1bnRlcjI="}
    assert "hunter2" not in done.stdout + done.stderr
    assert done.returncode == 1
    assert "uvicorn 0.30.1: the index does not have this version." in done.stdout


def test_a_known_fault_is_named_with_the_version_that_mends_it(index: Index, lock: Path):
    index.has("flask", "3.1.3", {"id": "PYSEC-2026-7", "fixed_in": ["3.1.4", "3.2.0"]})
    index.has("uvicorn", "0.30.1")
    done = audit(lock, index.url)
    assert done.returncode == 1
    assert "flask 3.1.3: PYSEC-2026-7 (fixed in 3.1.4, 3.2.0)" in done.stdout


@pytest.mark.parametrize("answer", [500, {"info": {}}, []])
def test_an_index_that_names_no_faults_is_no_good_news(index: Index, lock: Path, answer: object):
    index.answers = {"/pypi/flask/3.1.3/json": answer, "/pypi/uvicorn/0.30.1/json": answer}
    done = audit(lock, index.url)
    assert done.returncode == 3
    assert "were NOT looked up" in done.stderr
    assert "no known" not in done.stdout


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/simple", "file:///opt/packages/simple"])
def test_where_no_index_can_be_asked_it_says_so(lock: Path, url: str):
    done = audit(lock, url)
    assert done.returncode == 3
    assert re.search(
        r"The 2 locked versions were NOT looked up: .*(127.0.0.1:1|file:)", done.stderr
    )


def test_make_audit_reads_the_lock_that_has_all_packages():
    recipe = (ROOT / "Makefile").read_text().partition("\naudit:")[2].partition("\n\n")[0]
    assert "scripts/audit.py requirements/test.txt" in recipe
