"""The monthly availability report."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from app.alerts import words
from app.alerts.messages.context import Context
from app.alerts.messages.facts import UNKNOWN_CAUSE, Facts, told_at
from app.alerts.messages.message import Item, Link, Message, Tone
from app.i18n import _, _n
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
        items.append(Item(_n("and %(num)s more", "and %(num)s more", more)))
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
        (_("Downtime"), span(total["downtime"])),
        (_("Incidents"), str(total["incidents"])),
    ]
    if total["mttr"] is not None:
        found.append((_("Mean time to recovery"), span(total["mttr"])))
    if total["avg"] is not None:
        value = _("%(avg)s ms on average, p95 %(p95)s ms", avg=total["avg"], p95=total["p95"])
        found.append((_("Response time"), value))
    return found


def _incident(one: Facts) -> tuple[str, str]:
    started = words.read_moment(one["started_at"])
    lasted = _("open")
    if one["ended_at"]:
        lasted = span((words.read_moment(one["ended_at"]) - started).total_seconds())
    cause = words.shorten(one["cause"] or _(UNKNOWN_CAUSE), 120)
    name = words.shorten(one["name"], words.MAX_NAME_SHOWN)
    return words.clock_time(started), f"{name}: {cause} ({lasted})"


def _untold(told: Facts) -> list[tuple[str, str]]:
    more = told["all"]["incidents"] - len(told["incidents"])
    return [(_("More"), _n("%(num)s incident", "%(num)s incidents", more))] if more > 0 else []


def _figures(one: Facts) -> str:
    up = percent(one["uptime"], one["watched"])
    if not one["downtime"] and not one["incidents"]:
        return _("%(up)s up", up=up)
    return _n(
        "%(up)s up, down %(down)s, %(num)s incident",
        "%(up)s up, down %(down)s, %(num)s incidents",
        one["incidents"],
        up=up,
        down=span(one["downtime"]),
    )
