"""What every source is turned into, and how its values become a monitor's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import unquote

from app.i18n import N_, _
from app.records import (
    ALERT_DAYS,
    CONFIRMATIONS,
    INTERVALS,
    MAX_TAG,
    REMIND_AFTER_MINUTES,
    SLOW_AFTER_MS,
    TIMEOUT_SECONDS,
    AlertCondition,
    Pair,
)
from app.rules.text import one_line

# The formats by the word of ``--format``, each with its name for people.
FORMATS = {
    "csv": N_("Lines or CSV"),
    "kuma": N_("Uptime Kuma: backup (JSON) or kuma.db"),
    "uptimerobot": N_("UptimeRobot: CSV, or JSON of getMonitors"),
    "betterstack": N_("Better Stack: JSON of /api/v2/monitors, or CSV"),
    "gatus": N_("Gatus: configuration (YAML)"),
}
MOST_CANDIDATES = 10_000
MOST_REMARKS = 30
MOST_ROWS = 100  # tags, headers, alerts: more than a monitor has, so the form refuses them
MOST_TAG_READ = 1_000
MOST_SHOWN = 60  # characters of a stranger's text within a sentence
NO_TEXT_FOUND = AlertCondition.URL_NO_TEXT.value
TEXT_FOUND = AlertCondition.URL_TEXT.value
NAMED_UNITS = {
    "ms": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600,
    "hr": 3600, "hour": 3600, "d": 86_400, "day": 86_400,
}  # fmt: skip


class NotReadable(ValueError):
    """The file as a whole cannot be read. ``str(fault)`` is a sentence that repeats no value."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A monitor to be. ``fields`` has the monitor's other fields by name: text, or tuples of
    ``str`` or ``Pair``. They may hold secrets. ``refusal`` says why there can be no such monitor.
    """

    place: str  # where it is in the file, such as "Line 3"
    name: str
    url: str
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)
    remarks: Sequence[str] = ()
    refusal: str = ""
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file holds. ``remarks`` are about all of it."""

    source: str
    candidates: Sequence[Candidate]
    remarks: Sequence[str] = ()


def no_kind(kind: str) -> str:
    """``kind``: what the other tool checks, in its words."""
    return _("Wakeful has no %(kind)s checks yet.", kind=_(kind))


def at_line(sentence: str, line: int | None) -> str:
    """What is wrong with a file, and where, if that is known."""
    place = _("The first error is in line %(line)s.", line=line) if line else ""
    return f"{sentence} {place}".rstrip()


E = TypeVar("E")


def few(entries: Sequence[E]) -> Sequence[E]:
    """``entries``, before any of them is read. Raises NotReadable where there are too many."""
    if len(entries) > MOST_CANDIDATES:
        raise NotReadable(
            _(
                "The file has more than %(most)s entries. Split it.",
                most=f"{MOST_CANDIDATES:,}",
            )
        )
    return entries


