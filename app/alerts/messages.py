"""One message, whatever the channel: what, since when, why, how long, what else is down, and links.

``compose`` makes it from the facts that were written into the outbox; channels only lay it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from app.alerts import words
from app.records import Event
from app.rules.time import days_left, expiry

Facts = Mapping[str, Any]
FIRST_NAMED = 10  # of a burst (decisions.md 5)
OTHERS_NAMED = 5
GAPS_NAMED = 3
ADDRESS = "Address"
UNKNOWN_CAUSE = "No cause was given."


class Tone(StrEnum):
    """What a message means at a glance: its colour, and the sign in front of it."""

    BAD = "bad"
    GOOD = "good"
    WARNING = "warning"
    PLAIN = "plain"


SIGNS = {
    Tone.BAD: "\U0001f534",
    Tone.GOOD: "\U0001f7e2",
    Tone.WARNING: "\U0001f7e0",
    Tone.PLAIN: "\U0001f535",
}
COLOURS = {Tone.BAD: 0xC62828, Tone.GOOD: 0x2E7D32, Tone.WARNING: 0xB26A00, Tone.PLAIN: 0x1565C0}


@dataclass(frozen=True, slots=True)
class Link:
    label: str
    url: str


@dataclass(frozen=True, slots=True)
class Item:
    """One of several that a message tells of, with its own links."""

    text: str
    links: tuple[Link, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Message:
    """What one delivery says.

    ``title`` is what a phone's lock screen shows, ``summary`` the sentence below it, ``details``
    labelled facts, ``items`` the first incidents of a burst. ``data`` is the webhook's.
    """

    event: str
    tone: Tone
    title: str
    summary: str
    at: datetime
    details: tuple[tuple[str, str], ...] = ()
    items: tuple[Item, ...] = ()
    links: tuple[Link, ...] = ()
    thread: str | None = None  # mails of one incident stand together
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All of it as plain text, links as bare URLs."""
        return "\n".join(self.lines(self.title))

    def lines(self, *first: str) -> list[str]:
        found = [*first, self.summary]
        found += [f"{label}: {value}" for label, value in self.details]
        for item in self.items:
            found.append(f"- {item}")
            found += [f"  {link.label}: {link.url}" for link in item.links]
        found += [f"{link.label}: {link.url}" for link in self.links]
        return [line for line in found if line]

    def without_item_links(self) -> Message:
        """For where room is short: the items themselves say more than their links."""
        return replace(self, items=tuple(Item(item.text) for item in self.items))


@dataclass(frozen=True, slots=True)
class Context:
    """What a message needs beside its facts.

    ``base_url`` begins every link. ``acknowledge_token`` makes a token for an incident.
    ``others_down`` are the names of the monitors that are down now, by id.
    """

    base_url: str
    acknowledge_token: Callable[[int], str]
    others_down: Mapping[int, str] = field(default_factory=dict)

    def incident_url(self, incident_id: int) -> str:
        return f"{self.base_url}/incidents/{incident_id}"

    def acknowledge_url(self, incident_id: int) -> str:
        return f"{self.base_url}/acknowledge/{self.acknowledge_token(incident_id)}"


def compose(facts: Facts, context: Context) -> Message:
    """The message for a row's facts."""
    return _COMPOSERS[facts["event"]](facts, context)


def is_complete(facts: Facts) -> bool:
    """Whether these facts make a message. Asked before several become one: a single incomplete one
    would keep the message of all from being written.
    """
    try:
        compose(facts, Context("", str))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return False
    return True


def _name(facts: Facts) -> str:
    return words.shorten(facts["monitor"]["name"], words.MAX_NAME_SHOWN)


def _cause(incident: Facts) -> str:
    return words.shorten(incident.get("cause") or UNKNOWN_CAUSE, 300)


def _at(facts: Facts) -> datetime:
    return words.read_moment(facts["at"])


def _address(facts: Facts) -> tuple[str, str]:
    return (ADDRESS, words.shorten(facts["monitor"]["url"], words.MAX_URL_SHOWN))


