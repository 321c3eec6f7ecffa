"""Times and durations for people: in the person's zone, relative in the text, exact on hover."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from flask import g
from flask_login import current_user
from markupsafe import Markup, escape

from app.i18n import N_, _, _n
from app.judge.heartbeat import MISSED, NONE_CAME, OVERRAN
from app.records import Incident
from app.rules import time as rules
from app.rules.figures import DAY, HOUR, MINUTE
from app.rules.figures import day_and_month as day_and_month
from app.rules.figures import span as span
from app.rules.time import days_left, in_zone, iso, zone_of
from app.rules.who_saw import how_it_ended
from app.stats import RANGES

NEAR_DAYS = 30  # a later expiry is shown as a date, and not in lists


UNITS: tuple[tuple[int, Callable[[int], str], Callable[[int], str]], ...] = (
    (
        DAY,
        lambda num: _n("%(num)s day ago", "%(num)s days ago", num),
        lambda num: _n("in %(num)s day", "in %(num)s days", num),
    ),
    (
        HOUR,
        lambda num: _n("%(num)s hour ago", "%(num)s hours ago", num),
        lambda num: _n("in %(num)s hour", "in %(num)s hours", num),
    ),
    (
        MINUTE,
        lambda num: _n("%(num)s minute ago", "%(num)s minutes ago", num),
        lambda num: _n("in %(num)s minute", "in %(num)s minutes", num),
    ),
    (
        1,
        lambda num: _n("%(num)s second ago", "%(num)s seconds ago", num),
        lambda num: _n("in %(num)s second", "in %(num)s seconds", num),
    ),
)


def now() -> datetime:
    """The time of this request, which is the same for the whole page."""
    moment: datetime | None = g.get("now")
    if moment is None:
        moment = g.now = datetime.now(UTC)
    return moment


def zone() -> ZoneInfo:
    """The zone of the person; UTC if nobody is logged in. A page without an account may have a zone
    of its own (``g.zone``).
    """
    if "zone" in g:
        return ZoneInfo(g.zone)
    # Read once: each access to ``current_user`` takes as long as the rest of the work for a time.
    person = getattr(current_user, "person", None)
    return ZoneInfo(person.time_zone if person else "UTC")


def _present() -> datetime:
    """``now`` in the person's zone. Cached, because a list needs it in each row."""
    moment: datetime | None = g.get("present")
    if moment is None:
        moment = g.present = now().astimezone(zone())
    return moment


def local(moment: datetime, person_zone: ZoneInfo | None = None) -> datetime:
    """``moment`` in the person's zone. For hundreds of moments, pass the zone as ``person_zone``:
    reading it each time is slow.
    """
    return in_zone(moment, person_zone or zone())


