"""Read another server's evidence in the form that pages show.

Read strictly here, so that no page needs guards of its own. Odd values that a page does not need
are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.codec.evidence import phases, read_evidence
from app.codec.values import each, text, texts, time, whole, word
from app.records import Verdict


def evidence(data: Any) -> Mapping[str, Any] | None:
    """The checks around an incident; a server that knows only one may send that alone."""
    if not isinstance(data, Mapping):
        return None
    if not {"failing", "last_good", "confirming"} & data.keys():
        return _check(data)
    return {
        "failing": _check(data.get("failing")),
        "last_good": _check(data.get("last_good")),
        "confirming": list(each(data.get("confirming"), _check)),
        "usual": _usual(data.get("usual")),
        "places": list(each(data.get("places"), _place)),
    }


def _place(data: Any) -> dict[str, Any] | None:
    if not isinstance(data, Mapping):
        return None
    return {
        **{name: text(data.get(name)) for name in ("name", "label", "cause_code", "cause")},
        "verdict": str(word(Verdict, data.get("verdict")) or Verdict.UNKNOWN),
        **_measured(data),
        "earlier": data.get("earlier") is True,
        "check": _check(data.get("check")),
    }


def _usual(data: Any) -> dict[str, Any] | None:
    """Figures over the good checks before the failure."""
    if not isinstance(data, Mapping):
        return None
    return {
        "checked_at": time(data.get("checked_at")),
        "response_time": whole(data.get("response_time")),
        "timings": phases(data.get("timings")),
        "addresses": list(texts(data.get("addresses"))),
    }


def _check(data: Any) -> dict[str, Any] | None:
    if not isinstance(data, Mapping):
        return None
    words = ("verdict", "cause_code", "cause", "location")
    result = {
        **{name: text(data.get(name)) for name in words},
        **_measured(data),
        "warnings": list(texts(data.get("warnings"))),
    }
    sent = {name: value for name, value in result.items() if value not in (None, [])}
    return sent | read_evidence(data)


def _measured(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "checked_at": time(data.get("checked_at")),
        "status_code": whole(data.get("status_code")),
        "response_time": whole(data.get("response_time")),
    }
