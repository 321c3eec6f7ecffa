"""Fixtures for tests of faults, such as a database that can stop answering."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy.engine import make_url

from app import create_app, create_core
from app.config import Settings
from app.db import db, faults
from app.engine import now
from tests.alerts.conftest import Outbox
from tests.api.conftest import Api
from tests.factories import make_key
from tests.support.postgres import Server
from tests.support.swallow import Relay
from tests.support.troubles import NOBODY


@pytest.fixture
def box(core: Flask) -> Outbox:
    return Outbox(core)


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
    yield from _opened(create_core(relayed_settings))


@pytest.fixture
def relayed_app(relayed_settings: Settings) -> Iterator[Flask]:
    """With its pages and its API."""
    yield from _opened(create_app(relayed_settings))


def _opened(app: Flask) -> Iterator[Flask]:
    yield app
    now.close(app)
    with app.app_context():
        db.engine.dispose()


@pytest.fixture(autouse=True)
def _nothing_logged_yet() -> None:
    """Lines that an earlier test had logged would be left out here."""
    faults._lasting.cache_clear()


@pytest.fixture
def folder():
    """A folder whose permissions apply to this process: ``bound`` drops the privileges of root."""
    with tempfile.TemporaryDirectory(prefix="wakeful-bound-") as path:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        yield Path(path)


@pytest.fixture
def installed(folder, settings):
    """An installation in that folder."""
    source = Path(settings.database_url.removeprefix("sqlite:///"))
    (folder / "wakeful.db").write_bytes(source.read_bytes())
    if os.geteuid() == 0:
        os.chown(folder / "wakeful.db", NOBODY, NOBODY)
    app = create_app(
        replace(settings, instance=folder, database_url=f"sqlite:///{folder / 'wakeful.db'}")
    )
    yield app
    with app.app_context():
        db.engine.dispose()
