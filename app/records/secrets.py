"""Pairs of key and value, and how secrets are masked (decision 3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.i18n import N_, _, join_words

MASK = "••••"
# Names of headers and of members of JSON whose values are secrets.
SECRET_NAME = re.compile(
    r"auth(?!ors?\b)|cookie|token|secret|passw|session|signature|credential|api-?_?key|access-?_?key",
    re.I,
)
# The labels of the fields of a monitor that are stored encrypted, and so may be unreadable.
SECRET_FIELDS = {
    "request_headers": N_("request headers"),
    "request_auth_password": N_("password"),
    "request_body": N_("request body"),
    "alerts": N_("alerts"),
    "assertions": N_("assertions"),
}
# The secrets that a check sends to the monitored server, and the user name of the password.
SENT_SECRETS = ("request_headers", "request_auth_username", "request_auth_password", "request_body")
# Other fields that a check needs, with their labels.
CHECK_FIELDS = {
    "request_method": N_("method"),
    "accepted_statuses": N_("accepted status codes"),
    "alert_condition": N_("alert condition"),
    "options": N_("options of its kind"),
}
_WINDOW_FIELDS = {
    "start_at": N_("start"),
    "end_at": N_("end"),
    "repeat_until": N_("last date"),
    "zone": N_("time zone"),
}
_FIELDS = SECRET_FIELDS | CHECK_FIELDS | _WINDOW_FIELDS


def words_of(fields: Sequence[str]) -> str:
    """The labels of fields in a sentence: ``request headers and alerts``."""
    return join_words(_(_FIELDS.get(name, name)) for name in fields)


def mask(secret: str) -> str:
    """The mask, followed by the last four characters of a secret that is longer than twelve."""
    return MASK + (secret[-4:] if len(secret) > 12 else "")


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of ``request_headers`` or ``alerts``."""

    key: str
    value: str

    def masked(self) -> Pair:
        return Pair(self.key, mask(self.value))
