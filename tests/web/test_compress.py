"""Pages are compressed if the browser accepts that, with the same content."""

import gzip

import pytest
from flask import send_from_directory

from app.web.frame import compress
from tests.factories import make_monitor

GZIP = {"Accept-Encoding": "gzip, br"}


@pytest.mark.parametrize("name", ["img/mark.svg", "css/base.css"])
def test_a_file_is_closed_before_anything_is_sent(app, name):
    """A browser that goes away meanwhile must not leave it open."""
    with app.test_request_context(headers={"Accept-Encoding": "gzip"}):
        answer = send_from_directory(app.static_folder, name)
        file = answer.response.file
        compress._compress(answer)
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


def test_answers_to_programs_stay_as_they_are(app, viewer):
    for path in ("/api/v1/openapi.json", "/static/js/page.js?x"):
        answer = viewer.client.get(path, headers={"Accept-Encoding": "gzip;q=0"}, buffered=True)
        assert "Content-Encoding" not in answer.headers
    answer = viewer.client.get("/api/v1/openapi.json", headers=GZIP)
    assert "Content-Encoding" not in answer.headers
