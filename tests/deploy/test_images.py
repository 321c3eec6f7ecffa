"""Dockerfile and compose file, read: no engine is needed, and none is asked."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from app.commands.cli import cli
from app.commands.serve import STOP_SECONDS
from app.config import PREFIX, SETTING_NAMES, read
from app.paths import TRANSLATIONS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
UID = 10001


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, each in one line."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    whole = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    whole = whole.replace("\\\n", " ")
    return [
        (word.upper(), " ".join(rest.split()))
        for word, _space, rest in (line.partition(" ") for line in whole.splitlines() if line)
    ]


def of_last_stage() -> list[tuple[str, str]]:
    lines = instructions()
    last = max(number for number, (word, _rest) in enumerate(lines) if word == "FROM")
    return lines[last:]


def values(word: str) -> list[str]:
    return [rest for name, rest in of_last_stage() if name == word]


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_both_stages_are_debian_slim_and_the_last_one_gets_no_tools_of_the_first():
    lines = instructions()
    [base] = [rest for word, rest in lines if (word, rest[:5]) == ("ARG", "BASE=")]
    assert re.fullmatch(r"BASE=debian:[a-z]+-slim(@sha256:[0-9a-f]{64})?", base)
    assert [rest for word, rest in lines if word == "FROM"] == ["${BASE} AS build", "${BASE}"]
    [(_word, run)] = [line for line in of_last_stage() if line[0] == "RUN"]
    assert "--no-install-recommends python3 ${EXTRA} " in run
    assert "rm -rf /var/lib/apt/lists/*" in run
    assert values("COPY") == ["--from=build /opt/wakeful /opt/wakeful"]
    installs = [rest for word, rest in lines if word == "RUN" and "apt-get install" in rest]
    assert not re.search(r"gcc|g\+\+|build-essential|-dev\b", " ".join(installs))


def test_libraries_are_installed_from_the_locks_with_their_hashes():
    runs = " ".join(rest for word, rest in instructions() if word == "RUN")
    installs = re.findall(r"pip install ([^&]+)", runs)
    for install in installs:
        assert "--require-hashes -r requirements/" in install or "--no-deps --no-index" in install
        for lock in re.findall(r"-r (\S+)", install):
            assert (ROOT / lock).is_file()
    assert any("requirements/run.txt" in install for install in installs)


def test_what_is_copied_is_there_reaches_the_build_and_is_all_that_the_wheel_needs():
    copied = [
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    kept = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    assert sorted(copied) == sorted(kept)
    assert all((ROOT / path).exists() for path in copied)
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    about = [PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]]
    assert {*wheel, *about, "pyproject.toml"} <= set(copied)


def test_no_secret_of_a_checkout_reaches_the_build():
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    assert next(line for line in patterns if not line.startswith("#")) == "*"
    kept = [line.removeprefix("!") for line in patterns if line.startswith("!")]
    for secret in ("instance/secret_key", "deploy/.env", ".git/config", "wakeful.db"):
        assert not any(fnmatch.fnmatch(secret, f"{path}*") for path in kept), secret
    ignored = subprocess.run(
        ["git", "check-ignore", "deploy/.env"], cwd=ROOT, capture_output=True, check=False
    )
    assert ignored.returncode in (0, 128), "128: not a checkout"


def test_it_runs_without_rights_and_writes_to_its_volume_alone():
    assert values("USER") == [f"{UID}:{UID}"]
    [volume] = values("VOLUME")
    [run] = values("RUN")
    assert f"--uid {UID}" in run
    assert f"--mode 0700 {volume}" in run
    environ = dict(pair.split("=", 1) for pair in values("ENV")[0].split())
    assert environ["WAKEFUL_INSTANCE"] == volume
    assert environ["PYTHONDONTWRITEBYTECODE"] == "1"
    assert {
        name.removeprefix(PREFIX) for name in environ if name.startswith(PREFIX)
    } <= SETTING_NAMES
    [port] = values("EXPOSE")
    assert environ["WAKEFUL_BIND"] == f"0.0.0.0:{port}"


def test_it_starts_a_command_that_exists_and_asks_whether_it_answers():
    assert values("ENTRYPOINT") == ['["wakeful"]']
    [command] = values("CMD")
    assert json.loads(command)[0] in cli.commands
    [check] = values("HEALTHCHECK")
    options, _cmd, words = check.partition(" CMD ")
    assert "--start-period=" in options
    program, flag, code = json.loads(words)
    assert (program, flag) == ("python", "-c")
    assert "'http://127.0.0.1:8000/healthz'" in code
    compile(code, "HEALTHCHECK", "exec")
    assert values("STOPSIGNAL") == ["SIGTERM"]


def test_languages_that_there_is_a_translation_into_stay():
    """Without Babel's data of a language, none of its pages can be made."""
    translated = {path.parts[-3] for path in TRANSLATIONS.glob("*/LC_MESSAGES/messages.mo")}
    [run] = [rest for word, rest in instructions() if word == "RUN" and "locale-data" in rest]
    kept = re.findall(r'-not -name "?([\w*.]+)"?', run.split("locale-data")[1])
    assert kept == ["en*", "root.dat"]
    for language in translated:
        assert any(fnmatch.fnmatch(f"{language}.dat", pattern) for pattern in kept), language


