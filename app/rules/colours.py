"""The accent colour of a status page, and the readable variants of it for both themes. Pure."""

from __future__ import annotations

import re

from app.i18n import N_, _

COLOUR = N_("Enter a colour as six hexadecimal digits, such as #2b59c3.")
ADJUSTED = N_(
    "Links and buttons are %(light)s in the light theme and %(dark)s in the dark one, so that they"
    " can be read."
)
MIN_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
# The backgrounds in static/css/tokens.css on which a text has the least contrast.
LIGHT_GROUND, DARK_GROUND = "#eef1f4", "#1c232c"
BLACK, WHITE = "#000000", "#ffffff"
STEPS = 50  # from a colour to black or white
_COLOUR = re.compile("#?([0-9a-f]{6}|[0-9a-f]{3})")


def read_colour(text: str) -> str:
    """``#2b59c3``. Raises ValueError."""
    match = _COLOUR.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(_(COLOUR))
    digits = match[1]
    return "#" + (digits if len(digits) == 6 else "".join(digit * 2 for digit in digits))


def readable(accent: str) -> tuple[str, str]:
    """``accent`` for the light and for the dark theme: darkened and lightened only as far as it
    must be to be readable.
    """
    return _towards(BLACK, accent, LIGHT_GROUND), _towards(WHITE, accent, DARK_GROUND)


def adjusted(accent: str) -> str:
    """The sentence with the colours that a page uses instead of ``accent``."""
    light, dark = readable(accent)
    return _(ADJUSTED, light=light, dark=dark)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of WCAG 2.2."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _towards(end: str, colour: str, ground: str) -> str:
    mixed = (_mixed(colour, end, step / STEPS) for step in range(STEPS + 1))
    return next(mix for mix in mixed if contrast(mix, ground) >= MIN_CONTRAST)


def _mixed(colour: str, other: str, share: float) -> str:
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(start + (end - start) * share):02x}" for start, end in pairs)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in _channels(colour))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def is_colour(text: str) -> bool:
    return re.fullmatch("#[0-9a-f]{6}", text) is not None


def sheet(accent: str) -> str:
    """The style sheet with the accent colour of a page. The line at the top of the page has the
    colour as it was chosen.
    """
    light, dark = readable(accent)
    value = f"light-dark({light},{dark})"
    names = ("accent", "accent-strong", "accent-fill", "accent-fill-hover")
    values = "".join(f"--{name}:{value};" for name in names)
    return (
        f":root{{{values}--on-accent:light-dark(#ffffff,#0e1318);"
        "--accent-wash:color-mix(in srgb,var(--accent) 12%,var(--surface))}"
        f"body{{border-top:.25rem solid {accent}}}"
    )
