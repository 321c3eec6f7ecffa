"""Debian's Chromium, driven by playwright: one browser a test process, a fresh profile a test.

page      a page in a fresh profile; the test fails on any console message or broken script
opened    the same by hand, with options of one's own

The browser has one font, whatever the machine has: what fits is otherwise decided by the fonts that
happen to be installed. That font is a wide one, where most sticks out; ``narrow_chromium`` is a
browser with a narrow one, and ``NARROW_FONT`` shows the page that is open with that.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import axe

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Playwright

# Without these, Chromium looks for its maker's servers at every start: traffic that leaves the
# machine, and slow refusals where there is no way out.
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--in-process-gpu",  # a tenth of what a browser takes goes into that process and its messages
    "--no-first-run",
    "--no-sandbox",  # tests run as root in containers, where Chromium's sandbox cannot
)
PATIENCE_MS = 60_000  # an event that does not come on a busy machine in this time does not come
# What Chromium says of a page in which somebody types before the page sets the focus.
TYPED_FIRST = "Autofocus processing was blocked because a document already has a focused element."
# Lines of Chromium itself on a page that is meant to say that something is wrong.
OF_STATUS = "Failed to load resource: the server responded with a status of"


# Fonts by their files, with the families to show and the Debian packages that have them.
WIDE = ("DejaVuSans.ttf", "DejaVu Sans", "DejaVu Sans Mono", "fonts-dejavu-core")
NARROW = ("LiberationSans-Regular.ttf", "Liberation Sans", "Liberation Mono", "fonts-liberation")
FONT_FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
# The narrow one by other names, beside the wide one: no page asks for these.
RENAMED = """
  <match target="scan">
    <test name="family"><string>{family}</string></test>
    <edit name="family" mode="assign"><string>{name}</string></edit>
  </match>"""
NARROW_NAMES = {"Liberation Sans": "Narrow", "Liberation Mono": "Narrow Mono"}
NARROW_FONT = """() => {
  document.documentElement.style.setProperty("--font", "Narrow");
  document.documentElement.style.setProperty("--mono", "Narrow Mono");
}"""
# Every family that is asked for ends at the one font. Hinting as Debian has it: without, every
# letter is as wide as a whole number of pixels.
FONTS_CONF = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>{folder}</dir>{more}
  <cachedir>{cache}</cachedir>
  <alias><family>monospace</family><prefer><family>{mono}</family></prefer></alias>
  <match target="pattern">
    <edit name="family" mode="append_last"><string>{sans}</string></edit>
    <edit name="hintstyle" mode="append"><const>hintslight</const></edit>
    <edit name="antialias" mode="append"><bool>true</bool></edit>
  </match>
</fontconfig>
"""


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def chromium(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    file, *_, package = NARROW
    renamed = [RENAMED.format(family=old, name=new) for old, new in NARROW_NAMES.items()]
    base = tmp_path_factory.getbasetemp()
    axe.judged.file = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "judged"
    more = f"\n  <dir>{_folder(file, package)}</dir>" + "".join(renamed)
    yield from _launched(playwright, tmp_path_factory.mktemp("fonts"), *WIDE, more)


@pytest.fixture(scope="session")
def narrow_chromium(
    playwright: Playwright, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    yield from _launched(playwright, tmp_path_factory.mktemp("fonts"), *NARROW)


def _launched(
    playwright: Playwright,
    place: Path,
    file: str,
    sans: str,
    mono: str,
    package: str,
    more: str = "",
) -> Iterator[Browser]:
    # The same without what a person sees around the page takes half of the time.
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not program:
        pytest.skip("Chromium is not installed: apt-get install chromium-headless-shell")
    fonts = {"folder": _folder(file, package), "sans": sans, "mono": mono, "more": more}
    conf = place / "fonts.conf"
    conf.write_text(FONTS_CONF.format(cache=place / "cache", **fonts))
    browser = playwright.chromium.launch(
        executable_path=program, args=list(QUIET), env={**os.environ, "FONTCONFIG_FILE": str(conf)}
    )
    yield browser
    browser.close()


def _folder(file: str, package: str) -> Path:
    """The folder of a font's files."""
    file_path = next((path for top in FONT_FOLDERS for path in top.rglob(file)), None)
    if not file_path:
        pytest.skip(f"A font is not installed: apt-get install {package}")
    return file_path.parent


@contextmanager
def opened(browser: Browser, **options: Any) -> Iterator[Page]:
    """A page of a fresh profile; on leaving, its scripts must not have complained.

    ``options`` are those of playwright's new_context. The server of the page must outlive it: a
    page that refreshes itself complains about a server that has gone.
    """
    options = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"} | options
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    with heard(page) as faults:
        yield page
        context.close()
    assert not faults, faults


@contextmanager
def heard(page: Page, status: int = 422) -> Iterator[list[str]]:
    """The lines of the page's console, as they come. ``status``: of an answer that is meant to be
    an error, like 422, with which a form comes back.
    """
    faults: list[str] = []
    meant = (TYPED_FIRST, *(f"{OF_STATUS} {status_code}" for status_code in {422, status}))

    def hear(text: str) -> None:
        if not text.startswith(meant):
            faults.append(text)

    listeners: dict[Any, Callable[[Any], None]] = {
        "pageerror": lambda fault: faults.append(str(fault)),
        "console": lambda message: hear(message.text),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    yield faults
    for event, listener in listeners.items():
        page.remove_listener(event, listener)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    with opened(chromium) as page:
        yield page
