"""A client of /api/v1 with a key, and the records that most tests need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.records import MASK
from tests.factories import make_key

BASE = "http://localhost/api/v1"
MONITOR = {"name": "Shop", "url": "http://127.0.0.1:9/", "interval": "60"}


@dataclass
class Api:
    """Sends requests with a key: ``data`` as a form, ``json`` as JSON."""

    client: FlaskClient
    secret: str | None

    def __call__(self, method: str, path: str, **more: Any) -> Any:
        headers = dict(more.pop("headers", {}))
        if self.secret is not None:
            headers.setdefault("Authorization", f"Bearer {self.secret}")
        path = path if path.startswith("/api") else f"/api/v1{path}"
        return self.client.open(path, method=method, headers=headers, **more)

    def get(self, path: str, **query: Any) -> Any:
        """The body of a 200."""
        answer = self("GET", path, query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.json

    def data(self, method: str, path: str, **more: Any) -> Any:
        """The record of a 200 or 201."""
        answer = self(method, path, **more)
        assert answer.status_code == (201 if answer.headers.get("Location") else 200), answer.text
        assert answer.json["status"] == answer.status_code
        return answer.json["data"]

    def errors(self, method: str, path: str, **more: Any) -> dict[str, list[str]]:
        """The errors of a 422."""
        answer = self(method, path, **more)
        assert answer.status_code == 422, answer.text
        assert answer.json.keys() == {"message", "status", "errors"}
        assert all(sentences for sentences in answer.json["errors"].values())
        return dict(answer.json["errors"])

    def monitor(self, **fields: str) -> dict[str, Any]:
        """A new monitor as returned."""
        return dict(self.data("POST", "/monitors", data=MONITOR | fields))


@pytest.fixture
def api(app: Flask) -> Api:
    return Api(app.test_client(), make_key(app, "write"))


@pytest.fixture
def admin(app: Flask) -> Api:
    """A client with a key of scope admin, as agents need it."""
    return Api(app.test_client(), make_key(app, "admin", name="admin"))


@pytest.fixture
def reader(app: Flask) -> Api:
    """A client with a key that may only read."""
    return Api(app.test_client(), make_key(app, "read", name="reader"))


@pytest.fixture
def stranger(app: Flask) -> Api:
    """Without a key."""
    return Api(app.test_client(), None)


def masked(value: str) -> str:
    return MASK + (value[-4:] if len(value) > 12 else "")
