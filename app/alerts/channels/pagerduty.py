"""PagerDuty's Events API v2: an alert for each incident, acknowledged and resolved with it.

https://developer.pagerduty.com/docs/send-alert-event
"""

from __future__ import annotations

from typing import Any

from app.alerts.answers import Answer
from app.alerts.channels.base import Outgoing, Tools, action_of, dedup_key_of, post, reasons
from app.alerts.messages.message import Message, Tone
from app.alerts.words import shorten
from app.rules.channel_values import parse_pagerduty
from app.rules.time import iso

API = "https://events.{region}pagerduty.com/v2/enqueue"
MAX_SUMMARY = 1_024
SEVERITIES = {
    Tone.BAD: "critical", Tone.WARNING: "warning", Tone.PLAIN: "info", Tone.GOOD: "info",
}  # fmt: skip


def send(outgoing: Outgoing, tools: Tools) -> Answer:
    region, key = parse_pagerduty(outgoing.value)
    action = action_of(outgoing.message)
    body = {"routing_key": key, "event_action": action, "dedup_key": dedup_key_of(outgoing, tools)}
    if action == "trigger":
        body |= payload(outgoing.message)
    return post(outgoing, tools, body, url=API.format(region=region), secrets=[key], read=reasons)


def payload(message: Message) -> dict[str, Any]:
    monitor = message.data.get("monitor") or {}
    return {
        "client": "Wakeful",
        "client_url": message.page,
        "links": [{"href": link.url, "text": link.label} for link in message.links],
        "payload": {
            "summary": shorten(f"{message.title}. {message.summary}", MAX_SUMMARY),
            "source": monitor.get("url") or "Wakeful",
            "severity": SEVERITIES[message.tone],
            "timestamp": iso(message.at),
            "custom_details": dict(message.details),
        },
    }
