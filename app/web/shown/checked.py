"""What a check on request has brought, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.i18n import _, _n
from app.records import DEFAULT_LOCATIONS, CheckedNow, Monitor, PlaceChecked, Result, Verdict
from app.web.shown import looks, places

# A message to the next page is in a cookie, and browsers keep 4 KB.
MOST_NAMED = 8
LONGEST_LINE = 160  # bytes


def said(checked: CheckedNow, monitor: Monitor) -> tuple[str, str]:
    """The message, one line for each place if there are several, and its category. Other servers
    may not tell the places apart.
    """
    told = checked.places or [PlaceChecked(str(checked.location), result=checked)]
    good = all(one.result is not None and one.result.verdict is Verdict.UP for one in told)
    category = "success" if good else "warning"
    if len(told) > 1:
        return "\n".join([_counted(told), *_lines(told)]), category
    if tuple(monitor.locations) == DEFAULT_LOCATIONS == (checked.location,):
        made = _("Checked now.")
    else:
        made = _("Checked now from %(place)s.", place=_title(told[0]))
    return f"{made} {_seen(checked)}", category


def left_out(result: Result, names: Iterable[str]) -> str | None:
    """Where the check of what is not saved was made, if other places will check it: ``names``."""
    others = [places.title(name) for name in names if name != result.location]
    if not others:
        return None
    return _n(
        "Checked from %(place)s. %(others)s has not checked it.",
        "Checked from %(place)s. %(others)s have not checked it.",
        len(others),
        place=places.title(result.location),
        others=", ".join(others),
    )


def _counted(told: Sequence[PlaceChecked]) -> str:
    made = sum(one.result is not None for one in told)
    return _n(
        "Checked now from %(made)s of %(num)s place.",
        "Checked now from %(made)s of %(num)s places.",
        len(told),
        made=made,
    )


def _lines(told: Sequence[PlaceChecked]) -> list[str]:
    """Those that are not up come first."""
    good = [one for one in told if one.result is not None and one.result.verdict is Verdict.UP]
    ordered = [one for one in told if one not in good] + good
    lines = [_cut(_line(one)) for one in ordered[:MOST_NAMED]]
    if (more := len(ordered) - MOST_NAMED) > 0:
        lines.append(_n("And %(num)s more.", "And %(num)s more.", more))
    return lines


def _line(one: PlaceChecked) -> str:
    if one.result is None:
        return one.message or _("No result from %(place)s.", place=_title(one))
    return f"{_title(one)}: {_seen(one.result)}"


def _cut(line: str) -> str:
    text = line.encode()
    if len(text) <= LONGEST_LINE:
        return line
    return text[: LONGEST_LINE - len("…".encode())].decode(errors="ignore") + "…"


def _title(one: PlaceChecked) -> str:
    return one.label or places.title(one.name)


def _seen(result: Result) -> str:
    word = _(looks.look_of(looks.VERDICT, result.verdict).word)
    if result.response_time is not None:
        time = f"{result.response_time:,}"
        word = _("%(state)s in %(time)s ms", state=word, time=time)
    return f"{word}: {result.cause}" if result.cause else word
