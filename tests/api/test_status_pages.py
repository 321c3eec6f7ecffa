"""/api/v1/status-pages, their posts and subscribers, over HTTP (decisions 1, 2 and 12)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import BASE
from tests.factories import make_subscriber

POST = {"title": "Slow", "state": "investigating", "body": "We look into it."}
UPDATE = {"state": "identified", "body": "A disk."}
RETURNED = (
    "id", "link", "password_set", "state", "subscribers", "created_at", "updated_at", "logo_link",
    "favicon_link",
)  # fmt: skip


@pytest.fixture
def page(api):
    return api.data("POST", "/status-pages", data={"name": "Shop"})


def test_a_page_is_stored_from_a_form_shown_updated_and_deleted(api):
    a, b, c = (api.monitor()["id"] for _ in range(3))
    sent = {
        "name": "Our Shop", "visibility": "password", "password": "open sesame",
        "monitors[10]": c, "monitors[9]": a, "monitors[2]": b,
        "names[0][key]": a, "names[0][value]": "Till",
        "groups[1][name]": "Back", "groups[1][monitors][0]": c, "groups[1][monitors][1]": a,
        "groups[0][name]": "Front", "show_urls": "1", "auto_post_after": "5",
        "zone": "Europe/Berlin",
    }  # fmt: skip
    answer = api("POST", "/status-pages", data=sent)
    assert answer.status_code == 201
    assert "sesame" not in answer.text
    page = answer.json["data"]
    path = f"/status-pages/{page['id']}"
    assert answer.headers["Location"] == f"{BASE}{path}"
    assert page.pop("created_at") == page.pop("updated_at")
    assert page == {
        "id": page["id"], "name": "Our Shop", "slug": "our-shop", "description": None,
        "visibility": "password", "domain": None, "monitors": [b, a, c],
        "names": [{"key": a, "value": "Till"}],
        "groups": [{"name": "Front", "monitors": []}, {"name": "Back", "monitors": [c, a]}],
        "show_urls": True, "show_response_times": False, "auto_post_after": 5,
        "zone": "Europe/Berlin", "theme": "system", "link": "http://wakeful.test/status/our-shop",
        "password_set": True, "state": "unknown", "subscribers": 0,
        "accent": None, "language": "en", "home_url": None, "footer": None,
        "logo_link": None, "favicon_link": None,
    }  # fmt: skip
    changed = {"monitors": [a, b], "theme": "dark", "groups": [{"name": "All", "monitors": [b]}]}
    updated = api.data("PATCH", path, json=changed)
    assert changed.items() <= updated.items()
    assert updated["names"] == page["names"]
    assert api.data("PUT", path, data={"names": ""})["names"] == []
    assert [record["id"] for record in api.get("/status-pages")["data"]] == [page["id"]]
    monitors = api.get("/monitors", status_page_id=page["id"])["data"]
    assert {monitor["id"] for monitor in monitors} == {a, b}
    gone = {"id": page["id"], "object": "status-page", "deleted": True, "status": 200}
    assert api("DELETE", path).json == gone
    assert api("GET", path).status_code == 404


def test_section_1_what_is_returned_is_refused_when_it_is_sent_back(api, page):
    path = f"/status-pages/{page['id']}"
    for name in RETURNED:
        assert list(api.errors("PATCH", path, json={name: page[name]})) == [name]
        sent = {"name": "x", name: page[name]}
        assert list(api.errors("POST", "/status-pages", json=sent)) == [name]


def test_a_page_sent_back_changes_nothing(api):
    ids = [api.monitor()["id"] for _ in range(2)]
    names, groups = [{"key": ids[0], "value": "A"}], [{"name": "G", "monitors": ids}]
    sent = {"name": "Shop", "monitors": ids, "names": names, "groups": groups}
    page = api.data("POST", "/status-pages", json=sent)
    same = {name: value for name, value in page.items() if name not in RETURNED}
    again = api.data("PATCH", f"/status-pages/{page['id']}", json=same)
    assert {name: again[name] for name in same} == same


def test_section_12_what_only_stored_data_shows_is_422(api, page):
    api.data("POST", "/status-pages", data={"name": "x", "slug": "x", "domain": "x.example"})
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"slug": "x"}, "slug"),
        ({"domain": "X.example"}, "domain"),
        ({"domain": "wakeful.test"}, "domain"),
        ({"monitors": [999]}, "monitors"),
        ({"visibility": "password"}, "password"),
    ]
    for sent, name in wrong:
        assert list(api.errors("PATCH", f"/status-pages/{page['id']}", json=sent)) == [name]
        assert list(api.errors("POST", "/status-pages", json={"name": "y"} | sent)) == [name]
    assert api.get("/status-pages")["meta"]["total"] == 2
    assert list(api.errors("GET", f"/status-pages/{page['id']}/draft")) == ["incident_id"]


def test_a_post_is_stored_updated_corrected_and_deleted(api, page):
    posts = f"/status-pages/{page['id']}/posts"
    answer = api("POST", posts, data=POST)
    post = answer.json["data"]
    path = f"{posts}/{post['id']}"
    assert (answer.status_code, answer.headers["Location"]) == (201, f"{BASE}{path}")
    assert POST.items() <= post.items()
    added = api("POST", f"{path}/updates", data=UPDATE)
    update = added.json["data"]
    address = f"{path}/updates/{update['id']}"
    assert (added.status_code, added.headers["Location"]) == (201, f"{BASE}{address}")
    assert set(update) == {"id", "state", "body", "created_at", "corrected_at"}
    assert UPDATE.items() <= update.items()
    assert update["corrected_at"] is None
    assert api.get(address)["data"] == update
    corrected = api.data("PATCH", address, json={"body": "Two disks."})
    assert (corrected["body"], corrected["state"]) == ("Two disks.", "identified")
    assert corrected["corrected_at"]
    shown = api.get(path)["data"]
    assert (shown["state"], shown["body"], shown["corrected_at"]) == (
        "identified", POST["body"], None,
    )  # fmt: skip
    assert shown["updates"][1] == corrected
    assert api.data("PUT", path, data={"title": "Slower"})["corrected_at"]
    id = api.monitor()["id"]
    api.data("PATCH", f"/status-pages/{page['id']}", json={"monitors": [id]})
    down = [{"key": id, "value": "outage"}]
    assert api.data("PATCH", path, json={"monitors": [id], "impact": down})["impact"] == down
    cleared = api.data("PATCH", path, data={"impact": ""})["impact"]
    assert cleared == [{"key": id, "value": "degraded"}]
    assert [record["id"] for record in api.get(posts, open="true")["data"]] == [post["id"]]
    gone = {"id": post["id"], "object": "post", "deleted": True, "status": 200}
    assert api("DELETE", path).json == gone
    assert api("GET", path).status_code == 404
    assert api.get(posts)["data"] == []


def test_section_1_an_unknown_page_post_or_update_is_404_before_422(api, page):
    posts = f"/status-pages/{page['id']}/posts"
    post = api.data("POST", posts, data=POST)["id"]
    other = api.data("POST", "/status-pages", data={"name": "Other"})["id"]
    wrong = {"nonsense": "x"}
    for path, methods in (
        ("/status-pages/999/posts", ("GET", "POST")),
        ("/status-pages/999/subscribers", ("GET", "DELETE")),
        ("/status-pages/999/draft", ("GET",)),
        (f"{posts}/999", ("GET", "PUT", "PATCH", "DELETE")),
        (f"/status-pages/{other}/posts/{post}", ("GET", "PUT", "PATCH", "DELETE")),
        (f"{posts}/{post}/updates/999", ("GET", "PUT", "PATCH")),
        (f"/status-pages/{other}/posts/{post}/updates", ("POST",)),
    ):
        for method in methods:
            assert api(method, path, data=wrong).status_code == 404, (method, path)
    for path in (f"{posts}/0{post}", f"{posts}/{post}/updates/", f"{posts}/new", f"{posts}/-1"):
        assert api("GET", path).json["message"] == "Nothing exists at this address.", path


def subscribe(app, page_id: int, count: int) -> None:
    """So many subscribers, of whom the last one has not confirmed."""
    for number in range(count):
        confirmed = {} if number < count - 1 else {"confirmed_at": None}
        make_subscriber(app, page_id, value=f"reader{number}@shop.example", **confirmed)


def test_section_12_subscribers_are_listed_counted_and_cleared(app, api, page):
    path = f"/status-pages/{page['id']}/subscribers"
    subscribe(app, page["id"], 3)
    listed = api.get(path)
    assert [record["target"] for record in listed["data"]] == [
        "reader1@shop.example", "reader0@shop.example",
    ]  # fmt: skip
    assert set(listed["data"][0]) == {"id", "channel", "target", "created_at", "confirmed_at"}
    assert listed["meta"]["total"] == 2
    assert api.get(f"/status-pages/{page['id']}")["data"]["subscribers"] == 2
    assert api("DELETE", path).json == {
        "id": page["id"], "object": "subscribers", "deleted": True, "count": 3, "status": 200,
    }  # fmt: skip
    assert api.get(path)["data"] == []
    assert api("POST", path, data={}).status_code == 405


def test_section_12_only_a_key_that_may_write_reads_subscribers(app, api, reader, page):
    path = f"/status-pages/{page['id']}/subscribers"
    subscribe(app, page["id"], 2)
    for method in ("GET", "HEAD", "DELETE"):
        assert reader(method, path).status_code == 403
    assert api.get(path)["meta"]["total"] == 1
    assert reader.get(f"/status-pages/{page['id']}")["data"]["subscribers"] == 1
    assert reader.get(f"/status-pages/{page['id']}/posts")["data"] == []
    for method, below in (("POST", ""), ("PATCH", "/1"), ("DELETE", "/1"), ("POST", "/1/updates")):
        assert reader(method, f"/status-pages/{page['id']}/posts{below}").status_code == 403
