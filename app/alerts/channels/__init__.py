"""The table of senders: one for each channel, and one for the webhooks of subscribers. And which
channels cannot work, because this installation lacks what they send with.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from app.alerts.channels.base import Sender
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
NO_MAIL = N_("No mail server is set up. An admin can set one up under Settings, Email.")
NO_SMS = N_("No SMS provider is set up. Set WAKEFUL_SMS_URL.")


def not_set_up(settings: Settings) -> Mapping[str, str]:
    """The channels that cannot work, each with a sentence. Needs an application context."""
    lacking = {}
    if not can_mail(settings):
        lacking[Channel.EMAIL.value] = _(NO_MAIL)
    if settings.sms_url is None:
        lacking[Channel.SMS.value] = _(NO_SMS)
    return lacking
