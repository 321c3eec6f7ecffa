"""An installed Wakeful works like the checkout: the wheel, the locks, and the way into .venv."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = sorted(path.name for path in (ROOT / "requirements").glob("*.txt"))


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def succeed(*command, **options):
    done = run(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", directory, ROOT]
    succeed(sys.executable, "-m", "pip", *build)
    (built,) = directory.glob("wakeful-*.whl")
    return built


class Installed:
    """An environment with the wheel in it, and a directory that knows nothing of the checkout."""

    def __init__(self, home, wheel):
        self.programs = home / "venv" / "bin"
        self.directory = home / "empty"
        self.directory.mkdir()
        venv.create(home / "venv", with_pip=False, symlinks=True)
        install = ["install", "--no-deps", "--no-index", "--no-compile", wheel]
        succeed(sys.executable, "-m", "pip", "--python", self.programs / "python", *install)
        # The tests' environment lends the libraries, so that nothing is downloaded. A path that a
        # .pth file adds has its own .pth files ignored: the checkout stays out of sight.
        (site,) = (home / "venv" / "lib").glob("python*/site-packages")
        (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def succeed(self, program, *arguments):
        env = {
            "PATH": os.defpath,
            "HOME": str(self.directory),
            "WAKEFUL_DATABASE_URL": f"sqlite:///{self.directory / 'wakeful.db'}",
            "WAKEFUL_SECRET_KEY": "a secret key for tests only",
        }
        return succeed(self.programs / program, *arguments, cwd=self.directory, env=env)

    def python(self, code):
        return self.succeed("python", "-c", textwrap.dedent(code))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("app", "app"),
        ("templates", "app/_templates"),
        ("static", "app/_static"),
        ("docs", "app/_docs"),
    ],
)
def test_the_wheel_carries_every_file(wheel, here, there):
    listed = succeed("git", "-C", ROOT, "ls-files", "-z", "--", here)
    tracked = list(filter(None, listed.split("\0")))
    carried = zipfile.ZipFile(wheel).namelist()
    missing = {
        path
        for path in tracked
        if (ROOT / path).exists() and path.replace(here, there, 1) not in carried
    }
    assert tracked
    assert not missing


def test_the_wheel_carries_no_tests_and_nobodys_data(wheel):
    top = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert top == {"app", "wsgi.py", wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"}


def test_the_installed_command_says_what_it_can_do(installed):
    help_text = installed.succeed("wakeful", "--help")
    for command in ("serve", "web", "checker", "worker", "db", "user", "key", "check", "doctor"):
        assert re.search(rf"^  {command}\b", help_text, re.MULTILINE), help_text


def test_an_installed_wakeful_shows_its_first_page_and_gunicorn_finds_it(installed):
    """In one process: each start loads most of what is installed."""
    where = installed.python(
        """
        import re
        import sys
        import app.paths
        from app.commands.cli import cli

        print(app.paths.__file__)
        cli(["db", "upgrade"], standalone_mode=False)
        from wsgi import app as application

        client = application.test_client()
        page = client.get("/", follow_redirects=True)
        assert page.status_code == 200, page.status
        assert "Wakeful" in page.text
        assets = re.findall(r'(?:href|src)="(/[^"]*_static/[^"]+)"', page.text)
        assert any(".css" in asset for asset in assets), page.text
        for asset in assets:
            assert client.get(asset).status_code == 200, asset

        from app.web.shown import manuals

        assert "Add one" in manuals.rendered("heartbeats")
        assert (manuals.DOCS / "pictures" / "incident-light.webp").is_file()

        from gunicorn.app.wsgiapp import run

        sys.argv = ["gunicorn", "--check-config", "wsgi:app"]
        try:
            run()
        except SystemExit as ended:
            assert ended.code == 0
        else:
            raise AssertionError("it has not checked")
        """
    )
    assert Path(where.split()[0]).is_relative_to(installed.programs.parent), "not the checkout"


def locked(name):
    lines = (ROOT / "requirements" / name).read_text().replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_requirement_has_its_version_and_hashes_and_no_address(name):
    for line in locked(name):
        assert re.match(r"[a-z0-9.-]+(\[[a-z,]+\])?==\S+ .*--hash=sha256:", line), line
        assert "://" not in line


@pytest.mark.parametrize(
    ("name", "extras"),
    [("run.txt", []), ("distributed.txt", ["distributed"]), ("test.txt", ["distributed", "pdf"])],
)
def test_the_locks_hold_what_pyproject_asks_for(name, extras):
    """Fails after a change of the dependencies without `make lock`."""
    pins = {}
    for line in locked(name):
        pin = Requirement(line.partition(" --hash")[0].strip())
        pins[canonicalize_name(pin.name)] = next(iter(pin.specifier)).version
    wanted = [*PROJECT["dependencies"]]
    for extra in extras:
        wanted += PROJECT["optional-dependencies"][extra]
    for requirement in map(Requirement, wanted):
        assert pins.get(canonicalize_name(requirement.name), "none") in requirement.specifier


@pytest.mark.parametrize(
    ("python", "sentence"),
    [
        (None, "there is no"),
        ("exit 1", "Python 3.11 or newer, and"),
        ('case "$*" in *version_info*) exit 0;; *) exit 1;; esac', "python3-venv"),
    ],
    ids=["no Python", "old Python", "no venv module"],
)
def test_what_python_lacks_is_said_in_one_sentence_with_what_to_type(tmp_path, python, sentence):
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "venv", tmp_path / "scripts")
    program = tmp_path / "some-python"
    if python:
        program.write_text(f"#!/bin/sh\n{python}\n")
        program.chmod(0o755)
    done = run("scripts/venv", cwd=tmp_path, env={**os.environ, "PYTHON": str(program)})
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "type '" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize(
    ("configured", "taken"),
    [("--enable-shared", True), ("--enable-shared --enable-optimizations", False)],
    ids=["without optimisations", "with optimisations"],
)
def test_the_systems_python_takes_the_place_of_a_slow_build(tmp_path, configured, taken):
    system = Path("/usr/bin/python3")
    able = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"
    if sys.platform != "linux" or not system.exists() or run(system, "-c", able).returncode:
        pytest.skip("The system has no Python of 3.11 or newer with venv: install python3-venv")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "venv", tmp_path / "scripts")
    first = tmp_path / "python3"
    # Runs what it is given, but in a process that says it was configured like this.
    elsewhere = (
        "import sys, sysconfig; sys.base_prefix = '/elsewhere'; "
        f"sysconfig.get_config_vars()['CONFIG_ARGS'] = '{configured}'; exec(sys.argv[1])"
    )
    first.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -c "{elsewhere}" "$@"\n')
    first.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "VENV": f"{first}/venv"}
    environ.pop("PYTHON", None)
    done = run("scripts/venv", cwd=tmp_path, env=environ)
    assert done.returncode != 0  # no folder can be made in a file, so nothing is installed
    assert ("Taking /usr/bin/python3" in done.stderr) == taken
