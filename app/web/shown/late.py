"""Outages that were found afterwards, by results that came too late to alert anybody."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.i18n import _, _n
from app.web.shown import places, times
from app.web.shown.charts import Span

SHOWN = 10


def lines(statistics: Mapping[str, Any]) -> list[str]:
    """A line for each of the newest in a ``statistics`` answer, and one for all that are older."""
    newest = statistics["late_outages"][: -SHOWN - 1 : -1]
    older = len(statistics["late_outages"]) - len(newest)
    more = _n(
        "%(num)s older outage was found afterwards.",
        "%(num)s older outages were found afterwards.",
        older,
    )
    return [*map(_line, newest), *([more] if older else [])]


def spans(statistics: Mapping[str, Any], most: int) -> list[Span]:
    """The newest for the chart."""
    return [
        (datetime.fromisoformat(one["started_at"]), datetime.fromisoformat(one["ended_at"]),
         _line(one), None)
        for one in statistics["late_outages"][-most:]
    ]  # fmt: skip


def _line(outage: Mapping[str, Any]) -> str:
    start, end = (datetime.fromisoformat(outage[name]) for name in ("started_at", "ended_at"))
    there, last = times.local(start), times.local(end)
    sentence = _(
        "Found afterwards: down from %(start)s to %(end)s (%(span)s), by results that %(places)s"
        " sent late. Nobody was alerted.",
        start=times.clock(start),
        end=f"{last:%H:%M:%S}" if last.date() == there.date() else times.clock(end),
        span=times.span((end - start).total_seconds()),
        places=", ".join(places.title(name) for name in outage["places"]),
    )
    return f"{sentence} {outage['cause']}" if outage["cause"] else sentence
