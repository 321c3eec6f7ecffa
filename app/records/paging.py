"""Lists: their pages, sizes and order. Limits of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")


class Sort(StrEnum):
    DESC = "desc"
    ASC = "asc"


PAGE_SIZES = (10, 25, 50, 100)
MAX_SEARCH = 255
DEFAULT_PAGE_SIZE = 10


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. ``total`` counts all records that match; ``number`` starts at 1.
    ``more``: a remote server did not send the total, and there may be further records.
    """

    items: Sequence[T]
    number: int
    per_page: int
    total: int
    more: bool = False

    @property
    def last_number(self) -> int:
        return max(1, -(-self.total // self.per_page))


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The page of a list that has no other parameters."""

    per_page: int = DEFAULT_PAGE_SIZE
    page: int = 1


# Limits of requests (decision 7): characters are code points, sizes are UTF-8 bytes.

MAX_NAME = 255
MAX_BODY_BYTES = 1024 * 1024  # an API request's body; more is 413
# The bytes of a larger body that are read and dropped: many clients read the answer only after they
# have sent the body.
DRAINED_BYTES = 8 * MAX_BODY_BYTES
# A form of the dashboard: a million characters of addresses, three bytes each if encoded.
MAX_FORM_BYTES = 4 * 1024 * 1024
MAX_FIELDS = 20_000  # a maintenance window may name ten thousand monitors
# Records that one request may create, with 8 KiB and 100 fields for each.
MAX_IN_BATCH = 500
MAX_BATCH_BYTES = 4 * 1024 * 1024
MAX_BATCH_FIELDS = 100 * MAX_IN_BATCH
