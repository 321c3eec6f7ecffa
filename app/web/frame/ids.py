"""Ids in the addresses of pages."""

from __future__ import annotations

from flask import Flask
from werkzeug.routing import IntegerConverter, Map

from app.records import MAX_ID


class Id(IntegerConverter):
    """An id that a record can have. A larger number names no page: the database could not even be
    asked for it, and the answer would be a fault of ours.
    """

    regex = rf"\d{{1,{len(str(MAX_ID))}}}"

    def __init__(self, map: Map) -> None:
        super().__init__(map, max=MAX_ID)


def init_app(app: Flask) -> None:
    """Called before the addresses are added."""
    app.url_map.converters["int"] = Id
