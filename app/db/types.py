"""Column types: moments, bounded numbers, words, JSON, encrypted text, encrypted JSON.

A damaged value is met here, when a row is read. It does not make the query fail, because an
exception would lose all other rows of the query too. In its place, readers get:

- for an encrypted value: ``Unreadable``;
- for a time, a bounded number or a word: a default that is marked as ``Replaced``;
- for the fields of a kind (``KindOptions``): an empty object that is marked as ``Replaced``;
- for a verdict: UNKNOWN, and for other JSON: an empty value, not marked;
- for text that is not UTF-8: the text with replacement characters, and for text in a column of
  numbers: None; not marked. Only SQLite stores these. ``AlertDays`` is not checked.

Results are read past these types, for speed: ``checked_numbers`` checks their rows, and ``parsed``
meets a packed hour that is damaged; it is left out.

``unreadable_in`` names the fields of a row that are ``Unreadable`` or ``Replaced``; ``readable``
makes None of such a value. ``app.db.unreadable`` finds the damaged values by the ``parser`` of each
type, except text in a column of plain numbers, and values in the tables of results and their sums,
which are too large.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import EnumType, StrEnum
from functools import lru_cache, partial
from types import NoneType
from typing import Any, TypeVar

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from flask import current_app
from sqlalchemy import JSON, BigInteger, Dialect, Integer, SmallInteger, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from app.codec.record import fields_of
from app.codec.value_types import plain
from app.db.contents import is_assertions
from app.i18n import N_
from app.records import AUTO, Assertion, Mark, Monitor, Verdict
from app.rules.time import from_ms as from_ms
from app.rules.time import to_ms as to_ms
from app.secret_keys import ciphers, keys_of

T = TypeVar("T")


class Why(StrEnum):
    """Reasons why a stored value cannot be read, as ends of sentences."""

    OTHER_KEY = N_("the value was written with another WAKEFUL_SECRET_KEY, or changed since")
    DAMAGED = N_("the value is damaged")
    UNEXPECTED = N_("the value is not what Wakeful writes there")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands in place of a value that cannot be read. Readers of rows get it only for an encrypted
    value: the types of other columns replace it with a default.
    """

    why: Why


class Replaced:
    """Marks a default in place of a stored value that cannot be read."""

    why = Why.UNEXPECTED


class OutOfRange(Replaced, datetime):
    """A time in place of a stored value that is not a time."""


class _ReplacedNumber(Replaced, int):
    pass


class _ReplacedWord(Replaced, str):
    __slots__ = ()


class _ReplacedObject(Replaced, dict[str, Any]):
    pass


def readable(value: T | Unreadable) -> T | None:
    """``value``; None if it cannot be read."""
    return None if isinstance(value, Unreadable | Replaced) else value


def unreadable_in(row: Any, names: Iterable[str]) -> dict[str, Why]:
    """The unreadable fields of a row among ``names``, with the reasons."""
    values = ((name, getattr(row, name)) for name in names)
    return {name: value.why for name, value in values if isinstance(value, Unreadable | Replaced)}


def record_of(record: type[T], row: Any, **others: Any) -> T:
    """The record of a row: the fields in ``others``, and the columns with the names of the rest."""
    names: Sequence[str] = record.__match_args__  # type: ignore[attr-defined] # of a dataclass
    return record(**others, **{name: getattr(row, name) for name in names if name not in others})


def of_fields(record: type[T], fields: Mapping[str, Any]) -> T:
    """A record without slots, with these fields and the defaults of the others. It is made without
    the constructor, which sets each field of a frozen record by a call: a tenth of a list's time.
    """
    instance = object.__new__(record)
    vars(instance).update(fields)
    return instance


def is_same(old: Any, new: Any) -> bool:
    """Whether storing ``new`` in place of ``old`` changes nothing. A replaced value differs from
    any new one: otherwise nobody could store the default that is shown in its place.
    """
    return isinstance(old, Replaced) == isinstance(new, Replaced) and bool(old == new)


def parsed(parse: Callable[..., T], *stored: Any) -> T | Unreadable:
    """The value that ``parse`` returns for the stored values; ``Unreadable`` if it raises."""
    try:
        return parse(*stored)
    except Exception:
        return Unreadable(Why.DAMAGED)


