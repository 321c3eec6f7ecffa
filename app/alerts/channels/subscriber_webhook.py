"""The webhook of a status page's subscriber: JSON without a signature.

Whoever subscribes chooses the URL, and that may be a receiver of our own alerts: with a signature
of this instance, a stranger could send it messages that it believes.
"""

from __future__ import annotations

import json

from app.alerts.channels.answer import Answer, Verdict, judge_status
from app.alerts.channels.base import Outgoing, Tools, post_json
from app.i18n import _
from app.net.client import Response
from app.rules.time import iso

NAME = "subscriber webhook"  # in the table of senders


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    token = outgoing.message.data.get("token")

    def judge(response: Response) -> Verdict:
        verdict = judge_status(response.status)
        return (
            verdict if verdict is not Verdict.DELIVERED or echoes(response) else Verdict.PERMANENT
        )

    def echoes(response: Response) -> bool:
        return token is None or str(token) in response.text

    def read(response: Response) -> str:
        if echoes(response) or response.status >= 300:
            return response.words
        return response.words + " " + _("(the answer does not contain the token)")

    body = json.dumps(payload(outgoing), ensure_ascii=False, separators=(",", ":")).encode()
    secrets = [str(token)] if token else []
    headers = {"webhook-id": outgoing.id}
    return post_json(
        outgoing, tools, body, headers=headers, secrets=secrets, read=read, judge=judge
    )


def payload(outgoing: Outgoing) -> dict[str, object]:
    message = outgoing.message
    if "token" in message.data:
        return {"type": message.event, **message.data}
    return {"type": message.event, "timestamp": iso(message.at), "data": dict(message.data)}
