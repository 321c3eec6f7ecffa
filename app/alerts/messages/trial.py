"""The message that tests a channel."""

from __future__ import annotations

from app.alerts.messages.context import Context
from app.alerts.messages.facts import Facts, address_of, name_of, told_at
from app.alerts.messages.message import Link, Message, Tone
from app.i18n import _


def trial(facts: Facts, context: Context) -> Message:
    monitor = facts["monitor"]
    if monitor is None:  # of a channel value that no monitor has yet
        return Message(
            event=facts["event"],
            tone=Tone.PLAIN,
            title=_("Test of an alert channel"),
            summary=_("This is a test. Alerts arrive here."),
            at=told_at(facts),
            links=(Link(_("Dashboard"), f"{context.base_url}/"),),
            data={"monitor": None},
        )
    return Message(
        event=facts["event"],
        tone=Tone.PLAIN,
        title=_("Test: %(name)s", name=name_of(facts)),
        summary=_("This is a test. Alerts of this monitor arrive here."),
        at=told_at(facts),
        details=(address_of(facts),),
        links=(Link(_("Monitor"), f"{context.base_url}/monitors/{monitor['id']}"),),
        data={"monitor": dict(monitor)},
    )