@dataclass(slots=True)
class Draft:
    """A candidate while a source's fields are read, one after the other."""

    place: str
    name: str
    url: str = ""
    fields: dict[str, Any] = field(default_factory=dict, repr=False)
    remarks: list[str] = field(default_factory=list)
    refusal: str = ""
    paused: bool = False
    _rows: set[tuple[str, str, str]] = field(default_factory=set, repr=False)

    def remark(self, sentence: str) -> None:
        if len(self.remarks) == MOST_REMARKS:
            sentence = _("There are more changes.")
        if sentence not in self.remarks:
            self.remarks.append(sentence)

    def refuse(self, sentence: str) -> None:
        self.refusal = self.refusal or sentence

    def interval(self, seconds: float | None) -> None:
        """The nearest interval that is not shorter; one hour where there is none."""
        if seconds is None or not 0 < seconds < 10**9:
            return
        chosen = min((one for one in INTERVALS if one >= seconds), default=INTERVALS[-1])
        self.fields["interval"] = str(chosen)
        if chosen != seconds:
            self._changed(N_("Interval"), span(seconds), span(chosen))

    def timeout(self, seconds: float | None) -> None:
        self._bounded("timeout", N_("Time limit"), seconds, TIMEOUT_SECONDS, span)

    def confirmations(self, count: float | None) -> None:
        self._bounded("confirmations", N_("Rechecks"), count, CONFIRMATIONS, plain)

    def remind_after(self, minutes: float | None) -> None:
        if minutes:
            show = lambda one: span(one * 60)  # noqa: E731
            self._bounded("remind_after", N_("Reminder every"), minutes, REMIND_AFTER_MINUTES, show)

    def slow_after(self, ms: float | None) -> None:
        if ms is not None:
            show = lambda one: f"{one:g} ms"  # noqa: E731
            self._bounded("slow_after", N_("Slow after"), ms, SLOW_AFTER_MS, show)

    def _bounded(
        self,
        name: str,
        label: str,
        value: float | None,
        bounds: tuple[int, int],
        show: Callable[[float], str],
    ) -> None:
        if value is None:
            return
        number = round(min(max(value, bounds[0]), bounds[1]))
        self.fields[name] = str(number)
        if number != value:
            self._changed(label, show(value), show(number))

    def _changed(self, label: str, old: str, new: str) -> None:
        self.remark(_("%(field)s: %(old)s becomes %(new)s.", field=_(label), old=old, new=new))

    def expiry(self, name: str, label: str, days: float | None) -> None:
        """``name``: ``ssl_alert_days`` or ``domain_alert_days``."""
        if days is None or days < 0:
            return
        chosen = min((one for one in ALERT_DAYS if one >= days), default=ALERT_DAYS[-1])
        self.fields[name] = str(chosen)
        if chosen != days:
            self.remark(
                _(
                    "%(field)s: %(old)s days becomes %(new)s.",
                    field=_(label),
                    old=plain(days),
                    new=chosen,
                )
            )

    def text(self, condition: str, lookup: str) -> None:
        self.fields["alert_condition"] = condition
        self.fields["alert_text_lookup"] = lookup

    def tags(self, tags: Iterable[str]) -> None:
        found = list(self.fields.get("tags", ()))
        for tag in islice(tags, MOST_ROWS):
            short = " ".join(tag[:MOST_TAG_READ].replace(",", " ").split())
            if len(short) > MAX_TAG:
                self.remark(
                    _(
                        'The tag "%(tag)s" is cut to %(most)s characters.',
                        tag=shown(short),
                        most=MAX_TAG,
                    )
                )
                short = short[:MAX_TAG].strip()
            if short and short not in found:
                found.append(short)
        if found:
            self.fields["tags"] = tuple(found)

    def pair(self, name: str, key: str, value: str) -> None:
        """A row of ``request_headers`` or ``alerts``, each once."""
        rows, row = self.fields.get(name, ()), (name, key, value)
        if len(rows) < MOST_ROWS and row not in self._rows:
            self._rows.add(row)
            self.fields[name] = (*rows, Pair(key, value))

    def body(self, text: str, content_type: str = "") -> None:
        """``content_type``: what the other tool sends unless a header says another."""
        self.fields["request_body"] = text
        headers = self.fields.get("request_headers", ())
        if content_type and not any(one.key.lower() == "content-type" for one in headers):
            self.pair("request_headers", "Content-Type", content_type)

    def login(self, user: str, password: str) -> None:
        self.fields["request_auth_username"] = user
        if password:
            self.fields["request_auth_password"] = password

    def done(self) -> Candidate:
        url, user, password = without_login(self.url)
        if user or password:
            self.remark(_("The user name and password move from the URL to their own fields."))
            self.login(user, password)
        return Candidate(
            self.place,
            self.name.strip(),
            url,
            self.fields,
            tuple(self.remarks),
            self.refusal,
            self.paused,
        )


def without_login(url: str) -> tuple[str, str, str]:
    """``url`` without a user name and password, and these two."""
    scheme, slashes, rest = url.strip().partition("://")
    ends = [place for sign in "/?#" if (place := rest.find(sign)) >= 0]
    end = min(ends, default=len(rest))
    login, at, host = rest[:end].rpartition("@")
    if not slashes or not at:
        return url.strip(), "", ""
    user, _colon, password = login.partition(":")
    return f"{scheme}://{host}{rest[end:]}", unquote(user), unquote(password)


def host_and_port(host: str, port: object) -> str:
    host = host.strip()
    bare = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"tcp://{bare}:{string(port)}"


# --- Values of strangers -------------------------------------------------------------------------


def shown(text: str) -> str:
    """A stranger's text within a sentence: on one line, and not long."""
    return one_line(text, MOST_SHOWN)


def string(value: object) -> str:
    """A single value as text; empty for none, and for lists and objects. Half of a broken pair,
    which JSON can write and no page can show, becomes a question mark.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int | float) else ""


def number(value: object) -> float | None:
    """A number, also written as text; None for anything else."""
    text = string(value).strip() if not isinstance(value, bool) else ""
    if not text or len(text) > 20:
        return None
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) < 10**12 else None


def truth(value: object) -> bool:
    """Whether a switch is on: ``true``, ``1``, ``"1"``, ``"yes"``."""
    return string(value).strip().lower() in ("true", "1", "yes", "on")


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def seconds(value: object) -> float | None:
    """Seconds of a number, or of a span such as ``5m``, ``1h30m`` and ``5 min``."""
    plain_number = number(value)
    if plain_number is not None:
        return plain_number
    text = string(value).replace(" ", "").lower()
    if not 1 < len(text) <= 40:
        return None
    total, digits, unit = 0.0, "", ""
    for character in f"{text}0":
        if character.isdigit() or character == ".":
            if unit:
                factor = _unit(unit)
                if factor is None or number(digits) is None:
                    return None
                total, digits, unit = total + float(digits) * factor, "", ""
            digits += character
        elif not digits:
            return None
        else:
            unit += character
    return total if digits == "0" else None


def _unit(word: str) -> float | None:
    if word in NAMED_UNITS:
        return NAMED_UNITS[word]
    return NAMED_UNITS.get(word.removesuffix("s"))


def plain(value: float) -> str:
    return f"{value:g}"


def span(value: float) -> str:
    """``20 s``, ``5 min`` or ``1 h``."""
    for size, unit in ((3600, "h"), (60, "min")):
        if value >= size and value % size == 0:
            return f"{plain(value / size)} {unit}"
    return f"{plain(value)} s"
