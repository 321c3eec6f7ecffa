"""Microsoft Teams through a Workflows URL: a message with one Adaptive Card.

https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
Workflows take no MessageCard. Version 1.4 is what all Teams clients show.
"""

from __future__ import annotations

import re
from typing import Any

from app.alerts.channels.answer import Answer
from app.alerts.channels.base import Outgoing, Tools, field_of, post_json
from app.alerts.messages import Item, Message, Tone

CARD_TYPE = "application/vnd.microsoft.card.adaptive"
_COLOURS = {
    Tone.BAD: "attention",
    Tone.GOOD: "good",
    Tone.WARNING: "warning",
    Tone.PLAIN: "accent",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~<>])")


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    return post_json(outgoing, tools, payload(outgoing.message), read=field_of("error", "message"))


def payload(message: Message) -> dict[str, Any]:
    return {
        "type": "message",
        "attachments": [{"contentType": CARD_TYPE, "contentUrl": None, "content": card(message)}],
    }


def card(message: Message) -> dict[str, Any]:
    title = _text(message.title, size="Large", weight="Bolder", color=_COLOURS[message.tone])
    body: list[dict[str, Any]] = [title, _text(message.summary)]
    if message.details:
        facts = [{"title": label, "value": escape(value)} for label, value in message.details]
        body.append({"type": "FactSet", "facts": facts})
    body += [_item(item) for item in message.items]
    return {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "fallbackText": message.title,
        "body": body,
        "actions": [
            {"type": "Action.OpenUrl", "title": link.label, "url": link.url}
            for link in message.links
        ],
    }


def escape(raw: str) -> str:
    """Text blocks and facts read Markdown: a monitor's name must not become a link."""
    return _MARKDOWN.sub(r"\\\1", raw)


def _item(item: Item) -> dict[str, Any]:
    block = _text(f"• {item}", spacing="Small")
    block["text"] += "".join(f"  [{link.label}]({link.url})" for link in item.links)
    return block


def _text(body: str, **looks: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": escape(body), "wrap": True, **looks}
