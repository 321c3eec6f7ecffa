"""Opsgenie's Alert API: an alert for each incident, acknowledged and closed with it.

https://docs.opsgenie.com/docs/alert-api
"""

from __future__ import annotations

from typing import Any

from app.alerts.answers import Answer
from app.alerts.channels.base import Outgoing, Tools, action_of, dedup_key_of, post, reasons
from app.alerts.messages.message import Message, Tone
from app.alerts.words import shorten
from app.rules.channel_values import parse_opsgenie

API = "https://api.{region}opsgenie.com/v2/alerts"
MAX_MESSAGE, MAX_ENTITY, MAX_DESCRIPTION = 130, 512, 15_000
PRIORITIES = {Tone.BAD: "P1", Tone.WARNING: "P3", Tone.PLAIN: "P5", Tone.GOOD: "P5"}
ACTIONS = {"acknowledge": "acknowledge", "resolve": "close"}


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    region, key = parse_opsgenie(outgoing.value)
    message, alias = outgoing.message, dedup_key_of(outgoing, tools)
    url, action = API.format(region=region), action_of(message)
    if action == "trigger":
        body = {"alias": alias, "source": "Wakeful", **payload(message)}
    else:
        url = f"{url}/{alias}/{ACTIONS[action]}?identifierType=alias"
        body = {"source": "Wakeful", "note": f"{message.title}. {message.summary}"}
    return post(
        outgoing,
        tools,
        body,
        url=url,
        headers={"Authorization": f"GenieKey {key}"},
        secrets=[key],
        read=reasons,
    )


def payload(message: Message) -> dict[str, Any]:
    monitor = message.data.get("monitor") or {}
    return {
        "message": shorten(message.title, MAX_MESSAGE),
        "description": message.fitted(MAX_DESCRIPTION),
        "priority": PRIORITIES[message.tone],
        "entity": monitor.get("name", "")[:MAX_ENTITY],
        "details": dict(message.details),
    }
