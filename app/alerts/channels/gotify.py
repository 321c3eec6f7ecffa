"""Gotify: a message to the application that the token belongs to.

https://gotify.net/docs/pushmsg, https://gotify.net/docs/msgextras
"""

from __future__ import annotations

from typing import Any

from app.alerts.answers import Answer
from app.alerts.channels.base import Outgoing, Tools, field_of, post
from app.alerts.messages.message import SIGNS, Message, Tone
from app.rules.channel_values import parse_gotify

HIGH, NORMAL = 8, 5  # with 8, phones vibrate and show the message on top of others


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    url, token = parse_gotify(outgoing.value)
    return post(
        outgoing,
        tools,
        payload(outgoing.message),
        url=url,
        headers={"X-Gotify-Key": token},
        secrets=[token],
        read=field_of("errorDescription"),
    )


def payload(message: Message) -> dict[str, Any]:
    click = {"click": {"url": message.page}} if message.page else {}
    return {
        "title": f"{SIGNS[message.tone]} {message.title}",
        "message": "\n".join(message.lines()),
        "priority": HIGH if message.tone is Tone.BAD else NORMAL,
        "extras": {"client::display": {"contentType": "text/plain"}, "client::notification": click},
    }
