"""Reading ``tcp://host:port``."""

from __future__ import annotations

from app.i18n import _
from app.rules.url import Target, take_apart

SCHEME = "tcp"


def read(text: str) -> Target:
    """Take the URL apart. Raises ValueError with a sentence."""
    target = take_apart(text, {SCHEME: None})
    if target.request_target != "/" or "#" in text:
        raise ValueError(
            _(
                "A %(scheme)s:// URL ends with its port, as %(scheme)s://example.com:25.",
                scheme=SCHEME,
            )
        )
    return target
