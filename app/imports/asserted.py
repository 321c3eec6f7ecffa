"""The conditions of other tools on an answer, as the parts of assertions: paths and patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STEP = re.compile(
    r"""\.?(?:(?P<name>[\w-]+)|`(?P<quoted>[^`]+)`|\[(?P<index>-?[0-9]{1,9})\])""", re.VERBOSE
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
_LONGEST = 1_000  # characters of a path that are looked at


def json_path(dotted: str, *, hyphens: bool = True) -> str | None:
    """``$.data[0].name`` of ``data[0].name``; None for what is more than names and indices.
    ``hyphens``: whether names may have them; elsewhere they subtract.
    """
    rest = dotted.strip()
    if len(rest) > _LONGEST:
        return None
    rest = rest.removeprefix("$")
    steps = ["$"]
    offset = 0
    while offset < len(rest):
        step = _STEP.match(rest, offset)
        if step is None or (not hyphens and "-" in (step["name"] or "")):
            return None
        steps.append(_written(step))
        offset = step.end()
    return "".join(steps)


def _written(step: re.Match[str]) -> str:
    if step["index"] is not None:
        return f"[{int(step['index'])}]"
    name = step["name"] or step["quoted"]
    if _PLAIN.fullmatch(name):
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"


def escaped(text: str) -> str:
    """A pattern of RE2 that finds this text."""
    return _SPECIAL.sub(r"\\\1", text)


def globbed(pattern: str) -> str:
    """A pattern of RE2 for one with ``*`` and ``?``."""
    parts = (
        ".*" if part == "*" else "." if part == "?" else escaped(part)
        for part in re.split(r"([*?])", pattern)
    )
    return "".join(parts)


def with_spaces(text: str) -> str:
    """A pattern of RE2 for a part of compact JSON, also where it has spaces."""
    return "".join(
        rf"\s*{escaped(sign)}\s*" if sign in "{}[]:," else escaped(sign) for sign in text
    )


NAMES = ("CNAME", "MX", "NS", "PTR", "SOA", "SRV")  # records whose value is a name
# What surrounds the value of a record, by its type, as ``dig +short`` writes it.
_RECORDS = {
    "MX": "[0-9]+ {}", "SRV": "[0-9]+ [0-9]+ [0-9]+ {}", "SOA": "{} .*", "TXT": '.*"{}".*',
    "CAA": '[0-9]+ issue "{}"',
}  # fmt: skip


def of_record(rdtype: str, pattern: str) -> str:
    """A pattern of RE2 for the whole record whose value is ``pattern``."""
    return f"^{_RECORDS.get(rdtype, '{}').format(pattern)}$"


def any_of(texts: Iterable[str]) -> str:
    return f"^(?:{'|'.join(map(escaped, texts))})$"