def _links(facts: Facts, context: Context) -> tuple[Link, ...]:
    """The incident, and the acknowledge page while it is open and nobody has."""
    incident = facts["incident"]
    links = [Link("Incident", context.incident_url(incident["id"]))]
    if not incident["ended_at"]:
        links.append(Link("Acknowledge", context.acknowledge_url(incident["id"])))
    return tuple(links)


def _others(label: str, facts: Facts, context: Context) -> tuple[tuple[str, str], ...]:
    own = facts["monitor"]["id"]
    names = [name for id, name in context.others_down.items() if id != own]
    if not names:
        return ((label, "nothing"),)
    shown = ", ".join(words.shorten(name, 40) for name in names[:OTHERS_NAMED])
    more = len(names) - OTHERS_NAMED
    return ((label, f"{shown} and {more} more" if more > 0 else shown),)


def _incident_data(facts: Facts, context: Context) -> dict[str, Any]:
    incident = dict(facts["incident"])
    incident["status"] = (
        "resolved"
        if incident["ended_at"]
        else "acknowledged"
        if incident["acknowledged_at"]
        else "unresolved"
    )
    incident.setdefault("unwatched", [])  # of a message that was written before it was kept
    incident["monitor_id"] = facts["monitor"]["id"]
    incident["duration"] = max(0, int((_ended(facts) - _started(incident)).total_seconds()))
    incident["link"] = context.incident_url(incident["id"])
    open_ = not incident["ended_at"]
    incident["acknowledge_link"] = context.acknowledge_url(incident["id"]) if open_ else None
    return incident


def _started(incident: Facts) -> datetime:
    return words.read_moment(incident["started_at"])


def _ended(facts: Facts) -> datetime:
    """When the incident ended; for an open one, when the message was written."""
    return words.read_moment(facts["incident"]["ended_at"] or facts["at"])


def _lasted(facts: Facts, until: datetime) -> str:
    """How long it was down by ``until``: a limit only, where nothing was watched for a while."""
    limit = "at most " if facts["incident"].get("unwatched") else ""
    return limit + words.duration((until - _started(facts["incident"])).total_seconds())


def _unwatched(incident: Facts) -> str:
    """Since when, and until when, nothing was watched, as a sentence that follows another."""
    found = incident.get("unwatched") or []
    times = [
        [words.clock_time(words.read_moment(gap[end])) for end in ("from", "to")] for gap in found
    ]
    told = ", and ".join(f"from {begin} to {end}" for begin, end in times[-GAPS_NAMED:])
    return f" Nothing was watched {told}." if told else ""


def _flapping(facts: Facts) -> int | None:
    """How often the monitor opened of late, on the message that tells of it."""
    times: int | None = (facts.get("extra") or {}).get("flapping")
    return times


def _about_incident(
    facts: Facts,
    context: Context,
    tone: Tone,
    title: str,
    summary: str,
    details: Sequence[tuple[str, str]],
) -> Message:
    return Message(
        event=facts["event"],
        tone=tone,
        title=title,
        summary=summary,
        at=_at(facts),
        details=tuple(details),
        links=_links(facts, context),
        thread=f"incident-{facts['incident']['id']}",
        data={
            "monitor": dict(facts["monitor"]),
            "incident": _incident_data(facts, context),
            # By name: what else may stand there is no part of what receivers are promised.
            **({"flapping": times} if (times := _flapping(facts)) else {}),
        },
    )


