"""Read the evidence of a check (``Outcome.evidence``) that came from an agent, a prober or another
server.

Evidence is stored with an incident, compared when one opens, and shown on its page and in the API.
After this module, values have the types that Wakeful writes, times have a zone, and the nesting is
bounded. Malformed parts are left out, so neither pages nor the recorder need to check them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, ItemsView, Mapping
from typing import Any

from app.codec.record import json_of, reader, value_type_of
from app.codec.value_types import WHOLE, keyed
from app.codec.values import Json, each, mapping, text, texts, whole
from app.records import PHASES, Certificate, CheckedAssertion

MAX_ENTRIES = 100  # of a list whose entries are objects
# Characters as JSON. Most failures have 1 to 8 KiB: 4 KiB of the body, headers, certificates.
MAX_EVIDENCE = 32 * 1024
_MAX_PING = 60_000.0  # ms

phases = keyed(PHASES, WHOLE).read  # the milliseconds of each
read_assertion = value_type_of(CheckedAssertion).read
_read_certificate = reader(Certificate, "certificate")


def read_evidence(data: Json) -> dict[str, Any]:
    """The fields of evidence that ``app.checks`` writes, for all kinds of check. The result's own
    fields (its verdict, its cause, its place) are no part of it.
    """
    return {name: value for name, value in _fields(data).items() if value not in (None, [])}


def _fields(data: Json) -> dict[str, Any]:
    request, curl = data.get("request"), data.get("curl")
    return _texts(
        data, "url", "status_line", "body", "ip", "http_version", "banner", "flags", "rcode",
        "server",
    ) | {
        "body_bytes": whole(data.get("body_bytes")),
        "banner_bytes": whole(data.get("banner_bytes")),
        "body_cut": data.get("body_cut") is True or None,
        "timings": phases(data["timings"]) if isinstance(data.get("timings"), Mapping) else None,
        "request": {"method": text(request.get("method")), "hops": whole(request.get("hops"))}
        if isinstance(request, Mapping) else None,
        "resolved": list(texts(data.get("resolved"))),
        "redirects": _each(data.get("redirects"), _hop),
        "refused": _each(data.get("refused"), _refusal),
        "answers": _each(data.get("answers"), _record),
        "echoes": _each(data.get("echoes"), _echo),
        "headers": _headers(data.get("headers")),
        "tls": _each(data.get("tls"), _certificate),
        "assertions": list(map(json_of, each(data.get("assertions"), read_assertion))),
        "curl": {"code": whole(curl.get("code")), "words": text(curl.get("words"))}
        if isinstance(curl, Mapping) else None,
    }  # fmt: skip


def fitted(evidence: dict[str, Any]) -> dict[str, Any]:
    """Cut evidence to ``MAX_EVIDENCE``: halve its largest part until the whole fits. Otherwise a
    server that sends 64 KiB of headers, or somebody with the token of an agent, would fill the
    database.
    """
    sizes = {name: _size(name, value) for name, value in evidence.items()}
    if sum(sizes.values()) <= MAX_EVIDENCE:
        return evidence
    halved = dict(evidence)
    while sum(sizes.values()) > MAX_EVIDENCE:
        name = max(sizes, key=lambda name: sizes[name])
        halved[name] = _half(halved[name])
        sizes[name] = _size(name, halved[name])
        if name == "body":
            halved["body_cut"] = True
    return halved


def _size(name: str, value: Any) -> int:
    return len(json.dumps({name: value}))


def _half(value: Any) -> Any:
    """A value cut in half; None for a value that cannot be cut."""
    has_halves = isinstance(value, str | list) and len(value) > 1
    return value[: len(value) // 2] if has_halves else None


def _hop(entry: Any) -> dict[str, Any] | str | None:
    """A redirect; for a check without evidence, its address alone."""
    if not isinstance(entry, Mapping):
        return text(entry)
    return _texts(entry, "status_line", "url", "ip")


def _refusal(entry: Any) -> dict[str, Any]:
    return _texts(mapping(entry), "address", "network")


def _record(entry: Any) -> dict[str, Any]:
    """A DNS record."""
    record = mapping(entry)
    return _texts(record, "name", "type", "data") | {"ttl": whole(record.get("ttl"))}


def _echo(entry: Any) -> dict[str, Any]:
    """One ping."""
    echo = mapping(entry)
    ms = echo.get("ms")
    is_time = isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms <= _MAX_PING
    figures = {"ms": ms if is_time else None, "ttl": whole(echo.get("ttl"))}
    return _texts(echo, "address", "error") | figures


def _texts(fields: Json, *names: str) -> dict[str, Any]:
    return {name: text(fields.get(name)) for name in names}


def _certificate(entry: Any) -> Certificate:
    """Read a certificate. A value that is none becomes one without fields: pages say that it cannot
    be read.
    """
    return _read_certificate(mapping(entry))


def _each(value: Any, read: Callable[[Any], Any]) -> list[Any]:
    entries = value if isinstance(value, list) else []
    return [read(entry) for entry in entries[:MAX_ENTRIES]]


def _headers(value: Any) -> list[list[str]]:
    """Pairs of name and value. Another server may send a mapping in their place."""
    pairs = value.items() if isinstance(value, Mapping) else value
    return [
        [text(pair[0]) or "", text(pair[1]) or ""]
        for pair in (pairs if isinstance(pairs, list | ItemsView) else ())
        if isinstance(pair, list | tuple) and len(pair) == 2
    ]


EVIDENCE_FIELDS = tuple(_fields({}))
