"""A dashboard over a server with arbitrary answers: every page works, or says that the answer makes
no sense.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import cycle, zip_longest
from typing import Any

import pytest
from flask import Flask
from werkzeug.datastructures import Headers
from werkzeug.test import run_wsgi_app
from werkzeug.wrappers import Response

from app.records import ComponentName, DeliveryQuery, Group, IncidentQuery, PostQuery
from app.stores import current_store
from tests.factories import make_key, make_subscriber, now
from tests.support.lies import LIES, Path, paths, spoiled
from tests.support.loopback import reached
from tests.support.store import access_of
from tests.web.scene import PARTS, fill
from tests.web.visitor import Visitor

pytestmark = pytest.mark.settings(rate_limit=0)

Lie = tuple[Path, Any]  # a path in the answer, and the wrong value there


class Liar:
    """``app`` with another value in one part of its answers, for each path in ``lies``. What it
    has answered once it answers again: nothing changes there, and a page asks the same each time.
    """

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.answers: dict[str, Any] = {}
        self.lies: dict[str, Lie] = {}
        self.stored: dict[tuple[str, ...], tuple[bytes, str, Headers]] = {}

    def __call__(self, environ: Any, start_response: Any) -> Any:
        environ.pop("HTTP_ACCEPT_ENCODING", None)  # what is compressed cannot be changed
        asked = tuple(environ[name] for name in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))
        if asked not in self.stored:
            body, status, headers = run_wsgi_app(self.app.wsgi_app, environ)
            self.stored[asked] = b"".join(body), status, headers
        text, status, headers = self.stored[asked]
        path = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] == "GET" and headers.get("Content-Type") == "application/json":
            answer = json.loads(text)
            self.answers[path] = answer
            if path in self.lies:
                text = json.dumps(spoiled(answer, *self.lies[path])).encode()
        headers = Headers(headers)
        headers.set("Content-Length", str(len(text)))
        return Response(text, status, headers)(environ, start_response)


@pytest.fixture
def liar(app: Flask) -> Liar:
    fill(app, [replace(part, days=2) for part in PARTS if part.outages][:2])
    return Liar(app)


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


def create_records(app: Flask) -> dict[str, int]:
    """The id of one record of each kind."""
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


PAGES = [
    ("/", "/deliveries", "/deliveries/{delivery}", "/reports"),
    ("/wall", "/monitors", "/monitors/{monitor}", "/maintenance", "/maintenance/{window}"),
    ("/incidents", "/incidents/{incident}", "/markers", "/status-pages/{page}/subscribers",
     "/status-pages/{page}/subscribers.csv", "/status-pages/templates",
     "/status-pages/templates/{template}/edit"),
    ("/status-pages", "/status-pages/{page}", "/status-pages/{page}/edit",
     "/status-pages/{page}/posts/{post}", "/status-pages/{page}/posts/new?template=Slow",
     "/status-pages/{page}/posts/new?incident_id={incident}",
     "/status-pages/{page}/posts/{post}/edit", "/status-pages/{page}/posts/{post}/updates/1"),
]  # fmt: skip
STEPS = 32  # a run has a lie in every 32nd part of an answer; the long run has the others
FIRST = [0, *(pytest.param(first, marks=pytest.mark.more) for first in range(1, STEPS))]


@pytest.mark.slow
@pytest.mark.parametrize("pages", PAGES, ids=lambda pages: pages[0])
@pytest.mark.parametrize("first", FIRST)
def test_no_lie_breaks_a_page(app, liar, over, pages: Sequence[str], first: int) -> None:
    editor = over((liar, make_key(app)), serve=reached)
    ids = create_records(app)
    zones, people = cycle(("Asia/Tokyo", "America/New_York")), access_of(editor.client.application)
    values = cycle(LIES)  # one in each part; they rotate, so other parts get the others
    for number, page in enumerate(pages):
        people.people.update(1, {"time_zone": next(zones)})
        address = page.format(**ids)
        liar.lies, liar.answers = {}, {}
        assert editor.open(address).status == 200, address
        lies_by_answer = [
            [
                (path, (part, next(values)))
                for part in list(paths(answer))[(first + number) % STEPS :: STEPS]
            ]
            for path, answer in liar.answers.items()
        ]
        # A lie in each answer at once. If that shows no page, one record may have hidden the
        # others.
        for together in zip_longest(*lies_by_answer):
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
