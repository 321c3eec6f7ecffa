"""Fixtures for tests of the dashboard: visitors without scripts, and a real browser."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask

from app import create_app
from app.alerts.worker import Worker
from app.config import Settings
from app.records import Person
from app.web.frame import progress
from app.web.views import channel_tests
from tests.factories import PASSWORD, make_key, make_person, now
from tests.support.browser import opened
from tests.support.clock import Clock
from tests.support.logins import EMAIL
from tests.support.loopback import reached, serving
from tests.web.visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.support.applications import Applications


# A phone and a desktop, by night and by day: colours alone do not change what can be done, and what
# they and a tablet do change test_every_page.py sees.
SCREENS = [(375, "dark"), (1440, "light")]
OTHER_SCREENS = [(375, "light"), (768, "dark"), (768, "light"), (1440, "dark")]
# For what a script or the server does, whatever the size of the screen: on the phone what fingers
# do there, and what folds. Without either mark, a test looks at what differs between the two.
DESKTOP = pytest.mark.parametrize("screen", [(1440, "dark")], indirect=True)
PHONE = pytest.mark.parametrize("screen", [(375, "dark")], indirect=True)


@pytest.fixture(autouse=True)
def _work_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is; what tests the steps sets its own limit."""
    monkeypatch.setattr(progress, "SECONDS", 3600)


@pytest.fixture
def stranger(app: Flask) -> Visitor:
    """Somebody without an account."""
    return Visitor(app)


@pytest.fixture
def admin(app: Flask) -> Visitor:
    return _logged_in(app, "admin")


@pytest.fixture
def editor(app: Flask) -> Visitor:
    return _logged_in(app, "editor")


@pytest.fixture
def viewer(app: Flask) -> Visitor:
    return _logged_in(app, "viewer")


@pytest.fixture
def access(app: Flask) -> Any:
    """The access of this application, with a clock that a test sets."""
    access = app.extensions["wakeful.access"]
    access.clock = Clock(now())
    return access


@pytest.fixture
def ada(app: Flask) -> Person:
    """Somebody who has, or gets, a second factor."""
    return make_person(app, "editor", EMAIL)


def _logged_in(app: Flask, role: str) -> Visitor:
    return Visitor(app).let_in(make_person(app, role))


@pytest.fixture
def over(
    settings: Settings, applications: Applications, sqlite_template: Path
) -> Iterator[Callable[..., Visitor]]:
    """Opens a dashboard over servers, each given with a key for it; somebody's browser on it."""
    with ExitStack() as stack:

        def over(*servers: tuple[Any, str], role: str = "editor", serve: Any = reached) -> Visitor:
            number = len(list(settings.instance.glob("dashboard?.db")))
            own = settings.instance / f"dashboard{number}.db"
            shutil.copyfile(sqlite_template, own)
            remotes = tuple((stack.enter_context(serve(server)), key) for server, key in servers)
            there = {"database_url": f"sqlite:///{own}", "store": "remote", "remotes": remotes}
            dashboard = applications.opened(create_app, replace(settings, **there))
            return _logged_in(stack.enter_context(dashboard), role)

        yield over


@pytest.fixture
def remote(app: Flask, over: Callable[..., Visitor]) -> Visitor:
    """An editor's browser on a dashboard whose records live behind ``app``'s API."""
    return over((app, make_key(app)))


@pytest.fixture
def worker(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The part of Wakeful that sends. However slow this machine is, its answer is waited for."""
    monkeypatch.setattr(channel_tests, "WAIT_SECONDS", 60)
    stop, running = threading.Event(), Worker(app, app.extensions["wakeful.settings"])
    thread = threading.Thread(target=running.run, args=(stop,))
    thread.start()
    yield
    stop.set()
    running.wake()
    thread.join()


@pytest.fixture
def site(app: Flask) -> Iterator[str]:
    """The address of the dashboard."""
    with serving(app) as url:
        yield url


@pytest.fixture(
    params=[*SCREENS, *(pytest.param(screen, marks=pytest.mark.more) for screen in OTHER_SCREENS)],
    ids=[f"{width}-{theme}" for width, theme in (*SCREENS, *OTHER_SCREENS)],
)
def screen(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What people look at the dashboard on, as options of the browser."""
    width, theme = request.param
    return {"viewport": {"width": width, "height": 900}, "color_scheme": theme}


@pytest.fixture
def page(site: str, chromium: Browser, screen: dict[str, Any]) -> Iterator[Page]:
    """A browser at the dashboard, not logged in. It leaves before the server does."""
    with opened(chromium, base_url=site, **screen) as page:
        yield page


@pytest.fixture
def visit(app: Flask, site: str, page: Page) -> Callable[[str], Page]:
    """Opens a path of the dashboard in a browser, logged in as an editor."""
    let_in(page, app, site)

    def visit(path: str) -> Page:
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        return page

    return visit


def let_in(page: Page, app: Flask, site: str) -> None:
    """Log an editor in without the pages that people see on the way."""
    cookie = _logged_in(app, "editor").client.get_cookie("wakeful")
    assert cookie is not None
    page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": site}])


def log_in(page: Page, email: str) -> None:
    """The page logs in as people do, and shows the home page afterwards."""
    page.goto("/login")
    # Typing sooner takes the focus away before the page has given it, which the console tells.
    page.locator("input[name=email]:focus").wait_for()
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Log in").wait_for(state="detached")
