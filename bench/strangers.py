"""``make bench-strangers``: how late checks start while strangers do what they can.

    python -m bench.strangers
    python -m bench.strangers --connections 1000 --threads 32 --seconds 180

``wakeful serve`` checks 300 monitors every 60 seconds, against nginx on loopback, on SQLite. At the
same time 500 clients hold connections (each sends a byte a second of a log-in and comes back when
it is closed), and 16 threads try to log in, each time to another account and from another address,
which a trusted proxy names. A check is late by the time from its scheduled time to its start; a
scheduled time without a check is skipped. The goal is a p99 under 1 s, with none skipped.
Strangers, service and target share the machine.
"""

from __future__ import annotations

import argparse
import http.client
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from urllib.parse import urlencode

from app.config import Settings
from bench.beside import ADDRESS, environment, free_port, target
from bench.engine import all_good, as_if_checked, prepare
from bench.schedule import INTERVAL, first_check, late
from bench.slow import KINDS, Slow
from bench.web import Server

GOAL_MS = 1000
WARM_UP = 20  # seconds
GIVEN_UP_SECONDS = 30
_TOKEN = re.compile(r'name="csrf_token"[^>]*value="([^"]+)"')


class Guessers:
    """Threads that try to log in, one attempt after another."""

    def __init__(self, server: Server, threads: int) -> None:
        self.answers: Counter[int] = Counter()
        self._server = server
        self._numbers = count()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        cookie, token = self._page()
        while not self._stopped.is_set():
            number = next(self._numbers)
            form = {"email": f"user{number}@example.org", "password": "guess", "csrf_token": token}
            headers = {
                "Content-Type": "application/x-www-form-urlencoded",
                "Cookie": cookie,
                "X-Forwarded-For": f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::1",
            }
            self.answers[self._ask("POST", urlencode(form), headers)[0]] += 1

    def _page(self) -> tuple[str, str]:
        """The cookie and the token of a log-in page, which a stranger may use again and again."""
        _status, headers, body = self._ask("GET", None, {})
        found = _TOKEN.search(body)
        if found is None:
            raise SystemExit("The log-in page has no form.")
        return (headers["Set-Cookie"] or "").partition(";")[0], found[1]

    def _ask(
        self, method: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, http.client.HTTPMessage, str]:
        """Status 0 where there was no answer."""
        to = http.client.HTTPConnection(
            self._server.host, self._server.port, timeout=GIVEN_UP_SECONDS
        )
        try:
            to.request(method, "/login", body, headers)
            answer = to.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, http.client.HTTPMessage(), ""
        finally:
            to.close()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--monitors", type=int, default=300)
    parser.add_argument("--connections", type=int, default=500, help="slow ones; default 500")
    parser.add_argument("--threads", type=int, default=16, help="of log-ins; default 16")
    parser.add_argument("--seconds", type=int, default=120, help="measured; default 120")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder,
        target(Path(folder)) as (urls, _authority),
    ):
        return measure(Path(folder), urls["http"], options)


def measure(folder: Path, url: str, options: argparse.Namespace) -> int:
    own = folder / "service"
    own.mkdir()
    app, settings = prepare(own, url, options.monitors, INTERVAL)
    as_if_checked(app, INTERVAL)
    began = time.monotonic()
    with service(settings) as server:
        first = first_check(app, began)
        slow = Slow(server, options.connections, KINDS["a log-in's body"].encode())
        guessers = Guessers(server, options.threads)
        try:
            time.sleep(WARM_UP)
            since = datetime.now(UTC)
            before = guessers.answers.copy()
            time.sleep(options.seconds)
            until = datetime.now(UTC)
            answers = guessers.answers - before
        finally:
            guessers.stop()
            slow.stop()
    all_good(app)
    found = late(app, options.monitors, since, until, 0, 0, first)
    told = ", ".join(f"{number:,} with {status}" for status, number in sorted(answers.items()))
    print(f"{options.connections} slow clients, opened {slow.opened:,} times")
    print(f"{answers.total():,} log-ins by {options.threads} threads, answered: {told}")
    print(
        f"{found.monitors} monitors, {found.checks:,} checks, late by {found.median:.0f} ms"
        f" (median), {found.p99:.0f} ms (p99), {found.most:.0f} ms at most; {found.skipped} skipped"
    )
    return 0 if found.p99 < GOAL_MS and not found.skipped else 1


@contextmanager
def service(settings: Settings) -> Iterator[Server]:
    port = free_port()
    process = subprocess.Popen(
        [str(Path(sys.executable).with_name("wakeful")), "serve"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment()
        | {
            "WAKEFUL_DATABASE_URL": settings.database_url or "",
            "WAKEFUL_INSTANCE": str(settings.instance),
            "WAKEFUL_SECRET_KEY": settings.secret_key or "",
            "WAKEFUL_ALLOW_NETWORKS": "loopback",
            "WAKEFUL_CANARIES": "",
            "WAKEFUL_BIND": f"{ADDRESS}:{port}",
            "WAKEFUL_TRUSTED_PROXIES": ADDRESS,
        },
    )
    try:
        _answers(port)
        yield Server(ADDRESS, port, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _answers(port: int) -> None:
    for _ in range(600):
        to = http.client.HTTPConnection(ADDRESS, port, timeout=5)
        try:
            to.request("GET", "/healthz")
            to.getresponse().read()
            return
        except OSError:
            time.sleep(0.1)
        finally:
            to.close()
    raise SystemExit("The service does not answer.")


if __name__ == "__main__":
    sys.exit(main())
