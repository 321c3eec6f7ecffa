"""Send one message, on a thread that uses neither the database nor the application."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from app.alerts.channels import subscriber_webhook
from app.alerts.channels.answer import Answer, bug, permanent
from app.alerts.channels.base import Sender
from app.alerts.jobs import Job
from app.i18n import _
from app.rules.masking import frames_of, place_of

log = logging.getLogger(__name__)


def send(job: Job, senders: Mapping[str, Sender]) -> Answer:
    """Send a message and return the service's answer. Never raises."""
    try:
        sender = senders.get(_name(job))
        if sender is None:
            return permanent(_("No channel is called %(channel)s.", channel=job.claim.channel))
        return sender(job.outgoing, job.tools)
    except Exception as fault:
        # The error's text and the values in its traceback may contain the channel's secrets.
        log.error("Sending delivery %d failed: %s", job.claim.id, frames_of(fault))
        return bug(place_of(fault))


def _name(job: Job) -> str:
    """Which sender: a stranger's webhook gets no signature of ours."""
    return subscriber_webhook.NAME if job.claim.strangers_webhook else job.claim.channel
