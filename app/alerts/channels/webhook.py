"""Webhooks: JSON, signed as Standard Webhooks says. Webhooks to subscribers of a status page have
no signature: a subscriber chooses the URL, and could choose a receiver of alerts, which would
believe a signed message.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from app.access.webhook_secret import PREFIX
from app.alerts.answers import Acceptance, Answer, retry
from app.alerts.channels.base import Outgoing, Tools, is_good, post
from app.i18n import N_, _
from app.net.client import Response
from app.records import NOT_SENT
from app.rules.time import iso

SUBSCRIBER = "subscriber webhook"  # in the table of senders
UNSIGNED = N_(
    "the stored webhook secret cannot be read, so this message cannot be signed. Change the secret"
    " on the Settings page."
)


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    if not tools.webhook_secrets:
        return retry(NOT_SENT + _(UNSIGNED))
    body = _encoded(payload(outgoing))
    stamp = str(int(outgoing.now.timestamp()))
    headers = {
        "webhook-id": outgoing.id,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(
            sign(secret, outgoing.id, stamp, body) for secret in tools.webhook_secrets
        ),
    }
    return post(outgoing, tools, body, headers=headers)


def send_to_subscriber(outgoing: Outgoing, tools: Tools) -> Answer:
    """A message that asks to confirm a subscription has a token, which the answer must contain."""
    token = outgoing.message.data.get("token")

    def echoes(response: Response) -> bool:
        return token is None or str(token) in response.text

    def acceptance(response: Response) -> Acceptance | None:
        return Acceptance.PERMANENT if is_good(response) and not echoes(response) else None

    def read(response: Response) -> str:
        if echoes(response) or response.status >= 300:
            return response.words
        return response.words + " " + _("(the answer does not contain the token)")

    message = outgoing.message
    question = {"type": message.event, **message.data}
    return post(
        outgoing,
        tools,
        _encoded(payload(outgoing) if token is None else question),
        headers={"webhook-id": outgoing.id},
        secrets=[str(token)] if token else [],
        read=read,
        acceptance=acceptance,
    )


def payload(outgoing: Outgoing) -> dict[str, object]:
    """The body: the time is that of the event, not of the attempt."""
    message = outgoing.message
    return {"type": message.event, "timestamp": iso(message.at), "data": dict(message.data)}


def _encoded(body: dict[str, object]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def sign(secret: str, id: str, stamp: str, body: bytes) -> str:
    """One entry of ``webhook-signature``. Raises ValueError if the key inside ``whsec_...`` is not
    base64.
    """
    encoded = secret.removeprefix(PREFIX)
    key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    digest = hmac.new(key, f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
