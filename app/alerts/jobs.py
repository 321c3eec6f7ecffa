"""Make a job of a claimed row: a message that can be sent without the database."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlalchemy import select

from app.access import Access, acknowledgements, webhook_secret
from app.access.mail_server import with_mail
from app.access.networks import Policies
from app.alerts import messages
from app.alerts.channels.base import Outgoing, Tools
from app.alerts.claims import give_up
from app.alerts.lanes import Claim
from app.config import Settings
from app.db import AnySession, db
from app.db.tables import IncidentRow, MonitorRow
from app.errors import Conflict
from app.i18n import N_, _
from app.net.policy import Policy
from app.records import NOT_SENT, Channel
from app.rules.channel_values import CHANNELS

MAX_OTHERS = 200
SUBSCRIBER_NETWORKS = N_("in WAKEFUL_SUBSCRIBER_NETWORKS")

log = logging.getLogger(__name__)


@dataclass
class Job:
    claim: Claim
    outgoing: Outgoing = field(repr=False)
    tools: Tools = field(repr=False)


class Jobs:
    """Makes jobs with the present settings. Needs an application context."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stored = Access().settings
        self._policies = Policies(settings)
        self._network = settings.network(self._policies.current())
        # Strangers choose where their webhooks go: what is open to monitors is closed to them.
        self._strangers_network = settings.network(
            Policy.parse(settings.subscriber_networks, SUBSCRIBER_NETWORKS)
        )

    def tools(self, now: datetime) -> Tools:
        """What channels send with. To be called before the transaction that claims rows."""
        self._policies.refresh()
        if self._policies.current() is not self._network.policy:
            self._network = self._settings.network(self._policies.current())
        try:
            secrets = webhook_secret.webhook_secrets(self._settings, self._stored, now)
        except Conflict:
            secrets = ()  # webhooks then wait and the log says why; other channels are not affected
        settings = with_mail(self._settings)
        db.session.rollback()
        return Tools(settings, self._network, secrets)

    def make(self, claimed: Sequence[Claim], tools: Tools, now: datetime) -> list[Job]:
        """A job for each claim. A claim whose message cannot be composed is given up."""
        alerts = any(claim.subscriber_id is None for claim in claimed)
        others = _others_down(db.session) if alerts else {}
        jobs: list[Job] = []
        for claim in claimed:
            try:
                message = messages.compose(claim.facts, self._context(claim, others))
                outgoing = Outgoing(claim.message_id, claim.value, message, now)
                jobs.append(Job(claim, outgoing, self._tools_for(claim, tools)))
            except Exception as fault:
                # One message that cannot be composed must not stop all the others.
                log.exception("Delivery %d could not be written.", claim.id)
                reason = _("Wakeful could not write it (%(fault)s).", fault=type(fault).__name__)
                give_up(db.session, claim.id, NOT_SENT + reason)
        return jobs

    def _tools_for(self, claim: Claim, tools: Tools) -> Tools:
        if claim.strangers_webhook:
            return replace(tools, network=self._strangers_network)
        return tools

    def _context(self, claim: Claim, others: Mapping[int, str]) -> messages.Context:
        reader = _reader(claim)
        return messages.Context(
            base_url=messages.base_url(self._settings.public_url, self._settings.bind),
            acknowledge_token=lambda id: acknowledgements.make_token(id, reader),
            others_down=others,
        )


def _reader(claim: Claim) -> str:
    """Who gets the acknowledge link, without secrets: an email address, or the channel's name. The
    acknowledgement is shown under this name.
    """
    if claim.channel == Channel.EMAIL:
        return _("email to %(address)s", address=claim.value)
    return _("%(channel)s message", channel=_(CHANNELS[Channel(claim.channel)].label))


def _others_down(session: AnySession) -> dict[int, str]:
    """The names of the monitors that are down now, by id, the longest outage first."""
    query = (
        select(MonitorRow.id, MonitorRow.name)
        .join(IncidentRow, IncidentRow.monitor_id == MonitorRow.id)
        .where(IncidentRow.ended_at.is_(None))
        .order_by(IncidentRow.started_at)
        .limit(MAX_OTHERS)
    )
    return {row.id: row.name for row in session.execute(query)}
