"""Which of Wakeful's channels a notification of another tool corresponds to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.i18n import N_, _
from app.imports.candidates import MOST_ROWS, Draft, shown
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
OTHER_BODY = N_("The webhook receives Wakeful's JSON, which differs.")
# Characters of a setting that are read.
MOST_SETTING = 8_000


def keys(tool: str, kind: str) -> Sequence[str]:
    """The settings of this kind of notification that are needed; none if it has no channel."""
    return _TOOLS[tool][kind][1] if kind in _TOOLS[tool] else ()


@dataclass(frozen=True, slots=True)
class Notification:
    """The channels of a notification of another tool, each with its value, and what to say of it.
    It is read once, because ten thousand monitors may name it.
    """

    channels: Sequence[tuple[str, str]] = field(default=(), repr=False)
    remarks: Sequence[str] = ()

    def add_to(self, draft: Draft) -> None:
        for channel, value in self.channels:
            draft.pair("alerts", channel, value)
        for sentence in self.remarks:
            draft.remark(sentence)


def notification(tool: str, kind: str, settings: Mapping[str, str], name: str) -> Notification:
    """``name``: how the other tool calls it. Sentences never repeat a value."""
    label = _('Notification "%(name)s" (%(kind)s)', name=shown(name), kind=shown(kind))
    values = [settings[key][: MOST_SETTING + 1].strip() for key in keys(tool, kind)]
    if not values or not values[0]:
        return Notification(
            (),
            (_("%(notification)s dropped: Wakeful has no matching channel.", notification=label),),
        )
    channel = _TOOLS[tool][kind][0]
    # Whether the instance has a bot is the form's to ask: other tools always name one.
    fits = {
        value: not check_value(channel, value, telegram_token_set=True)
        for value in _split(channel, values)
    }
    remarks = []
    if not all(fits.values()):
        remarks.append(
            _(
                "%(notification)s dropped: its address is not valid for %(channel)s.",
                notification=label,
                channel=channel.value,
            )
        )
    if channel is Channel.WEBHOOK and any(fits.values()):
        remarks.append(_(OTHER_BODY))
    return Notification([(channel.value, value) for value in fits if fits[value]], remarks)


def _split(channel: Channel, values: Sequence[str]) -> list[str]:
    whole = "/".join(filter(None, values))
    if len(whole) > MOST_SETTING or channel is not Channel.EMAIL:
        return [whole[: MOST_SETTING + 1]]
    parts = whole.replace(";", ",").split(",")
    return [_address(part.strip()) for part in parts if part.strip()][:MOST_ROWS]


def _address(text: str) -> str:
    """The address of ``Name <address>``."""
    before, bracket, rest = text.partition("<")
    return rest.removesuffix(">").strip() if bracket else before
