"""Telegram's Bot API: sendMessage.

https://core.telegram.org/bots/api#sendmessage
The text is plain and its title made bold by an entity: with a parse mode, one odd character in a
monitor's name would make Telegram refuse the message.
"""

from __future__ import annotations

from typing import Any

from app.alerts.channels.answer import Answer, permanent
from app.alerts.channels.base import Outgoing, Tools, field_of, post_json
from app.alerts.messages import SIGNS, Message
from app.i18n import _
from app.rules.channel_values import TelegramTarget, parse_telegram

MAX_TEXT = 4_096  # UTF-16 units count, so a sign outside the basic plane counts twice


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    settings = tools.settings
    try:
        target = parse_telegram(outgoing.value)
    except ValueError as fault:
        return permanent(str(fault))
    token = target.token or settings.telegram_token
    if token is None:
        return permanent(
            _("The bot token is missing. Write BOT_TOKEN/CHAT_ID, or set WAKEFUL_TELEGRAM_TOKEN.")
        )
    return post_json(
        outgoing,
        tools,
        payload(outgoing.message, target),
        url=f"{settings.telegram_api}/bot{token}/sendMessage",
        secrets=(token, token.partition(":")[2]),
        own_setting=True,
        read=field_of("description"),
    )


def payload(message: Message, target: TelegramTarget) -> dict[str, Any]:
    title = f"{SIGNS[message.tone]} {message.title}"
    found: dict[str, Any] = {
        "chat_id": target.chat,
        "text": _fit(title, message),
        "entities": [{"type": "bold", "offset": 0, "length": units(title)}],
        "link_preview_options": {
            "is_disabled": True
        },  # a preview would request the acknowledge link
    }
    if target.thread is not None:
        found["message_thread_id"] = target.thread
    return found


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _fit(title: str, message: Message) -> str:
    """The whole text, or as much of it as fits; the message's own links come last and are kept."""
    for fuller in (message, message.without_item_links()):
        whole = "\n".join(fuller.lines(title))
        if units(whole) <= MAX_TEXT:
            return whole
    links = "\n".join(f"{link.label}: {link.url}" for link in message.links)
    room = MAX_TEXT - units(links) - 2
    head = whole
    while units(head) > room:
        head = head[: len(head) - max(1, (units(head) - room) // 2)]
    return f"{head.rstrip()}…\n{links}"
