"""Whoever may change a monitor's URL does not learn its stored secrets: they go to the server for
which they were entered, and to no other (decisions.md 15).
"""

from __future__ import annotations

import pytest

from app.db import db
from app.db.tables import MonitorRow
from app.records import MASK
from tests.factories import make_monitor, make_person
from tests.support.loopback import serving
from tests.web.visitor import Visitor

OLD, SAME = "http://shop.test/", "http://SHOP.test:80/other?page"
ELSEWHERE = [
    "http://evil.test/",
    "https://shop.test/",
    "http://shop.test:8080/",
    "http://shop.test.evil.test/",
]
HEADERS = [["Authorization", "Bearer a very secret token"]]
AGAIN = "Enter it again, or remove it."


@pytest.fixture
def monitor(app):
    return make_monitor(
        app,
        url=OLD,
        request_headers=HEADERS,
        request_auth_username="ada",
        request_auth_password="geheim",
        request_body="a very secret body",
    ).id


@pytest.fixture
def editor(app):
    return Visitor(app).log_in(make_person(app, "editor").email)


def secrets(app, id):
    with app.app_context():
        row = db.session.get(MonitorRow, id)
        found = row.request_headers, row.request_auth_password, row.request_body
        db.session.remove()
    return found


ALL = (HEADERS, "geheim", "a very secret body")
NONE = (None, None, None)


@pytest.mark.sqlite
@pytest.mark.parametrize("url", ELSEWHERE)
def test_a_patch_to_another_server_drops_what_it_does_not_send(app, api, monitor, url):
    path = f"/monitors/{monitor}"
    api.data("PATCH", path, data={"url": SAME})
    assert secrets(app, monitor) == ALL
    api.data("PATCH", path, data={"url": url, "request_auth_password": "geheim"})
    assert secrets(app, monitor) == (None, "geheim", None)


@pytest.mark.sqlite
def test_a_mask_does_not_bring_a_secret_to_another_server(app, api, monitor):
    path = f"/monitors/{monitor}"
    errors = api.errors(
        "PATCH",
        path,
        data={
            "url": ELSEWHERE[0],
            "request_headers[0][key]": "Authorization",
            "request_headers[0][value]": f"{MASK}oken",
            "request_body": f"{MASK}body",
        },
    )
    assert errors.keys() == {"request_headers.0.value", "request_body"}
    assert all(AGAIN in sentence for [sentence] in errors.values())
    assert secrets(app, monitor) == ALL


@pytest.mark.sqlite
def test_the_form_asks_for_the_secrets_of_another_server(app, editor, monitor):
    editor.open(f"/monitors/{monitor}/edit").press("Save", url=ELSEWHERE[0])
    assert editor.status == 422
    assert editor.text.count(AGAIN) >= 3
    assert secrets(app, monitor) == ALL
    editor.open(f"/monitors/{monitor}/edit").press("Save", url=SAME)
    assert secrets(app, monitor) == ALL
    editor.open(f"/monitors/{monitor}/edit").press(
        "Save",
        url=ELSEWHERE[0],
        request_auth_password="typed",
        request_body="",
        **{"request_headers[0][value]": "typed"},
    )
    assert secrets(app, monitor) == ([["Authorization", "typed"]], "typed", None)


@pytest.mark.sqlite
def test_a_clone_for_another_server_does_not_take_the_secrets(app, editor, monitor):
    editor.open(f"/monitors/{monitor}/clone").press("Save", url=ELSEWHERE[0])
    assert editor.status == 422
    assert secrets(app, monitor) == ALL


@pytest.mark.sqlite
def test_a_check_before_saving_does_not_send_the_secrets_to_another_server(app, editor, monitor):
    seen = []

    def target(environ, start_response):
        seen.append(environ.get("HTTP_AUTHORIZATION"))
        start_response("204 No Content", [])
        return []

    with serving(target) as url:
        editor.open(f"/monitors/{monitor}/edit").press("Check now", url=url)
        assert AGAIN in editor.text
        editor.press(
            "Check now",
            request_auth_username="",
            request_body="",
            **{"request_headers[0][value]": "typed"},
        )
    assert seen == ["typed"]
