"""The monthly availability report."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from app.alerts import words
from app.alerts.messages.incident import UNKNOWN_CAUSE
from app.alerts.messages.message import Facts, Item, Message, MessageContext, MessageLink, Tone
from app.i18n import _, _n
from app.rules.figures import milliseconds, percent, span


def report(facts: Facts, context: MessageContext) -> Message:
    """``facts["extra"]`` has the figures of the month; its monitors are the worst, in order."""
    report = facts["extra"]
    total, monitors = report["all"], report["monitors"]
    query = {"month": report["month"]} | ({"tag": report["tag"]} if report["tag"] else {})
    link = f"{context.base_url}/reports?{urlencode(query)}"
    uptime = percent(total["uptime"], total["watched"])
    items = [
        Item(f"{words.shorten(monitor['name'], 100)}: {_figures(monitor)}") for monitor in monitors
    ]
    more = report["count"] - len(monitors)
    if more > 0:
        items.append(Item(_n("and %(num)s more", "and %(num)s more", more)))
    return Message.of(
        facts,
        Tone.PLAIN,
        report["title"],
        _(
            "Uptime %(uptime)s. The report has every monitor, its days and its incidents.",
            uptime=uptime,
        ),
        details=(*_details(total), *map(_incident, report["incidents"]), *_unnamed(report)),
        items=tuple(items),
        links=(MessageLink(_("Open the report"), link),),
        data={"report": dict(report)},
        footer=_("An editor set up this report for your contact on the Reports page."),
    )


def _details(total: Facts) -> list[tuple[str, str]]:
    details: list[tuple[str, Any]] = [
        (_("Downtime"), span(total["downtime"])),
        (_("Incidents"), str(total["incidents"])),
    ]
    if total["mttr"] is not None:
        details.append((_("Mean time to recovery"), span(total["mttr"])))
    if total["avg"] is not None:
        value = _(
            "%(average)s on average, p95 %(p95)s",
            average=milliseconds(total["avg"], exact=True),
            p95=milliseconds(total["p95"], exact=True),
        )
        details.append((_("Response time"), value))
    return details


def _incident(incident: Facts) -> tuple[str, str]:
    started = datetime.fromisoformat(incident["started_at"])
    length = _("open")
    if incident["ended_at"]:
        length = span((datetime.fromisoformat(incident["ended_at"]) - started).total_seconds())
    cause = words.shorten(incident["cause"] or _(UNKNOWN_CAUSE), 120)
    name = words.shorten(incident["name"], words.MAX_NAME_SHOWN)
    return words.clock_time(started), f"{name}: {cause} ({length})"


def _unnamed(report: Facts) -> list[tuple[str, str]]:
    more = report["all"]["incidents"] - len(report["incidents"])
    return [(_("More"), _n("%(num)s incident", "%(num)s incidents", more))] if more > 0 else []


def _figures(monitor: Facts) -> str:
    up = percent(monitor["uptime"], monitor["watched"])
    if not monitor["downtime"] and not monitor["incidents"]:
        return _("%(up)s up", up=up)
    return _n(
        "%(up)s up, down %(down)s, %(num)s incident",
        "%(up)s up, down %(down)s, %(num)s incidents",
        monitor["incidents"],
        up=up,
        down=span(monitor["downtime"]),
    )
