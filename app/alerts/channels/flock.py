"""Flock's incoming webhooks: FlockML, and the same as plain text for notifications.

https://docs.flock.com/display/flockos/Create+An+Incoming+Webhook
"""

from __future__ import annotations

from html import escape
from typing import Any

from app.alerts.channels.answer import Answer
from app.alerts.channels.base import Outgoing, Tools, field_of, post_json
from app.alerts.messages import SIGNS, Link, Message


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    return post_json(outgoing, tools, payload(outgoing.message), read=field_of("description"))


def payload(message: Message) -> dict[str, Any]:
    title = f"{SIGNS[message.tone]} {message.title}"
    lines = [f"<b>{escape(title)}</b>", escape(message.summary)]
    lines += [f"{escape(label)}: {escape(value)}" for label, value in message.details]
    lines += [
        " ".join([f"• {escape(item.text)}", *(_link(link) for link in item.links)])
        for item in message.items
    ]
    lines += [_link(link) for link in message.links]
    return {
        "text": "\n".join(message.lines(title)),
        "flockml": f"<flockml>{'<br/>'.join(lines)}</flockml>",
    }


def _link(link: Link) -> str:
    return f'<a href="{escape(link.url)}">{escape(link.label)}</a>'
