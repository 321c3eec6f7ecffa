"""Discord's webhooks: one embed. A monitor's name cannot mention anybody.

https://discord.com/developers/docs/resources/webhook#execute-webhook
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from app.alerts.answers import Answer
from app.alerts.channels.base import Outgoing, Tools, dict_of, field_of, post
from app.alerts.messages.message import COLOURS, SIGNS, Message, MessageLink
from app.alerts.words import localized, shorten
from app.net.client import Response
from app.rules.time import iso

MAX_CONTENT = 2_000
MAX_DESCRIPTION = 4_096
MAX_FIELD_NAME = 256
MAX_FIELD_VALUE = 1_024
MAX_FIELDS = 25
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-!|~<>:@])")


MAX_THREAD_NAME = 100
NEEDS_THREAD = 220001  # the webhook's channel is a forum, where each message begins a thread


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    message = outgoing.message
    body = payload(message)

    def correct(response: Response) -> dict[str, Any] | None:
        if response.status != HTTPStatus.BAD_REQUEST:
            return None
        if dict_of(response).get("code") == NEEDS_THREAD and "thread_name" not in body:
            body["thread_name"] = shorten(message.title, MAX_THREAD_NAME)
        elif dict_of(response) and body.pop("embeds", None) is not None:  # for example too long
            text = f"{body['content']}\n{_description(message.without_item_links())}"
            body["content"] = text[:MAX_CONTENT]
        else:
            return None
        return body

    return post(outgoing, tools, body, read=field_of("message"), correct=correct)


def payload(message: Message) -> dict[str, Any]:
    title = f"{SIGNS[message.tone]} **{escape(message.title)}**"
    description = _description(message)
    if len(description) > MAX_DESCRIPTION:
        description = _description(message.without_item_links())
    embed: dict[str, Any] = {
        "description": description[:MAX_DESCRIPTION],
        "color": COLOURS[message.tone],
        "timestamp": iso(message.at),
        "fields": [
            {
                "name": shorten(label, MAX_FIELD_NAME),
                "value": _formatted(value)[:MAX_FIELD_VALUE],
                "inline": False,
            }
            for label, value in message.details[:MAX_FIELDS]
        ],
    }
    return {
        "username": "Wakeful",
        "content": title[:MAX_CONTENT],  # a phone's notification shows this, and no embeds
        "embeds": [embed],
        "allowed_mentions": {"parse": []},
    }


def _description(message: Message) -> str:
    lines = [_formatted(message.summary)]
    lines += [
        " ".join([f"• {_formatted(item.text)}", *_links(item.links)]) for item in message.items
    ]
    if message.links:
        lines.append(" | ".join(_links(message.links)))
    return "\n".join(lines)


def _links(links: tuple[MessageLink, ...]) -> list[str]:
    return [f"[{link.label}]({link.url})" for link in links]


def _formatted(raw: str) -> str:
    return localized(raw, escape, _date)


def _date(seconds: int, _written: str) -> str:
    """https://discord.com/developers/docs/reference#message-formatting-timestamp-styles"""
    return f"<t:{seconds}:f>"


def escape(raw: str) -> str:
    return _MARKDOWN.sub(r"\\\1", raw)
