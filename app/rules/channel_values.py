"""The label, the help text and the rule for the value of each channel.

Pure: forms import it. The rules are those of decision 5. They check only the form of a value
and never use the network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from app.i18n import N_, _
from app.records import MAX_ALERT_VALUE, Channel
from app.rules import addresses
from app.rules.text import fault_of, length, one_of
from app.rules.url import parse_url

TELEGRAM_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")
_CHAT = re.compile(r"-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]{3,31}")
_THREAD = re.compile(r"[1-9][0-9]{0,18}")
_E164 = re.compile(r"\+[1-9][0-9]{6,14}")
_APPRISE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")


@dataclass(frozen=True, slots=True)
class TelegramTarget:
    """Where a Telegram message goes. ``token`` is None when the instance's own bot sends it."""

    chat: str
    token: str | None = field(default=None, repr=False)
    thread: int | None = None

    @property
    def value(self) -> str:
        """The text that ``parse_telegram`` reads."""
        return "/".join(str(part) for part in (self.token, self.chat, self.thread) if part)


@dataclass(frozen=True, slots=True)
class ChannelText:
    """How a form presents a channel. ``check`` returns the fault of a value as a sentence, or
    None.
    """

    label: str
    help: str
    placeholder: str
    check: Callable[[str, bool], str | None] = field(repr=False)


def check_value(channel: str, value: str, *, telegram_token_set: bool) -> str | None:
    """Return a sentence that names the fault of ``value`` and how to correct it, or None."""
    if channel not in CHANNELS:
        return one_of(CHANNELS)
    text = CHANNELS[Channel(channel)]
    if not value.strip():
        return _("A value is missing. %(help)s", help=_(text.help))
    if (fault := fault_of(lambda: length(value, MAX_ALERT_VALUE))) is not None:
        return fault
    return text.check(value, telegram_token_set)


def parse_telegram(value: str) -> TelegramTarget:
    """``[BOT_TOKEN/]CHAT_ID[/THREAD_ID]``. Raises ValueError with a sentence that does not repeat
    the token.
    """
    parts = value.split("/")
    # Only a token has a colon, so the three forms cannot be confused.
    token = parts.pop(0) if ":" in parts[0] else None
    if token is not None and not TELEGRAM_TOKEN.fullmatch(token):
        raise ValueError(
            _("The bot token is not valid. It looks like 123456:ABC-DEF and comes from BotFather.")
        )
    if not 1 <= len(parts) <= 2 or not _CHAT.fullmatch(parts[0]):
        raise ValueError(
            _(
                "Write BOT_TOKEN/CHAT_ID. The chat ID is a number such as -1001234567890, "
                "or @channelname."
            )
        )
    if len(parts) == 2 and not _THREAD.fullmatch(parts[1]):
        raise ValueError(_("The thread ID after the chat ID must be a number."))
    return TelegramTarget(parts[0], token, int(parts[1]) if len(parts) == 2 else None)


def _email(value: str, _token: bool) -> str | None:
    return fault_of(lambda: addresses.check(value))


def _url(value: str, _token: bool) -> str | None:
    return fault_of(lambda: parse_url(value))


def _telegram(value: str, token_set: bool) -> str | None:
    try:
        target = parse_telegram(value)
    except ValueError as fault:
        return str(fault)
    if target.token is None and not token_set:
        return _(
            "A chat ID alone needs a bot token. Write BOT_TOKEN/CHAT_ID, "
            "or set WAKEFUL_TELEGRAM_TOKEN for all."
        )
    return None


def _sms(value: str, _token: bool) -> str | None:
    if _E164.fullmatch(value):
        return None
    return _(
        "This is not a phone number. Write it with + and the country code, digits only, "
        "such as +447700900123."
    )


def _apprise(value: str, _token: bool) -> str | None:
    if _APPRISE.fullmatch(value):
        return None
    return _(
        "This is not an Apprise URL. It looks like ntfy://topic or "
        "matrixs://user:password@host/room."
    )


CHANNELS: dict[Channel, ChannelText] = {
    Channel.EMAIL: ChannelText(
        N_("Email"), N_("The email address that gets the alerts."), "you@example.com", _email
    ),
    Channel.WEBHOOK: ChannelText(
        N_("Webhook"),
        N_("Your URL that accepts a signed JSON POST."),
        "https://example.com/hooks/wakeful",
        _url,
    ),
    Channel.SLACK: ChannelText(
        "Slack",
        N_(
            "The URL of an incoming webhook. Mattermost and others that speak Slack's form work"
            " too."
        ),
        "https://hooks.slack.com/services/...",
        _url,
    ),
    Channel.TEAMS: ChannelText(
        N_("Microsoft Teams"),
        N_("The URL that the Workflows template for webhook alerts gives you."),
        "https://....powerplatform.com/...",
        _url,
    ),
    Channel.DISCORD: ChannelText(
        "Discord",
        N_("The webhook URL from the channel's settings."),
        "https://discord.com/api/webhooks/...",
        _url,
    ),
    Channel.FLOCK: ChannelText(
        "Flock",
        N_("The URL of an incoming webhook."),
        "https://api.flock.com/hooks/sendMessage/...",
        _url,
    ),
    Channel.TELEGRAM: ChannelText(
        "Telegram",
        N_(
            "BOT_TOKEN/CHAT_ID, or the chat ID alone when the instance has a bot. "
            "A topic's thread ID may follow: BOT_TOKEN/CHAT_ID/THREAD_ID."
        ),
        "123456:ABC-DEF/-1001234567890",
        _telegram,
    ),
    Channel.SMS: ChannelText(
        "SMS", N_("A phone number with + and the country code."), "+447700900123", _sms
    ),
    Channel.APPRISE: ChannelText(
        "Apprise",
        N_("Any Apprise URL. It reaches more than a hundred other services."),
        "ntfy://topic",
        _apprise,
    ),
}
