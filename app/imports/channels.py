"""Which of Wakeful's channels a notification of another tool corresponds to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.imports.candidates import Draft, shown, string
from app.records import Channel
from app.rules.channel_values import check_value

# Of each type, the channel and the settings that hold its value.
_TOOLS = {
    "kuma": {
        "slack": (Channel.SLACK, ("slackwebhookURL",)),
        "mattermost": (Channel.SLACK, ("mattermostWebhookUrl",)),
        "discord": (Channel.DISCORD, ("discordWebhookUrl",)),
        "teams": (Channel.TEAMS, ("webhookUrl",)),
        "telegram": (
            Channel.TELEGRAM,
            ("telegramBotToken", "telegramChatID", "telegramMessageThreadID"),
        ),
        "webhook": (Channel.WEBHOOK, ("webhookURL",)),
        "smtp": (Channel.EMAIL, ("smtpTo",)),
        "twilio": (Channel.SMS, ("twilioToNumber",)),
        "apprise": (Channel.APPRISE, ("appriseURL",)),
    },
    "gatus": {
        "slack": (Channel.SLACK, ("webhook-url",)),
        "mattermost": (Channel.SLACK, ("webhook-url",)),
        "discord": (Channel.DISCORD, ("webhook-url",)),
        "teams": (Channel.TEAMS, ("webhook-url",)),
        "teams-workflows": (Channel.TEAMS, ("webhook-url",)),
        "telegram": (Channel.TELEGRAM, ("token", "id", "topic-id")),
        "email": (Channel.EMAIL, ("to",)),
        "twilio": (Channel.SMS, ("to",)),
    },
}
OTHER_BODY = "The webhook receives Wakeful's JSON, which differs."
# Characters of a setting. One notification may be that of ten thousand monitors.
MOST_SETTING = 8_000


def keys(tool: str, kind: str) -> Sequence[str]:
    """The settings of this kind of notification that are needed; none if it has no channel."""
    return _TOOLS[tool][kind][1] if kind in _TOOLS[tool] else ()


def add(draft: Draft, tool: str, kind: str, settings: Mapping[str, Any], name: str) -> None:
    """Add the channels of a notification to ``draft``, or say that it has none. ``name``: how the
    other tool calls it; sentences never repeat a value.
    """
    label = f'Notification "{shown(name)}" ({shown(kind)})'
    values = [string(settings.get(key)).strip() for key in keys(tool, kind)]
    if not values or not values[0]:
        draft.remark(f"{label} dropped: Wakeful has no matching channel.")
        return
    channel = _TOOLS[tool][kind][0]
    for value in _split(channel, values):
        # Whether the instance has a bot is the form's to ask: other tools always name one.
        if check_value(channel, value, telegram_token_set=True):
            draft.remark(f"{label} dropped: its address is not valid for {channel.value}.")
        else:
            draft.pair("alerts", channel.value, value)
            if channel is Channel.WEBHOOK:
                draft.remark(OTHER_BODY)


def _split(channel: Channel, values: Sequence[str]) -> list[str]:
    whole = "/".join(filter(None, values))
    if len(whole) > MOST_SETTING or channel is not Channel.EMAIL:
        return [whole[: MOST_SETTING + 1]]
    parts = whole.replace(";", ",").split(",")
    return [_address(part.strip()) for part in parts if part.strip()]


def _address(text: str) -> str:
    """The address of ``Name <address>``."""
    before, bracket, rest = text.partition("<")
    return rest.removesuffix(">").strip() if bracket else before
