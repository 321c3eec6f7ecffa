"""What ``wakeful doctor`` finds, and what it examines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.config import Settings

SECONDS = 5.0  # for each question to somebody else


@dataclass(frozen=True, slots=True)
class Finding:
    """``fault`` is something to mend; otherwise it is good to know."""

    subject: str
    sentence: str
    fault: bool = False


@dataclass(slots=True)
class Subject:
    """What is examined. ``tables``: they are there, so the looks may read them."""

    settings: Settings
    tables: bool = False


Look = Callable[[Subject], Iterator[Finding]]
