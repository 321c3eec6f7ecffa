"""The table of senders: one for each channel, and one for the webhooks of subscribers. Also the
text of what each sends, and the channels that cannot work because their settings are missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from app.access.settings import can_mail
from app.alerts.channels import (
    apprise,
    discord,
    email,
    flock,
    gotify,
    ntfy,
    opsgenie,
    pagerduty,
    pushover,
    slack,
    sms,
    teams,
    telegram,
    webhook,
)
from app.alerts.channels.base import Outgoing, Sender, action_of
from app.alerts.messages.message import SIGNS
from app.config import Settings
from app.i18n import N_, _
from app.records import Channel

SENDERS: dict[str, Sender] = {
    webhook.SUBSCRIBER: webhook.send_to_subscriber,
    Channel.EMAIL: email.send,
    Channel.WEBHOOK: webhook.send,
    Channel.SLACK: slack.send,
    Channel.TEAMS: teams.send,
    Channel.DISCORD: discord.send,
    Channel.FLOCK: flock.send,
    Channel.TELEGRAM: telegram.send,
    Channel.SMS: sms.send,
    Channel.APPRISE: apprise.send,
    Channel.NTFY: ntfy.send,
    Channel.GOTIFY: gotify.send,
    Channel.PUSHOVER: pushover.send,
    Channel.PAGERDUTY: pagerduty.send,
    Channel.OPSGENIE: opsgenie.send,
}
MAX_SHOWN = 4_000  # characters
# The token of a link is enough to acknowledge an incident, so the log does not show it.
_TOKEN = re.compile(r"(?<=/acknowledge/)[\w.~-]+")


def text_of(channel: str, outgoing: Outgoing) -> str:
    """The text of the channel's message, for the log."""
    text = _TEXTS.get(channel, _with_sign)(outgoing)
    return _TOKEN.sub("…", text)[:MAX_SHOWN]


def _with_sign(outgoing: Outgoing) -> str:
    return f"{SIGNS[outgoing.message.tone]} {outgoing.message.text}"


def _of_incident(outgoing: Outgoing) -> str:
    """The text of an opening; for later messages, the action on the alert that the service has."""
    action = action_of(outgoing.message)
    return outgoing.message.text if action == "trigger" else f"{action}: {outgoing.message.title}"


_TEXTS: Mapping[str, Callable[[Outgoing], str]] = {
    Channel.EMAIL: lambda outgoing: outgoing.message.text,
    Channel.SMS: lambda outgoing: sms.text(outgoing.message),
    Channel.TELEGRAM: lambda outgoing: telegram.text(outgoing.message),
    Channel.WEBHOOK: lambda outgoing: json.dumps(
        webhook.payload(outgoing), ensure_ascii=False, indent=1
    ),
    Channel.PAGERDUTY: _of_incident,
    Channel.OPSGENIE: _of_incident,
}
NO_MAIL = N_("No mail server is set up. An admin can set one up under Settings, Email.")


def not_set_up(settings: Settings) -> Mapping[str, str]:
    """The channels that cannot work, each with a sentence. Needs an application context."""
    sentences = {}
    if not can_mail(settings):
        sentences[Channel.EMAIL.value] = _(NO_MAIL)
    if settings.sms_url is None:
        sentences[Channel.SMS.value] = _("No SMS provider is set up. Set WAKEFUL_SMS_URL.")
    return sentences
