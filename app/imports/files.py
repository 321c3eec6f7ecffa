"""Read a file of any source: detect the source, and limit the size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app.i18n import N_
from app.imports import betterstack, gatus, kuma, kuma_database, other_tools, table, uptimerobot
from app.imports.candidates import NotReadable, Reading
from app.imports.channels import Variables
from app.imports.yaml_text import Parser
from app.rules.text import NESTED, NOT_JSON, TOO_LARGE

MAX_BYTES = 16 * 1024 * 1024  # of any file but SQLite's, which SQLite reads from the disk
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd")
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
UNKNOWN = N_(
    "Wakeful does not know this %(kind)s. It reads those of Uptime Kuma, UptimeRobot, Better Stack,"
    " healthchecks, Gatus, Upptime, Kuvasz, Checkmate and Prometheus."
)
JSON, YAML, LINES = "JSON", "YAML", "CSV"


def read_path(path: Path, format: str = "", variables: Variables | None = None) -> Reading:
    """Read a file. An SQLite file may be of any size."""
    with path.open("rb") as file:
        start = file.read(MAX_BYTES + 1)
    if start.startswith(kuma_database.HEADER):
        _check_format(format, "kuma")
        return kuma_database.read_path(path)
    if len(start) > MAX_BYTES:
        raise NotReadable(TOO_LARGE, most=MAX_BYTES // 1024**2)
    return read(start, format, variables)


def read(data: bytes, format: str = "", variables: Variables | None = None) -> Reading:
    """Read the content of a file. Raises NotReadable. ``format``: a key of
    ``candidates.FORMATS``, or empty to detect it. ``variables``: the values of environment
    variables that the file names.
    """
    if data.startswith(kuma_database.HEADER):
        _check_format(format, "kuma")
        return kuma_database.read(data)
    text = decode_text(data)
    language = LINES if format == "csv" else language_of(text)
    if language == LINES:
        _check_format(format, "csv", "uptimerobot", "betterstack")
        return table.read(text)
    if language == JSON:
        content = load_json(text)
    else:
        documents = Parser().parse(text)
        content = documents[0] if len(documents) == 1 else documents
    try:
        for name, (recognizes, reader) in _TOOLS.items():
            if format in ("", name) and recognizes(content):
                return reader(content, variables or {})
    except RecursionError:
        raise NotReadable(NESTED) from None
    _check_format(format)
    raise NotReadable(UNKNOWN, kind=language)


def _check_format(format: str, *possible: str) -> None:
    if format and format not in possible:
        raise NotReadable(
            N_("The file is not in this format. Choose another format, or detect it automatically.")
        )


def decode_text(data: bytes) -> str:
    if data.startswith(_COMPRESSED):
        raise NotReadable(N_("The file is compressed. Unpack it first."))
    coding = next((coding for mark, coding in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(coding)
    except UnicodeDecodeError:
        raise NotReadable(N_("The file is not text in UTF-8. Save it as UTF-8.")) from None
    if "\0" in text:
        raise NotReadable(N_("The file is not text."))
    if not text.strip():
        raise NotReadable(N_("The file is empty."))
    return text


def language_of(text: str) -> str:
    start = text.lstrip()[:1]
    if start in ("{", "["):
        return JSON
    if start == "<":
        raise NotReadable(N_("Wakeful does not read XML or HTML. Export JSON, YAML or CSV."))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("#")]
    if all(map(table.is_named_url, lines)):
        return LINES
    keys = sum(map(_is_key, lines))
    return YAML if lines[0] == "---" or 2 * keys >= len(lines) else LINES


def _is_key(line: str) -> bool:
    """Whether a line is like ``name: value`` or ``- name:``."""
    key, colon, value = line.lstrip("- ").partition(":")
    return bool(colon and key) and " " not in key and (not value or value[0].isspace())


def load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise NotReadable(NESTED) from None
    except ValueError as fault:
        raise NotReadable(NOT_JSON, line=getattr(fault, "lineno", None)) from None


_TOOLS: Mapping[str, tuple[Callable[[object], bool], Callable[[object, Variables], Reading]]] = {
    "kuma": (kuma.recognizes, kuma.read),
    "uptimerobot": (uptimerobot.recognizes, uptimerobot.read),
    "betterstack": (betterstack.recognizes, betterstack.read),
    "healthchecks": (other_tools.recognizes_healthchecks, other_tools.read_healthchecks),
    "upptime": (other_tools.recognizes_upptime, other_tools.read_upptime),
    "kuvasz": (other_tools.recognizes_kuvasz, other_tools.read_kuvasz),
    "checkmate": (other_tools.recognizes_checkmate, other_tools.read_checkmate),
    "file_sd": (other_tools.recognizes_targets, other_tools.read_targets),
    "gatus": (gatus.recognizes, gatus.read),
}
