"""Slack's incoming webhooks: blocks, and the whole message as text for notifications and for
services that show no blocks (Mattermost, Rocket.Chat). Only the blocks have times in the reader's
own zone: those services would show Slack's notation of a time unchanged.

https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from app.alerts.answers import Acceptance, Answer
from app.alerts.channels.base import Outgoing, Tools, dict_of, is_good, is_refused, post
from app.alerts.messages.message import SIGNS, Item, Message, MessageLink
from app.alerts.words import localized, shorten
from app.net.client import Response

MAX_HEADER = 150
MAX_SECTION = 3_000
MAX_FIELD = 2_000
_CALLS_PEOPLE = re.compile(r"@(?=(?:here|channel|everyone|all)\b)", re.IGNORECASE)


# The one-word answers of Slack. Some services with Slack's interface send them with the status 200.
# https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks#handling_errors
_PASSING = ("ratelimited", "rate_limited", "rollup_error", "internal_error", "fatal_error",
            "service_unavailable", "request_timeout")  # fmt: skip
_LAYOUT = ("invalid_attachments", "invalid_blocks", "invalid_payload", "msg_too_long", "no_text",
           "too_many_attachments")  # fmt: skip
_REFUSED = ("action_prohibited", "channel_is_archived", "channel_not_found", "invalid_attachments",
            "invalid_blocks", "invalid_payload", "invalid_token", "msg_too_long",
            "no_active_hooks", "no_service", "no_service_id", "no_team", "no_text",
            "posting_to_general_channel_denied", "team_disabled", "too_many_attachments",
            "user_not_found")  # fmt: skip


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    body = payload(outgoing.message)

    def correct(response: Response) -> dict[str, Any] | None:
        """If the service refuses the blocks, send only the plain text."""
        is_layout = response.text.strip() in _LAYOUT or is_refused(response, acceptance)
        return body if is_layout and body.pop("blocks", None) is not None else None

    return post(outgoing, tools, body, acceptance=acceptance, correct=correct)


def acceptance(response: Response) -> Acceptance | None:
    body = dict_of(response)
    refused = body.get("ok") is False or body.get("success") is False
    word = body.get("error") if refused else response.text.strip()
    if word in _PASSING:
        return Acceptance.RETRY
    return Acceptance.PERMANENT if is_good(response) and (refused or word in _REFUSED) else None


def payload(message: Message) -> dict[str, Any]:
    title = _CALLS_PEOPLE.sub("@\u200b", f"{SIGNS[message.tone]} {message.title}")
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": shorten(title, MAX_HEADER)}},
        _section(_formatted(message.summary)),
    ]
    if message.details:
        fields = [
            _mrkdwn(f"*{escape(label)}*\n{_formatted(value)}", MAX_FIELD)
            for label, value in message.details[:10]
        ]
        blocks.append({"type": "section", "fields": fields})
    # A section for each: ten with their links would not fit into one.
    blocks += [_section(_item(item, _formatted)) for item in message.items]
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


def _link(link: MessageLink) -> str:
    return f"<{link.url}|{escape(link.label)}>"


def escape(raw: str) -> str:
    """Text that can neither make a link nor call people."""
    plain = raw.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALLS_PEOPLE.sub("@\u200b", plain)


def _formatted(raw: str) -> str:
    return localized(raw, escape, _date)


def _date(seconds: int, written: str) -> str:
    """https://docs.slack.dev/messaging/formatting-message-text#date-formatting"""
    return f"<!date^{seconds}^{{date_short_pretty}} {{time}}|{written}>"


def _section(body: str) -> dict[str, Any]:
    return {"type": "section", "text": _mrkdwn(body, MAX_SECTION)}


def _mrkdwn(body: str, limit: int) -> dict[str, str]:
    return {"type": "mrkdwn", "text": body[:limit]}
