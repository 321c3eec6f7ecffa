"""A check for pages: its result in words, its phases as a bar, and the assertions that the monitor
form offers after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from app.checks.kinds import Kind
from app.i18n import _, _n
from app.records import (
    DEFAULT_PLACES,
    MASK,
    PHASES,
    Assertion,
    AssertionOp,
    AssertionSource,
    CheckedNow,
    Monitor,
    Outcome,
    PlaceChecked,
    Result,
    Verdict,
)
from app.rules.assertions import faults
from app.rules.bounded import parse_exact_json, spelled
from app.rules.what_changed import phase_words
from app.web.shown import looks, places

# A message to the next page is in a cookie, and browsers keep 4 KB.
MAX_NAMED = 8
MAX_LINE = 160  # bytes


def message(checked: CheckedNow, monitor: Monitor) -> tuple[str, str]:
    """The message and its category. If several places have checked, it has a line for each. Other
    servers may send one result for all places.
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


def unchecked_places(result: Result, names: Iterable[str]) -> str | None:
    """A sentence on the places that have not checked an unsaved monitor; None if all have.
    ``names``: those of all its places.
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
    answered = sum(check.result is not None for check in checks)
    return _n(
        "Checked now from %(made)s of %(num)s place.",
        "Checked now from %(made)s of %(num)s places.",
        len(checks),
        made=answered,
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


def phase_bar(spent: Mapping[str, int | None], kind: Kind | None = None) -> Markup:
    """The time that a check spent in each phase, as a bar and a list of figures. ``spent``: ms by
    phase. ``kind``: only the phases of this kind are listed; None: all phases.

    It is not a macro, because a list of checks has a bar in each row, and a macro takes ten times
    as long.
    """
    total = sum(spent.get(name) or 0 for name in PHASES)
    bar = ""
    x = 0.0
    for name in PHASES if total else ():
        if width := 100 * (spent.get(name) or 0) / total:
            bar += f'<rect class="phase-{name}" x="{x:.2f}" y="0" width="{width:.2f}" height="6"/>'
            x += width
    if bar:
        bar = (
            '<svg class="phase-bar" viewBox="0 0 100 6" preserveAspectRatio="none"'
            f' aria-hidden="true">{bar}</svg>'
        )
    words = phase_words(kind.phases if kind else PHASES, spent)
    figures = "".join(
        '<div><dt><svg class="swatch" viewBox="0 0 8 8" aria-hidden="true">'
        f'<rect class="phase-{name}" width="8" height="8" rx="2"/></svg>'
        f'{escape(word[:1].upper() + word[1:])}</dt><dd class="num">'
        f"{looks.ms(spent.get(name))}</dd></div>"
        for name, word in words.items()
    )
    return Markup(f'{bar}<dl class="phases">{figures}</dl>')  # noqa: S704 - words are escaped


# --- Assertions, made from the answer; a click adds the row ---------------------------------------

_MAX_MEMBERS = 8  # of the JSON
_MAX_VALUE = 80  # characters
# The headers that are offered: others differ with each answer, or are not worth an assertion.
_HEADERS = ("content-type", "cache-control", "x-cache", "server", "location")


def offers(outcome: Outcome) -> dict[str, Assertion]:
    """The assertions to offer, on the status, the members of the JSON and the headers of the
    answer, by the value of their button.
    """
    rows = [row for row in _assertions(outcome) if _fits(row)]
    return {json.dumps([row.source, row.property, row.op, row.value]): row for row in rows}


def _assertions(outcome: Outcome) -> Iterator[Assertion]:
    status, evidence = outcome.result.status_code, outcome.evidence or {}
    if status is not None:
        yield Assertion(AssertionSource.STATUS, None, AssertionOp.EQ, str(status))
    for name, value in _members(evidence):
        path = f"$.{name}" if name.isidentifier() else f"$[{json.dumps(name)}]"
        if isinstance(value, list | dict):
            yield Assertion(AssertionSource.JSON, path, AssertionOp.NOT_EMPTY)
        else:
            plain = value if isinstance(value, str) else spelled(value)
            yield Assertion(AssertionSource.JSON, path, AssertionOp.EQ, plain)
    for name, value in evidence.get("headers") or ():
        if name.lower() in _HEADERS:
            yield Assertion(AssertionSource.HEADER, name, AssertionOp.EQ, value)


def _members(evidence: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
    if evidence.get("body_cut"):
        return ()
    try:
        document = parse_exact_json(evidence.get("body") or "")
    except ValueError:
        return ()
    return list(document.items())[:_MAX_MEMBERS] if isinstance(document, dict) else ()


def _fits(row: Assertion) -> bool:
    value = row.value or ""
    is_shown = not row.looks_secret() and MASK not in value and len(value) <= _MAX_VALUE
    return is_shown and not faults(row)
