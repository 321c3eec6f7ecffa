"""Read YAML as plain lists, mappings and text.

A few lines of YAML can expand to billions of values (aliases of aliases), or nest deeper than
Python's stack. Values are therefore counted as they are expanded, and the depth is measured before
the text is composed. Every scalar stays text, whatever its tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from app.i18n import N_, _
from app.imports.candidates import NotReadable
from app.imports.values import cut_line
from app.rules.text import NESTED, TOO_LARGE

# The loader of libyaml if the wheel has it; the slow one in Python reads the same.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_CHARACTERS = 2 * 1024 * 1024
MAX_VALUES = 200_000
MAX_DEPTH = 40
TOO_MANY = N_("The YAML has more values than Wakeful reads.")
MERGE = "<<"


def _measure(text: str) -> None:
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=LOADER)):
        if count > 3 * MAX_VALUES:
            raise NotReadable(TOO_MANY)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise NotReadable(NESTED)


class Parser:
    """Reads a text, and YAML texts within it. The limits are for all texts together."""

    def __init__(self) -> None:
        self.values = self.characters = 0

    def parse(self, text: str) -> list[Any]:
        """The documents in ``text``."""
        self.characters += len(text)
        if self.characters > MAX_CHARACTERS:
            raise NotReadable(TOO_LARGE, most=MAX_CHARACTERS // 1024**2)
        try:
            _measure(text)
            roots = list(yaml.compose_all(text, Loader=LOADER))
        except yaml.YAMLError as fault:
            mark = getattr(fault, "problem_mark", None)
            line = mark.line + 1 if mark else None
            raise NotReadable(N_("This is not valid YAML."), line=line) from None
        return [self.value(root, 0) for root in roots if root is not None]

    def value(self, node: Any, depth: int) -> Any:
        """The value of ``node``, with aliases expanded. An alias of a node that contains it exceeds
        the limit of depth.
        """
        self.values += 1 + (len(node.value) // 64 if isinstance(node, yaml.ScalarNode) else 0)
        if self.values > MAX_VALUES:
            raise NotReadable(TOO_MANY)
        if depth > MAX_DEPTH:
            raise NotReadable(NESTED)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        empty = node.tag == "tag:yaml.org,2002:null"
        return None if empty else node.value

    def _mapping(self, node: Any, depth: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        for key, value_node in node.value:
            value = self.value(value_node, depth + 1)
            if not isinstance(key, yaml.ScalarNode):
                continue  # a list or a mapping as a key names no field
            if key.value == MERGE:
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, dict):  # merged in place: there may be very many parts
                        for name, item in part.items():
                            merged.setdefault(name, item)
            elif key.value in fields:  # YAML does not say which of the two counts
                sentence, line = N_('The YAML has "%(name)s" twice.'), key.start_mark.line + 1
                raise NotReadable(sentence, line=line, name=cut_line(key.value))
            else:
                fields[key.value] = value
        return merged | fields


# --- Environment variables ------------------------------------------------------------------------
#
# Fill in environment variables: ``$NAME``, ``${NAME}``, ``${NAME:-default}`` (as Flux and shells
# write it, also with ``:=`` and a variable in the default), and ``$$`` for a dollar sign.

_VARIABLE = re.compile(
    r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]{0,99})(?::?[-=]((?:[^${}]|\$\{[^${}]{1,999}\}){0,999}))?\}"
    r"|([A-Za-z_][A-Za-z0-9_]{0,99})|\{)"
)
NOT_READ = "${...}"  # the name of a variable that is written in any other way


class Unfilled(str):
    """A text of the file in which variables have no value. ``names``: the names of these
    variables.
    """

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
        name=cut_line(name),
    )
