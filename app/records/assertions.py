"""A monitor's assertions about an answer (decision 19): enums, limits and records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.records.secrets import SECRET_NAME, mask

MAX_ASSERTIONS = 20
MAX_ASSERTION_PROPERTY = 255
MAX_ASSERTION_VALUE = 2_048
MAX_FOUND = 255  # characters of ``CheckedAssertion.found``


class AssertionSource(StrEnum):
    STATUS = "status"
    HEADER = "header"
    BODY = "body"
    JSON = "json"
    SIZE = "size"
    RESPONSE_TIME = "response_time"
    CERTIFICATE_DAYS = "certificate_days"
    URL = "url"
    BANNER = "banner"
    LOSS = "loss"
    ANSWER = "answer"


class AssertionOp(StrEnum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    MATCHES = "matches"
    NOT_MATCHES = "not_matches"
    EXISTS = "exists"
    NOT_EXISTS = "not_exists"
    EMPTY = "empty"
    NOT_EMPTY = "not_empty"


SOURCES_WITH_PROPERTY = frozenset({AssertionSource.HEADER, AssertionSource.JSON})
SOURCES_OF_BODY = frozenset({AssertionSource.BODY, AssertionSource.JSON, AssertionSource.SIZE})
NUMERIC_SOURCES = frozenset(
    {
        AssertionSource.STATUS, AssertionSource.SIZE, AssertionSource.RESPONSE_TIME,
        AssertionSource.CERTIFICATE_DAYS, AssertionSource.LOSS,
    }
)  # fmt: skip
OPS_WITHOUT_VALUE = frozenset(
    {AssertionOp.EXISTS, AssertionOp.NOT_EXISTS, AssertionOp.EMPTY, AssertionOp.NOT_EMPTY}
)


@dataclass(frozen=True, slots=True)
class Assertion:
    """One row of ``assertions``. ``property``: the name of a header, a path in JSON."""

    source: str
    property: str | None
    op: str
    value: str | None = None

    def looks_secret(self) -> bool:
        return bool(self.property and SECRET_NAME.search(self.property))

    def masked(self) -> Assertion:
        """The assertion, with its value masked if that looks like a secret."""
        if self.value is None or not self.looks_secret():
            return self
        return Assertion(self.source, self.property, self.op, mask(self.value))


@dataclass(frozen=True, slots=True)
class CheckedAssertion(Assertion):
    """An assertion with the outcome of a check, masked if it looks secret. ``found``: the value in
    the answer; None if there is none. ``ok``: whether it holds; None if it was not evaluated,
    because the check had failed already or the body was cut at the cap.
    """

    found: str | None = None
    ok: bool | None = None