def _opened(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    details = [
        ("Down since", words.clock_time(_started(incident))),
        _address(facts),
        *_others("Also down", facts, context),
    ]
    if times := _flapping(facts):
        note = f"Down {times} times in 10 minutes. More is told only once it stays down."
        details.insert(0, ("Flapping", note))
    return _about_incident(
        facts, context, Tone.BAD, f"Down: {_name(facts)}", _cause(incident), details
    )


def _resolved(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    started, ended = _started(incident), _ended(facts)
    details = [
        ("Cause", _cause(incident)),
        ("Down", f"{words.clock_time(started)} to {words.clock_time(ended)}"),
        _address(facts),
        *_others("Still down", facts, context),
    ]
    summary = f"It was down for {_lasted(facts, ended)}.{_unwatched(incident)}"
    title = f"Up again: {_name(facts)}"
    return _about_incident(facts, context, Tone.GOOD, title, summary, details)


def _reminder(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    so_far = _lasted(facts, _at(facts))
    details = [
        ("Cause", _cause(incident)),
        ("Down since", words.clock_time(_started(incident))),
        _address(facts),
        *_others("Also down", facts, context),
    ]
    summary = f"Down for {so_far}, and nobody has acknowledged it yet.{_unwatched(incident)}"
    return _about_incident(
        facts, context, Tone.BAD, f"Still down: {_name(facts)}", summary, details
    )


def _acknowledged(facts: Facts, context: Context) -> Message:
    incident = facts["incident"]
    by = incident.get("acknowledged_by")
    details = [("Cause", _cause(incident)), ("Down since", words.clock_time(_started(incident)))]
    summary = f"Acknowledged by {words.shorten(by, 100)}." if by else "Somebody is looking at it."
    return _about_incident(
        facts, context, Tone.PLAIN, f"Acknowledged: {_name(facts)}", summary, details
    )


def _expiring(facts: Facts, context: Context, what: str) -> Message:
    extra = facts.get("extra") or {}
    when, at = "expires soon", _at(facts)
    monitor = facts["monitor"]
    details = [("Monitor", _name(facts)), _address(facts)]
    if extra.get("expires_at"):
        expires = words.read_moment(extra["expires_at"])
        when, extra = expiry(expires, at), {**extra, "days_left": days_left(expires, at)}
        details.insert(0, ("Expires", words.clock_time(expires)))
    if host := extra.get("host"):  # not that of the URL where that only redirects
        details.insert(0, ("Host", words.shorten(str(host), 100)))
    return Message(
        event=facts["event"],
        tone=Tone.WARNING,
        title=f"{what} {when}",
        summary="Renew it in time. There will be no second alert for this date.",
        at=at,
        details=tuple(details),
        links=(Link("Monitor", f"{context.base_url}/monitors/{monitor['id']}"),),
        data={"monitor": dict(monitor), **extra},
    )


def _certificate(facts: Facts, context: Context) -> Message:
    return _expiring(facts, context, f"Certificate of {_name(facts)}:")


def _domain(facts: Facts, context: Context) -> Message:
    domain = (facts.get("extra") or {}).get("domain") or _name(facts)
    return _expiring(facts, context, f"Domain {words.shorten(str(domain), 80)}:")


def _test(facts: Facts, context: Context) -> Message:
    monitor = facts["monitor"]
    if monitor is None:  # of a channel value that no monitor has yet
        return Message(
            event=facts["event"],
            tone=Tone.PLAIN,
            title="Test of an alert channel",
            summary="This is a test. Alerts arrive here.",
            at=_at(facts),
            links=(Link("Dashboard", f"{context.base_url}/"),),
            data={"monitor": None},
        )
    return Message(
        event=facts["event"],
        tone=Tone.PLAIN,
        title=f"Test: {_name(facts)}",
        summary="This is a test. Alerts of this monitor arrive here.",
        at=_at(facts),
        details=(_address(facts),),
        links=(Link("Monitor", f"{context.base_url}/monitors/{monitor['id']}"),),
        data={"monitor": dict(monitor)},
    )


def _burst(facts: Facts, context: Context) -> Message:
    """A grouped message: ``facts["incidents"]`` are the first ten members' own facts."""
    good = facts["event"] == Event.INCIDENTS_RESOLVED
    count, members = facts["count"], facts["incidents"]
    items = [
        Item(f"{_name(member)}: {_item(member, good)}", _links(member, context))
        for member in members
    ]
    more = count - len(members)
    if more > 0:
        items.append(Item(f"and {more} more"))
    state = "up again" if good else "down"
    return Message(
        event=facts["event"],
        tone=Tone.GOOD if good else Tone.BAD,
        title=f"{words.count_of(count, 'monitor')} {'is' if count == 1 else 'are'} {state}",
        summary="They changed within a minute, so this is one message for all of them.",
        at=_at(facts),
        items=tuple(items),
        links=(Link("All incidents", f"{context.base_url}/incidents"),),
        data={
            "count": count,
            "incidents": [
                {**_incident_data(member, context), "monitor": dict(member["monitor"])}
                for member in members
            ],
            "deliveries": list(facts["deliveries"]),
        },
    )


def _item(facts: Facts, good: bool) -> str:
    incident = facts["incident"]
    cause = words.shorten(_cause(incident), 120)
    if not good:
        return cause
    return f"was down for {_lasted(facts, _ended(facts))}. {cause}"


def _digest(facts: Facts, context: Context) -> Message:
    """What quiet hours held back. ``facts["incidents"]`` are the first ten, as they are now;
    ``facts["notices"]`` the own facts of the first ten certificate and domain alerts.
    """
    open_, over, noticed = facts["open"], facts["resolved"], facts["notice_count"]
    members, notices = facts["incidents"], facts["notices"]
    parts = [f"{open_} still down"] if open_ else []
    parts += [f"{words.count_of(over, 'outage')} over"] if over else []
    parts += [words.count_of(noticed, "notice")] if noticed else []
    alone = len(members) == 1 == open_ + over  # then its links are the message's
    items = [
        Item(f"{_name(member)}: {_digest_item(member)}", () if alone else _links(member, context))
        for member in members
    ]
    # As of now: in the days that they waited, the days that are left became fewer.
    told = [compose({**notice, "at": facts["at"]}, context) for notice in notices]
    items += [Item(notice.title, notice.links) for notice in told]
    more = open_ + over + noticed - len(items)
    if more > 0:
        items.append(Item(f"and {more} more"))
    all_links = (Link("All incidents", f"{context.base_url}/incidents"),)
    return Message(
        event=facts["event"],
        tone=Tone.BAD if open_ else Tone.GOOD if over else Tone.WARNING,
        title=f"Quiet hours are over: {', '.join(parts) or 'nothing happened'}",
        summary=f"Held back since {words.clock_time(words.read_moment(facts['since']))}.",
        at=_at(facts),
        items=tuple(items),
        links=_links(members[0], context) if alone else all_links,
        data={
            "count": open_ + over,
            "open": open_,
            "resolved": over,
            "incidents": [
                {**_incident_data(member, context), "monitor": dict(member["monitor"])}
                for member in members
            ],
            "notices": [{"type": notice.event, **notice.data} for notice in told],
            "deliveries": list(facts["deliveries"]),
        },
    )


def _digest_item(facts: Facts) -> str:
    incident = facts["incident"]
    started = _started(incident)
    cause = words.shorten(_cause(incident), 120)
    if incident["ended_at"]:
        lasted = _lasted(facts, _ended(facts))
        return f"was down for {lasted} from {words.clock_time(started)}. {cause}"
    seen = ", acknowledged" if incident["acknowledged_at"] else ""
    return f"still down since {words.clock_time(started)}{seen}. {cause}"


_COMPOSERS: dict[str, Callable[[Facts, Context], Message]] = {
    Event.INCIDENT_OPENED: _opened,
    Event.INCIDENT_RESOLVED: _resolved,
    Event.INCIDENT_REMINDER: _reminder,
    Event.INCIDENT_ACKNOWLEDGED: _acknowledged,
    Event.INCIDENTS_OPENED: _burst,
    Event.INCIDENTS_RESOLVED: _burst,
    Event.INCIDENTS_DIGEST: _digest,
    Event.CERTIFICATE_EXPIRING: _certificate,
    Event.DOMAIN_EXPIRING: _domain,
    Event.TEST: _test,
}


def base_url(public_url: str | None, bind: str) -> str:
    """Where links lead: PUBLIC_URL, else the address that the server listens on."""
    if public_url:
        return public_url.rstrip("/")
    host, _, port = bind.rpartition(":")
    # 0.0.0.0 is where a server listens, not where a browser goes.
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    return f"http://{host}" if port == "80" else f"http://{host}:{port}"
