"""ntfy: a message as JSON, posted to the root of its server.

https://docs.ntfy.sh/publish/#publish-as-json
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.alerts.answers import Answer
from app.alerts.channels.base import Outgoing, Tools, field_of, post
from app.alerts.messages.message import Message, Tone
from app.alerts.words import shorten
from app.rules.channel_values import parse_ntfy

MAX_TITLE = 250
MAX_MESSAGE = 4_000  # bytes; the server makes an attachment of a longer one
MAX_ACTIONS = 3
HIGH, NORMAL = 4, 3
TAGS = {
    Tone.BAD: "red_circle", Tone.GOOD: "green_circle", Tone.WARNING: "orange_circle",
    Tone.PLAIN: "blue_circle",
}  # fmt: skip


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    target = parse_ntfy(outgoing.value)
    return post(
        outgoing,
        tools,
        payload(outgoing.message, target.topic),
        url=target.server,
        headers={"Authorization": f"Bearer {target.token}"} if target.token else None,
        secrets=[target.topic, target.token],
        read=field_of("error"),
    )


def payload(message: Message, topic: str) -> dict[str, Any]:
    text = replace(message, links=())  # the buttons are the links
    return {
        "topic": topic,
        "title": shorten(message.title, MAX_TITLE),
        "message": text.fitted(MAX_MESSAGE, size=lambda part: len(part.encode())),
        "tags": [TAGS[message.tone]],
        "priority": HIGH if message.tone is Tone.BAD else NORMAL,
        "click": message.page,
        "actions": [
            {"action": "view", "label": link.label, "url": link.url}
            for link in message.links[:MAX_ACTIONS]
        ],
    }