def test_compose_gives_wakeful_no_more_than_it_needs(compose):
    wakeful = compose["services"]["wakeful"]
    assert wakeful["read_only"] is True
    assert wakeful["cap_drop"] == ["ALL"]
    assert wakeful["security_opt"] == ["no-new-privileges:true"]
    assert [mount.split(":")[0] for mount in wakeful["tmpfs"]] == ["/tmp"]
    assert "privileged" not in wakeful
    assert all(port.startswith("127.0.0.1:") for port in wakeful["ports"])
    assert int(wakeful["stop_grace_period"].removesuffix("s")) > STOP_SECONDS
    assert wakeful["build"] == {
        "context": "..",
        "dockerfile": "deploy/Dockerfile",
        "args": {"EXTRA": "postgresql-client"},
    }
    assert [volume.split(":")[1] for volume in wakeful["volumes"]] == values("VOLUME")
    named = {
        volume.split(":")[0]
        for service in compose["services"].values()
        for volume in service["volumes"]
    }
    assert named == set(compose["volumes"])


def test_compose_waits_for_a_database_that_the_settings_reach(compose, tmp_path):
    wakeful, database = compose["services"]["wakeful"], compose["services"]["database"]
    assert wakeful["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "ports" not in database, "nobody else reaches it"
    password = "${POSTGRES_PASSWORD:?set it in deploy/.env}"
    assert database["environment"]["POSTGRES_PASSWORD"] == password
    url = wakeful["environment"]["WAKEFUL_DATABASE_URL"].replace(password, "0a1b")
    user, name = (database["environment"][f"POSTGRES_{name}"] for name in ("USER", "DB"))
    assert url == f"postgresql://{user}:0a1b@database/{name}"
    text = (DEPLOY / "compose.env.example").read_text()
    assert "POSTGRES_PASSWORD=\n" in text, "nobody keeps a password of ours"
    lines = re.findall(r"^(WAKEFUL_\w+)=(.+)$", text, re.MULTILINE)
    read(dict(lines) | {"WAKEFUL_DATABASE_URL": url, "WAKEFUL_INSTANCE": str(tmp_path)})
    examples = re.findall(r"^# (WAKEFUL_\w+)=", text, re.MULTILINE)
    assert {name.removeprefix(PREFIX) for name in examples} <= SETTING_NAMES


def test_pg_dump_of_the_image_is_not_older_than_the_server_of_compose(compose):
    """Debian's releases and their PostgreSQL: `wakeful backup` refuses a newer server."""
    client = {"bookworm": 15, "trixie": 17}
    [base] = re.findall(r"ARG BASE=debian:([a-z]+)-slim", (DEPLOY / "Dockerfile").read_text())
    server = compose["services"]["database"]["image"]
    version = int(re.fullmatch(r"postgres:(\d+)-[a-z]+", server)[1])
    assert version <= client[base]
