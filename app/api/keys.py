"""Authentication by Bearer keys, and their rate limit (decisions.md 6 and 7)."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Request, current_app

from app.access.keys import BOUND
from app.api.operations import Path
from app.errors import Denied
from app.i18n import N_, _
from app.records import ApiKey
from app.stores import current_access

UNAUTHENTICATED = N_(
    "A valid API key is required. Send it in the header Authorization: Bearer <API_KEY>."
)
ELSEWHERE = N_(
    "This key may only be used from certain networks, and %(address)s is in none of them. Its owner"
    " can change them on the page API keys."
)
# The beginnings of the paths that a key bound to a tag may use. Its store decides what it sees
# there (app/stores/local/bound.py).
OF_A_TAG = ("/me", "/overview", "/monitors", "/incidents", "/deliveries")
WINDOW_SECONDS = 60
# Requests are counted some at a time: a hundredth of the limit, so that what a process has counted
# and not answered yet takes no more than that from the others.
SHARES, MOST_AT_ONCE = 100, 20
_LONGEST_KEY = 256


def authenticate(request: Request) -> ApiKey | None:
    """The key in the Authorization header, or None. Cookies are ignored."""
    scheme, _space, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret or len(secret) > _LONGEST_KEY:
        return None
    return current_access().keys.authenticate(secret)


def check_tag(key: ApiKey, path: Path) -> None:
    """Raises Denied for a path that a key bound to a tag may not use."""
    if key.tag is not None and not path.template.startswith(OF_A_TAG):
        raise Denied(_(BOUND, tag=key.tag))


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A key's requests in the present minute. ``reset``: seconds until the next; limit 0 is off."""

    limit: int
    used: int
    reset: int

    @classmethod
    def count(cls, key: ApiKey) -> RateLimit:
        """Count this request."""
        limit: int = current_app.extensions["wakeful.settings"].rate_limit
        if not limit:
            return cls(0, 0, 0)
        access = current_access()
        share = min(MOST_AT_ONCE, max(1, limit // SHARES))
        used = access.counters.count(f"api:{key.prefix}", WINDOW_SECONDS, share=share)
        return cls(limit, used, access.counters.seconds_left(WINDOW_SECONDS))

    @property
    def exceeded(self) -> bool:
        return bool(self.limit) and self.used > self.limit

    def headers(self) -> dict[str, str]:
        if not self.limit:
            return {}
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(0, self.limit - self.used)),
            "X-RateLimit-Reset": str(self.reset),
        }
