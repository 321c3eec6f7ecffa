"""The monthly availability report."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from app.alerts import words
from app.alerts.messages.context import Context
from app.alerts.messages.facts import UNKNOWN_CAUSE, Facts, told_at
from app.alerts.messages.message import Item, Link, Message, Tone
from app.i18n import _
from app.rules.figures import percent, span


def report(facts: Facts, context: Context) -> Message:
    """``facts["extra"]`` has the figures of the month; its monitors are the worst, in order."""
    told = facts["extra"]
    total, monitors = told["all"], told["monitors"]
    query = {"month": told["month"]} | ({"tag": told["tag"]} if told["tag"] else {})
    uptime = percent(total["uptime"], total["watched"])
    items = [Item(f"{words.shorten(one['name'], 100)}: {_figures(one)}") for one in monitors]
    more = told["count"] - len(monitors)
    if more > 0:
        items.append(Item(f"and {more} more"))
    return Message(
        event=facts["event"],
        tone=Tone.PLAIN,
        title=told["title"],
        summary=_(
            "Uptime %(uptime)s. The report has every monitor, its days and its incidents.",
            uptime=uptime,
        ),
        at=told_at(facts),
        details=(*_details(total), *map(_incident, told["incidents"]), *_untold(told)),
        items=tuple(items),
        links=(Link(_("Open the report"), f"{context.base_url}/reports?{urlencode(query)}"),),
        data={"report": dict(told)},
        footer=_("An editor set up this report for your contact on the Reports page."),
    )


def _details(total: Facts) -> list[tuple[str, str]]:
    found: list[tuple[str, Any]] = [
        ("Downtime", span(total["downtime"])),
        ("Incidents", str(total["incidents"])),
    ]
    if total["mttr"] is not None:
        found.append((_("Mean time to recovery"), span(total["mttr"])))
    if total["avg"] is not None:
        found.append((_("Response time"), f"{total['avg']} ms on average, p95 {total['p95']} ms"))
    return found


def _incident(one: Facts) -> tuple[str, str]:
    started = words.read_moment(one["started_at"])
    lasted = "open"
    if one["ended_at"]:
        lasted = span((words.read_moment(one["ended_at"]) - started).total_seconds())
    cause = words.shorten(one["cause"] or UNKNOWN_CAUSE, 120)
    name = words.shorten(one["name"], words.MAX_NAME_SHOWN)
    return words.clock_time(started), f"{name}: {cause} ({lasted})"


def _untold(told: Facts) -> list[tuple[str, str]]:
    more = told["all"]["incidents"] - len(told["incidents"])
    return [("More", words.count_of(more, "incident"))] if more > 0 else []


def _figures(one: Facts) -> str:
    text = f"{percent(one['uptime'], one['watched'])} up"
    if one["downtime"] or one["incidents"]:
        text += f", down {span(one['downtime'])}, {words.count_of(one['incidents'], 'incident')}"
    return text
