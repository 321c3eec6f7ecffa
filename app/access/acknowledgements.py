"""Acknowledge links: signed, so that nobody can forge one, and expiring, so that an old mail is of
no use.

The link only opens a page with one button. Mail scanners follow links: a link that acknowledged at
once would acknowledge every incident before a person had seen it.
"""

from __future__ import annotations

from dataclasses import dataclass

from itsdangerous import BadData, SignatureExpired, URLSafeTimedSerializer

from app.errors import Denied
from app.i18n import N_, _
from app.secret_keys import signing_keys

LIFETIME_SECONDS = 7 * 24 * 3600
EXPIRED = N_("This link has expired. Open the incident in the dashboard to acknowledge it.")
NOT_VALID = N_("This link is not valid. Copy it whole from the message, or open the dashboard.")
_SALT = "wakeful acknowledge v1"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The content of a link. ``via`` says where it was, such as "a link in the email to
    ops@example.com"; it is not a secret. ``delivery_id``: of a message about several incidents.
    """

    incident_id: int
    via: str
    delivery_id: int | None = None


def make_token(incident_id: int, via: str | None = None, delivery_id: int | None = None) -> str:
    """The token of a link to the acknowledge page. Needs an application context."""
    message = [] if delivery_id is None else [delivery_id]
    return str(_serializer().dumps([incident_id, via or _("a link in an alert"), *message]))


def read_token(token: str) -> Acknowledgement:
    """The content of ``token``. Raises Denied with a sentence if it is not ours or has expired."""
    try:
        incident_id, via, *message = _serializer().loads(token, max_age=LIFETIME_SECONDS)
    except SignatureExpired:
        raise Denied(_(EXPIRED)) from None
    except (BadData, TypeError, ValueError):
        raise Denied(_(NOT_VALID)) from None
    return Acknowledgement(int(incident_id), str(via), *message)


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(signing_keys(), salt=_SALT)
