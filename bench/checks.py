"""``make bench-checks``: what one check costs in CPU, beside others in the same session.

    python -m bench.checks                  HTTP and HTTPS, 3 rounds of 2,000 checks each
    python -m bench.checks --checks 5000 --rounds 5

The target is nginx on loopback, a process of its own. Each check is a fresh connection with a full,
verified TLS handshake. Beside Wakeful's prober, whole with policy, verdict and certificate reading,
run a bare pycurl loop that keeps nothing of the answer (what the library alone costs), requests in
threads (what most Python monitors do), and wrk where it is installed (C, verifies nothing: the
floor). The rounds of all are interleaved and the median counts, because machines are noisy: look at
the ratios, not at the milliseconds.
"""

from __future__ import annotations

import argparse
import resource
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pycurl
import requests
import trustme

from app.checks.prober import Prober
from app.net.hosts import SystemNames
from app.net.policy import Policy
from app.records import CheckSpec, Outcome, Verdict

HOST = "bench.test"
AT_ONCE = 50
PAGE = "<html><title>bench</title><p>hello, all is well</p></html>"

NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
  uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
  ssl_certificate {folder}/chain.pem; ssl_certificate_key {folder}/key.pem;
  server {{ listen 127.0.0.1:{http} backlog=4096; listen 127.0.0.1:{https} ssl backlog=4096;
    location / {{ default_type text/html; return 200 "{page}"; }} }}
}}
"""

Work = Callable[[str, int], float]  # (url, checks) -> CPU seconds


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.checks")
    parser.add_argument("--checks", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    if shutil.which("nginx") is None:
        print("This bench needs nginx as the target: apt-get install nginx-light.")
        return 2
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as name:
        folder = Path(name)
        authority = _certificates(folder)
        with _nginx(folder) as ports, Contestants(folder, authority) as all_:
            for scheme, port in zip(("http", "https"), ports, strict=True):
                _compare(f"{scheme}://{HOST}:{port}/", all_.works, options.checks, options.rounds)
    return 0


def _compare(url: str, works: dict[str, Work], checks: int, rounds: int) -> None:
    figures: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work(url, max(50, checks // 20))  # what is loaded once belongs to no check
    for _ in range(rounds):
        for name, work in works.items():
            # requests is so slow that a share of the checks says enough.
            count = checks // 5 if name.startswith("requests") else checks
            figures[name].append(work(url, count) / count * 1000)
    scheme = url.partition(":")[0].upper()
    print(f"\n{scheme}: {checks} checks a round, {rounds} rounds, {AT_ONCE} at once")
    ours = statistics.median(figures["Wakeful"])
    for name, values in figures.items():
        middle = statistics.median(values)
        spread = f"{min(values):.3f}-{max(values):.3f}"
        ratio = f"{middle / ours:6.2f} x Wakeful"
        print(f"  {name:<22} {middle:8.3f} ms CPU a check  ({spread})   {ratio}")


# --- The target -----------------------------------------------------------------------------------


def _certificates(folder: Path) -> Path:
    root = trustme.CA()
    leaf = root.create_child_ca().issue_cert(HOST)
    (folder / "chain.pem").write_bytes(b"".join(pem.bytes() for pem in leaf.cert_chain_pems))
    (folder / "key.pem").write_bytes(leaf.private_key_pem.bytes())
    root.cert_pem.write_to_path(str(folder / "authority.pem"))
    return folder / "authority.pem"


@contextmanager
def _nginx(folder: Path) -> Iterator[tuple[int, int]]:
    ports = _free_port(), _free_port()
    text = NGINX.format(folder=folder, http=ports[0], https=ports[1], page=PAGE)
    (folder / "nginx.conf").write_text(text)
    process = subprocess.Popen(
        [_program("nginx"), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    )
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", ports[1])) == 0:
                    break
            time.sleep(0.05)
        yield ports
    finally:
        process.terminate()
        process.wait(10)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise SystemExit(f"{name} is not installed.")
    return path


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# --- Who checks -----------------------------------------------------------------------------------


class Contestants:
    def __init__(self, folder: Path, authority: Path) -> None:
        self._authority = str(authority)
        (folder / "hosts").write_text(f"127.0.0.1 {HOST}\n")
        policy = Policy.parse("loopback")
        self._prober = Prober(
            policy=lambda: policy,
            ca_bundle=self._authority,
            names=SystemNames(hosts=str(folder / "hosts")),
        )
        self.works: dict[str, Work] = {
            "Wakeful": self._wakeful,
            "pycurl alone": self._pycurl,
            "requests in threads": self._requests,
        }
        if shutil.which("wrk"):
            self.works["wrk (C, no verifying)"] = self._wrk

    def __enter__(self) -> Contestants:
        return self

    def __exit__(self, *error: object) -> None:
        self._prober.close(5)

    def _wakeful(self, url: str, checks: int) -> float:
        specs = [CheckSpec(url=url, monitor_id=number % 500 + 1) for number in range(checks)]
        done = threading.Event()
        left, lock, bad = checks, threading.Lock(), 0

        def finished(outcome: Outcome) -> None:
            nonlocal left, bad
            bad += outcome.result.verdict != Verdict.UP
            with lock:
                left -= 1
                over, following = left == 0, specs.pop() if specs else None
            if following is not None:
                self._prober.submit(following, finished)
            if over:
                done.set()

        began = time.process_time()
        for _ in range(min(AT_ONCE, checks)):
            with lock:
                spec = specs.pop()
            self._prober.submit(spec, finished)
        done.wait()
        if bad:
            raise SystemExit(f"{bad} of {checks} checks were not up: the figures mean nothing.")
        return time.process_time() - began

    def _pycurl(self, url: str, checks: int) -> float:
        return BareCurl(url, self._authority).run(checks)

    def _requests(self, url: str, checks: int) -> float:
        address = url.replace(HOST, "127.0.0.1")

        def one(_: int) -> None:
            if url.startswith("https"):
                # The name is checked against the address otherwise; this one line costs nothing.
                with requests.Session() as session:
                    session.mount("https://", _Named())
                    session.get(address, verify=self._authority, headers={"Host": HOST}, timeout=30)
            else:
                requests.get(address, timeout=30)

        began = time.process_time()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, range(checks)))
        return time.process_time() - began

    def _wrk(self, url: str, checks: int) -> float:
        return wrk(url.replace(HOST, "127.0.0.1")) * checks


def wrk(url: str) -> float:
    """The CPU seconds that wrk takes for a request on a connection of its own. It verifies nothing,
    and counts time, not requests: its own answer says how many there were in a second.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [_program("wrk"), "-t1", f"-c{AT_ONCE}", "-d1", "-H", "Connection: close", url],
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    words = run.stdout.split()
    return used / int(words[words.index("requests") - 1])


