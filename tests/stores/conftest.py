"""The local store, and several who write into it at the same moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from flask import Flask

from app.config import Settings
from app.db import db
from app.errors import Invalid, NotFound
from app.stores.local import LocalStore

# The contract's assertions explain themselves as those of a test module do.
pytest.register_assert_rewrite("tests.stores.contract")

Act = Callable[[LocalStore], Any]
AtOnce = Callable[[Sequence[Act]], list[Any]]


@pytest.fixture
def store(core: Flask, settings: Settings) -> Iterator[LocalStore]:
    with core.app_context():
        yield LocalStore(settings)


@pytest.fixture
def at_once(core: Flask, settings: Settings, store: LocalStore) -> AtOnce:
    """What each act, begun together with the others, returns; of a refusal the faulty fields."""

    def run(acts: Sequence[Act]) -> list[Any]:
        together = Barrier(len(acts))

        def begin(act: Act) -> Any:
            with core.app_context():
                together.wait()
                try:
                    return act(LocalStore(settings))
                except Invalid as fault:
                    return sorted(fault.errors)
                except NotFound:
                    return None

        with ThreadPoolExecutor(len(acts)) as pool:
            returned = list(pool.map(begin, acts))
        db.session.rollback()  # what was read before the threads wrote is another moment's truth
        return returned

    return run
