"""The table of senders: one for each channel, and one for the webhooks of subscribers."""

from __future__ import annotations

from app.alerts.channels import (
    apprise,
    discord,
    email,
    flock,
    slack,
    sms,
    subscriber_webhook,
    teams,
    telegram,
    webhook,
)
from app.alerts.channels.base import Sender
from app.records import Channel

SENDERS: dict[str, Sender] = {
    subscriber_webhook.NAME: subscriber_webhook.send,
    Channel.EMAIL: email.send,
    Channel.WEBHOOK: webhook.send,
    Channel.SLACK: slack.send,
    Channel.TEAMS: teams.send,
    Channel.DISCORD: discord.send,
    Channel.FLOCK: flock.send,
    Channel.TELEGRAM: telegram.send,
    Channel.SMS: sms.send,
    Channel.APPRISE: apprise.send,
}
