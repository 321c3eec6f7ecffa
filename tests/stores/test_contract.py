"""The contract over every store: the local one, also on PostgreSQL, and the remote one over a real
Wakeful and over a server that speaks the base API alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask import Flask

from app.config import Settings
from app.stores.base import Store
from app.stores.local import LocalStore
from app.stores.remote import remote_store
from tests.factories import make_key
from tests.stores.contract import BareContract, StoreContract
from tests.stores.contract.incidents import IncidentsContract
from tests.stores.contract.monitors import MonitorsContract
from tests.stores.contract.post_templates import PostTemplatesContract
from tests.stores.contract.results import ResultsContract
from tests.support.bare_server import KEY, WORST, BareServer
from tests.support.loopback import reached, serving


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, core: Flask, settings: Settings) -> Iterator[Store]:
        with core.app_context():
            yield LocalStore(settings)


@pytest.mark.postgres
class TestLocalStoreOnPostgres(
    MonitorsContract, IncidentsContract, ResultsContract, PostTemplatesContract
):
    """The suites whose statements search, sort and compare."""

    store = TestLocalStore.store

    @pytest.fixture
    def database_url(self, postgres_url: str) -> str:
        return postgres_url


class TestRemoteStoreOverWakeful(StoreContract):
    @pytest.fixture
    def store(self, app: Flask) -> Iterator[Store]:
        key = make_key(app, "admin")
        with reached(app) as url:
            yield remote_store(url, key)


class TestRemoteStoreOverTheWorstBareServer(BareContract):
    """The forms of the plain one are among those of test_remote.py."""

    @pytest.fixture
    def store(self) -> Iterator[Store]:
        with serving(BareServer(WORST)) as url:
            yield remote_store(url, KEY)
