"""Rules for single values, and their sentences. A rule is a pure function that returns the value or
raises ValueError with a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from app.errors import no_such
from app.i18n import N_, _
from app.records import MAX_CREDENTIAL, MAX_HEADER_BYTES, MAX_ID, MIN_PASSWORD
from app.rules.brackets import Typed
from app.rules.time import FIRST_YEAR, LAST_YEAR

REQUIRED = N_("This field is required.")
ONE_VALUE = N_("This field takes one value, not a list.")
NO_OBJECT = N_("This field takes one value, not an object.")
NOT_TEXT = N_("This field takes text. In JSON, put the value in quotes.")
BOOLEAN = N_("Send true or false (1 and 0 also work).")
WHOLE_NUMBER = N_("Enter a whole number, in digits alone.")
MOMENT = N_(
    "Send a time as 2026-11-21T08:00:00, which is read as UTC, "
    "or with Z or an offset such as +02:00."
)
MOMENT_PLUS = N_("The + of an offset must be written %2B in a form. A plain + is read as a space.")
NO_SUCH_TIME = N_("This date or time does not exist.")
FAR_TIME = N_("Send a time of the years %(first)s to %(last)s.")
IN_FUTURE = N_("This time is in the future. Enter a past time.")
END_BEFORE_START = N_("The end must be later than the start.")
NOT_JSON = N_("This is not valid JSON.")
OBJECT_NEEDED = N_('Send a JSON object, such as {"name": "value"}.')
TOO_LARGE = N_("This is too large. At most %(most)s MiB are read.")
INCOMPLETE_ROW = N_("This row is incomplete. Send both its key and its value.")
NESTED = N_("This is nested too deeply.")
TAKEN = N_("This is already in use. Choose another one.")

_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?",
    re.ASCII,
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)  # RFC 9110, 5.6.2
# Unicode's categories Cc and Cs, as patterns: for a body of 64 KiB, a loop would take 10 ms.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTROL_BUT_LINES = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_MAX_NUMBER = 25  # digits: more than any field or id has, and int() refuses thousands


def fault_of(rule: Callable[[], object]) -> str | None:
    """Why ``rule`` refuses a value, or None."""
    try:
        rule()
    except ValueError as fault:
        return str(fault)
    return None


def one_value(value: str) -> str:
    """Refuse nested JSON in a field with a single value."""
    if isinstance(value, Typed) and value.kind in ("list", "object"):
        raise ValueError(_(ONE_VALUE if value.kind == "list" else NO_OBJECT))
    return value


def characters(value: str, *, lines: bool = False) -> str:
    """Refuse NUL, lone surrogates and control characters (decision 1). ``lines`` allows
    tabs and line breaks."""
    if isinstance(value, Typed):
        one_value(value)
        raise ValueError(_(NOT_TEXT))
    match = (_CONTROL_BUT_LINES if lines else _CONTROL).search(value)
    if match is not None:
        sentence = N_(
            "Character %(position)s is a control character (U+%(code)s) or an unpaired "
            "surrogate. Remove it."
        )
        raise ValueError(_(sentence, position=match.start() + 1, code=f"{ord(match[0]):04X}"))
    return value


def length(value: str, limit: int) -> str:
    if len(value) > limit:
        sentence = N_("This is too long: %(count)s characters. Use %(most)s at most.")
        raise ValueError(_(sentence, count=f"{len(value):,}", most=f"{limit:,}"))
    return value


def size(value: str, limit: int) -> str:
    """``limit``: in bytes of UTF-8."""
    count = len(value.encode("utf-8", "replace"))
    if count > limit:
        sentence = N_("This is too large: %(count)s bytes as UTF-8. Use %(most)s at most.")
        raise ValueError(_(sentence, count=f"{count:,}", most=f"{limit:,}"))
    return value


def too_many(limit: int) -> str:
    return _("There are too many. Use %(most)s at most.", most=f"{limit:,}")


def record_id(value: str, noun: str = "monitor") -> int:
    """An id. Its fault says that there is no such record."""
    number = integer(value)
    if not 1 <= number <= MAX_ID:
        raise ValueError(no_such(noun, number))
    return number


def new_password(value: str) -> str:
    if len(value) < MIN_PASSWORD:
        sentence = N_("The password is too short: use %(least)s characters or more.")
        raise ValueError(_(sentence, least=MIN_PASSWORD))
    return length(value, MAX_CREDENTIAL)


def integer(value: str) -> int:
    if not _INTEGER.fullmatch(one_value(value)):
        raise ValueError(_(WHOLE_NUMBER))
    number = int(value.lstrip("-").lstrip("0")[:_MAX_NUMBER] or "0")
    return -number if value.startswith("-") else number


def digits(value: str, most: int = 18) -> int | None:
    """The number in ``most`` ASCII digits or fewer; None for any other text, such as the thousands
    of digits that ``int`` refuses.
    """
    return int(value) if value.isascii() and value.isdigit() and len(value) <= most else None


def boolean(value: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if one_value(value) not in words:
        raise ValueError(_(BOOLEAN))
    return words[str(value)]


def one_of(words: Iterable[str]) -> str:
    return _("Choose one of these: %(words)s.", words=", ".join(words))


def moment(value: str) -> datetime:
    """Read ``Y-m-dTH:i:s`` with ``Z``, an offset or neither (UTC) as an aware datetime in UTC. A
    fraction of a second, which JavaScript writes, is dropped.
    """
    match = _MOMENT.fullmatch(one_value(value))
    if match is None:
        plus = re.search(r"[0-9] [0-9]{2}:[0-9]{2}\Z", value)
        raise ValueError(_(MOMENT_PLUS if plus else MOMENT))
    *parts, _z, sign, hours, minutes = match.groups()
    try:
        zone = UTC if sign is None else _offset(sign, int(hours), int(minutes))
        year, month, day, hour, minute, second = map(int, parts)
        read = datetime(year, month, day, hour, minute, second, tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(_(NO_SUCH_TIME)) from None
    if not FIRST_YEAR <= read.year <= LAST_YEAR:
        raise ValueError(_(FAR_TIME, first=FIRST_YEAR, last=LAST_YEAR))
    return read


def _offset(sign: str, hours: int, minutes: int) -> timezone:
    if minutes > 59:
        raise ValueError
    span = timedelta(hours=hours, minutes=minutes)
    return timezone(-span if sign == "-" else span)


def header_name(value: str) -> str:
    if not value:
        raise ValueError(_(INCOMPLETE_ROW))
    characters(value)
    if not _TOKEN.fullmatch(value):
        sentence = N_(
            "A header name has letters, digits and !#$%&'*+.^_`|~- only, without spaces or a colon."
        )
        raise ValueError(_(sentence))
    return value


def header_value(name: str, value: str) -> str:
    """Refuse line breaks, which would begin another header, and a header that is too long."""
    size(name + value, MAX_HEADER_BYTES)
    return characters(value)


# --- Texts from outside, for logs and sentences


def printable(value: str) -> str:
    """``value`` with a space in place of each line break and unprintable character."""
    if value.isprintable():
        return value
    return "".join(character if character.isprintable() else " " for character in value)


def one_line(value: str, limit: int) -> str:
    """A text from outside for a log or a sentence: on one line, because line breaks could forge
    lines of a log, and cut to ``limit`` characters.
    """
    line = " ".join(printable(value[: 4 * limit]).split())
    return shortened(line, limit)


def shortened(value: str, limit: int) -> str:
    """``value``, cut to ``limit`` characters with an ellipsis at the end."""
    return value if len(value) <= limit else f"{value[: limit - 1]}…"


Ranges = tuple[tuple[int, int], ...]

_MIN, _MAX = 100, 599


@lru_cache(maxsize=1024)
def parse_statuses(text: str) -> Ranges:
    """Read codes and ranges such as ``200-299,401``, both ends included. Raises ValueError with a
    sentence that names the bad part.
    """
    parts = [part.strip() for part in text.split(",")]
    if not any(parts):
        raise ValueError(_("Enter at least one status code, such as 200-399."))
    return tuple(_range(part) for part in parts)


def _range(part: str) -> tuple[int, int]:
    first, dash, last = part.partition("-")
    low, high = _code(first.strip(), part), _code((last if dash else first).strip(), part)
    if low > high:
        raise ValueError(_("The range %(part)s ends before it begins.", part=repr(part)))
    return low, high


def _code(text: str, part: str) -> int:
    code = digits(text, 3)
    if code is None or not _MIN <= code <= _MAX:
        sentence = N_(
            "%(part)s is not a status code from %(least)s to %(most)s or a range such as 200-299."
        )
        raise ValueError(_(sentence, part=repr(part[:40]), least=_MIN, most=_MAX))
    return code


def is_accepted(status: int, text: str) -> bool:
    """Whether the status is one of the accepted ones."""
    return any(low <= status <= high for low, high in parse_statuses(text))
