"""The label, the help text and the rule for the value of each channel.

Pure: forms import it. The rules (decision 5) check only the form of a value and never use the
network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from app.i18n import N_, _
from app.records import MAX_ALERT_VALUE, Channel
from app.rules import addresses
from app.rules.text import fault_of, length, one_of
from app.rules.url import parse_url

TELEGRAM_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")
_CHAT = re.compile(r"-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]{3,31}")
_THREAD = re.compile(r"[1-9][0-9]{0,18}")
_E164 = re.compile(r"\+[1-9][0-9]{6,14}")
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")
_PUSHOVER = re.compile(r"([A-Za-z0-9]{30})/([A-Za-z0-9]{30})")
_ROUTING_KEY = re.compile(r"(eu:)?([A-Za-z0-9]{32})")
_GENIE_KEY = re.compile(r"(eu:)?([A-Za-z0-9-]{20,64})")
_APPRISE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")


@dataclass(frozen=True, slots=True)
class TelegramTarget:
    """Where a Telegram message goes. ``token`` is None if the bot of the installation sends it."""

    chat: str
    token: str | None = field(default=None, repr=False)
    thread: int | None = None

    @property
    def value(self) -> str:
        """The text that ``parse_telegram`` reads."""
        return "/".join(str(part) for part in (self.token, self.chat, self.thread) if part)


@dataclass(frozen=True, slots=True)
class NtfyTarget:
    """The root of the server, the topic, and the access token, which may be empty."""

    server: str
    topic: str = field(repr=False)
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChannelText:
    """How a form presents a channel. ``value``: the label of its input. ``check`` returns the fault
    of a value as a sentence, or None. ``noun``: what a value is called; empty: the webhook of
    ``label``.
    """

    label: str
    value: str
    help: str
    placeholder: str
    check: Callable[[str, bool], str | None] = field(repr=False)
    noun: str = ""


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


def channel_label(channel: str) -> str:
    """The label of a channel. A row of a newer version may have an unknown channel."""
    return _(CHANNELS[Channel(channel)].label) if channel in CHANNELS else channel


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
        sentence = N_(
            "Write BOT_TOKEN/CHAT_ID. The chat ID is a number such as -1001234567890, "
            "or @channelname."
        )
        raise ValueError(_(sentence))
    if len(parts) == 2 and not _THREAD.fullmatch(parts[1]):
        raise ValueError(_("The thread ID after the chat ID must be a number."))
    return TelegramTarget(parts[0], token, int(parts[1]) if len(parts) == 2 else None)


def parse_ntfy(value: str) -> NtfyTarget:
    """``https://[TOKEN@]HOST/TOPIC``. Raises ValueError with a sentence that does not repeat the
    token.
    """
    scheme, slashes, after_scheme = value.partition("://")
    authority, slash, path = after_scheme.partition("/")
    token, at, host = authority.rpartition("@")
    target = parse_url(f"{scheme}{slashes}{host}{slash}{path}")
    topic = target.request_target.strip("/")
    if not _TOPIC.fullmatch(topic) or (at and not _TOKEN.fullmatch(token)):
        sentence = N_(
            "Write https://HOST/TOPIC, with an access token https://TOKEN@HOST/TOPIC. "
            "A topic has up to 64 letters, digits, - and _."
        )
        raise ValueError(_(sentence))
    return NtfyTarget(f"{target.scheme}://{target.netloc}/", topic, token)


def parse_gotify(value: str) -> tuple[str, str]:
    """The URL that accepts messages, and the token, for ``https://HOST/?token=TOKEN``. The host may
    be followed by a path. Raises ValueError.
    """
    target = parse_url(value)
    path, _mark, query = target.request_target.partition("?")
    fields = parse_qsl(query, keep_blank_values=True)
    if len(fields) != 1 or fields[0][0] != "token" or not _TOKEN.fullmatch(fields[0][1]):
        raise ValueError(_("Write https://HOST/?token=TOKEN, with the token of an application."))
    base = path.removesuffix("/message").rstrip("/")
    return f"{target.scheme}://{target.netloc}{base}/message", fields[0][1]


def parse_pushover(value: str) -> tuple[str, str]:
    """The keys of the user or group and of the application. Raises ValueError."""
    if (keys := _PUSHOVER.fullmatch(value)) is None:
        raise ValueError(
            _("Write USER_KEY/APP_TOKEN. Each has 30 letters and digits and comes from Pushover.")
        )
    return keys[1], keys[2]


def parse_pagerduty(value: str) -> tuple[str, str]:
    """The region as a prefix of host names (``eu.`` or empty), and the key. Raises ValueError."""
    if (key := _ROUTING_KEY.fullmatch(value)) is None:
        sentence = N_(
            "Write the integration key of the Events API v2, which has 32 letters and digits, "
            "or eu:KEY for an account in Europe."
        )
        raise ValueError(_(sentence))
    return (key[1] or "").replace(":", "."), key[2]


def parse_opsgenie(value: str) -> tuple[str, str]:
    """The region and the key, as ``parse_pagerduty`` returns them. Raises ValueError."""
    if (key := _GENIE_KEY.fullmatch(value)) is None:
        raise ValueError(
            _("Write the API key of an API integration, or eu:KEY for an account in Europe.")
        )
    return (key[1] or "").replace(":", "."), key[2]


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


def _by(parse: Callable[[str], object]) -> Callable[[str, bool], str | None]:
    """The check of a channel whose values ``parse`` accepts."""
    return lambda value, _token: fault_of(lambda: parse(value))


def _apprise(value: str, _token: bool) -> str | None:
    if _APPRISE.fullmatch(value):
        return None
    return _(
        "This is not an Apprise URL. It looks like ntfy://topic or "
        "matrixs://user:password@host/room."
    )


_WEBHOOK_URL, _url = N_("Webhook URL"), _by(parse_url)
CHANNELS: dict[Channel, ChannelText] = {
    Channel.EMAIL: ChannelText(
        N_("Email"), N_("Email address"), N_("The email address that gets the alerts."),
        "you@example.com", _by(addresses.check), N_("email address"),
    ),
    Channel.WEBHOOK: ChannelText(
        N_("Webhook"), _WEBHOOK_URL, N_("Your URL that accepts a signed JSON POST."),
        "https://example.com/hooks/wakeful", _url, N_("webhook"),
    ),
    Channel.SLACK: ChannelText(
        "Slack", _WEBHOOK_URL,
        N_("The URL of an incoming webhook. Mattermost and others that speak Slack's form work"
           " too."),
        "https://hooks.slack.com/services/...", _url,
    ),
    Channel.TEAMS: ChannelText(
        N_("Microsoft Teams"), _WEBHOOK_URL,
        N_("The URL that the Workflows template for webhook alerts gives you."),
        "https://....powerplatform.com/...", _url,
    ),
    Channel.DISCORD: ChannelText(
        "Discord", _WEBHOOK_URL, N_("The webhook URL from the channel's settings."),
        "https://discord.com/api/webhooks/...", _url,
    ),
    Channel.FLOCK: ChannelText(
        "Flock", _WEBHOOK_URL, N_("The URL of an incoming webhook."),
        "https://api.flock.com/hooks/sendMessage/...", _url,
    ),
    Channel.TELEGRAM: ChannelText(
        "Telegram", N_("Bot token/chat ID"),
        N_("BOT_TOKEN/CHAT_ID, or the chat ID alone when the instance has a bot. "
           "A topic's thread ID may follow: BOT_TOKEN/CHAT_ID/THREAD_ID."),
        "123456:ABC-DEF/-1001234567890", _telegram, N_("Telegram chat"),
    ),
    Channel.SMS: ChannelText(
        "SMS", N_("Phone number"), N_("A phone number with + and the country code."),
        "+447700900123", _sms, N_("phone number"),
    ),
    Channel.APPRISE: ChannelText(
        "Apprise", N_("Apprise URL"),
        N_("Any Apprise URL. It reaches more than a hundred other services."),
        "ntfy://topic", _apprise, N_("Apprise URL"),
    ),
    Channel.NTFY: ChannelText(
        "ntfy", N_("Topic URL"),
        N_("The URL of a topic; with an access token https://TOKEN@HOST/TOPIC."),
        "https://ntfy.sh/your-secret-topic", _by(parse_ntfy), N_("ntfy topic"),
    ),
    Channel.GOTIFY: ChannelText(
        "Gotify", N_("Server URL with token"),
        N_("The server's URL with the token of an application."),
        "https://gotify.example.com/?token=...", _by(parse_gotify), N_("Gotify application"),
    ),
    Channel.PUSHOVER: ChannelText(
        "Pushover", N_("User key/application token"),
        N_("USER_KEY/APP_TOKEN: the key of a user or group, and the token of an application."),
        "u.../a...", _by(parse_pushover), N_("Pushover user or group"),
    ),
    Channel.PAGERDUTY: ChannelText(
        "PagerDuty", N_("Integration key"),
        N_("The integration key (routing key) of the Events API v2; eu:KEY in Europe."),
        "0123456789abcdef0123456789abcdef", _by(parse_pagerduty), N_("PagerDuty integration"),
    ),
    Channel.OPSGENIE: ChannelText(
        "Opsgenie", N_("API key"), N_("The API key of an API integration; eu:KEY in Europe."),
        "01234567-89ab-cdef-0123-456789abcdef", _by(parse_opsgenie), N_("Opsgenie integration"),
    ),
}  # fmt: skip
