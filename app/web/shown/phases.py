"""The time that a check spent in each of its phases, as a bar and a list of figures."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup, escape

from app.checks.kinds import Kind
from app.records import PHASES
from app.rules.what_changed import phase_words
from app.web.shown.looks import ms


def drawn(spent: Mapping[str, int | None], kind: Kind | None = None) -> Markup:
    """``spent``: ms by phase. ``kind``: only the phases of this kind are listed; None: all phases.

    This is not a macro, which would take ten times as long: a list of checks has one in each row.
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
        f"{ms(spent.get(name))}</dd></div>"
        for name, word in words.items()
    )
    return Markup(f'{bar}<dl class="phases">{figures}</dl>')  # noqa: S704 - words are escaped
