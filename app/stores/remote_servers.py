"""Whether the remote servers answer, for ``/readyz``, ``/metrics`` and ``doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, cast

from app.db.cached import cached_for
from app.errors import WakefulError
from app.i18n import N_, _
from app.records import PAGE_SIZES, MonitorQuery

if TYPE_CHECKING:
    from flask import Flask

    from app.stores.base import Store

ANSWER_SECONDS = 2.0  # clients of /readyz do not wait for long
LATE = N_("The server %(server)s did not answer in time.")
CACHE_SECONDS = 10.0  # requests to /readyz need no key, and must not cause many others


def faults(app: Flask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sentences about the servers that do not answer: the faults, and the warnings. They are faults
    if no server answers, otherwise warnings. Needs an application context.
    """
    stores = app.extensions["wakeful.store"].stores
    answers = cached_for(
        CACHE_SECONDS, "wakeful.remote_servers", lambda: ask(app, stores, ANSWER_SECONDS)
    )
    silent = tuple(fault for fault in answers.values() if fault is not None)
    return (silent, ()) if len(silent) == len(answers) else ((), silent)


def ask(app: Flask, stores: Sequence[Any], seconds: float) -> dict[str, str | None]:
    """The fault of each server, or None, by the name of the server. Each server gets a request for
    a page of monitors, with its key. Returns within ``seconds``.
    """
    pool = ThreadPoolExecutor(len(stores), "remote server")
    futures = {store.name: pool.submit(_fault_of, app, store) for store in stores}
    wait(futures.values(), seconds)
    pool.shutdown(wait=False)  # late requests end by their own time limit
    return {
        name: future.result() if future.done() else _(LATE, server=name)
        for name, future in futures.items()
    }


def _fault_of(app: Flask, store: object) -> str | None:
    with app.app_context():
        try:
            cast("Store", store).monitors.list(MonitorQuery(per_page=PAGE_SIZES[0]))
        except WakefulError as fault:
            return str(fault)
    return None
