"""Fixtures for tests of faults, such as a database that can stop answering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from flask import Flask
from sqlalchemy.engine import make_url

from app import create_app
from app.config import Settings
from app.db import db, faults
from app.engine import now
from tests.alerts.sinks import HttpSink
from tests.api.conftest import Api
from tests.factories import make_key
from tests.support.checkers import Site
from tests.support.postgres import Server
from tests.support.swallow import Relay


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    made = HttpSink()
    yield made
    made.close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture
def api(app: Flask) -> Api:
    return Api(app.test_client(), make_key(app))


@pytest.fixture
def relay(postgres_server: Server) -> Iterator[Relay]:
    running = Relay(postgres_server.directory)
    yield running
    running.close()


@pytest.fixture
def relayed_settings(relay: Relay, postgres_url: str, settings: Settings) -> Settings:
    """PostgreSQL over the relay."""
    name = make_url(postgres_url).database or ""
    return replace(settings, database_url=relay.url(name))


@pytest.fixture
def relayed(relayed_settings: Settings) -> Iterator[Flask]:
    app = create_app(relayed_settings)
    yield app
    now.close(app)
    with app.app_context():
        db.engine.dispose()


@pytest.fixture(autouse=True)
def _nothing_told_yet() -> None:
    """What an earlier test had logged would be left out here."""
    faults._lasting.cache_clear()
