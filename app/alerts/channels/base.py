"""The base of all senders: their input, and ``post``, which sends a request and reads the answer. A
sender is a function that makes one attempt.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from operator import attrgetter
from time import monotonic
from typing import Any, Literal

from app.alerts.answers import Acceptance, Answer, permanent, retry, retry_after, status_meaning
from app.alerts.messages.message import Message, Tone
from app.config import Settings
from app.i18n import _
from app.net.client import Blocked, ConnectionFailed, Network, Response
from app.records import Event
from app.rules import masking
from app.rules.masking import frames_of
from app.rules.url import join, parse_url

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that all senders share. ``webhook_secrets``: the present one, and during an overlap
    the old one. ``installation`` identifies this installation at services: the ids of its incidents
    are the same as those of others.
    """

    settings: Settings
    network: Network
    webhook_secrets: tuple[str, ...] = field(default=(), repr=False)
    installation: str = ""


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
Read = Callable[[Response], str]  # the part of an answer that gives the reason
# The meaning of an answer whose status does not say it; None if the status does.
ReadAcceptance = Callable[[Response], Acceptance | None]
# The payload to send in place of a refused one; None if the refusal is final.
Correct = Callable[[Response], Any]
JSON_TYPE = {"Content-Type": "application/json; charset=utf-8"}
MAX_POSTS = 4  # of one attempt: redirects and corrected payloads count too
MIN_SECONDS = 1.0  # for the last post


def post(
    outgoing: Outgoing,
    tools: Tools,
    payload: Any,
    *,
    url: str | None = None,
    form: bool = False,
    headers: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    secrets: Sequence[str] = (),
    own_setting: bool = False,
    read: Read = attrgetter("words"),
    acceptance: ReadAcceptance | None = None,
    correct: Correct | None = None,
) -> Answer:
    """POST ``payload`` as JSON, or as a form, to ``url`` (default: the channel value), and read the
    answer. ``acceptance``: for a service that refuses in an answer with a good status.
    ``correct``: another payload after a refusal; without it, refusals are final. ``read``: the part
    of the answer that gives the reason. ``secrets``: texts that the log must not show.
    ``own_setting``: an operator has set the URL, so the policy for monitors does not apply to it.
    """
    target = url or outgoing.value
    if not form:
        headers = {**JSON_TYPE, **(headers or {})}
        secrets = [*secrets, *masking.secrets_in_url(target)]
    body = payload if form else _encoded(payload)
    end = monotonic() + tools.network.total_seconds
    for posts_left in reversed(range(MAX_POSTS)):
        seconds = max(MIN_SECONDS, end - monotonic())
        network = replace(tools.network, total_seconds=min(seconds, tools.network.total_seconds))
        try:
            response = network.post(
                target, body=body, headers=headers, auth=auth, own_setting=own_setting
            )
        except Blocked as blocked:
            return permanent(str(blocked))
        except ConnectionFailed as fault:
            return retry(masking.clean(str(fault), secrets))
        except ValueError as fault:  # not a plain URL: stored without validation
            return permanent(masking.clean(str(fault), secrets))
        if posts_left and (to := _redirect_target(target, response)) is not None:
            target, secrets = to, [*secrets, *masking.secrets_in_url(to)]
        elif posts_left and correct and (other := correct(response)) is not None:
            body = _encoded(other)
        else:
            break
    words = _words(response, read, secrets)
    outcome = (acceptance and acceptance(response)) or status_meaning(response.status)
    text = f"HTTP {response.status}" + (f": {words}" if words else "")
    if 300 <= response.status < 400:
        text += " " + _("(a redirect, which is not followed: enter the URL that it leads to)")
    pause = None
    if outcome is Acceptance.RETRY:
        pause = retry_after(response.headers, response.body, outgoing.now)
    return Answer(outcome, text, pause, gone=response.status == HTTPStatus.GONE)


def _encoded(payload: Any) -> bytes:
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


def _redirect_target(url: str, response: Response) -> str | None:
    """The URL on the same host to which the answer redirects the same POST; None for any other
    redirect. Another host would get the message and the secrets of the URL, and a proxy's login
    page would take the alert as a form and answer 200.
    """
    if response.status not in _REDIRECTS:
        return None
    try:
        old = parse_url(url)
        new = join(old, response.headers.get("Location", ""))
    except ValueError:
        return None
    upgraded = (old.scheme, new.scheme) == ("http", "https")
    if new.dns_name != old.dns_name or not (upgraded or new.origin == old.origin):
        return None
    same = upgraded and new.request_target == old.request_target
    return new.full_url if same or response.status in _SAME_METHOD else None


# 307 and 308 mean the same method. The others are followed only from http to https, where most
# servers answer with them.
_SAME_METHOD = frozenset({HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT})
_REDIRECTS = _SAME_METHOD | {HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND}


def action_of(message: Message) -> Literal["trigger", "acknowledge", "resolve"]:
    """The action on the alert of an incident at a service of BY_INCIDENT."""
    if message.event == Event.INCIDENT_ACKNOWLEDGED:
        return "acknowledge"
    return "resolve" if message.tone is Tone.GOOD else "trigger"


def dedup_key_of(outgoing: Outgoing, tools: Tools) -> str:
    """The key of an incident's alert at a service of BY_INCIDENT. A message without an incident or
    a place is a separate alert, with the same key when it is sent again. The key names the
    installation, because two installations may share an account.
    """
    thread = outgoing.message.thread
    return f"wakeful-{tools.installation}-{thread}" if thread else f"wakeful-{outgoing.id}"


def is_refused(response: Response, acceptance: ReadAcceptance) -> bool:
    """Whether the service refuses the message itself: by a 400 that says why in JSON, or in the
    body of a good status. Any other 400 is permanent at once.
    """
    if response.status == HTTPStatus.BAD_REQUEST:
        return bool(dict_of(response))
    return is_good(response) and acceptance(response) is Acceptance.PERMANENT


def _words(response: Response, read: Read, secrets: Sequence[str]) -> str:
    """The text of a service's answer, cleaned for people. An unreadable body does not matter."""
    try:
        return masking.clean(read(response), secrets)
    except Exception as fault:
        # The error's text may contain the request, with the channel's secrets.
        log.warning("The answer of a service cannot be read: %s", frames_of(fault))
        return _("The answer could not be read.")


def is_good(response: Response) -> bool:
    return status_meaning(response.status) is Acceptance.DELIVERED


def dict_of(response: Response) -> Mapping[str, Any]:
    """The JSON object of an answer; empty if it has none."""
    return response.body if isinstance(response.body, dict) else {}


def reasons(response: Response) -> str:
    """The message and the errors of a JSON answer."""
    body = dict_of(response)
    errors = body.get("errors")
    texts = errors.values() if isinstance(errors, dict) else errors
    parts = [body.get("message"), *(texts if isinstance(texts, list | ValuesView) else ())]
    return " ".join(part for part in parts if isinstance(part, str)) or response.words


def field_of(*path: str) -> Read:
    """Read one field of a JSON answer; the whole body if it is missing."""

    def read(response: Response) -> str:
        value: Any = response.body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, str) else response.words

    return read
