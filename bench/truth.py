"""``make bench-truth``: how often a check tells the truth, in figures.

    python -m bench.truth                 the whole table, through the prober
    python -m bench.truth --http          the same through POST /api/v1/checks
    python -m bench.truth --runs 10       so many times over
    python -m bench.truth tls             only rows with this word in their name

Then come thousands of real checks of a healthy page, and a million in-process checks of healthy
targets, which must open no incident. The exit status is 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.checks.certificate import TrustStore
from app.checks.http import checks
from app.checks.http.outcome import make_outcome
from app.checks.http.trace import Trace
from app.checks.outcome import GoodEvidence
from app.engine.network import OwnNetwork
from app.judge.verdict import Effect, NewResult, State, advance
from app.records import DEFAULT_CONFIRMATIONS, CheckSpec, Outcome, Verdict
from tests.lab.heartbeats import STORIES
from tests.lab.lab import Lab
from tests.lab.runner import (
    Checker,
    InProcess,
    Judgement,
    OverHttp,
    Score,
    faulty,
    run_row,
    running,
    without_network,
)
from tests.lab.table import FAULTS, NETWORK_DOWN, ROWS, Row

MONITORS, CHECKS_EACH = 1_000, 1_000
INTERVAL = timedelta(seconds=60)
AT_ONCE = 20
LARGE = 10_000  # bytes: what larger bodies cost to decode is not asked here


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.truth")
    parser.add_argument("words", nargs="*", help="only rows with one of these in their name")
    parser.add_argument("--http", action="store_true", help="through POST /api/v1/checks")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--real", type=int, default=10_000, help="real checks of a healthy page")
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
        for title, rows, ours in (
            ("own network down", NETWORK_DOWN, without_network(lab, Path(folder) / "ours")),
            ("fault of ours", FAULTS, faulty(lab)),
        ):
            with closing(ours):
                good &= run_table(rows, lab, ours, title)
        good &= run_heartbeats()
        if not options.words:
            good &= run_real(lab, options.real)
            good &= run_healthy(lab)
    return 0 if good else 1


def run_table(rows: Sequence[Row], lab: Lab, checker: Checker, title: str) -> bool:
    """One run of the table, printed. True when every row held."""
    began = time.monotonic()
    with running(rows, lab, checker) as futures:
        judgements = [future.result() for future in futures.values()]
    report(Score.of(judgements), judgements, f"{title}, {time.monotonic() - began:.1f} s")
    return not any(judgement.faults() for judgement in judgements)


def report(score: Score, judgements: Sequence[Judgement], title: str) -> None:
    print(f"The table of truth: {score.rows} rows ({title})")
    print(f"  verdict accuracy   {score.right_verdicts / score.rows:8.2%}")
    print(f"  exact cause        {score.right_causes / score.rows:8.2%}")
    print(f"  false positives    {len(score.false_positives):5}")
    print(f"  false negatives    {len(score.false_negatives):5}")
    print(f"  over the time      {len(score.late):5}")
    for judgement in judgements:
        for fault in judgement.faults():
            print(f"  {judgement.row.name}: {fault}")


def run_heartbeats() -> bool:
    """The stories of heartbeats, which are called and not checked. True when each was judged so."""
    wrong = [(row, faults) for row in STORIES if (faults := list(row.faults()))]
    print(f"Heartbeats: {len(STORIES)} stories")
    print(f"  judged right       {1 - len(wrong) / len(STORIES):8.2%}")
    for row, faults in wrong:
        print(f"  {', '.join(row.events)}: {'; '.join(faults)}")
    return not wrong


def healthy_traces(lab: Lab) -> list[Trace]:
    """What happened on the wire in a check of each healthy target of the table."""
    checker, traces = InProcess(lab), []

    def keep(trace: Trace, trust: TrustStore, good: GoodEvidence) -> Outcome:
        outcome = make_outcome(trace, trust, good)
        size = sum(len(hop.exchange.body) for hop in trace.hops if hop.exchange)
        if outcome.result.verdict is Verdict.UP and size < LARGE:
            traces.append(trace)
        return outcome

    checks.make_outcome = keep
    try:
        for row in ROWS:
            if row.verdict is Verdict.UP and not row.heavy and (lab.has_ipv6 or not row.v6):
                run_row(row, lab, checker)
    finally:
        checks.make_outcome = make_outcome
        checker.close()
    return traces


def run_real(lab: Lab, count: int) -> bool:
    """Real checks of a real page, on the wire. True when each was up."""
    began = time.monotonic()
    checker, done = InProcess(lab), threading.Semaphore(0)
    spec = CheckSpec(url=lab.http(), timeout=60)
    bad: list[Outcome] = []

    def told(outcome: Outcome) -> None:
        if outcome.result.verdict is not Verdict.UP:
            bad.append(outcome)
        done.release()

    try:
        for number in range(count):
            checker.prober.submit(spec, told)
            if number >= AT_ONCE:
                done.acquire()
        for _ in range(min(count, AT_ONCE)):
            done.acquire()
    finally:
        checker.close()
    print(f"{count:,} real checks of a healthy page in {time.monotonic() - began:.1f} s")
    print(f"  not up             {len(bad):5}")
    for outcome in bad[:10]:
        print(f"  {outcome.result.cause_code}: {outcome.result.cause}")
    return not bad


def run_healthy(lab: Lab) -> bool:
    """A million checks of healthy targets, all but the wire. True when no incident opened.

    Each judges again what came over the wire in a real check of one of the table's healthy targets,
    and goes through the figures, the evidence, the question whether our network works, and the
    state machine. Healthy is not flawless: one check in a thousand fails once and is good when
    repeated, and of some we cannot tell.
    """
    traces = healthy_traces(lab)
    began = time.monotonic()
    dice = random.Random(20261121)  # noqa: S311  (the same results each time)
    trust = TrustStore(lab.ca_bundle)
    good, network = GoodEvidence(), OwnNetwork(lambda: True, lambda: None)
    start = datetime(2026, 11, 21, tzinfo=UTC)
    opened = wrong = 0
    for number in range(MONITORS):
        trace = traces[number % len(traces)]
        trace = replace(trace, spec=replace(trace.spec, monitor_id=number))
        state, at, failed = State(), start, False
        for turn in range(CHECKS_EACH):
            ((_, outcome),) = network.sort(
                [(number, make_outcome(trace, trust, good))], 60.0 * turn
            )
            verdict = outcome.result.verdict
            wrong += verdict is not Verdict.UP
            chance = dice.random()
            failed = not failed and chance < 0.001
            if failed or chance > 0.99:
                verdict = Verdict.DOWN if failed else Verdict.UNKNOWN
            transition = advance(state, NewResult(1, at, verdict), DEFAULT_CONFIRMATIONS)
            state, at = transition.state, at + INTERVAL
            opened += transition.effect is Effect.OPEN
    seconds = time.monotonic() - began
    print(f"{MONITORS * CHECKS_EACH:,} checks of {len(traces)} healthy targets in {seconds:.1f} s")
    print(f"  judged not up      {wrong:5}")
    print(f"  incidents opened   {opened:5}")
    return opened == wrong == 0


if __name__ == "__main__":
    sys.exit(main())
