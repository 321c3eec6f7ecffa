"""Fill in environment variables: ``$NAME``, ``${NAME}``, ``${NAME:-default}`` (as Flux and shells
write it, also with ``:=`` and a variable in the default), and ``$$`` for a dollar sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.i18n import _
from app.imports.values import shown

_VARIABLE = re.compile(
    r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]{0,99})(?::?[-=]((?:[^${}]|\$\{[^${}]{1,999}\}){0,999}))?\}"
    r"|([A-Za-z_][A-Za-z0-9_]{0,99})|\{)"
)
NOT_READ = "${...}"  # the name of a variable that is written in any other way


class Unfilled(str):
    """A text of the file in which variables have no value. ``names``: of these variables."""

    __slots__ = ("names",)
    names: tuple[str, ...]


def fill(value: Any, variables: Mapping[str, str], used: set[str]) -> Any:
    """``value`` with its variables replaced. A text with a variable that has no value becomes
    ``Unfilled``. Variables within the values of variables are not replaced. The names of the
    variables are added to ``used``.
    """
    if isinstance(value, list):
        return [fill(item, variables, used) for item in value]
    if isinstance(value, Mapping):
        return {key: fill(item, variables, used) for key, item in value.items()}
    if not isinstance(value, str) or "$" not in value:
        return value
    missing: list[str] = []

    def filled(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name, default = match[1] or match[3] or NOT_READ, match[2]
        if name in variables:
            used.add(name)
            return variables[name]
        if default is None:
            missing.append(name)
        return _VARIABLE.sub(filled, default or "")

    text = _VARIABLE.sub(filled, value)
    if not missing:
        return text
    unfilled = Unfilled(value)
    unfilled.names = tuple(dict.fromkeys(missing))
    return unfilled


def sentences_of(used: set[str]) -> list[str]:
    """The remarks on the variables that were filled in."""
    names = ", ".join(sorted(used)[:20])
    return [_("Filled with environment variables: %(names)s.", names=names)] if used else []


def names_in(value: Any) -> Iterator[str]:
    """The names of variables without a value in ``value``."""
    if isinstance(value, Unfilled):
        yield from value.names
    elif isinstance(value, list):
        for item in value:
            yield from names_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from names_in(item)


def missing_variable(what: str, value: Any) -> str:
    """A sentence if ``value`` needs a variable that has no value; otherwise empty. ``what``: its
    subject.
    """
    name = next(names_in(value), "")
    if not name:
        return ""
    return _(
        "%(what)s needs the environment variable %(name)s, which is not in the file. Give it with"
        " wakeful import FILE --env VARIABLES.",
        what=what,
        name=shown(name),
    )
