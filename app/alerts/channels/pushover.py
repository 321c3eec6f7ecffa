"""Pushover's message API.

https://pushover.net/api
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

from app.alerts.answers import Acceptance, Answer
from app.alerts.channels.base import Outgoing, Tools, dict_of, is_good, post, reasons
from app.alerts.messages.message import SIGNS, Message, Tone
from app.alerts.words import shorten
from app.net.client import Response
from app.rules.channel_values import parse_pushover

API = "https://api.pushover.net/1/messages.json"
MAX_TITLE, MAX_MESSAGE, MAX_URL, MAX_URL_TITLE = 250, 1_024, 512, 100
HIGH = 1  # also in the quiet hours of the person


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    user, token = parse_pushover(outgoing.value)
    body = {"user": user, "token": token, **payload(outgoing.message)}
    return post(
        outgoing, tools, body, url=API, secrets=[user, token], read=reasons, acceptance=acceptance
    )


def acceptance(response: Response) -> Acceptance | None:
    """The status in the body is 1 if the message was accepted."""
    is_refused = is_good(response) and dict_of(response).get("status") not in (None, 1)
    return Acceptance.PERMANENT if is_refused else None


def payload(message: Message) -> dict[str, Any]:
    by_use = sorted(message.links, key=attrgetter("acts"))
    link = next((link for link in by_use if len(link.url) <= MAX_URL), None)
    others = tuple(other for other in message.links if other is not link)
    body = {
        "title": shorten(f"{SIGNS[message.tone]} {message.title}", MAX_TITLE),
        "message": replace(message, links=others).fitted(MAX_MESSAGE),
        "priority": HIGH if message.tone is Tone.BAD else 0,
        "timestamp": int(message.at.timestamp()),
    }
    if link is not None:
        body |= {"url": link.url, "url_title": shorten(link.label, MAX_URL_TITLE)}
    return body
