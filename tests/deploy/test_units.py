"""The systemd units of deploy/systemd: correct, closed, and of commands that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from configparser import RawConfigParser
from pathlib import Path

import pytest

from app.commands.cli import cli
from app.commands.serve import STOP_SECONDS
from app.config import PREFIX, SETTING_NAMES, read

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
COMMON = UNITS / "wakeful-.service.d" / "common.conf"
SERVICES = sorted(path.name for path in UNITS.glob("*.service"))
PROGRAM = "/opt/wakeful/bin/wakeful"
# The parts that are open: the network, and the host's own file system to read.
EXPOSURE = 1.5


class Unit(RawConfigParser):
    """A unit, with each key in the case and as often as it is written."""

    def __init__(self, path: Path) -> None:
        super().__init__(strict=False, delimiters=("=",), interpolation=None)
        self.optionxform = str  # type: ignore[assignment,method-assign]
        self.text = path.read_text()
        self.read_string(self.text)

    def all(self, key: str) -> list[str]:
        return re.findall(rf"^{key}=(.*)$", self.text, re.MULTILINE)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system with the units where the manual puts them, and the programs that they start."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed: apt-get install systemd")
    root = tmp_path_factory.mktemp("root")
    shutil.copytree(UNITS, root / "etc" / "systemd" / "system")
    of_the_system = Path("/usr/lib/systemd/system")
    shutil.copytree(of_the_system, root / of_the_system.relative_to("/"), symlinks=True)
    for program in (PROGRAM, "/bin/sh", "/usr/bin/find"):
        path = root / program.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        _program(path, "exit 0")
    return root


def analyze(root: Path, *words: str) -> str:
    """The complaints of systemd-analyze, or its output."""
    done = subprocess.run(
        ["systemd-analyze", f"--root={root}", "--no-pager", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", [*SERVICES, "wakeful-backup.timer"])
def test_systemd_finds_no_fault_in_a_unit(root: Path, name: str):
    assert analyze(root, "verify", name) == ""


def test_a_fault_would_be_found(root: Path, tmp_path: Path):
    """systemd ignores what it does not know, and so would this file."""
    broken = root / "etc" / "systemd" / "system" / "broken.service"
    broken.write_text(f"[Service]\nExecStart={PROGRAM} serve\nProtectSytem=strict\n")
    assert "ProtectSytem" in analyze(root, "verify", "broken.service")
    broken.unlink()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_closed_to_what_it_does_not_need(root: Path, name: str):
    text = analyze(root, "security", "--offline=yes", name)
    [exposure] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", text)
    assert float(exposure) <= EXPOSURE, text


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_starts_a_command_that_exists(name: str):
    for line in Unit(UNITS / name).all("ExecStart"):
        for words in re.findall(rf"{PROGRAM} ([^'\"]+)", line):
            command = shlex.split(words)[0]
            assert command in cli.commands, line
    if name != "wakeful-backup.service":
        unit = Unit(UNITS / name)
        assert unit["Service"]["ExecStart"] == f"{PROGRAM} {name[8:-8]}"
        # A watchdog ends a part that hangs with 70, and a start may find its address in use.
        assert unit["Service"]["Restart"] == "always"
        assert unit["Unit"]["StartLimitIntervalSec"] == "0"


def test_each_part_that_runs_until_it_is_stopped_has_a_unit():
    parts = {"serve", "web", "checker", "worker", "prober", "agent"}
    assert {name[8:-8] for name in SERVICES} == {*parts, "backup"}
    # A new one with an endless loop belongs into the list above.
    once = {"check", "doctor", "db", "user", "key", "import", "backup", "restore"}
    once |= {"webhook-secret", "secrets"}
    assert set(cli.commands) <= parts | once


def test_systemd_waits_longer_than_a_stop_takes():
    assert int(Unit(COMMON)["Service"]["TimeoutStopSec"]) > STOP_SECONDS


def test_the_settings_of_the_services_are_read(tmp_path: Path):
    """The settings of the units, and of the example file with its examples switched on."""
    text = (UNITS / "wakeful.env.example").read_text()
    named = re.findall(r"^#?(WAKEFUL_\w+)='.*'$", text, re.MULTILINE)
    assert {name.removeprefix(PREFIX) for name in named} <= SETTING_NAMES
    assert Unit(COMMON).all("Environment") == [f"{PREFIX}INSTANCE=/var/lib/wakeful"]
    written = [line for line in text.splitlines() if line and not line.startswith("#")]
    active = dict(re.findall(r"^(\w+)='(.*)'$", "\n".join(written), re.MULTILINE))
    assert len(written) == len(active), "each value is in single quotes"
    settings = read(active | {f"{PREFIX}INSTANCE": str(tmp_path)})
    assert str(settings.trusted_proxies[0]) == "127.0.0.1/32"


def test_the_administrators_command_has_the_services_user_settings_and_folder(tmp_path: Path):
    odd = 'smtp://u:p%40@mail?from=a@b&tls=required $HOME `id` \\ " # x'
    (tmp_path / "wakeful.env").write_text(f"# comment\nWAKEFUL_SMTP_URL='{odd}'\n")
    _program(tmp_path / "id", "echo 0")
    _program(
        tmp_path / "setpriv", 'printf "%s\\n" "$WAKEFUL_SMTP_URL" "$WAKEFUL_INSTANCE" "$PWD" "$@"'
    )
    script = (UNITS / "wakeful").read_text()
    script = script.replace("/etc/wakeful", str(tmp_path)).replace(
        "/var/lib/wakeful", str(tmp_path)
    )
    done = subprocess.run(
        ["sh", "-c", script, "wakeful", "backup", "a b"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    user = ["--reuid=wakeful", "--regid=wakeful", "--init-groups", PROGRAM]
    folder = str(tmp_path)
    assert done.stdout.splitlines() == [odd, folder, folder, *user, "backup", "a b"]


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
