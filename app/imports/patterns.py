"""JSON paths and RE2 patterns for assertions, made from the conditions of other tools."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STEP = re.compile(
    r"""\.?(?:(?P<name>[\w-]+)|`(?P<quoted>[^`]+)`|\[(?P<index>-?[0-9]{1,9})\])""", re.VERBOSE
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
_MAX_PATH = 1_000  # characters


def json_path(dotted: str, *, hyphens: bool = True) -> str | None:
    """``$.data[0].name`` for ``data[0].name``; None if the path has more than names and indices.
    ``hyphens``: whether a hyphen is part of a name. In JSONata it is a minus sign.
    """
    path = dotted.strip()
    if len(path) > _MAX_PATH:
        return None
    path = path.removeprefix("$")
    steps = ["$"]
    offset = 0
    while offset < len(path):
        step = _STEP.match(path, offset)
        if step is None or (not hyphens and "-" in (step["name"] or "")):
            return None
        steps.append(_step_text(step))
        offset = step.end()
    return "".join(steps)


def _step_text(step: re.Match[str]) -> str:
    if step["index"] is not None:
        return f"[{int(step['index'])}]"
    name = step["name"] or step["quoted"]
    if _PLAIN.fullmatch(name):
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"


def literal_pattern(text: str) -> str:
    """A pattern that matches ``text`` itself."""
    return _SPECIAL.sub(r"\\\1", text)


def glob_pattern(pattern: str) -> str:
    """A pattern that matches what a shell pattern with ``*`` and ``?`` matches."""
    parts = (
        ".*" if part == "*" else "." if part == "?" else literal_pattern(part)
        for part in re.split(r"([*?])", pattern)
    )
    return "".join(parts)


def spaced_pattern(text: str) -> str:
    """A pattern that matches a part of a JSON text, with or without spaces around its signs."""
    return "".join(
        rf"\s*{literal_pattern(sign)}\s*" if sign in "{}[]:," else literal_pattern(sign)
        for sign in text
    )


NAMES = ("CNAME", "MX", "NS", "PTR", "SOA", "SRV")  # records whose value is a name
# A record as ``dig +short`` writes it, by its type, with {} for its value.
_RECORDS = {
    "MX": "[0-9]+ {}", "SRV": "[0-9]+ [0-9]+ [0-9]+ {}", "SOA": "{} .*", "TXT": '.*"{}".*',
    "CAA": '[0-9]+ issue "{}"',
}  # fmt: skip


def record_pattern(rdtype: str, pattern: str) -> str:
    """A pattern for a whole record whose value matches ``pattern``."""
    return f"^{_RECORDS.get(rdtype, '{}').format(pattern)}$"


def alternatives(texts: Iterable[str]) -> str:
    return f"^(?:{'|'.join(map(literal_pattern, texts))})$"
