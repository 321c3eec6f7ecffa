"""Reading ``tcp://host:port``."""

from __future__ import annotations

from app.rules.url import Target, take_apart

SCHEME = "tcp"


def read(text: str) -> Target:
    """Take the URL apart. Raises ValueError with a sentence."""
    target = take_apart(text, {SCHEME: None})
    if target.request_target != "/" or "#" in text:
        raise ValueError(f"A {SCHEME}:// URL ends with its port, as {SCHEME}://example.com:25.")
    return target
