"""Sentences for monitors and contacts whose stored alerts or channels cannot be read, so that
nobody would be notified of incidents.
"""

from __future__ import annotations

from app.i18n import N_, _

ENTER_ALERTS_AGAIN = N_("Edit the monitor and enter its alerts again.")

# For the comment of an incident that opens meanwhile.
NOBODY_NOTIFIED = N_(
    "Nobody was alerted when this began: the stored alerts of the monitor could not be read then."
)


def alerts_unreadable(monitor: str, why: str) -> str:
    """For logs and refusals. ``monitor`` in words, ``why`` as the end of a sentence."""
    return _(
        "The stored alerts of %(monitor)s cannot be read, because %(why)s. %(advice)s",
        monitor=monitor,
        why=why,
        advice=_(ENTER_ALERTS_AGAIN),
    )


def channels_unreadable(contact: str, why: str) -> str:
    """For logs. ``contact`` in words, ``why`` as the end of a sentence."""
    return _(
        "The stored channels of %(contact)s cannot be read, because %(why)s. Nobody is "
        "alerted through it. Edit the contact and enter its channels again.",
        contact=contact,
        why=why,
    )
