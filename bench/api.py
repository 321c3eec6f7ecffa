"""``make bench-api``: what the API's answers cost with many monitors.

    python -m bench.api                       10,000 monitors with 7 days of history (made once)
    python -m bench.api --monitors 1000 --days 90
    python -m bench.api --requests 200        so many of each kind
    python -m bench.api --json FILE --svg FILE

Each kind of request is sent in process, one after another, on SQLite: the figures are the
application's own, without network and server. ``least`` and ``middle`` are CPU (the least and the
median of all), beside an empty Flask view in turn with them: compare ``ratio`` with another day.
``median`` and ``p95`` are the milliseconds that pass, which a busy machine makes longer.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from bench import figures, installation, kinds
from bench.oneprocess import Cpu, OneProcess

DAYS = 7


def main() -> int:
    parser = figures.parser(__doc__)
    parser.add_argument("--monitors", type=int, default=10_000, help="default 10000")
    parser.add_argument("--days", type=int, default=DAYS, help="of history; default 7")
    parser.add_argument("--requests", type=int, default=100, help="of each kind; default 100")
    parser.add_argument("--only", default="", help="kinds whose name has this")
    parser.add_argument("--folder", type=Path, help="where the installation is kept")
    options = parser.parse_args()
    folder = options.folder or installation.default_folder(options.monitors, options.days)
    installation.prepare(folder, options.monitors, options.days)
    inside = OneProcess(folder)
    print(f"{options.monitors:,} monitors, {options.requests} requests of each kind, milliseconds")
    print(
        f"{'':27}{'least':>8}{'middle':>8}{'ratio':>8}{'median':>8}{'p95':>8}{'most':>8}{'bytes':>11}"
    )
    found: dict[str, Cpu] = {}
    for kind in kinds.answers(options.monitors, inside.visitor):
        if options.only in kind.name:
            found[kind.name] = inside.measure(kind, options.requests)
            show(kind.name, found[kind.name])
    size = {"monitors": options.monitors, "days": options.days, "of_each": options.requests}
    figures.keep(
        options,
        {**size, "requests": {name: figures_of(cpu) for name, cpu in found.items()}},
        f"CPU of an answer in times of an empty view's, {options.monitors:,} monitors",
        [figures.Bars(name, [cpu.ratio]) for name, cpu in found.items()],
    )
    return 0


def show(name: str, cpu: Cpu) -> None:
    print(
        f"{name:27}{cpu.least:8.2f}{cpu.median:8.2f}{cpu.ratio:8.1f}"
        f"{statistics.median(cpu.wall):8.1f}{_p95(cpu):8.1f}{cpu.wall[-1]:8.1f}{cpu.size:11,}",
        flush=True,
    )


def figures_of(cpu: Cpu) -> dict[str, float]:
    return cpu.figures() | {
        "median_ms": round(statistics.median(cpu.wall), 2),
        "p95_ms": round(_p95(cpu), 2),
        "bytes": cpu.size,
    }


def _p95(cpu: Cpu) -> float:
    return cpu.wall[int(len(cpu.wall) * 0.95)]


if __name__ == "__main__":
    sys.exit(main())
