"""The objects that commands work on: the database, with its people and keys, and secrets that are
typed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from app import create_core
from app.access import Access, actors
from app.config import Settings, read
from app.db import db, schema

if TYPE_CHECKING:
    from flask import Flask


@contextmanager
def opened(
    settings: Settings, create: Callable[[Settings], Flask] = create_core
) -> Iterator[Flask]:
    """The application in its context. Closes its connections afterwards: from Python 3.13 on, an
    open one causes a warning.
    """
    app = create(settings)
    with app.app_context():
        try:
            yield app
        finally:
            db.session.remove()
            db.engine.dispose()


@contextmanager
def access_opened() -> Iterator[Access]:
    settings = read()
    with opened(settings):
        # A key is often wanted before the first start.
        schema.upgrade()
        with actors.acting_as(actors.by_command()):
            yield Access()


def typed_line(prompt: str, *, twice: bool = False) -> str:
    """A secret that is typed without being shown, or the next line of standard input. ``twice``:
    people type it again; programs send it once.
    """
    if sys.stdin.isatty():
        typed: str = click.prompt(prompt, hide_input=True, confirmation_prompt=twice)
        return typed
    return sys.stdin.readline().rstrip("\r\n")


def ready(settings: Settings) -> Flask:
    """The application of a checker or a worker, after checking that the database is up to date."""
    app = create_core(settings, small_cache=True)
    with app.app_context():
        schema.require()
        schema.read_secrets()
        db.engine.dispose()
        if db.engine.dialect.name == "postgresql":
            from app.db import postgres  # psycopg takes 9 MB

            postgres.read_singly(db.engine)
    return app
