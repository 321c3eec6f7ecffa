"""Which channels cannot work, because this installation lacks what they send with."""

from __future__ import annotations

from collections.abc import Mapping

from app.config import Settings
from app.records import Channel

NO_MAIL_SERVER = "No mail server is set. Set WAKEFUL_SMTP_URL, then retry."
NO_SMS_PROVIDER = "No SMS provider is set. Set WAKEFUL_SMS_URL, then retry."


def not_set_up(settings: Settings) -> Mapping[str, str]:
    """The channels that cannot work, each with a sentence."""
    lacking = {
        Channel.EMAIL: NO_MAIL_SERVER if settings.smtp_url is None else None,
        Channel.SMS: NO_SMS_PROVIDER if settings.sms_url is None else None,
    }
    return {
        channel.value: sentence.removesuffix(", then retry.") + "."
        for channel, sentence in lacking.items()
        if sentence is not None
    }
