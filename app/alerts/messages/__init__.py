"""The content of a message for all channels: what, since when, why, how long, links.

``compose`` makes it from the facts that are stored in the outbox; channels only lay it out.
"""

from __future__ import annotations

from collections.abc import Callable

from app.alerts.messages import grouped, incident, notices, post, report
from app.alerts.messages.message import Facts, Message, MessageContext
from app.i18n import ENGLISH, speaking
from app.paths import translations_of
from app.records import Event, SubscriberEvent

FIRST_NAMED = 10  # of a burst (decision 5)


def compose(facts: Facts, context: MessageContext) -> Message:
    """The message for a row's facts. A message about a status page is in the page's language, any
    other in English.
    """
    language = (facts.get("page") or {}).get("language", ENGLISH)
    with speaking(translations_of(language)):
        message = _COMPOSERS[facts["event"]](facts, context)
    return message if context.zone is None else message.in_zone(context.zone)


def is_complete(facts: Facts) -> bool:
    """Whether these facts are enough for a message. It is asked before several rows become one
    message, because one incomplete row would prevent the message for all of them.
    """
    try:
        compose(facts, MessageContext("", str))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return False
    return True


_COMPOSERS: dict[str, Callable[[Facts, MessageContext], Message]] = {
    Event.INCIDENT_OPENED: incident.opened,
    Event.INCIDENT_RESOLVED: incident.resolved,
    Event.INCIDENT_REMINDER: incident.reminder,
    Event.INCIDENT_ACKNOWLEDGED: incident.acknowledged,
    Event.INCIDENTS_OPENED: grouped.burst,
    Event.INCIDENTS_RESOLVED: grouped.burst,
    Event.INCIDENTS_ACKNOWLEDGED: grouped.acknowledged,
    Event.INCIDENTS_DIGEST: grouped.digest,
    **notices.EXPIRIES,
    Event.LOCATION_SILENT: notices.silent,
    Event.LOCATION_ONLINE: notices.online,
    Event.REPORT_MONTHLY: report.report,
    Event.TEST: notices.trial,
    SubscriberEvent.POST_PUBLISHED: post.post,
    SubscriberEvent.POST_UPDATED: post.post,
    SubscriberEvent.CONFIRM: post.confirm,
    SubscriberEvent.KNOWN: post.already_subscribed,
}
