"""What a sender gets and may use. A sender is a function that sends once and reads the answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

from app.alerts.channels import answer
from app.alerts.channels.answer import Answer, Verdict
from app.alerts.messages import Message
from app.config import Settings
from app.i18n import _
from app.net.client import Blocked, Network, Response, Unreachable
from app.rules import masking
from app.rules.frames import frames_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tools:
    """What all senders share. ``webhook_secrets``: the newest first, the old one during an
    overlap.
    """

    settings: Settings
    network: Network
    webhook_secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One delivery to be sent: ``id`` is the same on every attempt; ``now`` is this attempt's
    time.
    """

    id: str
    value: str = field(repr=False)
    message: Message
    now: datetime


Sender = Callable[[Outgoing, Tools], Answer]
JSON_TYPE = {"Content-Type": "application/json; charset=utf-8"}


def post_json(
    outgoing: Outgoing,
    tools: Tools,
    payload: Any,
    *,
    url: str | None = None,
    headers: Mapping[str, str] | None = None,
    secrets: Sequence[str] = (),
    own_setting: bool = False,
    read: Callable[[Response], str] | None = None,
) -> Answer:
    """POST ``payload`` to ``url`` (default: the value itself) and read the answer as HTTP means it.

    ``read`` picks the telling part out of the answer's body.
    """
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    target = url or outgoing.value
    return post(
        outgoing,
        tools,
        target,
        body,
        headers={**JSON_TYPE, **(headers or {})},
        secrets=[*secrets, *masking.secrets_in_url(target)],
        own_setting=own_setting,
        read=read,
    )


def post(
    outgoing: Outgoing,
    tools: Tools,
    url: str,
    body: bytes | Mapping[str, str],
    *,
    headers: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    secrets: Sequence[str] = (),
    own_setting: bool = False,
    read: Callable[[Response], str] | None = None,
) -> Answer:
    try:
        response = tools.network.post(
            url, body=body, headers=headers, auth=auth, own_setting=own_setting
        )
    except Blocked as blocked:
        return answer.permanent(str(blocked))
    except Unreachable as fault:
        return answer.retry(masking.clean(str(fault), secrets))
    except ValueError as fault:  # not a plain URL: stored without validation
        return answer.permanent(masking.clean(str(fault), secrets))
    return read_response(response, _words(response, read or _said, secrets), outgoing.now)


def _words(response: Response, read: Callable[[Response], str], secrets: Sequence[str]) -> str:
    """The text of a service's answer, cleaned for people. An unreadable body does not matter."""
    try:
        return masking.clean(read(response), secrets)
    except Exception as fault:
        # The error's text may contain the request, with the channel's secrets.
        log.warning("The answer of a service cannot be read: %s", frames_of(fault))
        return _("The answer could not be read.")


def read_response(response: Response, said: str, now: datetime) -> Answer:
    """The answer that a response's status stands for; ``said`` is what the service said,
    cleaned.
    """
    verdict = answer.judge_status(response.status)
    text = f"HTTP {response.status}" + (f": {said}" if said else "")
    if 300 <= response.status < 400:
        text += " " + _("(a redirect, which is not followed: enter the URL that it leads to)")
    pause = None
    if verdict is Verdict.RETRY:
        pause = answer.retry_after(response.headers, response.body, now)
    return Answer(verdict, text, pause, gone=response.status == HTTPStatus.GONE)


def _said(response: Response) -> str:
    return response.words


def field_of(*path: str) -> Callable[[Response], str]:
    """Read one field of a JSON answer; the whole body if it is missing."""

    def read(response: Response) -> str:
        found: Any = response.body
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, str) else response.words

    return read
