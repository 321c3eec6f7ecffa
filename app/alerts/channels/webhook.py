"""Webhooks: JSON, signed as Standard Webhooks says.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from app.access.webhook_secret import PREFIX
from app.alerts.channels.answer import Answer, retry
from app.alerts.channels.base import Outgoing, Tools, post_json
from app.i18n import N_, _
from app.records import NOT_SENT
from app.rules.time import iso

UNSIGNED = N_(
    "the stored webhook secret cannot be read, so this message cannot be signed. Change the secret"
    " on the Settings page."
)


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    if not tools.webhook_secrets:
        return retry(NOT_SENT + _(UNSIGNED))
    body = json.dumps(payload(outgoing), ensure_ascii=False, separators=(",", ":")).encode()
    stamp = str(int(outgoing.now.timestamp()))
    headers = {
        "webhook-id": outgoing.id,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(
            sign(secret, outgoing.id, stamp, body) for secret in tools.webhook_secrets
        ),
    }
    return post_json(outgoing, tools, body, headers=headers)


def payload(outgoing: Outgoing) -> dict[str, object]:
    """The body: the time is that of the event, not of the attempt."""
    message = outgoing.message
    return {"type": message.event, "timestamp": iso(message.at), "data": dict(message.data)}


def sign(secret: str, id: str, stamp: str, body: bytes) -> str:
    """One entry of ``webhook-signature``."""
    digest = hmac.new(key_of(secret), f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def key_of(secret: str) -> bytes:
    """The key inside ``whsec_...``. Raises ValueError if it is not base64."""
    encoded = secret.removeprefix(PREFIX)
    return base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
