"""Parts of evidence that every kind has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from app.net.policy import Refusal
from app.records import Timings

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def clean(text: str) -> str:
    """Text without control characters: a NUL breaks databases, an escape breaks terminals."""
    return _CONTROL.sub("\ufffd", text)


def addresses(resolved: Sequence[str], refusals: Sequence[Refusal]) -> dict[str, Any]:
    return {
        "resolved": list(resolved),
        "refused": [{"address": str(one.address), "network": str(one.network)} for one in refusals],
    }


def phases(timings: Timings) -> dict[str, int | None]:
    return timings.by_phase()
