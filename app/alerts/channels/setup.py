"""Which channels cannot work, because this installation lacks what they send with."""

from __future__ import annotations

from collections.abc import Mapping

from app.access import mail_server
from app.config import Settings
from app.records import Channel

NO_MAIL = "No mail server is set up. An admin can set one up under Settings, Email"
NO_SMS = "No SMS provider is set up. Set WAKEFUL_SMS_URL"
NO_MAIL_SERVER = f"{NO_MAIL}; then retry."
NO_SMS_PROVIDER = f"{NO_SMS}, then retry."


def not_set_up(settings: Settings) -> Mapping[str, str]:
    """The channels that cannot work, each with a sentence. Needs an application context."""
    lacking = {}
    if not mail_server.can_mail(settings):
        lacking[Channel.EMAIL.value] = f"{NO_MAIL}."
    if settings.sms_url is None:
        lacking[Channel.SMS.value] = f"{NO_SMS}."
    return lacking
