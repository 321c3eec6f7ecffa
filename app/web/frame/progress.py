"""Long work in steps: each request works for a second, then shows its progress and requests the
next. A script does that at once; without scripts, a button does. The remaining work is in the page,
so interrupted work can continue, and no request lasts longer than a proxy waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from flask import render_template, request

from app.web.frame.store_errors import NOT_TAKEN, outlook

SECONDS = 1.0  # of work in one request

T = TypeVar("T")


def work(items: Sequence[T], act: Callable[[T], bool]) -> tuple[int, Sequence[T], str]:
    """Call ``act`` for at least one item. Returns how many it reports as done, the items that are
    left, and why it stopped early. An item whose answer did not come is among them.
    """
    until, done = time.monotonic() + SECONDS, 0
    for index, item in enumerate(items):
        if index and time.monotonic() >= until:
            return done, items[index:], ""
        try:
            done += act(item)
        except NOT_TAKEN as fault:
            return done, items[index:], f"{fault} {outlook(fault)}"
    return done, (), ""


def count_in(name: str) -> int:
    """A count that an earlier step wrote into the form."""
    text = request.form.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def page(
    title: str, done: int, left: int, fields: Sequence[tuple[str, str]], trouble: str, back: str
) -> tuple[str, int]:
    """The progress page. ``fields``: what the next request sends, to the same URL."""
    steps = {"title": title, "done": done, "total": done + left, "fields": fields}
    page = render_template("monitors/progress.html", trouble=trouble, back=back, **steps)
    return page, 503 if trouble else 200
