"""Mails that are no alerts: a test of the mail server, an invitation, a recovery link, a notice
about a second factor. They are sent at once, and are not in the outbox.
"""

from __future__ import annotations

from datetime import datetime

from app.alerts.messages.message import Message, MessageLink, Tone
from app.i18n import _, _n


def trial(at: datetime, dashboard: str) -> Message:
    return Message(
        event="mail_server.test",
        tone=Tone.PLAIN,
        title=_("Test email from Wakeful"),
        summary=_("This is a test. Email from Wakeful arrives here."),
        at=at,
        links=(MessageLink(_("Dashboard"), dashboard),),
        footer=_("An admin sent this test from the Settings page."),
    )


def invitation(at: datetime, link: str, inviter: str, days: int) -> Message:
    return Message(
        event="account.invited",
        tone=Tone.PLAIN,
        title=_("You are invited to Wakeful"),
        summary=_n(
            "%(inviter)s invites you to Wakeful, which monitors websites and alerts people when "
            "they fail. Open the link to set your password. It works once, for %(num)s day.",
            "%(inviter)s invites you to Wakeful, which monitors websites and alerts people when "
            "they fail. Open the link to set your password. It works once, for %(num)s days.",
            days,
            inviter=inviter,
        ),
        at=at,
        links=(MessageLink(_("Accept the invitation"), link),),
        footer=_("If you do not expect this, do nothing."),
    )


def recovery(at: datetime, link: str) -> Message:
    return Message(
        event="account.recovery",
        tone=Tone.PLAIN,
        title=_("Set a new password for Wakeful"),
        summary=_(
            "Somebody, probably you, asked for a new password for this account. Open the link"
            " to set one. It works once, for 1 hour. If it was not you, do nothing: your password"
            " stays as it is."
        ),
        at=at,
        links=(MessageLink(_("Set a new password"), link),),
        footer=_("This address has an account here."),
    )


def second_factor(at: datetime, what: str, profile: str) -> Message:
    """``what``: a sentence, in the language of the installation."""
    return Message(
        event="account.second_factor",
        tone=Tone.PLAIN,
        title=_("The second factor of your Wakeful account"),
        summary=_(
            "%(what)s If it was not you, change your password now and tell an admin.", what=_(what)
        ),
        at=at,
        links=(MessageLink(_("Your second factor"), profile),),
        footer=_("This address has an account here."),
    )
