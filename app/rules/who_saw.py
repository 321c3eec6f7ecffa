"""The places that saw a failure and those that did not, in words, from the evidence of an incident.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.i18n import N_, _, _n, join_words
from app.records import DEFAULT_PLACE, Ending

MAX_PLACES_NAMED = 3
ENDED: Mapping[str, str] = {
    Ending.RECOVERED: N_("Recovered after %(length)s"),
    Ending.SILENCE: N_("Ended after %(length)s: a place that saw it fell silent"),
    Ending.CHANGED: N_("Over after %(length)s: the monitor was changed"),
    Ending.PERSON: N_("Resolved manually after %(length)s"),
    Ending.PAUSE: N_("Paused after %(length)s"),
}
CHANGED = N_(
    "The monitor was changed during the incident. As it is judged now, it is not down, but the "
    "failure may still last."
)
NOT_SLOW_NOW = N_(
    "The monitor was changed during the incident. As it is judged now, it is not slow."
)
# For an unknown ending: of an old incident, or of a server that does not send it.
OVER = N_("Over after %(length)s")


def places_of(evidence: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    """The verdicts of the places in the evidence; none if the monitor has one place."""
    places = (evidence or {}).get("places") or ()
    return places if len(places) > 1 else ()


def named_places(evidence: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    """The places to name with a failure. If the only place is the server itself, it is not
    named.
    """
    places = (evidence or {}).get("places") or ()
    return () if [place.get("name") for place in places] == [DEFAULT_PLACE] else places


def who_saw(evidence: Mapping[str, Any] | None, *, is_open: bool = True) -> str | None:
    """A phrase such as "3 of 4 places; Sydney still gets 200", or "1 of 3 places (Oslo); ..." if
    few places see the failure, or "Oslo" if that is the only place. None if the only place is the
    server itself, or if no place sees it. ``is_open``: the incident is open.
    """
    places = named_places(evidence)
    voters = [place for place in places if place.get("verdict") != "unknown"]
    down = [place for place in voters if place.get("verdict") == "down"]
    if not down:
        return None
    if len(places) == 1:
        return title_of(down[0])
    good = [place for place in voters if place not in down]
    silent = [place for place in places if place not in voters]
    number = _n(
        "%(down)s of %(num)s place", "%(down)s of %(num)s places", len(places), down=len(down)
    )
    named = len(down) <= min(MAX_PLACES_NAMED, len(good))
    parts = [f"{number} ({', '.join(map(title_of, down))})" if named else number]
    parts += _what_others_see([*good[:MAX_PLACES_NAMED], *silent[:MAX_PLACES_NAMED]], is_open)
    if (more := len(good) - MAX_PLACES_NAMED) > 0:
        parts.append(_n("%(num)s more does not see it", "%(num)s more do not see it", more))
    return "; ".join(parts)


def seen_by(evidence: Mapping[str, Any] | None) -> set[str]:
    """The names of the places that saw the failure."""
    return {place["name"] for place in named_places(evidence) if place.get("verdict") == "down"}


def title_of(place: Mapping[str, Any]) -> str:
    return str(place.get("label") or place.get("name") or "?")


def fell_silent(titles: Sequence[str]) -> str:
    """Why an incident ended by silence. ``titles``: the last places that saw the failure."""
    return _(
        "%(places)s saw the failure, then fell silent. The other places do not confirm it.",
        places=", ".join(titles),
    )


def seen_from(titles: Sequence[str]) -> str | None:
    """The places that saw a failure, in a few words for a list; None without places."""
    if not titles:
        return None
    if len(titles) > MAX_PLACES_NAMED:
        return _n("Seen from %(num)s place", "Seen from %(num)s places", len(titles))
    return _("Seen from %(places)s", places=", ".join(titles))


def how_it_ended(ending: str | None, titles: Sequence[str], length: str) -> str:
    """How an incident ended after ``length``, in a few words for a list. ``titles``: of the places
    whose silence ended it; empty if they are not known.
    """
    if ending == Ending.SILENCE and titles:
        sentence = N_("Ended after %(length)s: %(places)s fell silent")
        return _(sentence, length=length, places=", ".join(titles))
    return _(ENDED.get(ending or "", OVER), length=length)


def _what_others_see(places: Sequence[Mapping[str, Any]], is_open: bool) -> Iterator[str]:
    """The answers of places that do not see the failure, each with the places that got it."""
    by_answer: dict[object, list[str]] = {}
    for place in places:
        by_answer.setdefault(_answer_of(place), []).append(title_of(place))
    for answer, titles in by_answer.items():
        yield _others_see(answer, titles, is_open)


# An answer is a status code, None (it was reached, without a status), or one of these.
_EARLIER, _NOTHING = "earlier", "nothing"


def _answer_of(place: Mapping[str, Any]) -> object:
    if place.get("earlier"):
        return _EARLIER
    return _NOTHING if place.get("verdict") == "unknown" else place.get("status_code")


def _others_see(answer: object, titles: Sequence[str], is_open: bool) -> str:
    names, count = join_words(titles), len(titles)
    if answer == _EARLIER:
        return _("%(names)s had not checked it since", names=names)
    if answer == _NOTHING:
        return _("%(names)s cannot tell", names=names)
    if answer is None:
        if is_open:
            return _n("%(names)s still reaches it", "%(names)s still reach it", count, names=names)
        return _("%(names)s reached it", names=names)
    if not is_open:
        return _("%(names)s got %(status)s", names=names, status=answer)
    return _n(
        "%(names)s still gets %(status)s", "%(names)s still get %(status)s",
        count, names=names, status=answer,
    )  # fmt: skip
