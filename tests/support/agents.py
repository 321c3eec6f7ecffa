"""An agent of the place oslo: its requests, its results, and the agent itself at work."""

import base64
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.access.keys import give_token
from app.codec.packing import pack
from app.codec.sealing import new_private_key, public_key_of
from app.config import Settings
from app.db import writing
from app.db.tables import PlaceRow
from app.db.types import to_ms
from app.engine.agent.agent import Agent
from app.stores.local import LocalStore
from tests.factories import make_outcome
from tests.support.checkers import results

KEY = new_private_key()


@pytest.fixture
def place(app):
    """Its row id and its agent's token."""
    with app.app_context(), writing() as session:
        row = PlaceRow(name="oslo", carrier="agent", created_at=datetime.now(UTC))
        session.add(row)
        token = give_token(row)
        session.flush()
        return row.id, token


@pytest.fixture
def ask(client, place):
    """Sends a request as the agent of the place; what it is answered."""
    _id, token = place

    def ask(path, token=token, status=200, **data):
        answer = client.post(
            f"/api/v1/agent/{path}", json=data, headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.status_code == status, answer.text
        return answer.json["data"] if status == 200 else answer.json

    return ask


def public(key=KEY):
    return base64.b64encode(public_key_of(key)).decode()


def result(monitor, verdict, at, **fields):
    outcome = make_outcome(verdict, at, **fields)
    outcome = replace(outcome, result=replace(outcome.result, monitor_id=monitor.id))
    return {"made_for": to_ms(monitor.updated_at), "outcome": pack(outcome)}


def stored(app, monitor_id):
    with app.app_context():
        return results(monitor_id)


def update(app, monitor, fields, at):
    """Edit a monitor while the clock says this."""
    store = LocalStore(app.extensions["wakeful.settings"])
    store.now = lambda: at
    with app.app_context():
        store.monitors.update(monitor.id, fields)


class Gate:
    """The server as an agent reaches it; ``cut`` makes it unreachable."""

    def __init__(self, app):
        self.app, self.cut = app, False

    def __call__(self, environ, start_response):
        if self.cut:
            start_response("502 Bad Gateway", [("Content-Length", "0")])
            return []
        return self.app(environ, start_response)


def agent_settings(tmp_path, url, token, **more):
    fields = {"allow_networks": "loopback", "canaries": ""} | more
    return Settings(
        instance=tmp_path / "agent",
        database_url="",
        secret_key="",
        server=url,
        agent_token=token,
        **fields,
    )


@contextmanager
def running(settings):
    agent = Agent(settings)
    stop = threading.Event()
    thread = threading.Thread(target=agent.run, args=[stop])
    thread.start()
    try:
        yield agent
    finally:
        stop.set()
        agent.checks.wake()
        thread.join(60)
        assert not thread.is_alive()


def page(site, status=200):
    return f"http://127.0.0.1:{site.port}/status/{status}"
