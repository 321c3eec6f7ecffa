"""Anybody may send requests without end that are refused at once. They do not fill the log."""

from __future__ import annotations

import logging
import os
import socket
from contextlib import closing
from pathlib import Path

from app.access.security_log import MAX_A_MINUTE, EventLimit
from app.commands.serve import listen
from app.commands.web.webserver import WebServer
from app.commands.web.webworker import BEGINS, MAX_CHARACTERS, RefusalFilter
from app.config import read
from tests.support.command import start
from tests.support.web_process import installation

LARGE = b"GET / HTTP/1.1\r\nHost: x\r\nBad " + 40_000 * b"A" + b"\x1b[31m: y\r\n\r\n"


def _serve(listener: socket.socket, log: str) -> None:
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    WebServer(read(), listener.fileno()).run()


def _refused(port: int) -> bytes:
    with closing(socket.create_connection(("127.0.0.1", port), 60)) as client:
        client.sendall(LARGE)
        answer = client.recv(1000)
        while client.recv(65_536):
            pass
    return answer


def test_malformed_requests_write_few_short_lines_a_minute(sqlite_template: Path, tmp_path: Path):
    log = tmp_path / "log"
    environ = {
        f"WAKEFUL_{name}": value
        for name, value in installation(tmp_path, sqlite_template).environment.items()
    }
    with listen("127.0.0.1:0") as listener:
        process = start(_serve, listener, str(log), environ=dict(os.environ) | environ)
        try:
            for _ in range(2 * MAX_A_MINUTE + 20):
                assert _refused(listener.getsockname()[1]).startswith(b"HTTP/1.1 400 ")
        finally:
            process.terminate()
            process.join(60)
    lines = [line for line in log.read_text().splitlines() if BEGINS in line]
    assert "Invalid HTTP header name" in lines[0]
    assert MAX_A_MINUTE <= len(lines) <= 2 * MAX_A_MINUTE, "a new minute may have begun meanwhile"
    assert max(map(len, lines)) < MAX_CHARACTERS + 100, "gunicorn puts the time before it"


def test_what_was_left_out_is_counted_and_other_lines_pass():
    now = [0.0]
    lines_filter = RefusalFilter(EventLimit(2, lambda: now[0]))

    def reason(text: str) -> str | None:
        record = logging.makeLogRecord({"msg": text, "levelno": logging.WARNING})
        return record.getMessage() if lines_filter.filter(record) else None

    line = f"{BEGINS}192.0.2.1: 100% wrong"
    assert [reason(line) for _ in range(5)] == [line, line, None, None, None]
    other = "Worker timeout" + MAX_CHARACTERS * "!"
    assert reason(other) == other
    now[0] = 60.0
    assert reason(line) == f"{line} (left out before: 3)"
    assert reason(line) == line
    assert reason(BEGINS + MAX_CHARACTERS * "A") is None
    now[0] = 120.0
    at_most = BEGINS + (MAX_CHARACTERS - len(BEGINS)) * "A"
    assert reason(f"{at_most}A") == f"{at_most}… (left out before: 1)"
    assert reason(at_most) == at_most


def test_forms_without_a_token_write_no_line(app, caplog):
    caplog.set_level(logging.INFO)
    assert app.test_client().post("/login", data={"email": "a@b.test"}).status_code == 400
    assert caplog.messages == []
