"""Every page as people see it, wide and light, then narrow and dark: axe finds nothing, the console
stays silent, nothing sticks out at the side, and it is light to load. `make test-more` has the
other screens and themes, with a narrow font too, and more states of the same pages.

`make pictures` puts what the browser shows into build/pictures, for people to look at.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest
from flask import Flask

from app.db import db
from tests.support.axe import violations
from tests.support.browser import NARROW_FONT, PATIENCE_MS, heard
from tests.support.loopback import serving
from tests.web import gallery
from tests.web.conftest import log_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PICTURES = os.environ.get("PICTURES")  # where to put them
WIDTHS = (1440, 768, 375)
MAX_BYTES = 40_000  # of a page as it is sent
HEIGHT = 900 if PICTURES else 240  # what nobody looks at need not be painted
Theme = Literal["light", "dark"]
# A card hides what sticks out of it: then the page fits, and the last column cannot be read.
TOO_WIDE = """Math.max(...[document.documentElement, ...document.querySelectorAll(".card")].map(
  (box) => box.scrollWidth - box.clientWidth))"""


class Look(NamedTuple):
    """``theme``: None to measure only. ``colours``: only what colours can spoil."""

    width: int
    theme: Theme | None
    colours: bool = False


class Place:
    """One installation, and a page in each browser for each person who looks at it."""

    def __init__(self, url: str, names: Mapping[str, Any]) -> None:
        self.url, self.names = url, names
        self.pages: dict[tuple[Browser, str], Page] = {}
        self.themes: dict[Page, Theme] = {}

    def page(self, browser: Browser, who: str) -> Page:
        """Somebody's page, logged in; kept, because a new one costs more than a look at it."""
        if (browser, who) not in self.pages:
            context = browser.new_context(base_url=self.url, reduced_motion="reduce")
            context.set_default_timeout(PATIENCE_MS)
            self.pages[browser, who] = context.new_page()
            if who == gallery.SECURED:
                cookie = {"name": "wakeful", "value": self.names["cookie"], "url": self.url}
                context.add_cookies([cookie])
            elif who:
                log_in(self.pages[browser, who], who)
        return self.pages[browser, who]

    @contextmanager
    def opened(self, browser: Browser, sight: gallery.Sight, broken: list[str]) -> Iterator[Page]:
        """The page of one sight; what is wrong on the way there is added to ``found``."""
        page = self.page(browser, sight.who)
        _resize(page, WIDTHS[0])
        self.show(page, "light")
        with heard(page, sight.status) as faults:
            answer = page.goto(sight.path.format_map(self.names))
            if answer is None or answer.status != sight.status:
                broken.append(f"{sight.path} answers {answer and answer.status}")
            elif (size := answer.request.sizes()["responseBodySize"]) > MAX_BYTES:
                broken.append(f"{size:,} bytes")
            sight.then(page)
            yield page
        page.unroute_all()
        broken += faults

    def show(self, page: Page, theme: Theme) -> None:
        if self.themes.get(page) != theme:
            page.emulate_media(color_scheme=theme)
            self.themes[page] = theme

    def look(
        self, browser: Browser, name: str, sight: gallery.Sight, *, rest: bool = False
    ) -> list[str]:
        """The faults of one page; takes its pictures if that is asked for. ``rest``: on the other
        screens and in the other themes.
        """
        faults: list[str] = []
        with self.opened(browser, sight, faults) as page:
            for look in _looks(sight, rest):
                faults += _too_wide(page, look.width)
                if not look.theme:
                    continue
                self.show(page, look.theme)
                broken = violations(page, colours=look.colours)
                faults += [f"{look.theme} at {look.width}: {fault}" for fault in broken]
                if PICTURES:
                    picture = Path(PICTURES, f"{name}-{look.width}-{look.theme}.png")
                    page.screenshot(path=picture, full_page=not sight.dialog)
            if rest:
                faults += _too_wide_if_narrow(page, sight)
        return faults

    def close(self) -> None:
        for page in self.pages.values():
            page.context.close()


def _resize(page: Page, width: int) -> None:
    """Only if it has another width: each size costs a layout and a picture."""
    size: ViewportSize = {"width": width, "height": HEIGHT}
    if page.viewport_size != size:
        page.set_viewport_size(size)


def _too_wide(page: Page, width: int) -> list[str]:
    _resize(page, width)
    over = page.evaluate(TOO_WIDE)
    return [f"{over} px too wide at {width}"] if over > 0 else []


def _too_wide_if_narrow(page: Page, sight: gallery.Sight) -> list[str]:
    """The elements that stick out of the page with the narrow font, on every screen."""
    page.evaluate(NARROW_FONT)
    widths = [sight.width] if sight.width else sorted(WIDTHS)
    return [f"narrow font: {fault}" for width in widths for fault in _too_wide(page, width)]


