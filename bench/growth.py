"""``make bench-growth``: how the cost of a check, of pages and of the API grows with the monitors.

    python -m bench.growth                              100, 1,000, 10,000 and 100,000 monitors
    python -m bench.growth --monitors 100 --monitors 1000
    python -m bench.growth --part requests --only "list" --requests 50
    python -m bench.growth --json FILE --svg FILE

Growth is the figure of a size in times of the smallest size's. Each size is measured in a process
of its own, beside a reference in the same process. Growth is that of the ratio to the reference, so
that it matters less how busy the machine was with another size.

    checks      CPU of a check on its schedule (every 60 s, HTTP to nginx on loopback, SQLite), less
                what a checker without checks uses in that time; the reference is bare pycurl.
                Beside it what the checker uses of a core. 100 monitors make 100 checks a minute:
                with so few, give --seconds 300, or compare with the next size.
    requests    the least CPU of many requests of each page and answer of the API in one process,
                see bench/oneprocess.py; the reference is an empty Flask view.

Installations are made once and kept below the folder for temporary files: 62 MB for 1,000 monitors
with 2 days of history, so 6 GB for 100,000.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench import figures, installation, kinds
from bench.beside import target
from bench.checks import BareCurl
from bench.engine import all_good, as_if_checked, paced, prepare
from bench.oneprocess import OneProcess

SIZES = 100, 1_000, 10_000, 100_000
DAYS = 2
INTERVAL = 60
WARM_UP = INTERVAL + 5
REFERENCE_CHECKS = 1_000


@dataclass(frozen=True, slots=True)
class Check:
    """CPU milliseconds of a check; ``share`` of one core, with what a checker does without any."""

    monitors: int
    checks: int
    each_ms: float
    reference_ms: float
    share: float

    @property
    def ratio(self) -> float:
        return self.each_ms / self.reference_ms


@dataclass(frozen=True, slots=True)
class Request:
    """``least_ms`` is CPU, ``ratio`` in times of an empty view's."""

    name: str
    least_ms: float
    ratio: float


def main() -> int:
    parser = figures.parser(__doc__)
    parser.add_argument(
        "--monitors", type=int, action="append", help="may be given several times, the least first"
    )
    parser.add_argument("--part", choices=("checks", "requests"), help="default: both")
    parser.add_argument("--seconds", type=int, default=60, help="of checks; default 60")
    parser.add_argument("--days", type=int, default=DAYS, help="of history; default 2")
    parser.add_argument("--requests", type=int, default=30, help="of each kind; default 30")
    parser.add_argument("--only", default="", help="kinds of requests whose name has this")
    options = parser.parse_args()
    sizes = options.monitors or SIZES
    checks = [] if options.part == "requests" else checks_of(sizes, options.seconds)
    requests = [] if options.part == "checks" else requests_of(sizes, options)
    found: dict[str, Any] = {
        "sizes": list(sizes),
        "days": options.days,
        "checks": [asdict(one) | {"ratio": one.ratio} for one in checks],
        "requests": [[asdict(one) for one in of_size] for of_size in requests],
    }
    rows = {"a check": [one.ratio for one in checks]} if checks else {}
    rows |= {row[0].name: [one.ratio for one in row] for row in zip(*requests, strict=True)}
    figures.keep(
        options,
        found,
        f"Growth of CPU, in times of {sizes[0]:,} monitors",
        [figures.Bars(name, growth(ratios)) for name, ratios in rows.items()],
        [f"{monitors:,}" for monitors in sizes],
    )
    return 0


def growth(ratios: Sequence[float]) -> list[float]:
    return [ratio / ratios[0] for ratio in ratios]


# Checks ---------------------------------------------------------------------------------------


def checks_of(sizes: Sequence[int], seconds: int) -> list[Check]:
    print(f"CPU of a check every {INTERVAL} s, measured for {seconds} s")
    print(f"{'monitors':>10}{'ms':>9}{'x pycurl':>10}{'growth':>8}{'of a core':>11}{'checks':>9}")
    found: list[Check] = []
    with (
        tempfile.TemporaryDirectory(prefix="wakeful-bench-") as name,
        target(Path(name)) as (urls, authority),
    ):
        idle = _apart(idle_share, Path(name), urls["http"], seconds)
        for monitors in sizes:
            found.append(
                _apart(check, Path(name), urls["http"], authority, monitors, seconds, idle)
            )
            one = found[-1]
            behind = one.checks < 0.9 * monitors * seconds / INTERVAL
            print(
                f"{monitors:10,}{one.each_ms:9.3f}{one.ratio:10.2f}"
                f"{one.ratio / found[0].ratio:8.2f}{one.share:11.1%}{one.checks:9,}"
                + ("  fell behind" if behind else ""),
                flush=True,
            )
    print(f"{'none':>10}{'':27}{idle:11.1%}")
    return found


def idle_share(folder: Path, url: str, seconds: int) -> float:
    """What a checker uses of one core while its only monitor is not due."""
    app, settings = prepare(_new(folder, "idle"), url, 1, 86_400)
    as_if_checked(app, 86_400)
    spent, _checks = paced(app, settings, 10, seconds)
    return spent / seconds


def check(
    folder: Path, url: str, authority: Path, monitors: int, seconds: int, idle: float
) -> Check:
    app, settings = prepare(_new(folder, f"of-{monitors}"), url, monitors, INTERVAL)
    as_if_checked(app, INTERVAL)
    reference = BareCurl(url, str(authority)).run(REFERENCE_CHECKS) / REFERENCE_CHECKS
    spent, done = paced(app, settings, WARM_UP, seconds)
    all_good(app)
    if not done:
        raise SystemExit("No check was made: give more --seconds or more --monitors.")
    each = (spent - idle * seconds) / done
    return Check(monitors, done, each * 1000, reference * 1000, spent / seconds)


def _new(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


# Requests -------------------------------------------------------------------------------------


def requests_of(sizes: Sequence[int], options: argparse.Namespace) -> list[list[Request]]:
    """For each size, the requests in the same order."""
    found = [
        _apart(requests, monitors, options.days, options.requests, options.only)
        for monitors in sizes
    ]
    print(f"Least CPU ms of a request of {options.requests}, and its growth")
    print(f"{'':27}" + "".join(f"{monitors:>15,}" for monitors in sizes))
    for row in zip(*found, strict=True):
        grown = growth([one.ratio for one in row])
        cells = (f"{one.least_ms:8.1f}{more:7.2f}" for one, more in zip(row, grown, strict=True))
        print(f"{row[0].name:27}" + "".join(cells))
    return found


def requests(monitors: int, days: int, times: int, only: str) -> list[Request]:
    folder = installation.default_folder(monitors, days)
    installation.prepare(folder, monitors, days)
    inside = OneProcess(folder)
    asked = kinds.pages(monitors, inside.visitor) + kinds.answers(monitors, inside.visitor)
    found = []
    for kind in asked:
        if only in kind.name:
            cpu = inside.measure(kind, times)
            found.append(Request(kind.name, cpu.least, cpu.ratio))
    return found


def _apart(work: Any, *arguments: Any) -> Any:
    """Do it in a new process, so that no size finds what another left in memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


if __name__ == "__main__":
    sys.exit(main())
