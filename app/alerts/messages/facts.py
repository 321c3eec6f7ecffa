"""Read the facts that are stored in the outbox: names, times and durations, as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.alerts import words
from app.i18n import N_, _

Facts = Mapping[str, Any]
ADDRESS = N_("Address")
GAPS_NAMED = 3
UNKNOWN_CAUSE = N_("No cause was given.")


def name_of(facts: Facts) -> str:
    return words.shorten(facts["monitor"]["name"], words.MAX_NAME_SHOWN)


def cause_of(incident: Facts) -> str:
    return words.shorten(incident.get("cause") or _(UNKNOWN_CAUSE), 300)


def told_at(facts: Facts) -> datetime:
    return words.read_moment(facts["at"])


def address_of(facts: Facts) -> tuple[str, str]:
    return (_(ADDRESS), words.shorten(facts["monitor"]["url"], words.MAX_URL_SHOWN))


def started_at(incident: Facts) -> datetime:
    return words.read_moment(incident["started_at"])


def ended_at(facts: Facts) -> datetime:
    """When the incident ended; for an open one, when the message was written."""
    return words.read_moment(facts["incident"]["ended_at"] or facts["at"])


def lasted(facts: Facts, until: datetime) -> str:
    """How long it was down by ``until``; "at most" if nothing was checked for some of that time."""
    length = words.duration((until - started_at(facts["incident"])).total_seconds())
    unwatched = facts["incident"].get("unwatched")
    return _("at most %(length)s", length=length) if unwatched else length


def unwatched(incident: Facts) -> str:
    """A sentence about the times in which nothing was checked, with a leading space; or empty."""
    found = incident.get("unwatched") or []
    told = _(", and ").join(
        _(
            "from %(begin)s to %(end)s",
            begin=words.clock_time(words.read_moment(gap["from"])),
            end=words.clock_time(words.read_moment(gap["to"])),
        )
        for gap in found[-GAPS_NAMED:]
    )
    return " " + _("No checks ran %(times)s.", times=told) if told else ""
