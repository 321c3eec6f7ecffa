"""The notices at the top of every page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from flask import g, request, url_for
from flask_login import current_user
from markupsafe import Markup

from app.i18n import N_, _, _n
from app.records import Notice
from app.stores import current_access, health
from app.stores.health import cannot_write
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
# "them" are the results, because there may be one place or several.
SILENT = N_(
    "No results come from %(places)s. Until they do, monitors are judged without them, and those"
    " that are checked from nowhere else are unknown."
)
MAX_SET_ASIDE_NAMED = 5
STUCK = N_("Until then no check is recorded and nobody is alerted to anything new.")


def standing() -> Sequence[tuple[str, str]]:
    """(category, sentence) of each notice; none for people who are not logged in."""
    if session.database_is_away() or not current_user.is_authenticated:
        return []
    sentences = [
        _sentence_of(notice, value) for notice, value in current_access().settings.notices().items()
    ]
    if aside := set_aside():
        sentences.append(("warning", aside))
    return [*_of_home(), *sentences] if request.endpoint == "home.show" else sentences


def set_aside() -> str:
    """A sentence on the records of another server that this page cannot read and leaves out."""
    names = list(g.get("set_aside", ()))
    if not names:
        return ""
    text = ", ".join(names[:MAX_SET_ASIDE_NAMED])
    if len(names) > MAX_SET_ASIDE_NAMED:
        text += ", …"
    return _n(
        "%(num)s record of the server is not understood, and left out: %(names)s",
        "%(num)s records of the server are not understood, and left out: %(names)s",
        len(names),
        names=text,
    )


def _of_home() -> Iterator[tuple[str, str]]:
    """Notices of the home page alone, because they take too long for each page: that the database
    cannot be written to, for which it tries to write, and that places cannot check, for which it
    counts their last checks.
    """
    if stuck := cannot_write():
        yield "warning", f"{stuck} {_(STUCK)}"
    for sentence in health.unable_places(times.now()):
        yield "warning", _with_places(sentence)


def _with_places(sentence: str) -> str:
    """The sentence with a link to the list of places, but not on that page."""
    if request.endpoint == "locations.index":
        return sentence
    link = Markup('{} <a href="{}">{}</a>')
    return link.format(sentence, url_for("locations.index"), _("Show the places"))


def _sentence_of(notice: Notice, value: str) -> tuple[str, str]:
    if notice is Notice.DEMO:
        return "info", _(DEMO)
    if notice is Notice.PLACES_SILENT:
        return "warning", _with_places(_(SILENT, places=value))
    return "warning", f"{_network(value)} {_(UNTIL_IT_DOES)}"


def _network(since: str) -> str:
    try:
        moment = times.exact(datetime.fromisoformat(since))
    except ValueError:  # the stored time cannot be read
        return _("Wakeful's own network does not work.")
    return _("Wakeful's own network has not worked since %(moment)s.", moment=moment)
