"""Records of servers that have only the base API, without the extensions of Wakeful. The base API
does not say in which form a server returns a field. ``monitor`` and ``incident`` accept the forms
that servers are known to use, and return the record in the form that ``reader`` reads.

A missing field does not have its default value, and a value that is not understood must not be
written back: ``Gaps`` names both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from app.codec.values import (
    Json,
    MalformedData,
    alert_days,
    flag,
    mapping,
    moment,
    must,
    object_,
    parse_json,
    record_id,
    text,
    word,
)
from app.records import (
    AUTO,
    CONTACT,
    INTERVALS,
    MASK,
    MAX_ID,
    AlertCondition,
    Channel,
    IncidentStatus,
    MonitorStatus,
    Pair,
    RequestMethod,
)
from app.rules import brackets
from app.rules.time import MAX_DURATION, duration_seconds

MAX_IN_TEXT = 10_000  # values of JSON within a text
IsWakeful = Callable[[], bool]
NO_TIME = ("0000-00-00", "0001-01-01")


@dataclass
class Gaps:
    """``missing``: the fields that the server did not send. ``misread``: the fields whose value is
    not understood, or is a mask.
    """

    missing: list[str] = field(default_factory=list)
    misread: list[str] = field(default_factory=list)


# --- What surrounds the fields --------------------------------------------------------------------

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[- ]")


def snake_case(name: str) -> str:
    """``request_method`` of ``requestMethod`` and ``request-method``."""
    return name if name.islower() and "-" not in name else _WORD_STARTS.sub("_", name).lower()


def record_fields(data: Any, called: str) -> dict[str, Any]:
    """The fields of a record, spelled as in the base API. An envelope that is named ``called`` and
    the ``attributes`` of JSON:API are removed.
    """
    data = object_(data, called)
    if "id" not in data and isinstance(data.get(called), Mapping):
        data = data[called]
    if isinstance(attributes := data.get("attributes"), Mapping):
        outer = {name: value for name, value in data.items() if name != "type"}
        data = (
            outer | _related(data.get("relationships")) | dict(attributes) | {"id": data.get("id")}
        )
    if all(name.islower() and "-" not in name and "[" not in name for name in data):
        return dict(data)
    fields = {name: value for name, value in data.items() if snake_case(name) == name}
    for name, value in data.items():
        fields.setdefault(snake_case(name), value)
    return {**_rows(fields), **fields}


def _related(related: Any) -> dict[str, Any]:
    """``monitor_id`` and other ids from the relationships of JSON:API."""
    targets = {name: mapping(mapping(link).get("data")) for name, link in mapping(related).items()}
    return {
        f"{name}_id": target["id"]
        for name, target in targets.items()
        if target.get("id") is not None
    }


def _rows(fields: Json) -> Json:
    """The lists whose entries have names as in a form: ``alerts[0][key]``."""
    lists: dict[str, dict[tuple[int, str], dict[str, Any]]] = {}
    for raw, value in fields.items():
        name = brackets.parse(raw) if "[" in raw else None
        if name is not None and name.column is not None:
            lists.setdefault(name.field, {}).setdefault(name.order, {})[name.column] = value
    return {name: [rows[order] for order in sorted(rows)] for name, rows in lists.items()}


def _first(fields: Json, names: Iterable[str]) -> Any:
    """The value of the first of these fields that has one other than true, false or null."""
    values = (fields.get(name) for name in names)
    return next((value for value in values if not isinstance(value, bool | None)), None)


# --- Single values --------------------------------------------------------------------------------

_HIDDEN = (
    r"hidden|redacted|masked|filtered|secret|removed|encrypted|protected|private|not shown|omitted"
    r"|\*+"
)
_MASK = re.compile(
    rf"[*•●∙·xX#]{{3,}}|[\[(<{{]+ ?(?:{_HIDDEN}) ?[\])>}}]+|hidden|redacted|masked", re.IGNORECASE
)
_PARTLY = re.compile(
    r"\*{2,}|[•●]{2,}|…|\.{3}$|[xX]{5,}|[\[<(](?:" + _HIDDEN + r")[\])>]", re.IGNORECASE
)
_CLOCK = re.compile(r"(\d{1,3}):(\d\d):(\d\d)")
_OFF = frozenset({"off", "never", "none", "no", "disabled", "false"})


def hides(value: str) -> bool:
    """Whether a text is a mask, or has one in it."""
    return bool(_MASK.fullmatch(value.strip()) or _PARTLY.search(value))


def _seconds(value: Any) -> int:
    """A length of time in seconds: ``300``, ``"5m"``, ``"PT5M"``. If it is not an interval of the
    base API, but would be one in milliseconds or nanoseconds, it is read so: 60000 is 60 s.
    """
    if isinstance(value, Mapping):
        unit = text(value.get("unit"))
        if unit is None:
            [(unit, amount)] = value.items() if len(value) == 1 else [("", None)]
        else:
            amount = value.get("value", value.get("amount"))
        value = f"{amount} {unit}"
    seconds = _seconds_as_sent(value)
    if seconds is not None and seconds not in INTERVALS:
        finer = (seconds / parts for parts in (1000, 10**9))
        seconds = next((whole for whole in finer if whole in INTERVALS), seconds)
    if seconds is None or seconds <= 0 or seconds > MAX_ID or seconds != int(seconds):
        raise MalformedData("seconds")
    return int(seconds)


def _seconds_as_sent(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > MAX_DURATION:
        return None
    words = value.strip().lower().removeprefix("every ")
    if re.fullmatch(r"[0-9]+(\.0+)?", words):
        return float(words)
    if clock := _CLOCK.fullmatch(words):
        hours, minutes, seconds = map(int, clock.groups())
        return hours * 3600 + minutes * 60 + seconds
    words = re.sub(r"^p(?=[\dt])|t(?=\d)", "", words)  # ISO 8601
    return duration_seconds(words)


def _days(value: Any) -> int | str | None:
    if value is False or (isinstance(value, str) and value.strip().lower() in _OFF):
        return None
    if isinstance(value, str) and (amount := re.fullmatch(r"([0-9]+) ?d(?:ays?)?", value.strip())):
        value = amount[1]
    days = alert_days(value)
    if days is None or (days != AUTO and (int(days) < 0 or float(value) != days)):
        raise MalformedData("days")
    return days


def _text(value: Any) -> str:
    return must(text(value), "text")


def _name(value: Any) -> str:
    """A text. WordPress sends an object with the text as it was written (``raw``) and as HTML
    (``rendered``).
    """
    if isinstance(value, Mapping):
        raw, rendered = value.get("raw"), value.get("rendered")
        value = raw if isinstance(raw, str) or rendered is None else unescape(_text(rendered))
    return _text(value)


def _open_text(value: Any) -> str | None:
    """Text. Raises MalformedData for a mask."""
    entered = _text(value)
    if _MASK.fullmatch(entered.strip()):
        raise MalformedData("text")
    return entered or None


def _method(value: Any) -> str:
    entered = _text(value).strip()
    return word(RequestMethod, entered.upper()) or entered


def _condition(value: Any) -> str:
    entered = _text(value).strip()
    return word(AlertCondition, re.sub(r"[- ]", "_", entered.lower())) or entered


def _switch(value: Any) -> bool:
    return must(flag(value), "flag")


def _time(value: Any) -> Any:
    """A time. None for a value that stands for no time: 0, false, MySQL's zero date, and the year 1
    of Go and .NET.
    """
    if value in (0, "0", False) or (isinstance(value, str) and value.startswith(NO_TIME)):
        return None
    return must(moment(value), "time").isoformat()


# --- Lists of key and value -----------------------------------------------------------------------

_KEYS = ("key", "channel", "type", "kind", "service", "provider", "header", "name")
_VALUES = (
    "value", "target", "address", "url", "recipient", "destination", "to", "endpoint", "targets",
    "values", "addresses", "recipients",
)  # fmt: skip
_BESIDE = frozenset({"id", "monitor_id", "index", "position", "order", "created_at", "updated_at"})
_PARTS = frozenset((*_KEYS, *_VALUES, *_BESIDE))
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(.*)", re.DOTALL)


@dataclass
class _Rows:
    """Reads a list of ``alerts`` or of headers. ``exact``: everything was understood, so the list
    can be changed and sent back without dropping anything.
    """

    alerts: bool
    is_wakeful: IsWakeful
    pairs: list[Pair] = field(default_factory=list)
    exact: bool = True

    def read(self, value: Any, *, parse: bool = True) -> None:
        if isinstance(value, Mapping):
            self._read_mapping(value)
        elif isinstance(value, list):
            for entry in value:
                self._entry(entry)
        elif isinstance(value, str) and parse and value.strip()[:1] in ("[", "{"):
            try:
                self.read(parse_json(value.encode("utf-8", "replace"), MAX_IN_TEXT), parse=False)
            except MalformedData:
                self.exact = False
        elif isinstance(value, str) and not self.alerts:
            for line in value.splitlines():
                self._line(line)
        elif value != "":
            self.exact = False

    def _read_mapping(self, value: Json) -> None:
        if value and all(name.isdigit() for name in value):  # an array with gaps, in PHP
            for name in sorted(value, key=int):
                self._entry(value[name])
        elif value.keys() in ({"data"}, {"items"}) and isinstance(
            inner := next(iter(value.values())), list
        ):
            self.read(inner, parse=False)
        elif any(name in value for name in _KEYS) and any(name in value for name in _VALUES):
            self._row(value)
        else:
            for name, inner in value.items():
                self._by_name(name, inner)

    def _by_name(self, name: str, value: Any) -> None:
        """Read a member of an object. In ``alerts``, only names of channels are understood."""
        if self.alerts and word(Channel, name.lower()) is None:
            self.exact = False
        else:
            self._values(name, value)

    def _values(self, key: str, value: Any) -> None:
        """Read the value or the values of a channel or of a header."""
        if isinstance(value, Mapping):
            self._entry({**value, "key": key})
        elif isinstance(value, list):
            for target in value:
                self._pair(key, target)
        elif self.alerts and (value is False or value == ""):
            return  # a channel that is not used
        else:
            self._pair(key, value)

    def _entry(self, entry: Any) -> None:
        if isinstance(entry, str):
            self._line(entry)
        elif isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str):
            self._pair(*entry)
        elif isinstance(entry, Mapping):
            plain = {name: snake_case(name) for name in entry}
            self._row(
                {plain[name] if plain[name] in _PARTS else name: entry[name] for name in entry}
            )
        else:
            self.exact = False

    def _row(self, row: Json) -> None:
        names = [name for name in row if name not in _BESIDE]
        key = next((name for name in _KEYS if name in names), None)
        value = next((name for name in _VALUES if name in names), None)
        if len(names) == 1 and key is None and value is None:
            self._by_name(names[0], row[names[0]])
        elif key is None:
            self.exact = False
        else:
            # Other settings beside the values, such as a switch that is off, would be dropped.
            self.exact = self.exact and set(names) == {key, value}
            self._values(text(row[key]) or "", row[value] if value else None)

    def _line(self, line: str) -> None:
        """``X-Key: value``; ``email:ops@example.com``."""
        if not line.strip():
            return
        parts = _HEADER.fullmatch(line.strip())
        if parts is None or (self.alerts and word(Channel, parts[1].lower()) is None):
            self.exact = False
        else:
            self._pair(parts[1], parts[2])

    def _pair(self, key: str, value: Any) -> None:
        value_text = None if isinstance(value, float) else text(value)
        is_exact = bool(key) and value_text is not None
        if is_exact and self.alerts:
            is_exact = bool(value_text) and (key != CONTACT or self.is_wakeful())
        if is_exact and hides(value_text or "") and not self.is_wakeful():
            is_exact, value_text = False, None
        self.exact = self.exact and is_exact
        if key:
            channel = word(Channel, key.lower()) if self.alerts else None
            self.pairs.append(Pair(channel or key, MASK if value_text is None else value_text))


# --- The records ----------------------------------------------------------------------------------

_MONITOR: Mapping[str, Callable[[Any], Any]] = {
    "name": _name,
    "url": _text,
    "interval": _seconds,
    "alert_condition": _condition,
    "alert_text_lookup": _open_text,
    "request_method": _method,
    "request_auth_username": _open_text,
    "cache_buster": _switch,
    "ssl_alert_days": _days,
    "domain_alert_days": _days,
    "maintenance_start_at": _time,
    "maintenance_end_at": _time,
}
# Fields for which null is a value.
_MAY_BE_NONE = frozenset(
    {
        "alert_text_lookup", "request_auth_username", "ssl_alert_days", "domain_alert_days",
        "maintenance_start_at", "maintenance_end_at", "acknowledged_at", "ended_at", "cause",
        "comment",
    }
)  # fmt: skip
_OTHER_NAMES = {
    "request_method": ("method", "http_method"),
    "request_headers": ("headers", "http_headers"),
    "started_at": ("started", "start_at", "start", "start_time", "began_at", "opened_at"),
    "acknowledged_at": ("acknowledged", "acked_at"),
    "ended_at": ("ended", "end_at", "end", "end_time", "resolved_at", "closed_at", "resolved"),
}
_PAUSED = ("paused", "is_paused", "pause")
_ACTIVE = ("active", "is_active", "enabled", "is_enabled")
_UP = ("is_ok", "ok", "is_up", "up", "healthy", "is_healthy")
_DOWN = ("is_down", "down")
_STATUS = ("status", "state", "current_status", "last_status")
_STATUS_WORDS = {
    "ok": "up", "online": "up", "operational": "up", "healthy": "up", "success": "up",
    "passing": "up", "available": "up", "reachable": "up",
    "offline": "down", "failing": "down", "failed": "down", "failure": "down", "error": "down",
    "critical": "down", "unhealthy": "down", "unavailable": "down", "outage": "down",
    "unreachable": "down",
    "slow": "degraded", "warning": "degraded", "new": "pending", "waiting": "pending",
    "disabled": "paused", "inactive": "paused", "stopped": "paused", "suspended": "paused",
}  # fmt: skip
_INCIDENT_WORDS = {
    "open": "unresolved", "ongoing": "unresolved", "active": "unresolved", "started": "unresolved",
    "new": "unresolved", "triggered": "unresolved", "firing": "unresolved", "down": "unresolved",
    "acked": "acknowledged",
    "closed": "resolved", "ended": "resolved", "fixed": "resolved", "recovered": "resolved",
    "up": "resolved", "done": "resolved", "finished": "resolved",
}  # fmt: skip


def monitor(data: Any, is_wakeful: IsWakeful) -> tuple[dict[str, Any], Gaps]:
    """The fields of a monitor, and its gaps. ``is_wakeful``: whether the server is a Wakeful, whose
    masks may be sent back to it. Raises MalformedData for a record without an id, or without both
    name and URL.
    """
    fields, gaps = record_fields(data, "monitor"), Gaps()
    _rename_synonyms(fields)
    for name, read in _MONITOR.items():
        _field(fields, name, read, gaps)
    for name in ("request_headers", "alerts"):
        _list(fields, name, is_wakeful, gaps)
    must(record_id(fields.get("id")), "id")
    if not fields.get("name") and not fields.get("url"):
        raise MalformedData("name")
    _state(fields, gaps)
    return fields, gaps


def incident(data: Any) -> tuple[dict[str, Any], Gaps]:
    """The fields of an incident, and its gaps. The reader of the record raises MalformedData for a
    missing id, start or monitor.
    """
    fields, gaps = record_fields(data, "incident"), Gaps()
    monitor_id = fields.get("monitor")
    if isinstance(monitor_id, Mapping):
        fields["monitor"] = record_fields(monitor_id, "monitor")
        monitor_id = fields["monitor"].get("id")
    if record_id(fields.get("monitor_id")) is None:
        fields["monitor_id"] = record_id(monitor_id)
    resolved = _says(fields, ("resolved", "is_resolved", "closed", "ended"))
    acknowledged = _says(fields, ("acknowledged", "is_acknowledged"))
    open_ = _says(fields, ("open", "is_open", "ongoing", "is_ongoing", "active"))
    _rename_synonyms(fields)
    fields["started_at"] = _or_none(_time, fields.get("started_at"))
    for name in ("acknowledged_at", "ended_at"):
        _field(fields, name, _time, gaps)
    for name in ("cause", "comment"):
        _field(fields, name, _open_text, gaps)
    status = _word(fields, IncidentStatus, _INCIDENT_WORDS)
    has_ended = bool(fields.get("ended_at"))
    if status is None:
        if resolved or open_ is False:
            status = IncidentStatus.RESOLVED
        elif acknowledged and not has_ended:
            status = IncidentStatus.ACKNOWLEDGED
        elif open_ and not fields.get("acknowledged_at"):
            status = IncidentStatus.UNRESOLVED
        elif not has_ended and "ended_at" in (*gaps.missing, *gaps.misread):
            gaps.missing.append("status")
    fields["status"] = status
    return fields, gaps


def _rename_synonyms(fields: dict[str, Any]) -> None:
    """Give the fields the names of the base API."""
    for name, synonyms in _OTHER_NAMES.items():
        if name not in fields and (value := _first(fields, synonyms)) is not None:
            fields[name] = value


def _field(fields: dict[str, Any], name: str, read: Callable[[Any], Any], gaps: Gaps) -> None:
    is_sent, value = name in fields, fields.pop(name, None)
    if value is None or value == "":
        if not is_sent or name not in _MAY_BE_NONE:
            gaps.missing.append(name)
        return
    try:
        fields[name] = read(value)
    except (MalformedData, ValueError):
        gaps.misread.append(name)


def _list(fields: dict[str, Any], name: str, is_wakeful: IsWakeful, gaps: Gaps) -> None:
    value = fields.pop(name, None)
    if value is None:
        gaps.missing.append(name)
        return
    rows = _Rows(name == "alerts", is_wakeful)
    rows.read(value)
    if not rows.exact:
        gaps.misread.append(name)
    fields[name] = [{"key": pair.key, "value": pair.value} for pair in rows.pairs]


def _or_none(read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except MalformedData:
        return None


def _says(fields: Json, names: Iterable[str]) -> bool | None:
    """The value of the first of these fields that is true or false."""
    return next((value for name in names if (value := flag(fields.get(name))) is not None), None)


def _word(fields: Json, words: Any, synonyms: Mapping[str, str]) -> Any:
    """The member of ``words`` for the state that the server names."""
    for name in _STATUS:
        value = fields.get(name)
        if isinstance(value, Mapping):
            value = _first(value, ("value", "name", "slug", "code", "label"))
        if isinstance(value, str):
            state = value.strip().lower().replace(" ", "_")
            if (status := word(words, synonyms.get(state, state))) is not None:
                return status
    return None


def _state(fields: dict[str, Any], gaps: Gaps) -> None:
    """Set ``paused`` and ``status`` from the fields that servers have for them."""
    paused = _says(fields, _PAUSED)
    if paused is None and "paused_at" in fields:
        paused = fields["paused_at"] not in (None, "", False, 0)
    if paused is None and (active := _says(fields, _ACTIVE)) is not None:
        paused = not active
    status = _word(fields, MonitorStatus, _STATUS_WORDS)
    if status is None:
        up = _says(fields, _UP)
        down = _says(fields, _DOWN)
        if up is None and down is not None:
            up = not down
        if up is None and isinstance(fields.get("status"), bool):
            up = fields["status"]
        status = None if up is None else MonitorStatus.UP if up else MonitorStatus.DOWN
    if paused is None and status == MonitorStatus.PAUSED:
        paused = True
    if paused is None:
        gaps.missing.append("paused")
    if status is None and paused:
        status = MonitorStatus.PAUSED
    if status is None:
        gaps.missing.append("status")
    fields["paused"], fields["status"] = paused, status or MonitorStatus.UNKNOWN
