"""A provider of SMS as one URL, as in the environment:

twilio://ACCOUNT:TOKEN@FROM   https://www.twilio.com/docs/messaging/api/message-resource
vonage://KEY:SECRET@FROM      https://developer.vonage.com/messaging/sms/overview
``?api=`` names another base URL, such as a regional one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from app.i18n import N_, _
from app.rules.service_url import base_url, parameters, unescaped

APIS = {"twilio": "https://api.twilio.com", "vonage": "https://rest.nexmo.com"}
FORM = N_("it must look like twilio://ACCOUNT:TOKEN@FROM or vonage://KEY:SECRET@FROM.")
_ACCOUNT = re.compile(r"[A-Za-z0-9_-]+")
MAX_SENDER = 34  # of a messaging service; a number or a name is shorter


@dataclass(frozen=True, slots=True)
class Provider:
    """The parts of the URL. ``sender`` is a number, a name, or a Twilio messaging service."""

    service: str
    user: str
    password: str = field(repr=False)
    sender: str
    api: str


def parse(url: str) -> Provider:
    """Raises ValueError with a sentence that contains nothing of the URL."""
    service, _sign, after_scheme = url.partition("://")
    before_query, _mark, query = after_scheme.partition("?")
    credentials, at, sender = before_query.rstrip("/").rpartition("@")
    user, colon, password = credentials.partition(":")
    if service not in APIS or not (at and colon and password and _ACCOUNT.fullmatch(user)):
        raise ValueError(_(FORM))
    sender, password = unescaped(sender).strip(), unescaped(password)
    if not 0 < len(sender) <= MAX_SENDER or any(mark in sender for mark in "/?#"):
        raise ValueError(_(FORM))
    options = parameters(query)
    api = base_url(options.pop("api", "") or APIS[service])
    if options:
        raise ValueError(_("the only parameter after ? is %(name)s.", name="api"))
    return Provider(service, user, password, sender, api)
