"""Applications that the tests of a process share, as the requests of a process do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from flask import Flask
from jinja2 import FileSystemBytecodeCache

from app import create_app, renew
from app.config import Settings
from app.db import db
from app.engine import now
from tests.support.once import once

MAX = 8  # each keeps some 20 MB of templates and statements


class Applications:
    def __init__(self) -> None:
        self._unused: OrderedDict[tuple[Callable[..., Flask], Settings], Flask] = OrderedDict()

    @contextmanager
    def opened(self, create: Callable[..., Flask], settings: Settings) -> Iterator[Flask]:
        """An application with these settings: a new one, or an older one that has forgotten what
        it cached (``renew``), also of remote servers, whose ports differ from test to test.
        """
        key = create, replace(settings, remotes=())
        app = self._unused.pop(key, None)
        if app is None:
            app = create(settings)
            app.testing = create is create_app
        else:
            app.extensions["wakeful.settings"] = settings
            renew(app)
        config = dict(app.config)
        yield app
        now.close(app)
        with app.app_context():
            db.engine.dispose()
        app.config.clear()
        app.config.update(config)
        self._unused[key] = app
        if len(self._unused) > MAX:
            self._unused.popitem(last=False)


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All workers of a run share the compiled templates, also of applications that a test makes
    for itself.
    """
    folder = once(tmp_path_factory, "templates", lambda folder: None)
    options = Flask.jinja_options | {"bytecode_cache": FileSystemBytecodeCache(str(folder))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "jinja_options", options)
        yield


@pytest.fixture(scope="session")
def applications() -> Applications:
    return Applications()
