"""How pages report an error of a store: the status, and what happened to the sent form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from werkzeug.wrappers import Response

from app.errors import Conflict, Denied, NotFound, Throttled, Unavailable, Unsupported, WakefulError
from app.i18n import N_, _
from app.web.frame.session import database_is_away
from app.web.shown import times

# Errors that no field caused: the page shows the form as it was sent, with the sentence above it.
STORE_REFUSALS = (Conflict, Denied, NotFound, Unavailable, Unsupported)

LOST = N_(
    "Your change may have been saved, in whole or in part: the server did not confirm it. Check "
    "before you send it again."
)
UNSENT = N_("Your change did not arrive. Send it again when the server answers.")
NOT_STORED = N_("Your change was not saved. Send it again when the database works.")
MAYBE_STORED = N_("Your change may or may not have been saved. Check before you send it again.")
UNCHANGED = N_("Nothing was changed.")
CHANGED_NOTHING = N_("The server accepted this but changed nothing.")


def outlook(fault: WakefulError) -> str:
    """A sentence on whether the change was stored in spite of the error, and when to try again."""
    if not isinstance(fault, Unavailable):
        return _(UNCHANGED)
    if database_is_away():
        if not fault.passes:
            return _(UNCHANGED)
        return _(NOT_STORED if fault.unsent else MAYBE_STORED)
    return f"{_(UNSENT if fault.unsent else LOST)} {pause_sentence(fault)}".rstrip()


def pause_sentence(fault: Unavailable) -> str:
    """The wait that the store asks for, as a sentence; empty if it asks for none."""
    if database_is_away() or not fault.retry_after:
        return ""
    return _("It asked for a pause of %(span)s.", span=times.span(fault.retry_after))


T = TypeVar("T")
D = TypeVar("D")


def if_answered(question: Callable[[], T], otherwise: D) -> T | D:
    """The answer of the store; ``otherwise`` if there is none, because a page must not fail for one
    of its parts.
    """
    try:
        return question()
    except WakefulError:
        return otherwise


def too_often(fault: Throttled) -> str:
    pause = _("The next one is possible in %(span)s.", span=times.span(fault.retry_after))
    return f"{fault} {pause}"


def throttled(page: str, fault: Throttled) -> Response:
    headers = {"Retry-After": str(fault.retry_after)}
    return Response(page, 429, headers, content_type="text/html; charset=utf-8")
