"""Pages are compressed if the browser accepts that, with the same content."""

import gzip
import json

import pytest
from flask import send_from_directory

from app.web.frame import assets
from tests.factories import make_incident, make_key, make_monitor

GZIP = {"Accept-Encoding": "gzip, br"}


@pytest.mark.parametrize("name", ["img/mark.svg", "css/base.css"])
def test_a_file_is_closed_before_anything_is_sent(app, name):
    """A browser that goes away meanwhile must not leave it open."""
    with app.test_request_context(headers={"Accept-Encoding": "gzip"}):
        answer = send_from_directory(app.static_folder, name)
        file = answer.response.file
        assets._compress(answer)
        assert file.closed
        assert answer.get_data()
        answer.close()


def test_a_page_and_its_style_are_the_same_compressed_and_plain(app, viewer):
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    for path, kind in (
        ("/monitors", "text/html"),
        ("/static/css/base.css", "text/css"),
        ("/static/js/page.js", "text/javascript"),
    ):
        small, plain = (
            viewer.client.get(path, headers=headers, buffered=True) for headers in (GZIP, {})
        )
        assert small.headers["Content-Encoding"] == "gzip", path
        assert small.mimetype == kind
        assert "Content-Encoding" not in plain.headers
        assert "Accept-Encoding" in plain.headers["Vary"]
        assert small.content_length == len(small.data) < plain.content_length
        if path.startswith("/static"):  # a page has a fresh token each time
            assert gzip.decompress(small.data) == plain.data
        else:
            assert b"Alpha" in gzip.decompress(small.data)


def test_a_refreshed_part_that_has_not_changed_is_still_answered_with_nothing(app, viewer):
    make_monitor(app, name="Alpha", state={"verdict": "up"})
    asked = {"X-Fragment": "live", **GZIP}
    part = viewer.client.get("/monitors", headers=asked)
    assert b"Alpha" in gzip.decompress(part.data)
    again = viewer.client.get("/monitors", headers=asked | {"If-None-Match": part.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_an_answer_of_the_api_is_the_same_compressed_and_plain(app, client):
    make_incident(app, make_monitor(app), evidence={"failing": {"body": "<h1>Sorry</h1>" * 100}})
    key = {"Authorization": f"Bearer {make_key(app)}"}
    row = {"name": "Shop", "url": "http://127.0.0.1:9/", "interval": "60"}
    for method, path, body, status in (
        ("GET", "/incidents/1", None, 200),
        ("POST", "/monitors", row, 201),
        ("POST", "/monitors/batch", {"monitors": [row, row, {}]}, 207),
    ):
        plain, small = (
            client.open(f"/api/v1{path}", method=method, headers=key | accepted, json=body)
            for accepted in ({}, GZIP)
        )
        assert (plain.status_code, small.status_code) == (status, status), path
        assert "Content-Encoding" not in plain.headers
        assert small.headers["Content-Encoding"] == "gzip", path
        for answer in (plain, small):
            assert "Accept-Encoding" in answer.headers["Vary"], path
        assert small.content_length == len(small.data) < plain.content_length
        assert json.loads(gzip.decompress(small.data)).keys() == plain.json.keys()
    head = client.head("/api/v1/incidents/1", headers=key | GZIP)
    same = client.get("/api/v1/incidents/1", headers=key | GZIP)
    assert (head.data, head.content_length) == (b"", same.content_length)
    assert head.headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    ("path", "accepted"),
    [
        ("/api/v1/openapi.json", "gzip;q=0"),
        ("/api/v1/openapi.json", "br, zstd"),
        ("/api/v1/openapi.json", "identity"),
        ("/static/js/page.js?x", "gzip;q=0"),
        ("/api/v1/monitors/1", "gzip"),  # the answer 401 is small
    ],
)
def test_who_does_not_accept_it_and_who_gets_little_gets_it_plain(client, path, accepted):
    answer = client.get(path, headers={"Accept-Encoding": accepted}, buffered=True)
    assert "Content-Encoding" not in answer.headers
    assert "Accept-Encoding" in answer.headers["Vary"]
