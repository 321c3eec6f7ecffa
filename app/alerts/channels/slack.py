"""Slack's incoming webhooks: blocks, and a text that says all for those that show no blocks
(notifications, Mattermost, Rocket.Chat). Only the blocks have times in the reader's own zone: the
others would show Slack's form of them as it is.

https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from app.alerts.channels.answer import Answer
from app.alerts.channels.base import Outgoing, Tools, post_json
from app.alerts.channels.moments import localized
from app.alerts.messages import SIGNS, Item, Link, Message
from app.alerts.words import shorten

MAX_HEADER = 150
MAX_SECTION = 3_000
MAX_FIELD = 2_000
_CALLS_PEOPLE = re.compile(r"@(?=(?:here|channel|everyone|all)\b)", re.IGNORECASE)


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    return post_json(outgoing, tools, payload(outgoing.message))


def payload(message: Message) -> dict[str, Any]:
    title = _CALLS_PEOPLE.sub("@\u200b", f"{SIGNS[message.tone]} {message.title}")
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": shorten(title, MAX_HEADER)}},
        _section(_shown(message.summary)),
    ]
    if message.details:
        fields = [
            _mrkdwn(f"*{escape(label)}*\n{_shown(value)}", MAX_FIELD)
            for label, value in message.details[:10]
        ]
        blocks.append({"type": "section", "fields": fields})
    # A section for each: ten with their links would not fit into one.
    blocks += [_section(_item(item, _shown)) for item in message.items]
    if message.links:
        # Links and not buttons: Slack warns about a button of an app that takes no interactions.
        blocks.append(_section("  |  ".join(f"*{_link(link)}*" for link in message.links)))
    return {"text": text(message, title), "blocks": blocks}


def text(message: Message, title: str) -> str:
    lines = [f"*{escape(title)}*", escape(message.summary)]
    lines += [f"{escape(label)}: {escape(value)}" for label, value in message.details]
    lines += [_item(item, escape) for item in message.items]
    lines += [_link(link) for link in message.links]
    return "\n".join(lines)


def _item(item: Item, write: Callable[[str], str]) -> str:
    return "  ".join([f"• {write(item.text)}", *(_link(link) for link in item.links)])


def _link(link: Link) -> str:
    return f"<{link.url}|{escape(link.label)}>"


def escape(raw: str) -> str:
    """Text that can neither make a link nor call people."""
    plain = raw.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALLS_PEOPLE.sub("@\u200b", plain)


def _shown(raw: str) -> str:
    return localized(raw, escape, _date)


def _date(seconds: int, written: str) -> str:
    """https://docs.slack.dev/messaging/formatting-message-text#date-formatting"""
    return f"<!date^{seconds}^{{date_short_pretty}} {{time}}|{written}>"


def _section(body: str) -> dict[str, Any]:
    return {"type": "section", "text": _mrkdwn(body, MAX_SECTION)}


def _mrkdwn(body: str, limit: int) -> dict[str, str]:
    return {"type": "mrkdwn", "text": body[:limit]}
