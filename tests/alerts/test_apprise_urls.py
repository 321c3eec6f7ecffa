"""An Apprise URL of a person reaches other services only: no file of this machine, and no service
on it. Each test talks to the process that sends through Apprise.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import LifoQueue

import pytest

from app.alerts.channels import apprise
from app.db import copying
from app.environment import for_program
from tests.alerts.sinks import HttpSink
from tests.support.command import python
from tests.support.service import eventually

Ask = Callable[[str], dict[str, str]]
TELEGRAM = "tgram://123456789:ABCdefGHIjklMNOpqrSTUvwxYZ012345678/1234"


SECRETS = {
    "WAKEFUL_SECRET_KEY": "the-secret-key",
    "WAKEFUL_DATABASE_URL": "postgresql://me:the-secret-password@db/x",
    "DATABASE_URL": "the-secret-url",
    "AWS_SECRET_ACCESS_KEY": "the-secret-of-another",
    "https_proxy": "http://the-secret-proxy:1",
    "PGPASSWORD": "the-secret-of-postgres",
}


@pytest.fixture(scope="module")
def child() -> Iterator[apprise._Child]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        started = apprise._Child()
    yield started
    started.end()


@pytest.fixture
def ask(child: apprise._Child) -> Ask:
    def outcome_of(url: str) -> dict[str, str]:
        task = {"url": url, "title": "t", "body": "b", "kind": "info", "allow": ["loopback"]}
        return child.ask(task, 60)

    return outcome_of


@pytest.mark.parametrize(
    "url",
    [
        TELEGRAM + "?template={file}",
        TELEGRAM + "?template=file://{file}",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#ops?template={file}",
        "fcm://project/topic?keyfile={file}",
        "vapid://ann@example.org/ann@example.org?keyfile={file}",
        "mailto://ann:secret@127.0.0.1:9/?pgp=yes&pgpkey={file}",
    ],
)
def test_an_apprise_url_does_not_tell_whether_a_file_exists(
    ask: Ask, url: str, tmp_path: Path
) -> None:
    here = tmp_path / "here.json"
    here.write_text('{"text": "a secret"}')
    there = tmp_path / "gone.json"
    assert ask(url.format(file=here)) == ask(url.format(file=there))
    assert ask(url.format(file="/etc/passwd")) == ask(url.format(file="/etc/no-such-file"))


def test_a_template_on_this_machine_is_not_sent(ask: Ask, tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    card.write_text('{"text": "a secret"}')
    answer = ask(f"{TELEGRAM}?template={card}")
    assert answer["outcome"] == "permanent"
    assert "names a local file" in answer["log"]


@pytest.mark.parametrize(
    "url", ["syslog://", "syslog://auth", "blink1://", "json://127.0.0.1:9/,syslog://auth"]
)
def test_a_service_on_this_machine_is_refused_also_behind_another_one(ask: Ask, url: str) -> None:
    answer = ask(url)
    assert answer["outcome"] == "permanent"
    assert "this machine only" in answer["log"] or "does not know" in answer["log"]


def test_nothing_is_sent_if_one_of_several_services_is_refused(ask: Ask, sink: HttpSink) -> None:
    assert ask(f"json://127.0.0.1:{sink.port}/,syslog://auth")["outcome"] == "permanent"
    assert sink.requests == []
    assert ask(f"json://127.0.0.1:{sink.port}/")["outcome"] == "delivered"
    assert len(sink.requests) == 1


def test_sms_manager_is_no_service_on_this_machine(ask: Ask) -> None:
    assert "this machine" not in ask("smsmanager://key@1234567890")["log"]


# --- The process


def test_the_process_has_no_secrets_of_ours(child: apprise._Child, ask: Ask) -> None:
    ask("json://127.0.0.1:9/")  # it has started
    environment = Path(f"/proc/{child._process.pid}/environ").read_bytes().decode()
    assert "secret" not in environment
    open_files = [os.readlink(entry) for entry in Path(f"/proc/{child._process.pid}/fd").iterdir()]
    assert all(name.startswith(("pipe:", "/dev/null")) for name in open_files), open_files


KILLED = """
import os
from pathlib import Path
from app.alerts.channels.apprise import _Child

child = _Child()
child.ask({"url": "", "title": "t", "body": "b", "kind": "info", "allow": []}, 60)
(folder,) = Path(os.environ["TMPDIR"]).iterdir()
(folder / "attachment").write_text("x")
print(oct(folder.stat().st_mode & 0o077), flush=True)
os.kill(os.getpid(), 9)
"""


def test_the_process_deletes_its_own_folder_when_its_parent_is_killed(tmp_path: Path) -> None:
    killed = python(KILLED, [], for_program({"TMPDIR": str(tmp_path)}))
    assert killed.stdout == "0o0\n", killed.stderr
    eventually(lambda: not list(tmp_path.iterdir()), "the folder to be deleted")


@pytest.mark.parametrize("prefix", [None, "PG"])
def test_a_program_gets_the_variables_that_it_needs_alone(
    monkeypatch: pytest.MonkeyPatch, prefix: str | None
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LC_TIME", "C")
    got = for_program({"OWN": "1"}, prefix=prefix)
    assert {"PATH", "LC_TIME", "OWN"} <= set(got)
    assert ("PGPASSWORD" in got) is (prefix == "PG")
    assert not set(got) & (set(SECRETS) - {"PGPASSWORD"})


def test_no_program_is_started_with_our_environment() -> None:
    """Programs of others; those of ``serve`` are forks, and need what it has."""
    root = Path(copying.__file__).parents[1]
    for file in root.rglob("*.py"):
        text = file.read_text()
        if "demo" not in file.parts and ("subprocess.run(" in text or "subprocess.Popen(" in text):
            assert "env=for_program(" in text, file


GUARDED = """
import json, os, socket, sys, tempfile
from pathlib import Path
from app.alerts.channels.apprise_child import Guard
from app.net.policy import Policy

