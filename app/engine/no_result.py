"""Why places have brought no result of a check on request, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from app.engine.elsewhere import Brought, CheckingPlace
from app.errors import Conflict, Unavailable
from app.i18n import N_, _, _n
from app.rules.figures import about

SILENT = N_("Nothing was checked: its place %(place)s was last heard from %(time)s ago.")
NEVER_HEARD = N_("Nothing was checked: no check has come from its place %(place)s yet.")
LEFT_OUT = N_("%(place)s was last heard from %(time)s ago and was not asked.")
LEFT_OUT_NEW = N_("No check has come from %(place)s yet, so it was not asked.")
GONE = N_("No result from %(place)s, which was last heard from %(time)s ago.")
LATE = N_("No result from %(place)s within %(seconds)d s.")


def require_reachable(places: Sequence[CheckingPlace], now: datetime) -> None:
    """Raise Conflict if all of these places are silent."""
    if any(place.is_reachable(now) for place in places):
        return
    last = max(places, key=lambda place: (place.seen_at is not None, place.seen_at or now))
    if last.seen_at is None:
        raise Conflict(_(NEVER_HEARD, place=last.title))
    raise Conflict(_(SILENT, place=last.title, time=_ago(last.seen_at, now)))


def require_some(
    results: Mapping[str, object], places: Sequence[CheckingPlace], brought: Brought, now: datetime
) -> None:
    """Raise Unavailable if none of these places, which were asked, has brought a result."""
    if results:
        return
    names, count = ", ".join(place.title for place in places), len(places)
    times = [place.seen_at for place in brought.silent.values() if place.seen_at is not None]
    if len(times) == count:
        time = _ago(max(times), now)
        raise Unavailable(
            _n(
                "Its place %(names)s has brought no result, and was last heard from %(time)s"
                " ago. If a result comes later, it is among the monitor's checks.",
                "Its places %(names)s have brought no result, and were last heard from %(time)s"
                " ago. If a result comes later, it is among the monitor's checks.",
                count,
                names=names,
                time=time,
            )
        )
    raise Unavailable(
        _n(
            "Its place %(names)s has brought no result within %(seconds)d s. If one comes later, it"
            " is among the monitor's checks. An agent older than this server ignores such"
            " requests.",
            "Its places %(names)s have brought no result within %(seconds)d s. If one comes later,"
            " it is among the monitor's checks. An agent older than this server ignores such"
            " requests.",
            count,
            names=names,
            seconds=brought.seconds,
        )
    )


def why(place: CheckingPlace, brought: Brought, now: datetime, *, was_asked: bool) -> str:
    """Why there is no result of a place, if others have brought some. ``was_asked``: it was to make
    the check.
    """
    if was_asked:
        silent = brought.silent.get(place.id)
        if silent is not None and silent.seen_at is not None:
            return _(GONE, place=place.title, time=_ago(silent.seen_at, now))
        return _(LATE, place=place.title, seconds=brought.seconds)
    if place.seen_at is None:
        return _(LEFT_OUT_NEW, place=place.title)
    return _(LEFT_OUT, place=place.title, time=_ago(place.seen_at, now))


def _ago(seen_at: datetime, now: datetime) -> str:
    """How long ago, such as "45 seconds"."""
    return about((now - seen_at).total_seconds())
