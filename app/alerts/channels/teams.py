"""Microsoft Teams through a Workflows URL: a message with one Adaptive Card.

https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using
Workflows take no MessageCard. Version 1.4 is what all Teams clients show.
"""

from __future__ import annotations

import re
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from app.alerts.answers import Acceptance, Answer, status_meaning
from app.alerts.channels.base import Outgoing, Tools, dict_of, field_of, is_good, is_refused, post
from app.alerts.messages.message import Item, Message, Tone
from app.net.client import Response

CARD_TYPE = "application/vnd.microsoft.card.adaptive"
_COLOURS = {Tone.BAD: "attention", Tone.GOOD: "good", Tone.WARNING: "warning", Tone.PLAIN: "accent"}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~<>])")


# Connectors answer 200; the text of the answer has the status that Teams gave them.
_INNER = re.compile(r"endpoint returned HTTP error (\d{3})\b")
_FAILED = "message delivery failed"
_PASSING = re.compile(r"TooManyRequests|Throttl|Timeout|Unavailable", re.IGNORECASE)


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    message = outgoing.message
    plain = iter([payload(replace(message, details=(), items=()))])

    def correct(response: Response) -> dict[str, Any] | None:
        """If the service refuses the card, send it once without details and items."""
        is_large = response.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return next(plain, None) if is_large or is_refused(response, acceptance) else None

    return post(
        outgoing,
        tools,
        payload(message),
        read=field_of("error", "message"),
        acceptance=acceptance,
        correct=correct,
    )


def acceptance(response: Response) -> Acceptance | None:
    if not is_good(response):
        return None
    if inner := _INNER.search(response.text):
        return status_meaning(int(inner[1]))
    if not dict_of(response).get("error") and _FAILED not in response.text:
        return None
    return Acceptance.RETRY if _PASSING.search(response.text) else Acceptance.PERMANENT


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


def _text(body: str, **style: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": escape(body), "wrap": True, **style}
