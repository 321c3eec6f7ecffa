"""A person who may change a monitor does not learn its stored secrets: they go to the server for
which they were entered, and to no other (decision 15).
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
EVIL = "http://evil.test/"
ELSEWHERE = [
    {"url": "https://shop.test/"},
    {"url": "http://shop.test./"},  # without its dot, the name may be one of a search domain
    {"url": "http://shop.test.evil.test/"},
    {"verify_tls": "false"},
    {"verify_tls": "0", "url": SAME},
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
    return Visitor(app).let_in(make_person(app, "editor"))


def secrets(app, id):
    with app.app_context():
        row = db.session.get(MonitorRow, id)
        login = (row.request_auth_username, row.request_auth_password)
        fields = (row.request_headers, *login, row.request_body)
        db.session.remove()
    return fields


ALL = (HEADERS, "ada", "geheim", "a very secret body")


@pytest.mark.parametrize("changes", ELSEWHERE)
def test_a_patch_to_another_server_drops_what_it_does_not_send(app, api, monitor, changes):
    path = f"/monitors/{monitor}"
    api.data("PATCH", path, data={"url": SAME, "verify_tls": "true"})
    assert secrets(app, monitor) == ALL
    api.data("PATCH", path, data=changes | {"request_body": "new"})
    assert secrets(app, monitor) == (None, None, None, "new")


def test_no_secret_goes_to_another_server_by_way_of_another_kind(app, api, monitor):
    path = f"/monitors/{monitor}"
    cleared = dict.fromkeys(["request_headers", "request_auth_username", "request_body"], "")
    mail = cleared | {"url": "tcp://shop.test:80"}
    assert api.errors("PATCH", path, data=mail).keys() == {"request_auth_password"}
    api.data("PATCH", path, data=mail | {"request_auth_password": ""})
    api.data("PATCH", path, data={"url": EVIL, "request_auth_username": "ada"})
    assert secrets(app, monitor) == (None, "ada", None, None)


def test_an_unverified_server_that_stays_unverified_keeps_its_secrets(app, api, monitor):
    path = f"/monitors/{monitor}"
    login = {"request_auth_username": "a", "request_auth_password": "b"}
    api.data("PATCH", path, data={"verify_tls": "false"} | login)
    api.data("PATCH", path, data={"verify_tls": "false", "name": "New"})
    assert secrets(app, monitor) == (None, "a", "b", None)


def test_a_mask_does_not_bring_a_secret_to_another_server(app, api, monitor):
    path = f"/monitors/{monitor}"
    header = {"request_headers[0][key]": "Authorization"}
    header |= {"request_headers[0][value]": f"{MASK}oken"}
    masked = header | {"url": EVIL, "request_body": f"{MASK}body"}
    errors = api.errors("PATCH", path, data=masked)
    assert errors.keys() == {"request_headers.0.value", "request_body"}
    assert all(AGAIN in sentence for [sentence] in errors.values())
    assert secrets(app, monitor) == ALL


def test_the_forms_of_a_change_and_a_clone_ask_for_the_secrets_of_another_server(
    app, editor, monitor
):
    for page, changes in (("clone", {"url": EVIL}), ("edit", {"verify_tls": False})):
        editor.open(f"/monitors/{monitor}/{page}").press("Save", **changes)
        assert editor.status == 422, page
        assert editor.text.count(AGAIN) >= 3, page
        assert secrets(app, monitor) == ALL, page
    editor.open(f"/monitors/{monitor}/edit").press("Save", url=SAME)
    assert secrets(app, monitor) == ALL
    typed = {"request_auth_password": "typed", "request_headers[0][value]": HEADERS[0][1]}
    editor.open(f"/monitors/{monitor}/edit").press("Save", url=EVIL, request_body="", **typed)
    assert secrets(app, monitor) == (HEADERS, "ada", "typed", None)


def test_a_check_before_saving_does_not_send_the_secrets_to_another_server(app, editor, monitor):
    calls = []

    def target(environ, start_response):
        calls.append(environ.get("HTTP_AUTHORIZATION"))
        start_response("204 No Content", [])
        return []

    with serving(target) as url:
        editor.open(f"/monitors/{monitor}/edit").press("Check now", url=url)
        assert AGAIN in editor.text
        typed = {"request_headers[0][value]": "typed"}
        editor.press("Check now", request_auth_username="", request_body="", **typed)
    assert calls == ["typed"]
