"""Flock's incoming webhooks: FlockML, and the same as plain text for notifications.

https://docs.flock.com/display/flockos/Create+An+Incoming+Webhook
"""

from __future__ import annotations

from html import escape
from typing import Any

from app.alerts.answers import Acceptance, Answer
from app.alerts.channels.base import Outgoing, Tools, dict_of, field_of, is_good, is_refused, post
from app.alerts.messages.message import SIGNS, Message, MessageLink
from app.net.client import Response


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    body = payload(outgoing.message)

    def correct(response: Response) -> dict[str, Any] | None:
        """If the service refuses the FlockML, send only the plain text."""
        if not is_refused(response, acceptance) or body.pop("flockml", None) is None:
            return None
        return body

    return post(
        outgoing, tools, body, read=field_of("description"), acceptance=acceptance, correct=correct
    )


def acceptance(response: Response) -> Acceptance | None:
    return Acceptance.PERMANENT if is_good(response) and dict_of(response).get("error") else None


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


def _link(link: MessageLink) -> str:
    return f'<a href="{escape(link.url)}">{escape(link.label)}</a>'