def relative(moment: datetime, reference: datetime) -> str:
    """``3 minutes ago`` or ``in 2 hours``, relative to ``reference``; a date if the distance is 30
    days or more.
    """
    seconds = (reference - moment).total_seconds()
    distance = abs(seconds)
    if distance < 5:
        return _("just now") if seconds >= 0 else _("in a moment")
    if distance >= 30 * DAY:
        return plain_day(in_zone(moment, reference.tzinfo))
    for size, ago, ahead in UNITS:
        if distance >= size:
            return (ago if seconds > 0 else ahead)(int(distance // size))
    return _("just now")


def plain_day(moment: datetime) -> str:
    """The date in the zone of ``moment``: ``21 Nov 2026``."""
    return f"{moment.day} {moment:%b} {moment.year:04}"


def exact(moment: datetime) -> str:
    """``21 Nov 2026 09:32:18 CET``, in the person's zone."""
    return _exact(local(moment))


def _exact(local_time: datetime) -> str:
    return f"{plain_day(local_time)} {local_time:%H:%M:%S} {local_time.tzname() or ''}".rstrip()


def minute(moment: datetime, other_zone: tzinfo | None = None) -> str:
    """``Sat 21 Nov 2026 09:32 CET``, in the person's zone; with seconds if there are any."""
    local_time = in_zone(moment, other_zone) if other_zone else local(moment)
    time = f"{local_time:%H:%M:%S}" if local_time.second else f"{local_time:%H:%M}"
    return f"{local_time:%a} {plain_day(local_time)} {time} {local_time.tzname() or ''}".rstrip()


def clock(moment: datetime) -> str:
    """``09:32:18`` in the person's zone, with the date in front unless it is today's."""
    return _clock(local(moment))


def _clock(local_time: datetime) -> str:
    today = in_zone(now(), local_time.tzinfo)
    time = f"{local_time:%H:%M:%S}"
    return time if local_time.date() == today.date() else f"{plain_day(local_time)} {time}"


def since(created_at: datetime | None, range_: str) -> str | None:
    """``since 22 Nov``, if the monitor is younger than this range (of ``app.stats.RANGES``);
    otherwise None.
    """
    if created_at is None or now() - created_at >= RANGES[range_]:
        return None
    return _("since %(day)s", day=day_and_month(local(created_at)))


def watched(created_at: datetime | None, range_: str) -> float:
    """The part of this range, in seconds, in which the monitor existed; all of it if unknown."""
    length = RANGES[range_].total_seconds()
    return length if created_at is None else min(length, (now() - created_at).total_seconds())


def utc(moment: datetime) -> str:
    """``21 Nov 09:32`` in UTC, for pages that must be the same for everybody."""
    local_time = in_zone(moment, UTC)
    return f"{local_time.day} {local_time:%b %H:%M}"


def day(moment: datetime, other_zone: tzinfo | None = None) -> str:
    return plain_day(in_zone(moment, other_zone) if other_zone else local(moment))


def moment(text: str) -> datetime | None:
    """The time in ``text``, as evidence writes it; None if it is not a time."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def ago(moment: datetime | None, none: str = N_("never")) -> Markup | str:
    """A ``<time>``: relative in the text, exact on hover."""
    if moment is None:
        return _(none)
    present = _present()
    opening = _ago_opening(moment, present.tzinfo)
    return Markup(f"{opening}{escape(relative(moment, present))}</time>")  # noqa: S704 - as in ``_tag``


@lru_cache(maxsize=1024)
def _ago_opening(moment: datetime, person_zone: tzinfo | None) -> str:
    """The opening tag. Cached, because scripts load the same lists again and again, and only the
    text within it changes.
    """
    title = _exact(in_zone(moment, person_zone))
    return f'<time datetime="{iso(moment)}" title="{escape(title)}" data-ago="">'


def at(moment: datetime | None, none: str = "–") -> Markup | str:
    """A ``<time>``: exact in the text, relative on hover."""
    if moment is None:
        return none
    return _tag(moment, exact(moment), relative(moment, _present()))


def planned(moment: datetime) -> Markup:
    """A ``<time>`` that people have planned: to the minute, relative on hover."""
    return _tag(moment, minute(moment), relative(moment, _present()))


def in_zone_of(moment: datetime, name: str | None) -> Markup:
    """The time in the zone of this name and, in grey, in the person's, if its clocks differ."""
    text, for_person = minute(moment, zone_of(name)), minute(moment)
    time_tag = _tag(moment, text, for_person)
    if local(moment).utcoffset() == moment.astimezone(zone_of(name)).utcoffset():
        return time_tag
    return Markup('{} <span class="faint">{}</span>').format(
        time_tag, _("(%(time)s for you)", time=for_person)
    )


def due(moment: datetime, zone_name: str | None = None) -> Markup:
    """The time as in ``planned`` or ``in_zone_of``, and in how many days or hours it comes."""
    present = _present()
    days = (moment - present).days
    distance = (
        _n("in %(num)s day", "in %(num)s days", days) if days >= 30 else relative(moment, present)
    )
    text = Markup('{} <span class="faint nowrap">{}</span>')
    time_tag = in_zone_of(moment, zone_name) if zone_name else planned(moment)
    return text.format(time_tag, _tag(moment, distance, minute(moment), 'data-ago=""'))


def expiry(moment: datetime) -> Markup:
    """A ``<time>``: ``expires in 5 days``, counted as in alerts, or the date of a later one."""
    is_far = days_left(moment, now()) > NEAR_DAYS
    text = _("expires %(day)s", day=day(moment)) if is_far else rules.expiry(moment, now())
    return _tag(moment, text, exact(moment))


def short(moment: datetime | None, none: str = "–") -> Markup | str:
    """A ``<time>`` for dense lists: the clock time, exact on hover."""
    if moment is None:
        return none
    local_time = local(moment)
    return _tag(moment, _clock(local_time), _exact(local_time))


# How the causes begin whose times have no date.
_MISSED = tuple(sentence.partition("%(")[0] for sentence in (MISSED, NONE_CAME))
_OVERRAN = OVERRAN.partition("%(")[0]
_CLOCK_TIME = re.compile(r"(?<!\d )\b\d\d:\d\d\b")
_NAMED_ZONE = re.compile(r"\d \(([\w/+-]+)\)")


def dated(cause: str | None, since: datetime | None) -> str:
    """``cause`` as it is read today. The cause of a missed ping or of a run that lasts too long has
    times of the day on which it was written: on another day, the date is added. ``since``: when the
    ping was expected, or the run should have ended.
    """
    if not cause or since is None or not cause.startswith((*_MISSED, _OVERRAN)):
        return cause or ""
    clocks = _CLOCK_TIME.findall(cause)
    if not clocks:
        return cause
    named = _NAMED_ZONE.search(cause)
    start = in_zone(since, zone_of(named and named[1]))
    # The grace may have ended after midnight. A run whose start has no date was to end on that day.
    is_next_day = not cause.startswith(_OVERRAN) and clocks[-1] < f"{start:%H:%M}"
    day = start.date() + timedelta(days=is_next_day)
    if day == local(now()).date():
        return cause
    return _CLOCK_TIME.sub(lambda clock: f"{day} {clock[0]}", cause)


def running(since: datetime) -> Markup:
    """The time since ``since``; a script keeps it current."""
    seconds = (now() - since).total_seconds()
    return Markup(  # noqa: S704 - as in ``_tag``
        f'<span class="clock" data-since="{iso(since)}">{escape(span(seconds))}</span>'
    )


def lasted(incident: Incident) -> Markup:
    """The duration of an incident so far; an upper limit if there is a gap without checks."""
    if incident.ended_at is None and not incident.is_open:
        return escape(_("unknown"))
    if incident.ended_at is None:
        length = running(incident.started_at)
    else:
        length = escape(span((incident.ended_at - incident.started_at).total_seconds()))
    return escape(_("at most %(span)s")) % {"span": length} if incident.unwatched else length


def end_in_words(incident: Incident) -> str:
    """How an incident ended, and after how long. If it ended because its only place fell silent,
    the sentence names the place; of several, the comment names those that fell silent.
    """
    silent = incident.seen_by if len(incident.seen_by) == 1 else ()
    return how_it_ended(incident.ending, silent, lasted(incident))


def _tag(moment: datetime, text: str, title: str, extra: str = "") -> Markup:
    # Without Markup.format, which is slow; ``extra`` is a literal of this module.
    return Markup(  # noqa: S704
        f'<time datetime="{iso(moment)}" title="{escape(title)}" {extra}>{escape(text)}</time>'
    )
