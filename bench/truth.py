"""``make bench-truth``: how often a check tells the truth, in figures.

    python -m bench.truth                 the whole table, through the prober
    python -m bench.truth --http          the same through POST /api/v1/checks
    python -m bench.truth --runs 10       so many times over
    python -m bench.truth tls             only rows with this word in their name

Then a million healthy results go through the state machine, which must open no incident. The exit
status is 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.engine.state import Observation, State, Step, advance
from app.records import DEFAULT_CONFIRMATIONS, Verdict
from tests.lab.lab import Lab
from tests.lab.runner import Checker, InProcess, OverHttp, Score, Seen, running
from tests.lab.table import ROWS, Row

MONITORS, CHECKS_EACH = 1_000, 1_000
INTERVAL = timedelta(seconds=60)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.truth")
    parser.add_argument("words", nargs="*", help="only rows with one of these in their name")
    parser.add_argument("--http", action="store_true", help="through POST /api/v1/checks")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args(arguments)
    rows = [row for row in ROWS if not options.words or any(w in row.name for w in options.words)]
    good = True
    with Lab() as lab, tempfile.TemporaryDirectory() as folder:
        if not lab.has_ipv6:
            print("This machine has no IPv6: rows that need it are left out.")
            rows = [row for row in rows if not row.v6]
        checker: Checker = OverHttp(lab, Path(folder)) if options.http else InProcess(lab)
        try:
            for number in range(1, options.runs + 1):
                good &= run_table(rows, lab, checker, f"run {number} of {options.runs}")
        finally:
            checker.close()
    if not options.words:
        good &= run_healthy()
    return 0 if good else 1


def run_table(rows: Sequence[Row], lab: Lab, checker: Checker, title: str) -> bool:
    """One run of the table, printed. True when every row held."""
    began = time.monotonic()
    with running(rows, lab, checker) as futures:
        seen = [future.result() for future in futures.values()]
    report(Score.of(seen), seen, f"{title}, {time.monotonic() - began:.1f} s")
    return not any(one.faults() for one in seen)


def report(score: Score, seen: Sequence[Seen], title: str) -> None:
    print(f"The table of truth: {score.rows} rows ({title})")
    print(f"  verdict accuracy   {score.right_verdicts / score.rows:8.2%}")
    print(f"  exact cause        {score.right_causes / score.rows:8.2%}")
    print(f"  false positives    {len(score.false_positives):5}")
    print(f"  false negatives    {len(score.false_negatives):5}")
    print(f"  over the time      {len(score.late):5}")
    for one in seen:
        for fault in one.faults():
            print(f"  {one.row.name}: {fault}")


def run_healthy() -> bool:
    """A million results of healthy targets through the state machine. True when none opened.

    Healthy is not flawless: some answers are slow, some of our own gaps are unknown, and one check
    in a thousand fails once and is good when repeated.
    """
    began = time.monotonic()
    dice = random.Random(20261121)  # noqa: S311  (the same results each time)
    start = datetime(2026, 11, 21, tzinfo=UTC)
    opened = 0
    for _ in range(MONITORS):
        state, at, failed = State(), start, False
        for _ in itertools.repeat(None, CHECKS_EACH):
            chance = dice.random()
            failed = not failed and chance < 0.001
            verdict = Verdict.DOWN if failed else Verdict.UP
            if not failed and chance > 0.98:
                verdict = Verdict.DEGRADED if chance < 0.99 else Verdict.UNKNOWN
            transition = advance(state, Observation(at, verdict), DEFAULT_CONFIRMATIONS)
            state, at = transition.state, at + INTERVAL
            opened += transition.step is Step.OPEN
    seconds = time.monotonic() - began
    print(f"{MONITORS * CHECKS_EACH:,} healthy checks through the state machine in {seconds:.1f} s")
    print(f"  incidents opened   {opened:5}")
    return opened == 0


if __name__ == "__main__":
    sys.exit(main())
