"""What commands work on: the application with its database, people and keys, and typed secrets."""

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
    """The application, in its context. Its connections are closed afterwards: from Python 3.13 on,
    an open connection causes a warning.
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
        # Somebody may create a key before the first start.
        schema.upgrade()
        with actors.acting_as(actors.by_command()):
            yield Access()


def typed_line(prompt: str, *, twice: bool = False) -> str:
    """A secret that a person types, which is not shown, or the next line of standard input.
    ``twice``: a person types it again; a program sends it once.
    """
    if sys.stdin.isatty():
        typed: str = click.prompt(prompt, hide_input=True, confirmation_prompt=twice)
        return typed
    return sys.stdin.readline().rstrip("\r\n")


def ready(settings: Settings) -> Flask:
    """The application of a checker or a worker. Raises WakefulError for a database that is not up
    to date, or whose secrets cannot be read.
    """
    app = create_core(settings, small_cache=True)
    with app.app_context():
        schema.require()
        schema.read_secrets()
        db.engine.dispose()
        if db.engine.dialect.name == "postgresql":
            from app.db import postgres  # psycopg takes 9 MB

            postgres.read_singly(db.engine)
    return app
