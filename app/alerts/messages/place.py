"""Messages about places that checks run from: one is silent, or is back."""

from __future__ import annotations

from typing import Any

from app.alerts import words
from app.alerts.messages.context import Context
from app.alerts.messages.facts import Facts, told_at
from app.alerts.messages.message import Link, Message, Tone
from app.i18n import N_, _, _n

NO_RESULTS = N_("No results come from it, so it has no vote.")
ADVICE = N_("Check that its checker, prober or agent is running and reaches this server.")
FOOTER = N_("You get this message because your contact is a default contact.")


def silent(facts: Facts, context: Context) -> Message:
    extra = facts["extra"]
    since = extra["since"]
    last = words.clock_time(words.read_moment(since)) if since else _("Never")
    return _message(
        facts,
        context,
        Tone.WARNING,
        _("The place %(name)s is silent", name=_title(extra)),
        f"{_(NO_RESULTS)} {_affected(extra)} {_(ADVICE)}",
        ((_("Last result"), last),),
    )


def online(facts: Facts, context: Context) -> Message:
    extra, details = facts["extra"], []
    if extra["since"]:
        lasted = (told_at(facts) - words.read_moment(extra["since"])).total_seconds()
        details = [(_("Silent for"), words.duration(lasted))]
    title = _("The place %(name)s is back", name=_title(extra))
    return _message(facts, context, Tone.GOOD, title, _("Results come from it again."), details)


def _message(
    facts: Facts, context: Context, tone: Tone, title: str, summary: str, details: Any
) -> Message:
    return Message(
        event=facts["event"],
        tone=tone,
        title=title,
        summary=summary,
        at=told_at(facts),
        details=((_("Monitors"), str(facts["extra"]["monitors"])), *details),
        links=(Link(_("Places"), f"{context.base_url}/settings/locations"),),
        footer=_(FOOTER),
        data=dict(facts["extra"]),
    )


def _title(extra: Facts) -> str:
    place = extra["location"]
    return words.shorten(place["label"] or place["name"], words.MAX_NAME_SHOWN)


def _affected(extra: Facts) -> str:
    unknown = extra["unknown"]
    if not unknown:
        return _("All its monitors are checked from other places too.")
    return _n(
        "%(num)s monitor is checked from nowhere else and is now unknown.",
        "%(num)s monitors are checked from nowhere else and are now unknown.",
        unknown,
    )
