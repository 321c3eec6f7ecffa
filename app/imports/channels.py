"""Turn notifications of other tools into channels of Wakeful, and shared ones into contacts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.i18n import N_, _
from app.imports.candidates import (
    MAX_ROWS,
    NO_MONITORS,
    Draft,
    Notification,
    NotReadable,
    Reading,
    limited,
    no_kind,
)
from app.imports.values import ImportEntry, cut_line
from app.records import CONTACT, MAX_ALERTS, MAX_CONTACT_NAME, Channel, Pair
from app.rules.channel_values import check_value

# The channel of each type of notification, and the settings that make up the channel's value.
_TOOLS: Mapping[str, Mapping[str, tuple[Channel, Sequence[str]]]] = {
    "kuma": {
        "slack": (Channel.SLACK, ("slackwebhookURL",)),
        "mattermost": (Channel.SLACK, ("mattermostWebhookUrl",)),
        "discord": (Channel.DISCORD, ("discordWebhookUrl",)),
        "teams": (Channel.TEAMS, ("webhookUrl",)),
        "telegram": (Channel.TELEGRAM,
                     ("telegramBotToken", "telegramChatID", "telegramMessageThreadID")),
        "webhook": (Channel.WEBHOOK, ("webhookURL",)),
        "smtp": (Channel.EMAIL, ("smtpTo", "smtpCC", "smtpBCC")),
        "twilio": (Channel.SMS, ("twilioToNumber",)),
        "apprise": (Channel.APPRISE, ("appriseURL",)),
        "ntfy": (Channel.NTFY,
                 ("ntfytopic", "ntfyserverurl", "ntfyaccesstoken", "ntfyAuthenticationMethod")),
        "gotify": (Channel.GOTIFY, ("gotifyapplicationToken", "gotifyserverurl")),
        "pushover": (Channel.PUSHOVER, ("pushoveruserkey", "pushoverapptoken")),
        "PagerDuty": (Channel.PAGERDUTY, ("pagerdutyIntegrationKey", "pagerdutyIntegrationUrl")),
        "Opsgenie": (Channel.OPSGENIE, ("opsgenieApiKey", "opsgenieRegion")),
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
        "ntfy": (Channel.NTFY, ("topic", "url", "token")),
        "gotify": (Channel.GOTIFY, ("token", "server-url")),
        "pushover": (Channel.PUSHOVER, ("user-key", "application-token")),
        "pagerduty": (Channel.PAGERDUTY, ("integration-key",)),
        "opsgenie": (Channel.OPSGENIE, ("api-key",)),
    },
    "kuvasz": {
        "slack": (Channel.SLACK, ("webhook-url",)),
        "discord": (Channel.DISCORD, ("webhook-url",)),
        "telegram": (Channel.TELEGRAM, ("api-token", "chat-id")),
        "email": (Channel.EMAIL, ("to-address",)),
        "webhook": (Channel.WEBHOOK, ("url",)),
        "pagerduty": (Channel.PAGERDUTY, ("integration-key",)),
    },
    "uptimerobot": {
        "email": (Channel.EMAIL, ("value",)),
        "webhook": (Channel.WEBHOOK, ("value",)),
        "Slack": (Channel.SLACK, ("value",)),
        "SMS": (Channel.SMS, ("value",)),
        "PagerDuty": (Channel.PAGERDUTY, ("value",)),
        "Opsgenie": (Channel.OPSGENIE, ("value",)),
    },
}  # fmt: skip
# Settings that send a message to another channel than the webhook's.
OTHER_CHANNEL = {
    "kuma": ("slackchannel", "mattermostchannel", "threadId", "postName"),
    "gatus": ("channel",),
}
OWN_CHANNEL = N_(
    '%(notification)s: "%(setting)s" is dropped. It posts to the channel that its webhook was made'
    " for."
)
NO_CHANNEL = N_("%(notification)s dropped: Wakeful has no matching channel.")
NO_ADDRESS = N_("%(notification)s dropped: its address is empty.")
NOT_IN_FILE = N_("%(notification)s dropped: the file does not contain its address.")
BAD_ADDRESS = N_("%(notification)s dropped: its address is not valid for %(channel)s.")
TOKENS_ALONE = N_("%(notification)s dropped: Wakeful sends to ntfy with an access token alone.")
OTHER_BODY = N_(
    "The webhook receives Wakeful's JSON, which differs, without the headers of the other tool."
)
# Characters of a setting that are read.
MAX_SETTING = 8_000


def keys(tool: str, kind: str) -> Sequence[str]:
    """The settings of this kind of notification to read; none if Wakeful has no such channel."""
    return _TOOLS[tool][kind][1] if kind in _TOOLS[tool] else ()


def notification(tool: str, kind: str, settings: Mapping[str, str], name: str) -> Notification:
    """A notification as channels of Wakeful. ``name``: its name in the other tool. No remark
    repeats the value of a setting, which may be secret.
    """
    label = labelled(name, kind)
    values = [settings[key][: MAX_SETTING + 1].strip() for key in keys(tool, kind)]
    if not values:
        return Notification(name, (), (_(NO_CHANNEL, notification=label),))
    channel = _TOOLS[tool][kind][0]
    if not any(values) or not (values[0] or channel is Channel.EMAIL):
        return Notification(name, (), (_(NO_ADDRESS, notification=label),))
    if settings.get("ntfyAuthenticationMethod") == "usernamePassword":
        return Notification(name, (), (_(TOKENS_ALONE, notification=label),))
    # The form asks later whether this installation has a Telegram bot.
    written = _split(channel, values)
    fitting = [text for text in written if not check_value(channel, text, telegram_token_set=True)]
    remarks = []
    if len(fitting) < len(written):
        remarks.append(_(BAD_ADDRESS, notification=label, channel=channel.value))
    if setting := next(filter(settings.get, OTHER_CHANNEL.get(tool, ())), ""):
        remarks.append(_(OWN_CHANNEL, notification=label, setting=setting))
    if channel is Channel.WEBHOOK and fitting:
        remarks.append(_(OTHER_BODY))
    pairs = [Pair(channel.value, value) for value in dict.fromkeys(fitting)]
    return Notification(name, pairs, remarks)


def missing(name: str, kind: str = "") -> Notification:
    """The notification for one that the file names but does not contain."""
    return Notification(name, (), (_(NOT_IN_FILE, notification=labelled(name, kind)),))


def labelled(name: str, kind: str = "") -> str:
    if kind and kind != name:
        return _('Notification "%(name)s" (%(kind)s)', name=cut_line(name), kind=cut_line(kind))
    return _('Notification "%(name)s"', name=cut_line(name))


def share(drafts: Sequence[Draft]) -> dict[str, Sequence[Pair]]:
    """Give each draft the channels of its notifications. A notification that several drafts share
    becomes a contact, so that people can change its address in one place. Returns the channels of
    the contacts by name.
    """
    fitting = [draft for draft in drafts if not draft.refusal]
    uses = Counter(notification for draft in fitting for notification in set(draft.notifications))
    names: dict[Notification, str] = {}
    contacts: dict[str, Sequence[Pair]] = {}
    used_names: set[str] = set()
    for draft in fitting:
        for notification in draft.notifications:
            if notification not in names:
                is_shared = uses[notification] > 1
                names[notification] = _contact_name(notification, used_names) if is_shared else ""
            rows = notification.channels
            if name := names[notification]:
                contacts[name], rows = rows, [Pair(CONTACT, name)]
            for row in rows:
                draft.add_pair("alerts", row.key, row.value)
    return contacts


def _contact_name(notification: Notification, used_names: set[str]) -> str:
    """The contact's name; empty if the notification cannot become a contact. A contact's name is
    never digits alone, because those are an id.
    """
    name = " ".join(notification.name.split())[: MAX_CONTACT_NAME - 4].strip()
    if not name or name.isdigit() or not 0 < len(notification.channels) <= MAX_ALERTS:
        return ""
    names = (name, *(f"{name} {number}" for number in range(2, 100)))
    free = next((name for name in names if name.casefold() not in used_names), "")
    used_names.add(free.casefold())
    return free


def _split(channel: Channel, values: Sequence[str]) -> list[str]:
    if channel is not Channel.EMAIL:
        write = _VALUES.get(channel, _joined)
        return [write(*values)[: MAX_SETTING + 1]]
    parts = ",".join(filter(None, values))[: 3 * MAX_SETTING].replace(";", ",").split(",")
    return [_address(part.strip()) for part in parts if part.strip()][:MAX_ROWS]


def _joined(*parts: str) -> str:
    return "/".join(filter(None, parts))


def _ntfy(topic: str, server: str, token: str, login: str = "accessToken") -> str:
    scheme, slashes, host = (server or "https://ntfy.sh").rstrip("/").partition("://")
    at = f"{token}@" if token and login == "accessToken" else ""
    return f"{scheme}{slashes}{at}{host}/{topic}"


def _gotify(token: str, server: str) -> str:
    return f"{server.rstrip('/')}/?token={token}"


def _pagerduty(key: str, url: str = "") -> str:
    return f"eu:{key}" if ".eu." in url else key


def _opsgenie(key: str, region: str = "") -> str:
    return f"eu:{key}" if region == "eu" else key


# The functions that make the value of a channel from its settings. For other channels, slashes join
# the settings.
_VALUES: Mapping[Channel, Callable[..., str]] = {
    Channel.NTFY: _ntfy,
    Channel.GOTIFY: _gotify,
    Channel.PAGERDUTY: _pagerduty,
    Channel.OPSGENIE: _opsgenie,
}


def _address(text: str) -> str:
    """The address of ``Name <address>``."""
    name, bracket, address = text.partition("<")
    return address.removesuffix(">").strip() if bracket else name


# --- Tools ----------------------------------------------------------------------------------------
#
# The readers of other tools share this. A tool turns entries into drafts, and drafts into a
# reading.

Read = Callable[[Draft, ImportEntry], None]
Variables = Mapping[str, str]  # of an environment


@dataclass(frozen=True, slots=True)
class Tool:
    """Another tool. ``label``: how to name an entry by its position. ``names``: the settings that
    may hold the name of an entry. ``kinds``: the names of the kinds of check that Wakeful lacks.
    ``dropped`` and ``ignored``: arguments of ``Draft.drop_unread``.
    """

    source: str
    label: str = N_("Monitor %(position)s")
    names: Sequence[str] = ("name",)
    kinds: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()

    def drafts(self, entries: Sequence[Any], read: Read) -> list[Draft]:
        """``read`` copies the settings of an entry to its draft."""
        return [self.draft(number, entry, read) for number, entry in enumerate(limited(entries), 1)]

    def draft(self, number: int, record: Any, read: Read) -> Draft:
        entry = ImportEntry(record)
        draft = Draft.of_tool(_(self.label, position=number), entry.text(*self.names))
        read(draft, entry)
        draft.drop_unread(entry, self.dropped, self.ignored)
        return draft

    def refuse_kind(self, draft: Draft, kind: str) -> None:
        draft.refuse(no_kind(self.kinds.get(kind, f'"{cut_line(kind)}"')))

    def reading(self, drafts: Sequence[Draft], remarks: Iterable[str] = ()) -> Reading:
        if not drafts:
            raise NotReadable(NO_MONITORS)
        contacts = share(drafts)
        candidates = [draft.finish() for draft in drafts]
        return Reading(_(self.source), candidates, tuple(remarks), contacts)
