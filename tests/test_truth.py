"""Every fault of the table is caused and must be reported with the right cause (issue 3).

Each row goes through POST /api/v1/checks of a real server. The rows are in tests/lab/table.py;
``make bench-truth`` prints the same as figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import closing
from pathlib import Path

import pytest

from app.net import icmp
from app.records import Cause
from tests.lab.heartbeats import STORIES
from tests.lab.lab import Lab
from tests.lab.runner import (
    Checker,
    OverHttp,
    Running,
    faulty,
    peak_memory_of,
    run_row,
    running,
    without_network,
)
from tests.lab.table import CAUSES, FAULTS, NETWORK_DOWN, ROWS, Row, caused

AHEAD = 32  # rows that run while the first of them is looked at
MEMORY_MB = 10  # what a check may take at most (issue 3)

ALL = [pytest.param(row, id=row.name) for row in ROWS]
HEAVY = [param for param, row in zip(ALL, ROWS, strict=True) if row.heavy]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as lab:
        yield lab


@pytest.fixture(scope="module")
def checker(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    checker = OverHttp(lab, tmp_path_factory.mktemp("truth"))
    yield checker
    checker.close()


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, lab: Lab, checker: Checker) -> Iterator[Running]:
    """The outcomes of the rows that this run selected. Most rows wait, so they run side by side."""
    wanted = {
        item.callspec.params["row"].name: item.callspec.params["row"]
        for item in request.session.items
        if item.fspath == request.path and hasattr(item, "callspec")
    }
    with running(wanted.values(), lab, checker, AHEAD) as rows:
        yield rows


@pytest.mark.parametrize("row", ALL)
def test_what_happened_is_named_rightly(row: Row, lab: Lab, run: Running) -> None:
    if row.v6 and not lab.has_ipv6:
        pytest.skip("this machine has no IPv6")
    if row.at.kind == "ping" and icmp.why_not():
        pytest.skip("this machine does not let us ping")
    faults = run[row.name].result(timeout=60).faults()
    assert not faults, f"{row.name}, {row.at.kind} {row.at.args}: {'; '.join(faults)}"


def test_what_is_our_own_failure_is_unknown(
    lab: Lab, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for rows, checker in ((NETWORK_DOWN, without_network(lab, tmp_path)), (FAULTS, faulty(lab))):
        with closing(checker):
            faults = [fault for row in rows for fault in run_row(row, lab, checker).faults()]
        assert not faults
    assert "ZeroDivisionError" in caplog.text, "a fault of ours is logged"


def test_each_cause_of_each_kind_has_a_row() -> None:
    assert {kind: CAUSES[kind] - causes for kind, causes in caused().items()} == {
        kind: set() for kind in CAUSES
    }
    of_heartbeats = {story.code for story in STORIES if story.code}
    # A heartbeat is slow by its runs; unreachable is a state, and no result has it.
    elsewhere = {Cause.SLOW_RESPONSE, Cause.UNREACHABLE}
    assert frozenset[str]().union(*CAUSES.values(), of_heartbeats, elsewhere) == set(Cause)


@pytest.mark.parametrize("row", HEAVY)
def test_a_check_takes_little_memory_whatever_the_target_sends(
    row: Row, lab: Lab, checker: Checker, run: Running
) -> None:
    wait(run.started.values(), timeout=60)  # other rows' memory is not this one's
    run_row(row, lab, checker)  # what is loaded once, at first use, belongs to no check
    assert peak_memory_of(lambda: run_row(row, lab, checker)) < MEMORY_MB


def test_the_table_is_large_enough_and_names_each_case_once() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 300