class _Named(requests.adapters.HTTPAdapter):
    """Verifies against the bench's name while connecting to its address."""

    def init_poolmanager(self, *arguments: object, **options: object) -> None:
        options |= {"assert_hostname": HOST, "server_hostname": HOST}
        super().init_poolmanager(*arguments, **options)


class BareCurl:
    """pycurl's multi on epoll, nothing else: no policy, no headers, no certificates, no verdict."""

    def __init__(self, url: str, authority: str) -> None:
        self._epoll = select.epoll()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._due: float | None = None
        self._handles = [self._handle(url, authority) for _ in range(AT_ONCE)]

    def _handle(self, url: str, authority: str) -> pycurl.Curl:
        one = pycurl.Curl()
        port = urlsplit(url).port
        one.setopt(pycurl.URL, url)
        one.setopt(pycurl.RESOLVE, [f"{HOST}:{port}:127.0.0.1"])
        one.setopt(pycurl.CAINFO, authority)
        one.setopt(pycurl.FRESH_CONNECT, 1)
        one.setopt(pycurl.FORBID_REUSE, 1)
        one.setopt(pycurl.SSL_SESSIONID_CACHE, 0)
        one.setopt(pycurl.NOSIGNAL, 1)
        one.setopt(pycurl.WRITEFUNCTION, lambda data: None)
        return one

    def _watch(self, what: int, fd: int, multi: object, data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self._epoll.unregister(fd)
            return
        events = {1: select.EPOLLIN, 2: select.EPOLLOUT, 3: select.EPOLLIN | select.EPOLLOUT}[what]
        try:
            self._epoll.modify(fd, events)
        except FileNotFoundError:
            self._epoll.register(fd, events)

    def _set_timer(self, milliseconds: int) -> None:
        self._due = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def run(self, checks: int) -> float:
        began = time.process_time()
        started = finished = 0
        free = list(self._handles)
        while finished < checks:
            while free and started < checks:
                self._multi.add_handle(free.pop())
                started += 1
            wait = -1.0 if self._due is None else max(0.0, self._due - time.monotonic())
            for fd, events in self._epoll.poll(wait, 256):
                self._multi.socket_action(fd, (events & 1) | (2 if events & 4 else 0))
            if self._due is not None and self._due <= time.monotonic():
                self._due = None
                self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
            _, good, bad = self._multi.info_read(256)
            if bad:
                raise SystemExit(f"pycurl alone failed: {bad[0][2]}")
            for handle in good:
                self._multi.remove_handle(handle)
                free.append(handle)
            finished += len(good)
        return time.process_time() - began


if __name__ == "__main__":
    sys.exit(main())
