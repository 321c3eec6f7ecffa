"""Ask the package index for known faults of the locked versions, and say how old the lock is.

    python scripts/audit.py [requirements/test.txt ...]

The index is pip's own (``PIP_INDEX_URL``, ``pip config``, else pypi.org), asked for
``/pypi/NAME/VERSION/json``. Exit code 0: nothing is known. 1: something is, or a version is not
there. 3: the index could not be asked, so nothing is known either way.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

PINNED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
PYPI = "https://pypi.org/simple"
SECONDS = 10.0  # for each answer
AT_ONCE = 8
DAY_SECONDS = 24 * 3600


class Unreachable(Exception):
    """The index cannot be asked. Its text says why, without what a URL holds of passwords."""


def main(files: list[Path]) -> int:
    locked = sorted({pin for file in files for pin in PINNED.findall(file.read_text())})
    for file in files:
        print(f"{file} is {age_in_days(file)} days old.")
    index = index_url()
    try:
        found = list(ask(index, locked))
    except Unreachable as fault:
        print(f"The {len(locked)} locked versions were NOT looked up: {fault}", file=sys.stderr)
        return 3
    for line in found:
        print(line)
    said = "no known vulnerability" if not found else f"{len(found)} findings, above"
    print(f"{len(locked)} locked versions were looked up at {shown(index)}: {said}.")
    return 1 if found else 0


def age_in_days(file: Path) -> int:
    """Since the file was last committed; without git, since it was written."""
    words = ["git", "log", "-1", "--format=%ct", "--", file.name]
    try:
        done = subprocess.run(words, cwd=file.resolve().parent, capture_output=True, text=True)
        since = float(done.stdout)
    except (OSError, ValueError):
        since = file.stat().st_mtime
    return int((time.time() - since) // DAY_SECONDS)


def index_url() -> str:
    """Where pip looks for packages."""
    named = os.environ.get("PIP_INDEX_URL")
    if not named:
        words = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
        named = subprocess.run(words, capture_output=True, text=True).stdout
    return named.strip() or PYPI


def shown(url: str) -> str:
    """Without the user name and the password that it may have."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def ask(index: str, locked: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for each finding. Raises Unreachable."""
    root = index.rstrip("/").removesuffix("/simple")
    if not root.startswith(("http://", "https://")):
        raise Unreachable(f"{shown(index)} is no index that can be asked over HTTP.")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for found in pool.map(lambda pin: list(findings(root, *pin)), locked):
            yield from found


def findings(root: str, name: str, version: str) -> Iterator[str]:
    try:
        answer = read(f"{root}/pypi/{name}/{version}/json")
    except HTTPError as fault:
        if fault.code != 404:
            raise Unreachable(f"{shown(root)} answered {fault.code} for {name}.") from None
        yield f"{name} {version}: the index does not have this version."
        return
    except (OSError, ValueError) as fault:
        raise Unreachable(f"{shown(root)} does not answer ({type(fault).__name__}).") from None
    if not isinstance(answer, dict) or not isinstance(answer.get("vulnerabilities"), list):
        raise Unreachable(f"{shown(root)} names no vulnerabilities in its answers.")
    for one in answer["vulnerabilities"]:
        if not one.get("withdrawn"):
            fixed = ", ".join(one.get("fixed_in") or ()) or "no version"
            yield f"{name} {version}: {one.get('id')} (fixed in {fixed}) {one.get('link') or ''}"


def read(url: str) -> Any:
    headers = {"Accept": "application/json"}
    user, at, _host = urlsplit(url).netloc.rpartition("@")
    if at:  # as pip does it; urllib would take them for a part of the host's name
        headers["Authorization"] = f"Basic {b64encode(unquote(user).encode()).decode()}"
    # The scheme is http or https: ``ask`` has seen to it.
    with urlopen(Request(shown(url), headers=headers), timeout=SECONDS) as answer:  # noqa: S310
        return json.loads(answer.read())


if __name__ == "__main__":
    named = [Path(name) for name in sys.argv[1:]]
    sys.exit(main(named or [Path("requirements/test.txt")]))
