"""The result of a check on request, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.i18n import _, _n
from app.records import DEFAULT_PLACES, CheckedNow, Monitor, PlaceChecked, Result, Verdict
from app.web.shown import looks, places

# A message to the next page is in a cookie, and browsers keep 4 KB.
MAX_NAMED = 8
MAX_LINE = 160  # bytes


def message(checked: CheckedNow, monitor: Monitor) -> tuple[str, str]:
    """The message, one line for each place if there are several, and its category. Other servers
    may send one result for all places.
    """
    checks = checked.places or [PlaceChecked(str(checked.location), result=checked)]
    good = all(check.result is not None and check.result.verdict is Verdict.UP for check in checks)
    category = "success" if good else "warning"
    if len(checks) > 1:
        return "\n".join([_counted(checks), *_lines(checks)]), category
    if tuple(monitor.locations) == DEFAULT_PLACES == (checked.location,):
        made = _("Checked now.")
    else:
        made = _("Checked now from %(place)s.", place=_title(checks[0]))
    return f"{made} {_outcome(checked)}", category


def left_out(result: Result, names: Iterable[str]) -> str | None:
    """The place of the check of an unsaved monitor, if other places will check it too. ``names``:
    of all its places.
    """
    elsewhere = [places.title(name) for name in names if name != result.location]
    if not elsewhere:
        return None
    return _n(
        "Checked from %(place)s. %(others)s has not checked it.",
        "Checked from %(place)s. %(others)s have not checked it.",
        len(elsewhere),
        place=places.title(result.location),
        others=", ".join(elsewhere),
    )


def _counted(checks: Sequence[PlaceChecked]) -> str:
    made = sum(check.result is not None for check in checks)
    return _n(
        "Checked now from %(made)s of %(num)s place.",
        "Checked now from %(made)s of %(num)s places.",
        len(checks),
        made=made,
    )


def _lines(checks: Sequence[PlaceChecked]) -> list[str]:
    """A line for each check; those that are not up come first."""
    good = [
        check for check in checks if check.result is not None and check.result.verdict is Verdict.UP
    ]
    ordered = [check for check in checks if check not in good] + good
    lines = [_cut(_line(check)) for check in ordered[:MAX_NAMED]]
    if (more := len(ordered) - MAX_NAMED) > 0:
        lines.append(_n("and %(num)s more", "and %(num)s more", more))
    return lines


def _line(check: PlaceChecked) -> str:
    if check.result is None:
        return check.message or _("No result from %(place)s.", place=_title(check))
    return f"{_title(check)}: {_outcome(check.result)}"


def _cut(line: str) -> str:
    text = line.encode()
    if len(text) <= MAX_LINE:
        return line
    return text[: MAX_LINE - len("…".encode())].decode(errors="ignore") + "…"


def _title(check: PlaceChecked) -> str:
    return check.label or places.title(check.name)


def _outcome(result: Result) -> str:
    word = _(looks.look_of(looks.VERDICT, result.verdict).word)
    if result.response_time is not None:
        word = _("%(state)s in %(time)s", state=word, time=looks.ms(result.response_time))
    return f"{word}: {result.cause}" if result.cause else word