def _looks(sight: gallery.Sight, rest: bool) -> list[Look]:
    wide, middle, narrow = WIDTHS
    if sight.width:
        return [Look(sight.width, "dark", colours=True) if rest else Look(sight.width, "light")]
    if rest:
        # Between the two, the same parts stand in other places: axe would find the same again.
        return [Look(wide, "dark", colours=True), Look(middle, "light" if PICTURES else None)]
    return [Look(wide, "light"), Look(narrow, "dark")]


@pytest.fixture(scope="module")
def place(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Place]]:
    """An installation by its name, made when it is first looked at; nothing in it is changed."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
    makers = {"calm": gallery.calm, "first-day": gallery.first_day, "untouched": gallery.untouched}
    made: dict[str, Place] = {}
    closing: list[Callable[[], None]] = []

    def place(kind: str) -> Place:
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            if kind == "living":
                app, names = gallery.open_living(folder, sqlite_template, tmp_path_factory)
            else:
                shutil.copyfile(sqlite_template, folder / "wakeful.db")
                app = gallery.open_app(folder)
                names = makers[kind](app)
            server = serving(app)
            # Passkeys work for a name alone, not for an address.
            url = server.__enter__().replace("127.0.0.1", "localhost")
            made[kind] = Place(url, names)
            closing.append(lambda: _close(made[kind], server, app))
        return made[kind]

    yield place
    for close in closing:
        close()


def _close(place: Place, server: Any, app: Flask) -> None:
    place.close()  # before the server: a page that refreshes itself complains when it has gone
    server.__exit__(None, None, None)
    with app.app_context():
        db.engine.dispose()


SIGHTS = [
    pytest.param(kind, name, id=f"{kind}-{name}", marks=[pytest.mark.more] * sight.like)
    for kind, sights in gallery.ALL.items()
    for name, sight in sights.items()
]


@pytest.mark.parametrize(("kind", "name"), SIGHTS)
def test_every_page_fits_a_desktop_and_a_phone_and_everybody(place, chromium, kind, name):
    faults = place(kind).look(chromium, f"{kind}-{name}", gallery.ALL[kind][name])
    assert not faults, "\n".join(faults)


@pytest.mark.more
@pytest.mark.parametrize(("kind", "name"), SIGHTS)
def test_every_page_fits_the_other_screens_themes_and_fonts(place, chromium, kind, name):
    faults = place(kind).look(chromium, f"{kind}-{name}", gallery.ALL[kind][name], rest=True)
    assert not faults, "\n".join(faults)


# A fault of a page, with the start of its sentence.
SEEDED = {
    "@media (max-width: 400px) { p { width: 500px } }": ["125 px too wide at 375", "narrow font"],
    "@media (min-width: 700px) and (max-width: 800px) { p { width: 800px } }": [
        "32 px too wide at 768",
        "narrow font: 32 px too wide at 768",
    ],
    "p { font-family: var(--font); width: calc(100vw + 950px - 100ch) }": [
        "narrow font: 60 px too wide at 375",
        "narrow font: 60 px too wide at 768",
        "narrow font: 60 px too wide at 1440",
    ],
    "@media (prefers-color-scheme: dark) { p { color: #333 } }": [
        "dark at 375: color-contrast: <p>",
        "dark at 1440: color-contrast: <p>",
    ],
    "@media (prefers-color-scheme: light) { p { color: #ccc } }": [
        "light at 1440: color-contrast: <p>"
    ],
    "</style><input><style>": ["light at 1440: label: <input>", "dark at 375: label: <input>"],
    "</style><i id=a></i><i id=a></i><style>": [
        "light at 1440: duplicate-id: <i id",
        "dark at 375: duplicate-id: <i id",
    ],
    "</style><script>console.warn('Broken')</script><style>": ["Broken"] * 2,
    "</style><script>nothing.here</script><style>": ["nothing is not defined"] * 2,
    "p { color: CanvasText }": [],
}


@pytest.mark.skipif(PICTURES is not None, reason="pictures are of one screen more")
def test_a_look_finds_each_thing_that_is_wrong(chromium):
    pages = dict(enumerate(SEEDED))
    app = Flask("seeded")
    app.add_url_rule("/<int:number>", "page", lambda number: (
        '<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>A page</title><style>'
        ":root { color-scheme: light dark; --font: sans-serif; background: Canvas } "
        f"body {{ margin: 0 }}</style><main><h1>A page</h1><p>Words</p>"
        f"<style>{pages[number]}</style></main>"
    ))  # fmt: skip
    with serving(app) as url:
        place = Place(url, {})
        for number, (style, expected) in enumerate(SEEDED.items()):
            sight = gallery.Sight(f"/{number}", "")
            faults = place.look(chromium, "seeded", sight)
            faults += place.look(chromium, "seeded", sight, rest=True)
            assert len(faults) == len(expected), (style, faults)
            for fault, start in zip(faults, expected, strict=True):
                assert fault.startswith(start), style
        place.close()
