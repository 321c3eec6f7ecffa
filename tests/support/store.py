"""The store and the access of an application, for tests: each call has a context of its own, as a
request has one. ``store_of(app).monitors.get(1)``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Flask

from app.stores import current_access, current_store


class _Calls:
    """The result of ``get`` in a context of ``app``, or a part of it."""

    def __init__(self, app: Flask, get: Callable[[], Any]) -> None:
        self._app, self._get = app, get

    def __getattr__(self, name: str) -> _Calls:
        return _Calls(self._app, lambda: getattr(self._get(), name))

    def __call__(self, *args: Any, **fields: Any) -> Any:
        with self._app.app_context():
            return self._get()(*args, **fields)


def store_of(app: Flask) -> Any:
    return _Calls(app, current_store)


def access_of(app: Flask) -> Any:
    return _Calls(app, current_access)
