"""The content of a message, which each channel lays out, and the context that it is composed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from enum import StrEnum
from typing import Any

from app.alerts import words
from app.i18n import N_, _, spoken


class Tone(StrEnum):
    """The meaning of a message, which decides its colour and the sign in front of its title."""

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


Facts = Mapping[str, Any]  # as the outbox has them
FOOTER = N_("You get this message because a monitor alerts this address.")


@dataclass(frozen=True, slots=True)
class MessageLink:
    """``acts``: the link is for an action, such as to acknowledge, and not only for a page."""

    label: str
    url: str
    acts: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An entry in the list of a message, such as one incident of a burst."""

    text: str
    links: tuple[MessageLink, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Message:
    """The content of one delivery.

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
    links: tuple[MessageLink, ...] = ()
    thread: str | None = None  # mail programs show the mails of one incident together
    unsubscribe: str | None = None  # a link; a POST to it ends the subscription
    footer: str = field(default_factory=lambda: _(FOOTER))  # of a mail: why people get it
    language: str = field(default_factory=spoken)  # of its sentences
    data: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Facts, tone: Tone, title: str, summary: str, **parts: Any) -> Message:
        """The message of these facts, with their event and time."""
        parts = {"at": time_of(facts), **parts}
        return cls(event=facts["event"], tone=tone, title=title, summary=summary, **parts)

    @property
    def page(self) -> str:
        """The URL that a tap on a notification opens; empty without one."""
        return next((link.url for link in self.links if not link.acts), "")

    @property
    def text(self) -> str:
        """The whole message as plain text, with links as bare URLs."""
        return "\n".join(self.lines(self.title))

    def lines(self, *first: str) -> list[str]:
        lines = [*first, self.summary]
        lines += [f"{label}: {value}" for label, value in self.details]
        for item in self.items:
            lines.append(f"- {item}")
            lines += [f"  {link.label}: {link.url}" for link in item.links]
        lines += [f"{link.label}: {link.url}" for link in self.links]
        return [line for line in lines if line]

    def fitted(self, limit: int, *first: str, size: Callable[[str], int] = len) -> str:
        """``first`` and the lines of the message, cut to ``limit`` if they are larger. The links of
        the message, at its end, are not cut.
        """
        for message in (self, self.without_item_links()):
            text = "\n".join(message.lines(*first))
            if size(text) <= limit:
                return text
        links = "\n".join(f"{link.label}: {link.url}" for link in self.links)
        room = limit - size(f"…\n{links}")
        while size(text) > room:
            text = text[: len(text) - max(1, (size(text) - room) // 4)]
        return f"{text.rstrip()}…\n{links}".rstrip()

    def in_zone(self, zone: tzinfo) -> Message:
        """The message with its times in this zone."""
        return replace(
            self,
            title=words.in_zone(self.title, zone),
            summary=words.in_zone(self.summary, zone),
            details=tuple(
                (words.in_zone(label, zone), words.in_zone(value, zone))
                for label, value in self.details
            ),
            items=tuple(replace(item, text=words.in_zone(item.text, zone)) for item in self.items),
        )

    def without_item_links(self) -> Message:
        """The message for channels with little room: the items without their links."""
        return replace(self, items=tuple(Item(item.text) for item in self.items))


def time_of(facts: Facts) -> datetime:
    """When the message was written, before it was sent."""
    return datetime.fromisoformat(facts["at"])


@dataclass(frozen=True, slots=True)
class MessageContext:
    """The values that a message needs besides its facts.

    ``base_url`` begins every link. ``acknowledge_token`` makes a token for an incident.
    ``others_down``: the names of the monitors that are down now, by id. ``notes``: the notes of
    monitors, by id. ``zone``: the time zone of the message; None for UTC, and some chats show each
    reader a time in UTC in the reader's own zone.
    """

    base_url: str
    acknowledge_token: Callable[[int], str]
    others_down: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    zone: tzinfo | None = None

    def incident_url(self, incident_id: int) -> str:
        return f"{self.base_url}/incidents/{incident_id}"

    def acknowledge_url(self, incident_id: int) -> str:
        return f"{self.base_url}/acknowledge/{self.acknowledge_token(incident_id)}"


def base_url(public_url: str | None, bind: str) -> str:
    """The beginning of all links: PUBLIC_URL, else the address that the server listens on."""
    if public_url:
        return public_url.rstrip("/")
    host, _colon, port = bind.rpartition(":")
    # 0.0.0.0 is where a server listens, not where a browser goes.
    host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    return f"http://{host}" if port == "80" else f"http://{host}:{port}"
