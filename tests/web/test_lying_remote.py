"""A dashboard over a server with arbitrary answers: every page works, or says that the answer makes
no sense.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import cycle, zip_longest
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from werkzeug.datastructures import Headers
from werkzeug.test import run_wsgi_app
from werkzeug.wrappers import Response

from app.config import Settings
from app.records import ComponentName, DeliveryQuery, Group, IncidentQuery, PostQuery
from app.stores import current_access, current_store
from tests.factories import make_key, make_subscriber, now
from tests.support.loopback import reached
from tests.web.scene import PARTS, fill
from tests.web.test_remote_faults import looking
from tests.web.visitor import Visitor

pytestmark = [pytest.mark.sqlite, pytest.mark.settings(rate_limit=0)]

Place = tuple[str | int, ...]
Lie = tuple[Place, Any]  # where it stands in the answer, and the wrong value
MISSING = object()
LIES: list[Any] = [
    MISSING, None, "x", -1, 10**400, float("inf"), True, [], {}, "\ud800", [None], {"a": 1}, 7.5,
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-11-21T08:00:00", "javascript:alert(1)",
    "<b>x\r\nx: y</b>", 2**62,
]  # fmt: skip


class Liar:
    """``app`` with another value in one place of its answers, for each path in ``lies``. What it
    has answered once it answers again: nothing changes there, and a page asks the same each time.
    """

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.said: dict[str, Any] = {}
        self.lies: dict[str, Lie] = {}
        self.kept: dict[tuple[str, ...], tuple[bytes, str, Headers]] = {}

    def __call__(self, environ: Any, start_response: Any) -> Any:
        asked = tuple(environ[name] for name in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))
        if asked not in self.kept:
            body, status, headers = run_wsgi_app(self.app.wsgi_app, environ)
            self.kept[asked] = b"".join(body), status, headers
        text, status, headers = self.kept[asked]
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] == "GET" and headers.get("Content-Type") == "application/json":
            answer = json.loads(text)
            self.said[path] = answer
            if path in self.lies:
                text = json.dumps(spoiled(answer, *self.lies[path])).encode()
        headers = Headers(headers)
        headers.set("Content-Length", str(len(text)))
        return Response(text, status, headers)(environ, start_response)


def spoiled(answer: Any, place: Place, lie: Any) -> Any:
    if not place:
        return None if lie is MISSING else lie
    try:
        inner = answer[place[0]]
    except (KeyError, IndexError, TypeError):
        return answer
    copy = answer.copy()
    if len(place) == 1 and lie is MISSING:
        del copy[place[0]]
    else:
        copy[place[0]] = spoiled(inner, place[1:], lie)
    return copy


def places(answer: Any, here: Place = ()) -> Iterator[Place]:
    """Every place in an answer; of a list the first entry stands for all."""
    yield here
    if isinstance(answer, dict):
        for name, inner in answer.items():
            yield from places(inner, (*here, name))
    elif isinstance(answer, list) and answer:
        yield from places(answer[0], (*here, 0))


@pytest.fixture
def liar(app: Flask) -> Liar:
    fill(app, [replace(part, days=2) for part in PARTS if part.outages][:2])
    return Liar(app)


@pytest.fixture
def editor(
    app: Flask, liar: Liar, settings: Settings, sqlite_template: Path, tmp_path: Path
) -> Iterator[Visitor]:
    yield from looking(liar, make_key(app), settings, sqlite_template, tmp_path, reached)


TEMPLATE = {"name": "Slow", "title": "Slow answers", "state": "identified", "body": "We look."}


def add_page(app: Flask, monitor_id: int) -> int:
    """A status page with all that one can have; its id."""
    store = current_store()
    groups, names = (Group("Ours", (monitor_id,)),), (ComponentName(monitor_id, "The shop"),)
    page = store.status_pages.create(
        {"name": "Our shop", "monitors": (monitor_id,), "groups": groups, "names": names}
    )
    store.posts.create(
        page.id,
        {
            "title": "We move", "state": "scheduled", "body": "From here to there.",
            "monitors": (monitor_id,), "starts_at": now(), "ends_at": now() + timedelta(hours=1),
        },
    )  # fmt: skip
    make_subscriber(app, page.id)
    return page.id


def known(app: Flask) -> dict[str, int]:
    """An id of each kind of record."""
    with app.app_context():
        store = current_store()
        incident = store.incidents.list(IncidentQuery()).items[0]
        page = add_page(app, incident.monitor_id)
        window = {"name": "Works", "start_at": now(), "end_at": now() + timedelta(hours=1)}
        return {
            "monitor": incident.monitor_id,
            "incident": incident.id,
            "delivery": store.deliveries.list(DeliveryQuery()).items[0].id,
            "window": store.windows.create(window).id,
            "page": page,
            "post": store.posts.list(PostQuery(page)).items[0].id,
            "marker": store.markers.create({"name": "v2", "link": "https://ci.example/"}).id,
            "template": store.post_templates.create(TEMPLATE).id,
        }


@pytest.mark.parametrize(
    ("pages", "zone"),
    [
        (("/",), "Asia/Tokyo"),
        (("/wall", "/monitors"), "Asia/Tokyo"),
        (("/monitors/{monitor}",), "America/New_York"),
        (("/incidents", "/incidents/{incident}", "/markers"), "Asia/Tokyo"),
        (("/deliveries", "/deliveries/{delivery}", "/reports"), "America/New_York"),
        (("/maintenance", "/maintenance/{window}"), "Asia/Tokyo"),
        (("/status-pages", "/status-pages/{page}", "/status-pages/{page}/edit"), "Asia/Tokyo"),
        (
            (
                "/status-pages/{page}/posts/{post}",
                "/status-pages/{page}/posts/new?template=Slow",
                "/status-pages/{page}/posts/new?incident_id={incident}",
                "/status-pages/{page}/posts/{post}/edit",
                "/status-pages/{page}/posts/{post}/updates/1",
            ),
            "America/New_York",
        ),
        (
            (
                "/status-pages/{page}/subscribers",
                "/status-pages/{page}/subscribers.csv",
                "/status-pages/templates",
                "/status-pages/templates/{template}/edit",
            ),
            "Asia/Tokyo",
        ),
    ],
)
@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])  # of the places: two workers of a run share them
def test_no_lie_breaks_a_page(
    app: Flask, liar: Liar, editor: Visitor, pages: Sequence[str], zone: str, half: int
) -> None:
    ids = known(app)
    dashboard = editor.client.application
    with dashboard.app_context():
        (person,) = current_access().people.all()
        current_access().people.update(person.id, {"time_zone": zone})
    values = cycle(LIES)  # one in each place; they rotate, so other places get the others
    for page in pages:
        address = page.format(**ids)
        liar.lies, liar.said = {}, {}
        assert editor.open(address).status == 200, address
        told = [
            [(path, (place, next(values))) for place in list(places(answer))[half::2]]
            for path, answer in liar.said.items()
        ]
        # One in each answer at once. Where that shows no page, one may have hidden the others.
        for together in zip_longest(*told):
            lies = [lie for lie in together if lie]
            if opened(editor, liar, address, lies) != 200 and len(lies) > 1:
                for lie in lies:
                    opened(editor, liar, address, [lie])


def opened(editor: Visitor, liar: Liar, address: str, lies: Sequence[tuple[str, Lie]]) -> int:
    """The status of a page over answers with these lies. An exception comes through to here."""
    liar.lies = dict(lies)
    status = editor.open(address).status
    assert status in (200, 404, 409, 422, 503), (address, lies)
    assert 'href="javascript:' not in editor.page.text, (address, lies)
    return status
