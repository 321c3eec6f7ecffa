"""In which order a run takes its tests, and how many long ones it leaves out.

A pytest plugin; ``tests/conftest.py`` names it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

LEFT_OUT = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)  # after those that are deselected are gone
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The share of each worker begins with slow tests: started last, one would run alone while all
    other workers are done.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    others = [item for item in items if not item.get_closest_marker("slow")]
    size = -(-len(others) // workers)
    items[:] = [
        item
        for worker in range(workers)
        for item in (*slow[worker::workers], *others[worker * size : (worker + 1) * size])
    ]


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """With workers, pytest itself does not say how many tests are left out."""
    if not items:  # ``--lf`` without a failed test
        return
    more = sum(item.get_closest_marker("more") is not None for item in items)
    config = items[0].config
    config.stash[LEFT_OUT] = config.stash.get(LEFT_OUT, 0) + more
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects, and leaves out, the same tests."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if number := config.stash.get(LEFT_OUT, 0):
        terminalreporter.line(f"{number} long tests are left out; to run them: make test-more")