class Checked(TypeDecorator[Any]):
    """A column type whose values are checked when they are read."""

    impl: Any = Text
    cache_ok = True

    def parse(self, value: Any) -> Any:
        """The value for readers of a stored value that is not null; ``Unreadable`` if Wakeful
        cannot have written it.
        """
        raise NotImplementedError

    def parser(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """``parse`` for values as the driver returns them."""
        return self.parse

    def replace(self, value: Any, fault: Unreadable) -> Any:
        """The value for readers in place of one that cannot be read."""
        return fault

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        parse, replace = self.parser(dialect, coltype), self.replace

        def read(stored: Any) -> Any:
            if stored is None:
                return None
            value = parse(stored)
            return replace(stored, value) if isinstance(value, Unreadable) else value

        return read

    def compare_values(self, x: Any, y: Any) -> bool:
        return is_same(x, y)


# Times of events are between these. The margins leave room for adding and subtracting.
_FIRST, _LAST = OutOfRange(1900, 1, 1, tzinfo=UTC), OutOfRange(9000, 1, 1, tzinfo=UTC)
# Times that people enter, and those in certificates, are between these.
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


class Moment(Checked):
    """An aware datetime in UTC, stored as whole milliseconds: the same in SQLite and PostgreSQL,
    small and sortable.

    A naive datetime is refused: it would be stored as a time of the machine's zone, wrong by hours.
    A stored value that is not a time is read as ``OutOfRange``, before or after all times.
    """

    impl = BigInteger
    cache_ok = True
    first_ms, last_ms = to_ms(_FIRST), to_ms(_LAST)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise TypeError("A naive datetime reached the database.")
        return to_ms(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        first, last = self.first_ms, self.last_ms
        read_slowly = super().result_processor(dialect, coltype)

        def read(value: Any) -> Any:
            if type(value) is int and first <= value <= last:  # the fast path, for nearly all
                return from_ms(value)
            return read_slowly(value)

        return read

    def parse(self, value: Any) -> Any:
        if not isinstance(value, int | float) or not self.first_ms <= value <= self.last_ms:
            return Unreadable(Why.UNEXPECTED)
        return from_ms(value)

    def replace(self, value: Any, fault: Unreadable) -> datetime:
        # Text and bytes: SQLite sorts them after every number.
        return _FIRST if isinstance(value, int | float) and value < 0 else _LAST


class EnteredMoment(Moment):
    """A moment that people enter or certificates contain. The latest date of Python is allowed."""

    cache_ok = True
    last_ms = to_ms(LATEST) + 999


class Bounded(Checked):
    """A whole number from ``least`` to ``most``; any other stored value is read as ``instead``."""

    impl = Integer
    cache_ok = True

    def __init__(self, least: int, most: int, instead: int, *, small: bool = False) -> None:
        super().__init__()
        self.least, self.most, self.instead, self.small = least, most, instead, small

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return SmallInteger() if self.small else Integer()

    def parse(self, value: Any) -> Any:
        fits = isinstance(value, int) and self.least <= value <= self.most
        return value if fits else Unreadable(Why.UNEXPECTED)

    def replace(self, value: Any, fault: Unreadable) -> int:
        return _ReplacedNumber(self.instead)


class AlertDays(TypeDecorator[int | str]):
    """A number of days, or ``auto``, which is stored as -1."""

    impl = SmallInteger
    cache_ok = True

    def process_bind_param(self, value: int | str | None, dialect: Dialect) -> int | None:
        return -1 if value == AUTO else value  # type: ignore[return-value] # no other text is bound

    def process_result_value(self, value: Any, dialect: Dialect) -> int | str | None:
        return AUTO if value == -1 else value


class Word(Checked):
    """One of ``words``, or a text for which the function ``words`` returns True; any other stored
    value is read as ``instead``. ``most``: the column's length; None for no limit.
    """

    impl = String
    cache_ok = True

    def __init__(
        self,
        most: int | None,
        words: type[StrEnum] | tuple[str, ...] | Callable[[str], bool],
        instead: str,
    ) -> None:
        super().__init__(most)
        self.most, self.words, self.instead = most, words, instead
        # Called for every monitor that a checker reads, so it has to be fast.
        listed = isinstance(words, tuple | EnumType)
        self._fits: Any = frozenset[Any](words).__contains__ if listed else words  # type: ignore[arg-type]

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text() if self.most is None else String(self.most)

    def parse(self, value: Any) -> Any:
        fits = isinstance(value, str) and self._fits(value)
        return value if fits else Unreadable(Why.UNEXPECTED)

    def replace(self, value: Any, fault: Unreadable) -> str:
        return _ReplacedWord(self.instead)


# The numbers of verdicts in the database. They must not change: rows are stored for years.
VERDICT_NUMBERS = {Verdict.UP: 0, Verdict.DEGRADED: 1, Verdict.DOWN: 2, Verdict.UNKNOWN: 3}


class _Verdicts(dict[Any, Verdict]):
    def __missing__(self, number: Any) -> Verdict:
        return Verdict.UNKNOWN


VERDICTS = _Verdicts({number: verdict for verdict, number in VERDICT_NUMBERS.items()})


class VerdictNumber(Checked):
    """A verdict, stored as a small number. Any other number is read as UNKNOWN, not marked."""

    impl = SmallInteger
    cache_ok = True

    def process_bind_param(self, value: Verdict | None, dialect: Dialect) -> int | None:
        return None if value is None else VERDICT_NUMBERS[value]

    def parse(self, value: Any) -> Any:
        return VERDICTS.get(value, Unreadable(Why.UNEXPECTED))

    def replace(self, value: Any, fault: Unreadable) -> Verdict:
        return Verdict.UNKNOWN


class CheckedJson(Checked):
    """JSON. ``fits`` returns whether a value has the expected shape; any other is read as
    ``empty()``.
    """

    impl = JSON
    cache_ok = True

    def __init__(
        self, fits: Callable[[Any], bool], empty: Callable[[], Any], *, none_as_null: bool = False
    ) -> None:
        super().__init__(none_as_null=none_as_null)
        self.fits, self.empty = fits, empty

    def parser(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        read = self.impl_instance.result_processor(dialect, coltype)

        def parse(raw: Any) -> Any:
            data = raw if read is None else parsed(read, raw)
            if data is None or isinstance(data, Unreadable) or self.fits(data):
                return data
            return Unreadable(Why.UNEXPECTED)

        return parse

    def replace(self, value: Any, fault: Unreadable) -> Any:
        return self.empty()


_OPTIONS = {
    field.name: field.value_type for field in fields_of(Monitor) if Mark.OPTION in field.marks
}


class KindOptions(CheckedJson):
    """The fields of a monitor that belong to its kind (``records.KIND_OPTIONS``), by name. Fields
    with their default value are left out.
    """

    cache_ok = True

    def __init__(self) -> None:
        super().__init__(self._fit, _ReplacedObject, none_as_null=True)

    @staticmethod
    def _fit(data: Any) -> bool:
        return isinstance(data, dict) and all(
            name in _OPTIONS and _OPTIONS[name].read(value) is not None
            for name, value in data.items()
        )

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return plain(value) or None

    def parser(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        read = super().parser(dialect, coltype)

        def parse(raw: Any) -> Any:
            data = read(raw)
            if not isinstance(data, dict):
                return data
            return {name: _OPTIONS[name].read(value) for name, value in data.items()}

        return parse


# SQLite checks neither the encoding of a text nor that a column holds what its type says.
decoded = partial(str, encoding="utf-8", errors="replace")


def _text_of(value: Any) -> Any:
    return decoded(value) if isinstance(value, bytes) else value


def _number_of(value: Any) -> Any:
    if type(value) is int or value is None:  # nearly all, and a page reads ten thousand of them
        return value
    return None if isinstance(value, str | bytes) else value


_WHOLE = frozenset({int, bool, NoneType})


def checked_numbers(rows: Sequence[Any], *, texts: int = 0) -> Sequence[Any]:
    """Rows of whole numbers as the driver returns them, with None for a value that is not a number.
    The last ``texts`` columns are texts. Damage is rare, so whole columns are tested first.
    """
    columns = list(zip(*rows, strict=True))
    end = len(columns) - texts
    if all(_WHOLE.issuperset(map(type, column)) for column in columns[:end]):
        return rows
    return [
        (*(value if isinstance(value, int) else None for value in row[:end]), *row[end:])
        for row in rows
    ]


class _Integer(Integer):
    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _number_of


class _String(String):
    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _text_of


class _Text(Text):
    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return _text_of


SQLITE_TYPES: dict[type[TypeEngine[Any]], type[TypeEngine[Any]]] = {
    String: _String, Text: _Text, Integer: _Integer,
}  # fmt: skip


MAX_CACHED = 8192
SHORT = 1024  # bytes of an encrypted text, some 700 of plain text; at most 16 MB are cached


class _Cipher:
    """Encrypts with the first key, and decrypts with all keys.

    Short texts are cached after their decryption: otherwise a list of a hundred monitors that
    refreshes itself would spend a tenth of its time on the same secrets. Somebody who can read this
    process's memory has the key anyway. Long texts are evidence, which is seldom read twice.
    """

    def __init__(self, fernets: Sequence[Fernet]) -> None:
        fernet = MultiFernet(fernets)
        self.encrypt, self.rotate = fernet.encrypt, fernet.rotate
        self._first = fernets[0]
        self._decrypt = fernet.decrypt
        self._cached = lru_cache(maxsize=MAX_CACHED)(fernet.decrypt)

    def decrypt(self, token: bytes) -> bytes:
        return (self._cached if len(token) <= SHORT else self._decrypt)(token)

    def is_current(self, token: bytes) -> bool:
        """Whether the token was encrypted with the first key."""
        try:
            self._first.decrypt(token)
        except InvalidToken:
            return False
        return True


def cipher_of_database() -> _Cipher:
    cipher: _Cipher | None = current_app.extensions.get("wakeful.cipher")
    if cipher is None:
        cipher = _Cipher(ciphers(b"wakeful database secrets v1", keys_of()))
        current_app.extensions["wakeful.cipher"] = cipher
    return cipher


# The parts of a Fernet token: version, time and initialisation vector; blocks; signature.
_HEAD, _BLOCK, _SIGNATURE = 1 + 8 + 16, 16, 32


def _why_not(token: str) -> Why:
    """Why a token cannot be decrypted: a token of the right form was encrypted with another key, or
    was changed; any other is damaged.
    """
    try:
        raw = base64.urlsafe_b64decode(token)
    except ValueError:
        return Why.DAMAGED
    blocks, remainder = divmod(len(raw) - _HEAD - _SIGNATURE, _BLOCK)
    return Why.OTHER_KEY if raw[:1] == b"\x80" and blocks > 0 and not remainder else Why.DAMAGED


class Encrypted(Checked):
    """Text that is encrypted with the secret key. Needs an application context."""

    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else cipher_of_database().encrypt(value.encode()).decode()

    def parse(self, value: Any) -> Any:
        if not isinstance(value, str):
            return Unreadable(Why.DAMAGED)
        try:
            return cipher_of_database().decrypt(value.encode()).decode()
        except InvalidToken:
            return Unreadable(_why_not(value))
        except UnicodeDecodeError:
            return Unreadable(Why.UNEXPECTED)


class EncryptedJson(Encrypted):
    """JSON data in an encrypted column. ``fits`` checks that it has the expected shape."""

    cache_ok = True

    def __init__(self, fits: Callable[[Any], bool]) -> None:
        super().__init__()
        self.fits = fits

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        text = None if value is None else json.dumps(value, separators=(",", ":"))
        return super().process_bind_param(text, dialect)

    def parse(self, value: Any) -> Any:
        text = super().parse(value)
        if isinstance(text, Unreadable):
            return text
        data = parsed(json.loads, text)
        if not isinstance(data, Unreadable) and self.fits(data):
            return data
        return Unreadable(Why.UNEXPECTED)


class EncryptedAssertions(EncryptedJson):
    """A tuple of ``Assertion`` in an encrypted column: ``[[source, property, op, value], ...]``."""

    cache_ok = True

    def __init__(self) -> None:
        super().__init__(is_assertions)

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        rows = [[row.source, row.property, row.op, row.value] for row in value or ()]
        return super().process_bind_param(rows or None, dialect)

    def parse(self, value: Any) -> Any:
        rows = super().parse(value)
        return tuple(Assertion(*row) for row in rows) if isinstance(rows, list) else rows
