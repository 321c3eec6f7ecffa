"""Which source a file is of, and how much of it is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.i18n import N_, _
from app.imports import betterstack, gatus, kuma, kuma_database, table, uptimerobot
from app.imports.candidates import NotReadable, Reading, at_line

MOST_BYTES = 16 * 1024 * 1024  # of anything but an SQLite file, which is read where it lies
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"\x28\xb5\x2f\xfd")
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
NOT_THE_FORMAT = N_(
    "The file is not in this format. Choose another format, or detect it automatically."
)
UNKNOWN_JSON = N_(
    "Wakeful does not know this JSON. It reads an Uptime Kuma backup, UptimeRobot's getMonitors,"
    " or Better Stack's list of monitors."
)


def read_path(path: Path, format: str = "") -> Reading:
    """Read a file. An SQLite file may be of any size."""
    with path.open("rb") as file:
        start = file.read(MOST_BYTES + 1)
    if start.startswith(kuma_database.HEADER):
        return _database(lambda: kuma_database.read_path(path), format)
    if len(start) > MOST_BYTES:
        raise NotReadable(
            _("The file is too large. At most %(most)s MB are read.", most=MOST_BYTES // 1024**2)
        )
    return read(start, format)


def read(data: bytes, format: str = "") -> Reading:
    """Read the content of a file. Raises NotReadable. ``format``: a key of
    ``candidates.FORMATS``, or empty to find out.
    """
    if data.startswith(kuma_database.HEADER):
        return _database(lambda: kuma_database.read(data), format)
    text = decoded(data)
    return _READERS[format or found_format(text)](text)


def _database(reader: Callable[[], Reading], format: str) -> Reading:
    if format not in ("", "kuma"):
        raise NotReadable(_(NOT_THE_FORMAT))
    return reader()


def decoded(data: bytes) -> str:
    if data.startswith(_COMPRESSED):
        raise NotReadable(_("The file is compressed. Unpack it first."))
    coding = next((coding for mark, coding in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(coding)
    except UnicodeDecodeError:
        raise NotReadable(_("The file is not text in UTF-8. Save it as UTF-8.")) from None
    if "\0" in text:
        raise NotReadable(_("The file is not text."))
    if not text.strip():
        raise NotReadable(_("The file is empty."))
    return text


def found_format(text: str) -> str:
    if text.lstrip()[:1] in ("{", "["):
        return "json"
    starts = ("endpoints:", "alerting:", "external-endpoints:", "---")
    return "gatus" if any(line.startswith(starts) for line in text.splitlines()) else "csv"


def _json(text: str, wanted: str = "") -> Reading:
    data = parsed_json(text)
    for name, knows, reader in _JSON:
        if wanted in ("", name) and knows(data):
            return reader(data)
    raise NotReadable(_(NOT_THE_FORMAT if wanted else UNKNOWN_JSON))


def parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise NotReadable(_("The JSON is nested too deeply.")) from None
    except ValueError as fault:
        line = getattr(fault, "lineno", None)
        raise NotReadable(at_line(_("The file is not valid JSON."), line)) from None


def _of(source: str) -> Callable[[str], Reading]:
    """A source that has JSON and CSV."""

    def reader(text: str) -> Reading:
        return _json(text, source) if found_format(text) == "json" else table.read(text)

    return reader


_JSON: Sequence[tuple[str, Callable[[object], bool], Callable[[object], Reading]]] = (
    ("kuma", kuma.knows, kuma.read),
    ("uptimerobot", uptimerobot.knows, uptimerobot.read),
    ("betterstack", betterstack.knows, betterstack.read),
)
_READERS: Mapping[str, Callable[[str], Reading]] = {
    "json": _json,
    "csv": table.read,
    "kuma": lambda text: _json(text, "kuma"),
    "uptimerobot": _of("uptimerobot"),
    "betterstack": _of("betterstack"),
    "gatus": gatus.read,
}
