"""``wakeful serve`` restarts its children and stops them all, however it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
import requests

from app.commands import entry, resting
from app.commands.serve import greet, listen, offer_set_up
from app.config import SettingError
from app.paths import MIGRATIONS
from tests.factories import make_person
from tests.support.loopback import IPV6
from tests.support.service import Installed, Service, eventually, parts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def service(tmp_path, request):
    running = getattr(request, "param", Installed)(tmp_path / "instance", CANARIES="")
    running.start()
    yield running
    running.stop()


def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def rests(service):
    """Whether the supervisor runs the smaller program."""
    command = Path(f"/proc/{service.process.pid}/cmdline").read_bytes().split(b"\0")
    return resting.__file__.encode() in command[:4]


def ready(base):
    def look():
        answer = requests.get(f"{base}/readyz", timeout=30).json()
        return answer["status"] == "ready" and answer["heartbeat_age"] is not None

    return look


def test_serve_prints_its_address_restarts_children_and_stops_them(service):
    base = service.await_line(r"Wakeful runs at (http://127\.0\.0\.1:\d+) ")[1]
    link = service.await_line(r"(http://\S+)/setup/\S+")
    assert link[1] == base
    assert requests.get(link[0], timeout=60).status_code == 200
    eventually(ready(base), "the checker shows life")
    before = parts(service)
    assert set(before) == {"web", "checker", "worker"}
    command = Path(f"/proc/{before['web']}/cmdline").read_bytes().split(b"\0")
    compiled = Path(cache_from_source(entry.__file__, optimization=2)).exists()
    assert (b"-OO" in command) == compiled, "without docstrings, where modules are compiled so"
    assert "--again" in str(command), "Alembic, which made the database, is in no part's memory"
    eventually(lambda: rests(service), "the supervisor rests")
    assert parts(service) == before

    os.kill(before["checker"], signal.SIGKILL)
    service.await_line("The checker ended")
    eventually(lambda: not ready(base)(), "/readyz says that no checker runs", 20)
    eventually(ready(base), "the checker came back")

    # The web server keeps its port: the socket is the supervisor's.
    os.kill(before["web"], signal.SIGKILL)
    service.await_line("The web server ended")
    assert requests.get(f"{base}/healthz", timeout=60).status_code == 200
    after = eventually(
        lambda: (now := parts(service)).keys() == before.keys() and now, "all parts run again"
    )
    assert after["checker"] != before["checker"]
    assert after["web"] != before["web"]
    assert after["worker"] == before["worker"]

    assert service.stop() == 0
    eventually(lambda: not any(map(alive, after.values())), "all parts end")
    link_secret = link[0].rpartition("/")[2]
    assert sum(link_secret in line for line in service.lines) == 1, "printed once, never logged"


@pytest.mark.parametrize("service", [Service], indirect=True)
def test_children_end_with_the_supervisor(service):
    base = service.await_line(r"Wakeful runs at (http://127\.0\.0\.1:\d+) ")[1]
    eventually(ready(base), "the checker shows life")
    before = parts(service)
    service.process.kill()
    service.process.wait(60)
    eventually(lambda: not any(map(alive, before.values())), "no part outlives it", 30)


RESTS = """
import os, signal, sys, time
path, python = sys.argv[1], sys.executable
pid = os.fork()
while pid == 0:
    time.sleep(60)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
print(pid, flush=True)
os.execv(python, [python, "-I", "-S", path, str(pid), python, "-c", "print('again')"])
"""


@pytest.mark.parametrize("ends", ["the child", "the service"])
def test_a_supervisor_that_rests_stops_its_children_and_sees_their_end(ends):
    supervisor = subprocess.Popen(
        [sys.executable, "-c", RESTS, resting.__file__], stdout=subprocess.PIPE, text=True
    )
    child = int(supervisor.stdout.readline())
    if ends == "the child":
        os.kill(child, signal.SIGKILL)
    else:
        supervisor.terminate()
    assert supervisor.communicate(timeout=60)[0] == ("again\n" if ends == "the child" else "")
    assert supervisor.returncode == 0
    assert not alive(child)


# A part that does not stop when it is asked; its supervisor is killed.
STUBBORN = """
import os, signal, sys, time
from app.commands import serve
from app.config import read

serve.STOP_SECONDS = 3  # time to say that it was asked

def part(words):
    # Not print(): a signal may arrive within the first one, and a second one in it is refused.
    signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"asked\\n"))
    os.write(1, b"%d\\n" % os.getpid())
    while True:
        time.sleep(60)

supervisor = serve.Supervisor(read(), part)
supervisor._supervise(serve.Child("checker", ["checker"]))
sys.stdin.read()
"""


def test_a_child_that_does_not_stop_is_killed_when_its_supervisor_was(settings):
    environ = {"WAKEFUL_INSTANCE": str(settings.instance), "PATH": os.environ["PATH"]}
    supervisor = subprocess.Popen(
        [sys.executable, "-c", STUBBORN],
        env=environ,
        cwd=MIGRATIONS.parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    child = int(supervisor.stdout.readline())
    supervisor.kill()
    assert supervisor.communicate(timeout=60)[0].startswith("asked"), "it ends its output"
    eventually(lambda: not alive(child), "it has ended", 10)


def test_no_set_up_link_is_printed_once_there_is_an_account(app, settings, capsys):
    make_person(app)
    with app.app_context():
        offer_set_up(settings, "http://127.0.0.1:5000")
    assert capsys.readouterr().out == ""


def test_behind_a_proxy_both_addresses_are_printed(core, settings, capsys):
    with listen("127.0.0.1:0") as listener, core.app_context():
        offer_set_up(settings, greet(settings, listener))
        port = listener.getsockname()[1]
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "Wakeful runs at http://wakeful.test (Ctrl-C stops it)",
        f"It listens on http://127.0.0.1:{port}",
    ]
    assert lines[2].startswith("Create the first account here: http://wakeful.test/setup/")


def test_an_address_in_use_is_reported_in_a_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bind = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SettingError, match=re.escape(bind) + ".*WAKEFUL_BIND"):
            listen(bind)


@IPV6
def test_it_listens_on_ipv6_as_well():
    listener = listen("[::1]:0")
    assert listener.getsockname()[0] == "::1"
    listener.close()
