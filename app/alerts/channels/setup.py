"""Which channels cannot work, because this installation lacks what they send with."""

from __future__ import annotations

from collections.abc import Mapping

from app.access import mail_server
from app.config import Settings
from app.i18n import N_, _
from app.records import Channel

NO_MAIL = N_("No mail server is set up. An admin can set one up under Settings, Email.")
NO_SMS = N_("No SMS provider is set up. Set WAKEFUL_SMS_URL.")
NO_MAIL_SERVER = N_(
    "No mail server is set up. An admin can set one up under Settings, Email; then retry."
)
NO_SMS_PROVIDER = N_("No SMS provider is set up. Set WAKEFUL_SMS_URL, then retry.")


def not_set_up(settings: Settings) -> Mapping[str, str]:
    """The channels that cannot work, each with a sentence. Needs an application context."""
    lacking = {}
    if not mail_server.can_mail(settings):
        lacking[Channel.EMAIL.value] = _(NO_MAIL)
    if settings.sms_url is None:
        lacking[Channel.SMS.value] = _(NO_SMS)
    return lacking
