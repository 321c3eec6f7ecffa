"""The delivery log: messages, their attempts with the answers of the services, and the reasons of
those on hold. Also the notices on undelivered messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.forms.queries import DeliveryQueryForm
from app.i18n import N_, _, _n
from app.records import (
    NOT_SENT,
    Channel,
    Delivery,
    DeliveryStatus,
    Incident,
    IncidentStatus,
    MonitorRef,
)
from app.rules.channel_values import channel_label
from app.rules.unreadable import ENTER_ALERTS_AGAIN
from app.stores import current_store
from app.web.frame import fragments, links, remembered, servers, session
from app.web.frame.session import guarded
from app.web.frame.store_errors import if_answered
from app.web.shown import times

blueprint = guarded("deliveries", __name__, "/deliveries")

# Sentences for the reasons that the outbox stores as a word (``app.alerts.lanes.Reason``). All
# others are sentences already: the last answer of the service.
REASONS = {
    "burst": N_("Many monitors changed at once, so one message covered all of them."),
    "flapping": N_(
        "The monitor went down and up repeatedly, so this change was not sent separately."
    ),
    "outage not delivered": N_("The outage could not be delivered, so its recovery was not sent."),
    "quiet hours": N_("It was due in quiet hours. One message at their end covers it."),
    "settled": N_("It was acknowledged or over before this message went out."),
    "restored": N_(
        "A backup was restored, and it is older. Retry now sends it; nothing else does."
    ),
    "retried by hand": N_("Retried manually."),
    "given up by hand": N_("Given up manually."),
    N_("Not sent: it could not be sent within 24 hours."): N_("Not sent within 24 hours."),
}
SENT_AGAIN = N_("The message to %(channel)s is being sent again.")
GIVEN_UP = N_("The message to %(channel)s will not be sent.")
CHOOSABLE = 200  # monitors in the filter; beyond that, their own pages lead here


@blueprint.get("")
def index() -> Response:
    servers.refuse_bare()
    query = remembered.list_query(DeliveryQueryForm, links.pairs(), "deliveries")
    page = current_store().deliveries.list(query)
    answer = fragments.page(
        "deliveries/index.html",
        "deliveries/_list.html",
        page=page,
        query=query,
        names=names_of(page.items),
        monitor_choices=_monitor_choices(query.monitor_id),
        statuses=list(DeliveryStatus),
        channel_choices=[("", _("All channels")), *((key, channel_label(key)) for key in Channel)],
        **_template_times(),
    )
    return remembered.remember(answer, "deliveries")


@blueprint.get("/<int:id>")
def show(id: int) -> str:
    servers.refuse_bare()
    delivery = current_store().deliveries.get(id)
    return render_template(
        "deliveries/show.html", delivery=delivery, names=names_of([delivery]), **_template_times()
    )


@blueprint.post("/<int:id>/retry")
def retry(id: int) -> Response:
    return _redirect_with(current_store().deliveries.retry(id), SENT_AGAIN)


@blueprint.post("/<int:id>/give-up")
def give_up(id: int) -> Response:
    return _redirect_with(current_store().deliveries.give_up(id), GIVEN_UP)


def _redirect_with(delivery: Delivery, notice: str) -> Response:
    flash(_(notice, channel=channel_label(delivery.channel)), "success")
    back = request.form.get("next")
    return redirect(session.safe_next(back) if back else url_for(".show", id=delivery.id))


# The messages of a notice on the dashboard, the newest first, and the names of their monitors.
Undelivered = tuple[Sequence[Delivery], Mapping[int, str]]


def failed_channels(unreached: Sequence[UnreachedIncident] = ()) -> Undelivered:
    """The newest message whose attempts failed, for each channel that has delivered nothing since.
    The channels in ``unreached`` are left out.
    """
    named = {_channel(message) for entry in unreached for message in entry.messages}
    return _undelivered(
        lambda: [last for last in current_store().channels.failed() if _channel(last) not in named]
    )


def _channel(delivery: Delivery) -> tuple[str, str | None]:
    return delivery.channel, delivery.target


def lost_messages() -> Undelivered:
    """Recent messages that were not sent, and will not be unless a person sends them again."""
    return _undelivered(lambda: current_store().channels.lost())


def _undelivered(question: Callable[[], Sequence[Delivery]]) -> Undelivered:
    def named() -> Undelivered:
        messages = question()
        return messages, names_of(messages)

    return if_answered(named, ((), {}))


@dataclass(frozen=True, slots=True)
class UnreachedIncident:
    """An open incident that nobody has been notified of, and the messages that have not arrived."""

    incident: Incident
    messages: Sequence[Delivery]

    @property
    def was_given_up(self) -> bool:
        return any(message.status == DeliveryStatus.FAILED for message in self.messages)


def unreached(open_now: Sequence[Incident]) -> Sequence[UnreachedIncident]:
    """The open incidents that nobody has been notified of; empty if the store cannot tell."""
    waiting = [incident for incident in open_now if incident.status == IncidentStatus.UNRESOLVED]
    ids = [incident.id for incident in waiting]
    by_incident = if_answered(lambda: current_store().channels.unreached(ids), {}) if ids else {}
    return [
        UnreachedIncident(incident, by_incident[incident.id])
        for incident in waiting
        if by_incident.get(incident.id)
    ]


def unalerted(open_now: Sequence[Incident]) -> Collection[int]:
    """The monitors of these incidents that alert nobody; empty if the store cannot tell."""
    ids = tuple({incident.monitor_id for incident in open_now})
    return if_answered(lambda: current_store().channels.unalerted(ids), ()) if ids else ()


def why_not(delivery: Delivery) -> str:
    """``Slack failed 6 times: hooks.example.com refused the connection.``"""
    channel, tries = channel_label(delivery.channel), len(delivery.attempts)
    if not tries:
        return _("%(channel)s has not been tried yet.", channel=channel)
    answer = (delivery.last_answer or _("It failed")).rstrip(".")
    return _n(
        "%(channel)s failed %(num)s time: %(answer)s.",
        "%(channel)s failed %(num)s times: %(answer)s.",
        tries,
        channel=channel,
        answer=answer,
    )


def monitors_with_unreadable_alerts() -> Sequence[MonitorRef]:
    """The monitors that would alert nobody, because their stored alerts cannot be read; empty if
    the store cannot tell.
    """
    return if_answered(lambda: current_store().channels.unreadable_alerts(), ())


@blueprint.app_context_processor
def _helpers() -> dict[str, Any]:
    return {
        "failed_channels": failed_channels,
        "lost_messages": lost_messages,
        "monitors_with_unreadable_alerts": monitors_with_unreadable_alerts,
        "NOT_SENT": NOT_SENT,
        "ENTER_ALERTS_AGAIN": _(ENTER_ALERTS_AGAIN),
        "channel_label": channel_label,
        "last_at": last_at,
        "why_not": why_not,
        "reason_text": reason_text,
    }


def last_at(delivery: Delivery) -> datetime | None:
    attempts = [moment(attempt) for attempt in delivery.attempts]
    return attempts[-1] if attempts else delivery.created_at


def moment(attempt: Mapping[str, Any]) -> datetime | None:
    """When an attempt was made; None if the text is no time."""
    try:
        return datetime.fromisoformat(str(attempt.get("at")))
    except ValueError:
        return None


def reason_text(reason: str | None) -> str | None:
    return None if reason is None else _(REASONS.get(reason, reason))


def names_of(deliveries: Iterable[Delivery]) -> dict[int, str]:
    ids = {delivery.monitor_id for delivery in deliveries if delivery.monitor_id is not None}
    if not ids:
        return {}
    return {ref.id: ref.name for ref in current_store().monitors.refs(ids=sorted(ids))}


def _monitor_choices(chosen_id: int | None) -> list[tuple[int | str, str]]:
    """Monitors for the filter; only the chosen one if there are too many to list."""
    refs = list(current_store().monitors.refs(limit=CHOOSABLE + 1))
    if len(refs) > CHOOSABLE:
        refs = []
    if chosen_id and all(ref.id != chosen_id for ref in refs):
        refs += current_store().monitors.refs(ids=[chosen_id])
    return [("", _("All monitors")), *((ref.id, ref.name) for ref in refs)] if refs else []


def _template_times() -> dict[str, Any]:
    return {"moment": moment, "now": times.now()}
