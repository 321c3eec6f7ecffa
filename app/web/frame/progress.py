"""Long work in steps: each request works for a second and answers with a page that shows the
progress and requests the next step, by a script or by a button. The page contains the remaining
work, so that interrupted work can continue, and no request lasts longer than a proxy waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from flask import render_template, request

from app.rules.text import digits
from app.web.frame.store_errors import STORE_REFUSALS, outlook

SECONDS = 1.0  # of work in one request

T = TypeVar("T")


def work(items: Sequence[T], act: Callable[[T], bool]) -> tuple[int, Sequence[T], str]:
    """Call ``act`` for the items until the time is over, at least once. Return how many calls
    returned true, the remaining items, and the sentence of the error at which it stopped. The item
    whose call failed is among the remaining ones.
    """
    deadline, count = time.monotonic() + SECONDS, 0
    for index, item in enumerate(items):
        if index and time.monotonic() >= deadline:
            return count, items[index:], ""
        try:
            count += act(item)
        except STORE_REFUSALS as fault:
            return count, items[index:], f"{fault} {outlook(fault)}"
    return count, (), ""


def count_in(name: str) -> int:
    """A count that an earlier step wrote into the form."""
    return digits(request.form.get(name, ""), 9) or 0


def page(
    title: str, done: int, to_do: int, fields: Sequence[tuple[str, str]], fault: str, back: str
) -> tuple[str, int]:
    """The progress page. ``fields``: those of the next request, to the same URL."""
    steps = {"title": title, "done": done, "total": done + to_do, "fields": fields}
    page = render_template("monitors/progress.html", fault=fault, back=back, **steps)
    return page, 503 if fault else 200
