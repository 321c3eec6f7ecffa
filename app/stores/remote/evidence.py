"""Read another server's evidence in the form that pages show.

Read strictly here, so that no page needs guards of its own: numbers are numbers, times have a zone,
lists are lists. What a page can do without and is odd is left out.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Mapping
from typing import Any

from app.codec import reader
from app.codec.values import Json, text, texts, time, whole, word
from app.records import Certificate, Verdict
from app.stores.remote.figures import phases

certificate = reader(Certificate, "certificate")

MOST_CHECKS = 100


def evidence(data: Any) -> Mapping[str, Any] | None:
    """The checks around an incident; a server that knows only one may send that alone."""
    if not isinstance(data, Mapping):
        return None
    if not {"failing", "last_good", "confirming"} & data.keys():
        return _check(data)
    again = data.get("confirming")
    checks = again[:MOST_CHECKS] if isinstance(again, list) else []
    return {
        "failing": _check(data.get("failing")),
        "last_good": _check(data.get("last_good")),
        "confirming": [check for one in checks if (check := _check(one))],
        "usual": _usual(data.get("usual")),
        "places": [_place(one) for one in _objects(data.get("places"))],
    }


def _place(data: Json) -> dict[str, Any]:
    return {
        **{name: text(data.get(name)) for name in ("name", "label", "cause_code", "cause")},
        "verdict": str(word(Verdict, data.get("verdict")) or Verdict.UNKNOWN),
        "status_code": whole(data.get("status_code")),
        "response_time": whole(data.get("response_time")),
        "checked_at": time(data.get("checked_at")),
        "earlier": data.get("earlier") is True,
        "check": _check(data.get("check")),
    }


def _objects(value: Any) -> list[Json]:
    found = value if isinstance(value, list) else []
    return [one for one in found[:MOST_CHECKS] if isinstance(one, Mapping)]


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
    request, curl = data.get("request"), data.get("curl")
    read = {name: text(data.get(name)) for name in (
        "verdict", "cause_code", "cause", "url", "status_line", "body", "ip", "http_version",
        "location", "banner",
    )} | {
        "checked_at": time(data.get("checked_at")),
        "status_code": whole(data.get("status_code")),
        "response_time": whole(data.get("response_time")),
        "body_bytes": whole(data.get("body_bytes")),
        "banner_bytes": whole(data.get("banner_bytes")),
        "body_cut": data.get("body_cut") is True or None,
        "timings": phases(data.get("timings")),
        "request": {"method": text(request.get("method")), "hops": whole(request.get("hops"))}
        if isinstance(request, Mapping) else None,
        "resolved": list(texts(data.get("resolved"))),
        "redirects": _each(data.get("redirects"), _hop),
        "refused": _each(data.get("refused"), _refusal),
        "warnings": list(texts(data.get("warnings"))),
        "headers": _headers(data.get("headers")),
        "tls": _each(data.get("tls"), certificate),
        "curl": {"code": whole(curl.get("code")), "words": text(curl.get("words"))}
        if isinstance(curl, Mapping) else None,
    }  # fmt: skip
    return {name: value for name, value in read.items() if value not in (None, [])}


def _hop(data: Json) -> dict[str, Any]:
    return {name: text(data.get(name)) for name in ("status_line", "url", "ip")}


def _refusal(data: Json) -> dict[str, Any]:
    return {name: text(data.get(name)) for name in ("address", "network")}


def _each(value: Any, read: Callable[[Json], Any]) -> list[Any]:
    """A check without evidence has addresses where evidence has steps; both are lists."""
    found = value if isinstance(value, list) else []
    return [read(one) if isinstance(one, Mapping) else text(one) for one in found[:MOST_CHECKS]]


def _headers(value: Any) -> list[tuple[str, str]]:
    """Pairs, or a mapping as others may write it."""
    pairs = value.items() if isinstance(value, Mapping) else value
    return [
        (text(pair[0]) or "", text(pair[1]) or "")
        for pair in (pairs if isinstance(pairs, list | ItemsView) else ())
        if isinstance(pair, list | tuple) and len(pair) == 2
    ]
