"""Parts of a status page for other sites: badges and the widget.

A badge is the state of one monitor as a small SVG, or as JSON for the "endpoint badge" of
shields.io. The widget is the state of a page in a frame.
"""

from __future__ import annotations

import json
import unicodedata
from xml.etree import ElementTree

from app.i18n import _
from app.pages.addresses import PageContext
from app.pages.feed_text import one_line, page_url
from app.paths import STATIC
from app.records import Component, ComponentState, PublicPage
from app.rules.page_state import PAGE

# White text on each of these colours has a contrast of at least 4.5:1.
COLOURS = {
    ComponentState.OPERATIONAL: "#12713f",
    ComponentState.DEGRADED: "#855300",
    ComponentState.MAINTENANCE: "#0f5f9e",
    ComponentState.UNKNOWN: "#64508f",
    ComponentState.OUTAGE: "#b3202c",
}
LABEL_COLOUR, TEXT_COLOUR = "#3f4650", "#ffffff"
MAX_LABEL = 60
SHIELDS_SECONDS = 300  # the minimum of shields.io

FONT_SIZE, HEIGHT, PADDING = 11, 20, 6
# Advance widths of Verdana in 1/2048 of the font size. Other fonts are fitted by ``textLength``.
_EM = 2048
_WIDTHS = {
    562: "ijl",
    745: " fI.,",
    807: "t'",
    874: "r()[]",
    930: "-:;/|!",
    1067: "cs",
    1250: "abdeghknopquvxyz_",
    1302: "0123456789$+=<>*~#^",
    1400: "ABCEFKLPRSTVXYZ?&",
    1600: "DGHJNOQU",
    1676: "w",
    2025: "mMW@%",
}
_WIDTH = {character: width for width, characters in _WIDTHS.items() for character in characters}
_OTHER_WIDTH = 1400


def svg(component: Component) -> bytes:
    label, message = _label(component), _message(component)
    left, right = _box(label), _box(message)
    size = {"width": str(left + right), "height": str(HEIGHT)}
    about = {"role": "img", "aria-label": f"{label}: {message}"}
    root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **about})
    ElementTree.SubElement(root, "title").text = f"{one_line(component.name)}: {message}"
    clip = ElementTree.SubElement(root, "clipPath", {"id": "r"})
    _rect(clip, 0, left + right, TEXT_COLOUR, rx="3")
    boxes = ElementTree.SubElement(root, "g", {"clip-path": "url(#r)"})
    _rect(boxes, 0, left, LABEL_COLOUR)
    _rect(boxes, left, right, _colour(component))
    font = {"font-family": "Verdana,Geneva,DejaVu Sans,sans-serif", "font-size": str(FONT_SIZE)}
    look = {"fill": TEXT_COLOUR, "text-anchor": "middle", **font}
    texts = ElementTree.SubElement(root, "g", look)
    _text(texts, left / 2, label)
    _text(texts, left + right / 2, message)
    data: bytes = ElementTree.tostring(root, encoding="utf-8")
    return data


def shields(component: Component) -> bytes:
    """https://shields.io/badges/endpoint-badge"""
    data = {
        "schemaVersion": 1,
        "label": _label(component),
        "message": _message(component),
        "color": _colour(component),
        "labelColor": LABEL_COLOUR,
        # With this, a site that embeds the badge cannot change the colour of an outage.
        "isError": component.state == ComponentState.OUTAGE,
        "cacheSeconds": SHIELDS_SECONDS,
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


def _label(component: Component) -> str:
    name = one_line(component.name)
    return name if len(name) <= MAX_LABEL else f"{name[: MAX_LABEL - 1].rstrip()}…"


def _message(component: Component) -> str:
    return str(ComponentState(component.state))


def _colour(component: Component) -> str:
    return COLOURS[ComponentState(component.state)]


def width(text: str) -> float:
    """The approximate width of a text in pixels."""
    return sum(_units(character) for character in text) * FONT_SIZE / _EM


def _units(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    wide = unicodedata.east_asian_width(character) in ("W", "F")
    return _WIDTH.get(character, _EM if wide else _OTHER_WIDTH)


def _box(text: str) -> int:
    return round(width(text)) + 2 * PADDING


def _rect(parent: ElementTree.Element, x: int, width: int, fill: str, **more: str) -> None:
    size = {"x": str(x), "width": str(width), "height": str(HEIGHT), "fill": fill}
    ElementTree.SubElement(parent, "rect", {**size, **more})


def _text(parent: ElementTree.Element, x: float, text: str) -> None:
    attributes = {"x": f"{x:g}", "y": "14", "textLength": str(round(width(text)))}
    ElementTree.SubElement(parent, "text", attributes).text = text


# The widget: a page without scripts for a frame on other sites, and a script that adds the frame.
# No other answer of Wakeful may be in a frame.

WIDGET_SCRIPT = "js/status-widget.js"


def widget(page: PublicPage, context: PageContext) -> bytes:
    template = context.templates.get_template("status/widget.html")
    text = template.render(
        page=page,
        context=context,
        name=one_line(page.page.name),
        sentence=_(PAGE[page.state].word),
        link=page_url(page) or "/",
    )
    return text.encode("utf-8", "replace")


def widget_script(_page: PublicPage, _context: PageContext) -> bytes:
    """The script, which is the same for every page: it finds the widget beside its own address."""
    return (STATIC / WIDGET_SCRIPT).read_bytes()
