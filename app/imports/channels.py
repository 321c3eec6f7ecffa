"""Which of Wakeful's channels a notification of another tool corresponds to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.imports.candidates import Draft, shown, string
from app.records import Channel
from app.rules.channel_values import check_value

# Of each type, the channel and the settings that hold its value.
KUMA = {
    "slack": (Channel.SLACK, "slackwebhookURL"),
    "mattermost": (Channel.SLACK, "mattermostWebhookUrl"),
    "discord": (Channel.DISCORD, "discordWebhookUrl"),
    "teams": (Channel.TEAMS, "webhookUrl"),
    "webhook": (Channel.WEBHOOK, "webhookURL"),
    "smtp": (Channel.EMAIL, "smtpTo"),
    "twilio": (Channel.SMS, "twilioToNumber"),
    "apprise": (Channel.APPRISE, "appriseURL"),
}
GATUS = {
    "slack": (Channel.SLACK, "webhook-url"),
    "mattermost": (Channel.SLACK, "webhook-url"),
    "discord": (Channel.DISCORD, "webhook-url"),
    "teams": (Channel.TEAMS, "webhook-url"),
    "teams-workflows": (Channel.TEAMS, "webhook-url"),
    "email": (Channel.EMAIL, "to"),
    "twilio": (Channel.SMS, "to"),
}
_TELEGRAM = {
    "kuma": ("telegramBotToken", "telegramChatID", "telegramMessageThreadID"),
    "gatus": ("token", "id", "topic-id"),
}
OTHER_BODY = "The webhook receives Wakeful's JSON, which differs."


def add(draft: Draft, tool: str, kind: str, settings: Mapping[str, Any], name: str) -> None:
    """Add the channels of a notification to ``draft``, or say that it has none. ``name``: how the
    other tool calls it; sentences never repeat a value.
    """
    label = f'Notification "{shown(name)}" ({shown(kind)})'
    found = list(_values(tool, kind, settings))
    if not found:
        draft.remark(f"{label} dropped: Wakeful has no matching channel.")
    for channel, value in found:
        # Whether the instance has a bot is the form's to ask: Kuma always names one.
        fault = check_value(channel, value, telegram_token_set=True)
        if fault:
            draft.remark(f"{label} dropped: its address is not valid for {channel.value}.")
        else:
            draft.pair("alerts", channel.value, value)
            if channel is Channel.WEBHOOK:
                draft.remark(OTHER_BODY)


def _values(tool: str, kind: str, settings: Mapping[str, Any]) -> Iterator[tuple[Channel, str]]:
    if kind == "telegram":
        token, chat, thread = (string(settings.get(key)).strip() for key in _TELEGRAM[tool])
        if token and chat:
            yield Channel.TELEGRAM, "/".join(part for part in (token, chat, thread) if part)
        return
    channel, key = (KUMA if tool == "kuma" else GATUS).get(kind, (None, ""))
    value = string(settings.get(key)).strip()
    if channel is None or not value:
        return
    if channel is Channel.EMAIL:
        for address in value.replace(";", ",").split(","):
            if address.strip():
                yield channel, _address(address.strip())
    else:
        yield channel, value


def _address(text: str) -> str:
    """The address of ``Name <address>``."""
    before, bracket, rest = text.partition("<")
    return rest.removesuffix(">").strip() if bracket else before
