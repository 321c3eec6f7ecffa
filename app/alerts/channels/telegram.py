"""Telegram's Bot API: sendMessage.

https://core.telegram.org/bots/api#sendmessage
The text is plain and its title made bold by an entity: with a parse mode, one special character
in a monitor's name would make Telegram refuse the message.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from app.alerts.answers import Acceptance, Answer, permanent, status_meaning
from app.alerts.channels.base import Outgoing, Tools, dict_of, field_of, is_good, is_refused, post
from app.alerts.messages.message import SIGNS, Message
from app.i18n import _
from app.net.client import Response
from app.rules.channel_values import TelegramTarget, parse_telegram

_CHAT = re.compile(r"-[0-9]{1,19}")  # of a group
SHORT_TEXT = 1_000  # for a server that takes less
MAX_TEXT = 4_096  # in UTF-16 units


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
    body = payload(outgoing.message, target)
    notes: list[str] = []

    def correct(response: Response) -> dict[str, Any] | None:
        note = _correct(response, body) if is_refused(response, acceptance) else None
        notes.extend([] if note is None else [note])
        return None if note is None else body

    answer = post(
        outgoing,
        tools,
        body,
        url=f"{settings.telegram_api}/bot{token}/sendMessage",
        secrets=(token, token.partition(":")[2]),
        own_setting=True,
        read=field_of("description"),
        acceptance=acceptance,
        correct=correct,
    )
    answer = replace(answer, text=" ".join([answer.text, *filter(None, notes)]))
    if answer.ok and body["chat_id"] != target.chat:
        return replace(answer, moved_to=replace(target, chat=body["chat_id"]).value)
    return answer


def acceptance(response: Response) -> Acceptance | None:
    """A self-hosted server (TELEGRAM_API) may have the status only in the body."""
    body = dict_of(response)
    if not is_good(response) or body.get("ok") is not False:
        return None
    code = body.get("error_code")
    return status_meaning(code) if isinstance(code, int) and code >= 300 else Acceptance.PERMANENT


def _correct(response: Response, body: dict[str, Any]) -> str | None:
    """Change ``body`` as the answer asks, and return a note for people, which may be empty. Return
    None if the answer is final. Each change is made once.

    https://core.telegram.org/bots/api#responseparameters
    """
    words = field_of("description")(response).casefold().replace("_", " ")
    parameters = dict_of(response).get("parameters")
    moved = parameters.get("migrate_to_chat_id") if isinstance(parameters, dict) else None
    if _CHAT.fullmatch(str(moved)) and str(moved) != body["chat_id"]:
        body["chat_id"] = str(moved)
        return _("(The group has become a supergroup with the new chat ID %(id)s.)", id=moved)
    if "thread" in words or "topic" in words:
        if body.pop("message_thread_id", None) is not None:
            return _("(Its topic is closed or gone, so the message went to the group itself.)")
    elif "entit" in words and body.pop("entities", None) is not None:
        return ""
    elif "too long" in words and len(body["text"]) > SHORT_TEXT:
        body["text"] = body["text"][:SHORT_TEXT]
        return ""
    return None


def payload(message: Message, target: TelegramTarget) -> dict[str, Any]:
    title = _title(message)
    thread = {} if target.thread is None else {"message_thread_id": target.thread}
    return {
        "chat_id": target.chat,
        "text": text(message),
        "entities": [{"type": "bold", "offset": 0, "length": units(title)}],
        # A preview would request the acknowledge link.
        "link_preview_options": {"is_disabled": True},
        **thread,
    }


def _title(message: Message) -> str:
    return f"{SIGNS[message.tone]} {message.title}"


def text(message: Message) -> str:
    return message.fitted(MAX_TEXT, _title(message), size=units)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
