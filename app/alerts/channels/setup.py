"""Which channels cannot work, because this installation lacks what they send with."""

from __future__ import annotations

from collections.abc import Mapping

from app.access import mail_server
from app.config import Settings
from app.i18n import N_
from app.records import Channel

NO_MAIL = N_("No mail server is set up. An admin can set one up under Settings, Email")
NO_SMS = N_("No SMS provider is set up. Set WAKEFUL_SMS_URL")
NO_MAIL_SERVER = N_("%(no_mail)s; then retry.", no_mail=NO_MAIL)
NO_SMS_PROVIDER = N_("%(no_sms)s, then retry.", no_sms=NO_SMS)


def not_set_up(settings: Settings) -> Mapping[str, str]:
    """The channels that cannot work, each with a sentence. Needs an application context."""
    lacking = {}
    if not mail_server.can_mail(settings):
        lacking[Channel.EMAIL.value] = f"{NO_MAIL}."
    if settings.sms_url is None:
        lacking[Channel.SMS.value] = f"{NO_SMS}."
    return lacking
