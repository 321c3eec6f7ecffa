"""The pages: a module for each topic, with its blueprints."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from flask import Blueprint


def blueprints() -> Iterator[Blueprint]:
    for module in iter_modules(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Blueprint):
                yield value