theirs, own = sys.argv[1], tempfile.gettempdir()
planted = os.path.join(sys.prefix, "planted")
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
local = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
joined = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
joined.connect(("127.0.0.1", 9))
guard = Guard()
sys.addaudithook(guard)
guard.begin(Policy.parse("loopback"))
cases = {
    "sendmsg": lambda: datagrams.sendmsg([b"x"], [], 0, ("192.168.7.7", 53)),
    "sendmsg to a local socket": lambda: local.sendmsg([b"x"], [], 0, "/run/x"),
    "sendto": lambda: datagrams.sendto(b"x", ("192.168.7.7", 53)),
    "connect": lambda: datagrams.connect(("169.254.169.254", 80)),
    "connect_ex": lambda: datagrams.connect_ex(("192.168.7.7", 80)),
    "read a file of others": lambda: Path(theirs).read_text(),
    "list a folder of others": lambda: os.listdir(os.path.dirname(theirs)),
    "environment of another": lambda: open("/proc/1/environ"),
    "write beside the code": lambda: open(planted, "w"),
    "write by os.open": lambda: os.open(planted, os.O_CREAT | os.O_RDWR),
    "move out": lambda: os.rename(os.path.join(own, "mine"), theirs),
    "remove": lambda: os.remove(theirs),
    "start a program": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "fork": lambda: os.fork() or os._exit(0),
    "own file": lambda: Path(own, "mine").write_text("x"),
    "open message": lambda: joined.sendmsg([b"x"]),
    "allowed message": lambda: datagrams.sendmsg([b"x"], [], 0, ("127.0.0.1", 9)),
}
refused = []
for name, act in cases.items():
    try:
        act()
    except PermissionError as fault:
        refused.append(name if fault.errno is None else f"{name}: by the system")
    except OSError:
        pass
print(json.dumps([refused, [name for name in cases if name not in refused]]))
"""


def test_the_guard_judges_every_way_out_and_every_file(tmp_path: Path) -> None:
    theirs, own = tmp_path / "theirs" / "secret", tmp_path / "own"
    for folder in (theirs.parent, own):
        folder.mkdir()
    theirs.write_text("theirs")
    done = python(GUARDED, [str(theirs)], for_program({"TMPDIR": str(own)}))
    refused, allowed = json.loads(done.stdout)
    assert allowed == ["own file", "open message", "allowed message"]
    assert len(refused) == 14
    assert theirs.read_text() == "theirs"


RAISING = """
import json
from app.alerts.channels.apprise_child import Guard, _Lines, _answer
from apprise import Apprise
from apprise.plugins.custom_json import NotifyJSON
import logging

def send(*_args, **_kwargs):
    raise KeyError("a secret")

NotifyJSON.send = send
log = _Lines()
logging.getLogger("apprise").addHandler(log)
task = {"url": "json://127.0.0.1:9/", "allow": ["loopback"]}
task |= {"title": "t", "body": "b", "kind": "info"}
print(json.dumps(_answer(task, Guard(), log)))
"""


def test_a_service_that_raises_inside_apprise_is_a_bug_and_no_passing_failure() -> None:
    """Apprise catches it, and a bug would be retried for a day."""
    done = python(RAISING, [], for_program({}))
    answer = json.loads(done.stdout)
    assert answer["outcome"] == "bug"
    assert answer["log"].endswith("in send > KeyError")


def test_a_bug_behind_apprise_is_named_with_its_line(child: apprise._Child) -> None:
    answer = child.ask({"url": "json://127.0.0.1:9/", "allow": ["loopback"]}, 60)
    assert answer["outcome"] == "bug"
    assert "in serve > KeyError" in answer["log"]
    assert apprise._read(answer, []).text.startswith("Sending failed inside Wakeful (KeyError).")


class FakeChild:
    def __init__(self, alive: bool = True) -> None:
        self.alive, self.ends = alive, 0

    def end(self) -> None:
        self.ends += 1
        if not self.alive:
            raise IndexError


def test_idle_processes_are_counted_and_a_fault_of_their_end_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apprise, "_IDLE", idle := LifoQueue[FakeChild](apprise._MAX_IDLE))
    idle.put(FakeChild(alive=False))
    with pytest.raises(IndexError):
        apprise._take()
    children = [FakeChild() for _ in range(apprise._MAX_IDLE + 1)]
    for child in children:
        apprise._give_back(child)  # type: ignore[arg-type]
    assert [child.ends for child in children] == [0] * apprise._MAX_IDLE + [1]
    assert idle.queue == children[: apprise._MAX_IDLE]
    assert apprise._take() is children[apprise._MAX_IDLE - 1]
