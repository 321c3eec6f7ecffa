"""The envelope, the order of errors, and HTTP (decisions 1, 6 and 7)."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

import pytest

from app.api.operations import JSON, PATHS, Body
from app.errors import Invalid
from app.records import MAX_BODY_BYTES, MAX_FIELDS
from app.rules.text import too_many
from tests.api.conftest import BASE, MONITOR
from tests.factories import make_key, make_monitor, make_person, now
from tests.support.queries import queries

FORM = "application/x-www-form-urlencoded"


def page_of(link):
    return dict(parse_qsl(urlsplit(link).query)) if link else None


def test_section_1_a_list_is_data_links_meta_and_status(api):
    ids = [api.monitor(name=f"m{n:02}")["id"] for n in range(12)]
    body = api.get("/monitors", search="m", search_by="name", page=1)
    assert list(body) == ["data", "links", "meta", "status"]
    assert [monitor["id"] for monitor in body["data"]] == ids[::-1][:10]
    assert body["meta"] == {
        "current_page": 1, "from": 1, "last_page": 2, "path": f"{BASE}/monitors", "per_page": 10,
        "to": 10, "total": 12,
    }  # fmt: skip
    assert body["links"]["prev"] is None
    kept = {"search": "m", "search_by": "name"}
    for name, page in (("first", "1"), ("last", "2"), ("next", "2")):
        assert body["links"][name].startswith(f"{BASE}/monitors?")
        assert page_of(body["links"][name]) == kept | {"page": page}
    second = api("GET", body["links"]["next"].removeprefix(BASE)).json
    assert [monitor["id"] for monitor in second["data"]] == ids[:2][::-1]
    assert (second["meta"]["from"], second["meta"]["to"]) == (11, 12)
    assert second["links"]["next"] is None


def test_section_1_past_the_end_is_an_empty_page_and_last_page_at_least_1(api):
    for page in ("1", "2", "99999999999999999999999999"):
        body = api.get("/monitors", page=page)
        assert body["data"] == [], page
        assert (body["meta"]["last_page"], body["meta"]["total"]) == (1, 0), page
        assert (body["meta"]["from"], body["meta"]["to"]) == (None, None), page
        assert body["links"]["next"] is None, page
        assert page_of(body["links"]["prev"]) == (None if page == "1" else {"page": "1"})


def test_section_1_store_show_update_delete(api):
    stored = api("POST", "/monitors", data=MONITOR)
    assert stored.status_code == stored.json["status"] == 201
    record = stored.json["data"]
    assert stored.headers["Location"] == f"{BASE}/monitors/{record['id']}"
    path = f"/monitors/{record['id']}"
    assert api("GET", path).json == {"data": record, "status": 200}
    assert api("DELETE", path).json == {
        "id": record["id"],
        "object": "monitor",
        "deleted": True,
        "status": 200,
    }
    assert api("GET", path).status_code == 404
    # An id is never used twice.
    assert api.monitor()["id"] > record["id"]


@pytest.mark.settings(public_url=None)
def test_section_1_links_are_absolute_under_the_host_of_the_request(api):
    answer = api("GET", "/monitors", headers={"Host": "status.example:8443"})
    assert answer.json["meta"]["path"] == "http://status.example:8443/api/v1/monitors"
    stored = api("POST", "/monitors", data=MONITOR, headers={"Host": "status.example"})
    assert stored.headers["Location"].startswith("http://status.example/api/v1/monitors/")


SPELLINGS = [
    "/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/monitors", "/api/v1/monitor",
    "/api/v1/monitors/", "/api/v1//monitors", "/api//v1/monitors", "//api/v1/monitors",
    "/api/v1/monitors/1/", "/api/v1/monitors/one", "/api/v1/monitors/01", "/api/v1/monitors/-1",
    "/api/v1/monitors/1%0A", "/api/v1/monitors/%D9%A1", "/api/v1/MONITORS", "/api/v1monitors",
    "/api/v1/monitors/1/unknown", "/api/v1/monitors;a", "/api/\x00", "/api/%ff",
]  # fmt: skip


def test_section_1_another_spelling_of_a_path_is_a_json_404_for_everybody(stranger):
    for path in SPELLINGS:
        for method in ("GET", "POST", "BREW"):
            answer = stranger(method, path)
            assert answer.status_code == 404, (method, path)
            assert answer.json.keys() == {"message", "status"}, (method, path)
    # The framework looks for routes of web sockets alone, and has a page for where none is.
    socket = {"Connection": "Upgrade", "Upgrade": "websocket"}
    for path, status in (("/api/v1/me", 401), ("/api/v1/nothing", 404)):
        answer = stranger("GET", path, headers=socket)
        assert answer.status_code == answer.json["status"] == status, path


def big(request_type=FORM):
    return {"data": b"x=" + b"a" * MAX_BODY_BYTES, "content_type": request_type}


ORDER = [
    # who, method, path, input, status: each request has every later error as well
    ("stranger", "BREW", "/nothing", big("text/plain"), 404),
    ("stranger", "BREW", "/monitors/99", big("text/plain"), 401),
    ("reader", "POST", "/monitors/99", big("text/plain"), 405),
    ("reader", "PATCH", "/monitors/99", big("text/plain"), 403),
    ("api", "PATCH", "/monitors/99?x=1", big("text/plain"), 413),
    ("api", "PATCH", "/monitors/99?x=1", {"data": b"{", "content_type": "text/plain"}, 415),
    ("api", "PATCH", "/monitors/99?x=1", {"data": b"{", "content_type": "application/json"}, 404),
    ("api", "DELETE", "/monitors/99?x=1", {}, 404),
    ("api", "PATCH", "/incidents/{open}?x=1", {"data": {"ended_at": ""}}, 422),
    ("api", "PATCH", "/incidents/{closed}", {"data": {"ended_at": ""}}, 409),
]


def test_section_1_the_first_of_several_errors_in_order_is_returned(api, reader, stranger):
    monitor = str(api.monitor()["id"])
    times = {"monitor_id": monitor, "started_at": "2026-01-01T00:00:00"}
    closed = api.data("POST", "/incidents", data=times | {"ended_at": "2026-01-02T00:00:00"})
    opened = api.data("POST", "/incidents", data=times)
    callers = {"api": api, "reader": reader, "stranger": stranger}
    for who, method, path, sent, status in ORDER:
        path = path.format(open=opened["id"], closed=closed["id"])
        answer = callers[who](method, path, **sent)
        assert answer.status_code == answer.json["status"] == status, (
            who,
            method,
            path,
            answer.text,
        )
        assert answer.json["message"], (who, method, path)
        if status == 401:
            assert answer.headers["WWW-Authenticate"] == "Bearer", (method, path)
        if status == 409:
            assert answer.json["open_incident_id"] == opened["id"], (method, path)


def test_section_1_allow_head_and_options(api):
    id = api.monitor()["id"]
    for path, allowed in (
        ("/monitors", "GET, HEAD, POST, OPTIONS"),
        (f"/monitors/{id}", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
        (f"/monitors/{id}/check", "POST, OPTIONS"),
        ("/me", "GET, HEAD, OPTIONS"),
    ):
        options = api("OPTIONS", path)
        answer = (options.status_code, options.headers["Allow"], options.data)
        assert answer == (204, allowed, b""), path
        wrong = api("TRACE", path)
        assert (wrong.status_code, wrong.headers["Allow"]) == (405, allowed), path
        if "GET" in allowed:
            head, get = api("HEAD", path), api("GET", path)
            assert (head.status_code, head.data) == (200, b""), path
            assert head.content_type == get.content_type == "application/json", path


def test_section_5_of_the_interface_every_path_and_method_needs_a_key(app, stranger):
    make_person(app)
    for path in (path for path in PATHS if not PATHS[path].public):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"):
            answer = stranger(method, path.format(id=1, post=1, update=1, ping=1))
            assert answer.status_code == 401, (method, path)


BAD_KEYS = ["", "Bearer", "Bearer ", "Basic abc", "Bearer x", "Bearer wk_abcdefgh_x", "Bearer é",
            "Bearer " + "k" * 10_000, "Token {key}", "Bearer {key}x", "{key}"]  # fmt: skip


def test_section_1_a_bad_key_is_401(app, stranger):
    key = make_key(app)
    for header in BAD_KEYS:
        wrong = {"Authorization": header.format(key=key)}
        assert stranger("GET", "/me", headers=wrong).status_code == 401, header
    assert stranger("GET", "/me", headers={"Authorization": f"bearer {key}"}).status_code == 200


def test_section_6_the_api_takes_no_session_cookie_and_sets_none(app, api, stranger):
    with app.test_request_context():
        cookie = app.session_interface.get_signing_serializer(app).dumps(
            {"_user_id": "1", "_fresh": True, "_permanent": True}
        )
    stranger.client.set_cookie("wakeful", cookie)
    assert stranger("GET", "/monitors").status_code == 401
    api.client.set_cookie("wakeful", cookie)
    answer = api("GET", "/monitors")
    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers


def test_section_6_a_revoked_key_ends_at_once(app, api):
    assert api("GET", "/me").status_code == 200
    with app.app_context():
        app.extensions["wakeful.access"].keys.revoke(api.secret.split("_")[1])
    assert api("GET", "/me").status_code == 401


def test_section_11_me_returns_the_key(reader):
    reader("GET", "/me")
    mine = reader.get("/me")["data"]
    assert (mine["name"], mine["scope"], mine["expires_at"]) == ("reader", "read", None)
    assert mine["last_used_at"].endswith("Z")
    assert {"locations", "markers", "post_templates", "status_pages"} <= set(mine["features"])


def test_an_answer_takes_few_statements(app, api):
    """Each costs more than what it reads. One request in six also counts (two more statements)."""
    summed = {"rolled_until": now()}  # monitors that are summed until one time are read together
    for _ in range(26):
        make_monitor(app, state=summed)

    def asked(path):
        with app.app_context(), queries() as sent:
            assert api("GET", path).status_code == 200
        return len(sent)

    for path, most in (
        ("/me", 1),
        ("/monitors/1", 9),
        ("/monitors?per_page=25", 9),
        ("/monitors/1/statistics?range=90d", 7),
    ):
        asked(path)  # the first one notes the last use of the key, and reads what is kept
        assert min(asked(path), asked(path), asked(path)) <= most, path


@pytest.mark.both_databases
@pytest.mark.settings(rate_limit=3)
def test_section_7_each_key_has_a_rate_limit_for_each_minute(app, api, reader):
    """Counted for each key; 429 says when to retry."""
    answers = [api("GET", "/me") for _ in range(4)]
    # A minute may end meanwhile: then the count restarts, and the next four are in one minute.
    if answers[-1].status_code == 200:
        answers = [api("GET", "/me") for _ in range(4)]
    refused = answers[-1]
    assert refused.status_code == refused.json["status"] == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["X-RateLimit-Limit"] == "3"
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert refused.headers["X-RateLimit-Reset"] == refused.headers["Retry-After"]
    assert reader("GET", "/me").headers["X-RateLimit-Remaining"] == "2"


@pytest.mark.settings(rate_limit=0)
def test_section_7_a_rate_limit_of_0_is_off(api):
    assert all(api("GET", "/me").status_code == 200 for _ in range(5))
    assert "X-RateLimit-Limit" not in api("GET", "/me").headers


def test_section_1_an_exception_is_500_with_a_request_id_and_no_traceback(
    app, api, monkeypatch, caplog
):
    def fail(*_args, **_more):
        raise ZeroDivisionError("a secret of the inside")

    monkeypatch.setattr(type(app.extensions["wakeful.store"].monitors), "list", fail)
    answer = api("GET", "/monitors")
    assert answer.status_code == answer.json["status"] == 500
    assert answer.json["request_id"] in caplog.text
    assert answer.headers["X-Request-Id"] == answer.json["request_id"]
    assert "secret" not in answer.text
    assert "Zero" not in answer.text


@pytest.mark.settings(store="remote", remotes=(("http://127.0.0.1:9", "key"),))
def test_over_a_remote_store_the_api_is_404_and_says_why(app):
    answer = app.test_client().get("/api/v1/monitors")
    assert answer.status_code == 404
    assert "another server" in answer.json["message"]


def test_section_1_bodies_may_be_forms_or_json_and_nothing_else(api):
    as_json = api.data("POST", "/monitors", json=MONITOR | {"interval": 60})
    assert as_json["interval"] == 60
    for content_type in ("application/json; charset=utf-8", FORM + "; charset=UTF-8"):
        body = json.dumps(MONITOR) if "json" in content_type else "name=a&url=http://a/&interval=60"
        assert api("POST", "/monitors", data=body, content_type=content_type).status_code == 201
    for content_type in (None, "", "text/plain", "multipart/form-data; boundary=x", "text/json"):
        answer = api("POST", "/monitors", data=b"name=a", content_type=content_type)
        assert answer.status_code == 415, content_type


def test_section_1_a_write_without_a_body_needs_no_type(api):
    path = f"/monitors/{api.monitor()['id']}"
    assert api("PATCH", path).status_code == 200
    assert api("DELETE", path, content_type="text/plain").status_code == 200


def test_section_7_a_body_of_exactly_1_mib_is_read_and_one_byte_more_is_413(api):
    path = f"/monitors/{api.monitor()['id']}"
    fits = b"comment=" + b"a" * (MAX_BODY_BYTES - 8)
    assert list(api.errors("PATCH", path, data=fits, content_type=FORM)) == ["comment"]
    assert api("PATCH", path, data=fits + b"a", content_type=FORM).status_code == 413


@pytest.mark.parametrize(
    ("media_type", "body_of"),
    [(FORM, lambda count: "&".join(["tags[]=a"] * count)),
     (JSON, lambda count: json.dumps({"tags": ["a"] * count}))],
)  # fmt: skip
def test_a_body_has_at_most_so_many_fields(media_type, body_of):
    assert len(Body(body_of(MAX_FIELDS).encode(), media_type).pairs()) == MAX_FIELDS
    with pytest.raises(Invalid) as refused:
        Body(body_of(MAX_FIELDS + 1).encode(), media_type).pairs()
    assert refused.value.errors == {"body": [too_many(MAX_FIELDS)]}


def test_unknown_input_is_refused_in_body_and_query(api):
    path = f"/monitors/{api.monitor()['id']}"
    assert list(api.errors("GET", path + "?a=1")) == ["a"]
    assert list(api.errors("PATCH", path + "?name=New", data={"name": "New"})) == ["name"]
    assert list(api.errors("DELETE", path, data={"force": "1"})) == ["force"]
    assert list(api.errors("GET", "/monitors?page=1&page=2")) == ["page"]
    assert list(api.errors("GET", "/monitors?search=%FF")) == ["query"]
    assert api("GET", path + "?a=").status_code == 200
    assert api.get(path)["data"]["name"] == "Shop"


def test_section_1_a_whole_number_in_json_may_have_a_fraction_of_zero(api):
    for number, taken in (
        ("60.0", 60), ("6e1", 60), ("60.5", None), ("6e99999", None),
        ("6e99999999999999999999", None), ("-0.0", None),
    ):  # fmt: skip
        body = f'{{"name": "Shop", "url": "https://shop.test", "interval": {number}}}'
        answer = api("POST", "/monitors", data=body, content_type="application/json")
        assert answer.status_code == (201 if taken else 422), number
        assert taken is None or answer.json["data"]["interval"] == taken
