"""Every page as people see it, from phone to wide screen, light and dark: axe finds nothing, the
console stays silent, nothing sticks out at the side, with a wide font and with a narrow one.

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
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PICTURES = os.environ.get("PICTURES")  # where to put them
WIDTHS = (1440, 768, 375)
HEIGHT = 900
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
    def opened(self, browser: Browser, sight: gallery.Sight, found: list[str]) -> Iterator[Page]:
        """The page of one sight; what is wrong on the way there is added to ``found``."""
        page = self.page(browser, sight.who)
        page.set_viewport_size({"width": WIDTHS[0], "height": HEIGHT})
        page.emulate_media(color_scheme="light")
        with heard(page, sight.status) as faults:
            answer = page.goto(sight.path.format_map(self.names))
            if answer is None or answer.status != sight.status:
                found.append(f"{sight.path} answers {answer and answer.status}")
            sight.then(page)
            yield page
        page.unroute_all()
        found += faults

    def look(self, browser: Browser, name: str, sight: gallery.Sight) -> list[str]:
        """What is wrong with one page; takes its pictures where that is asked for."""
        found: list[str] = []
        with self.opened(browser, sight, found) as page:
            for look in _looks(sight):
                found += _too_wide(page, look.width)
                if not look.theme:
                    continue
                page.emulate_media(color_scheme=look.theme)
                seen = violations(page, colours=look.colours)
                found += [f"{look.theme} at {look.width}: {fault}" for fault in seen]
                if PICTURES:
                    picture = Path(PICTURES, f"{name}-{look.width}-{look.theme}.png")
                    page.screenshot(path=picture, full_page=not sight.dialog)
            if not sight.brief:
                found += _too_wide_if_narrow(page, sight)
        return found

    def close(self) -> None:
        for page in self.pages.values():
            page.context.close()


def _too_wide(page: Page, width: int) -> list[str]:
    page.set_viewport_size({"width": width, "height": HEIGHT})
    over = page.evaluate(TOO_WIDE)
    return [f"{over} px too wide at {width}"] if over > 0 else []


def _too_wide_if_narrow(page: Page, sight: gallery.Sight) -> list[str]:
    """Where the page sticks out with the narrow font, on every screen."""
    page.evaluate(NARROW_FONT)
    widths = sorted({look.width for look in _looks(sight)})
    return [f"narrow font: {fault}" for width in widths for fault in _too_wide(page, width)]


def _looks(sight: gallery.Sight) -> list[Look]:
    wide, middle, narrow = WIDTHS
    if sight.brief:
        return [Look(wide, "light"), Look(narrow, "dark")]
    if sight.widths:
        return [
            Look(width, theme, colours=theme == "dark")
            for width in sight.widths
            for theme in ("light", "dark")
        ]
    return [
        Look(wide, "light"),
        # Between the two, the same parts stand in other places: axe would find the same again.
        Look(middle, "light" if PICTURES else None),
        Look(narrow, "dark"),
        Look(wide, "dark", colours=True),
    ]


@pytest.fixture(scope="module")
def place(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Place]]:
    """An installation by its name, made when it is first looked at; nothing in it is changed."""
    if PICTURES:
        Path(PICTURES).mkdir(parents=True, exist_ok=True)
    makers = {
        "calm": gallery.calm,
        "first-day": gallery.first_day,
        "untouched": gallery.untouched,
    }
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
    pytest.param(kind, name, id=f"{kind}-{name}")
    for kind, sights in gallery.ALL.items()
    for name in sights
]


@pytest.mark.parametrize(("kind", "name"), SIGHTS)
def test_every_page_fits_every_screen_and_everybody(place, chromium, kind, name):
    found = place(kind).look(chromium, f"{kind}-{name}", gallery.ALL[kind][name])
    assert not found, "\n".join(found)
