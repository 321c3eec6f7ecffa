"""The notices at the top of every page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from flask import request, url_for
from flask_login import current_user
from markupsafe import Markup

from app.i18n import N_, _
from app.records import Notice
from app.stores import current_access
from app.stores.writable import cannot_write
from app.web.frame import session
from app.web.shown import times

DEMO = N_(
    "This is a demonstration. A script makes the targets fail. All data from before the start is "
    "made up."
)
UNTIL_IT_DOES = N_(
    "Monitors that cannot be reached are unknown until it does. No incident opens for them, and the"
    " time counts neither as up nor as down."
)
SILENT = N_(
    "No results come from these places, so they have no vote: %(places)s. Monitors that are checked"
    " from nowhere else are unknown."
)
STUCK = N_("Until then no check is recorded and nobody is alerted to anything new.")


def standing() -> Sequence[tuple[str, str]]:
    """(category, sentence) of each notice; none for people who are not logged in."""
    if session.database_away() or not current_user.is_authenticated:
        return []
    said = [_said(notice, value) for notice, value in current_access().notices().items()]
    # On home alone: to find out is to write.
    stuck = cannot_write() if request.endpoint == "home.show" else None
    return [("warning", f"{stuck} {_(STUCK)}"), *said] if stuck else said


def _said(notice: Notice, value: str) -> tuple[str, str]:
    if notice is Notice.DEMO:
        return "info", _(DEMO)
    if notice is Notice.PLACES_SILENT:
        link = Markup('{} <a href="{}">{}</a>')
        where = url_for("locations.index")
        return "warning", link.format(_(SILENT, places=value), where, _("Show the places"))
    return "warning", f"{_network(value)} {_(UNTIL_IT_DOES)}"


def _network(since: str) -> str:
    try:
        moment = times.exact(datetime.fromisoformat(since))
    except ValueError:  # the stored time cannot be read
        return _("Wakeful's own network does not work.")
    return _("Wakeful's own network has not worked since %(moment)s.", moment=moment)
