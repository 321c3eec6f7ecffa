"""A dashboard over a server that stops answering: the page says so, and what was typed is kept."""

import json
import re
import socket
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from werkzeug.wrappers import Response

from app.access.tokens import acknowledgement_token
from app.db import journal, writing
from app.db.tables import SignOfLifeRow
from app.engine import recorder
from app.records import Group
from app.stores import Extent, current_store
from app.web.frame.servers import slug
from tests.factories import make_incident, make_key, make_monitor, make_outcome, now
from tests.support.bare_server import KEY, BareServer
from tests.support.store import store_of
from tests.web.visitor import Visitor


class Moody:
    """A server in front of ``app`` that answers 500 to what is in ``refused`` (methods, or a method
    with a path), with ``answer``
    (status and body) to every write, with the status ``reads`` to every read, and while it is
    ``gone`` with 404 to everything.
    """

    def __init__(self, app: Flask) -> None:
        self.app, self.refused, self.asked = app, set[str](), list[str]()
        self.answer: tuple[int, Any] | None = None
        self.gone, self.reads = False, 0

    def __call__(self, environ: Any, start_response: Any) -> Any:
        method = environ["REQUEST_METHOD"]
        self.asked.append(f"{method} {environ['PATH_INFO']}")
        if self.answer and method != "GET":
            status, body = self.answer
            text = body if isinstance(body, str) else json.dumps(body)
            response = Response(text, status, {"Retry-After": "7"})
            return response(environ, start_response)
        if self.gone or (self.reads and method == "GET"):
            return Response("<h1>default backend</h1>", self.reads or 404)(environ, start_response)
        if not self.refused.isdisjoint((method, self.asked[-1])):
            start_response("500 Internal Server Error", [("Content-Length", "0")])
            return []
        return self.app(environ, start_response)


@pytest.fixture
def server(app: Flask) -> Moody:
    return Moody(app)


@pytest.fixture
def editor(app, server, over) -> Visitor:
    return over((server, make_key(app)))


def store_behind(editor: Visitor) -> Any:
    """The store of the only server."""
    (store,) = editor.client.application.extensions["wakeful.store"].stores
    return store


def typed_in(visitor: Visitor, button: str, names: Any) -> dict[str, str]:
    """The values in these fields of the form with this button."""
    values = dict(visitor.form_with(button)[0].values)
    return {name: values[name] for name in names}


def test_what_was_typed_stays_in_its_form_when_the_server_cannot_store_it_or_died(
    app, server, editor
):
    """Then not even the record can be read that the form is about."""
    hook = "http://127.0.0.1:9/long-enough-to-be-masked"
    monitor = make_monitor(app, name="Shop", alerts=[("webhook", hook)])
    incident = make_incident(app, monitor)
    editor.open("/maintenance/new")
    editor.press("Save", name="Works", scope="chosen", monitors=str(monitor.id))
    window = editor.path
    page, posts = _status_page_with_posts(app, monitor.id)
    edit = f"/monitors/{monitor.id}/edit"
    affected = {"monitors": str(monitor.id), f"impact[{monitor.id}][value]": "outage"}
    forms: list[tuple[str, str, dict[str, str]]] = [
        ("/monitors/new", "Save", {"url": "http://a.test/", "name": "New", "timeout": "9"}),
        (edit, "Save", {"name": "Other", "request_auth_username": "ada",
                        "request_auth_password": "typed-just-now"}),
        (edit, "Check now", {"name": "Third"}),
        (f"/monitors/{monitor.id}/clone", "Save", {"name": "Twin", "timeout": "8",
                                                     "request_auth_password": "typed-too"}),
        ("/maintenance/new", "Save", {"name": "More", "scope": "chosen",
                                      "monitors": str(monitor.id)}),
        (f"{window}/edit", "Save", {"name": "Less"}),
        ("/status-pages/new", "Save", {"name": "More", "slug": "more"}),
        (f"{page}/edit", "Save", {"name": "Less", f"own[{monitor.id}]": "The shop"}),
        (f"{page}/posts/new", "Publish", {"title": "Slow", "body": "We look into it.", **affected}),
        (f"{page}/posts/new?kind=maintenance", "Publish", {"title": "A move", "body": "Soon.",
                                                           **affected}),
        *((f"{post}/edit", "Save", {"title": "Slower"}) for post in posts),
        (posts[0], "Publish update", {"body": "It was the disk."}),
        (f"{posts[0]}/updates/1", "Save", {"body": "We looked into it."}),
        ("/incidents/new", "Report an incident", {"monitor_id": str(monitor.id), "cause": "Smoke"}),
        (f"/incidents/{incident.id}", "Add comment", {"text": "On it."}),
        (f"/incidents/{incident.id}/edit", "Save", {"cause": "It burns"}),
    ]  # fmt: skip
    store = store_behind(editor)
    for path, button, typed in forms:
        editor.open(path)
        shown = dict(editor.form_with(button)[0].values)
        for refused in REFUSED if path == edit and button == "Save" else REFUSED[1:]:
            server.refused, server.asked = refused, []
            store.me._extent = None  # as in a process that has never asked
            editor.press(button, **typed).shows("failed with an internal error.", status=503)
            values = dict(editor.form_with(button)[0].values)
            assert {name: values[name] for name in typed} == typed, path
            changed = {name for name in shown if values.get(name) != shown[name]}
            assert changed <= {*typed, "csrf_token", "once"}, path
        server.refused = set()
        if button == "Save" and path.startswith("/monitors"):
            assert editor.press(button).status == 200, path
    names = sorted(ref.name for ref in store_of(app).monitors.refs())
    kept = store_of(app).monitors.get(monitor.id)
    assert names == ["New", "Other", "Twin"]
    assert kept.request_auth_password_set
    assert [pair.value for pair in kept.alerts] == [hook], "a mask was stored in its place"


def _status_page_with_posts(app: Flask, monitor: int) -> tuple[str, list[str]]:
    """The address of a page, and of two of its posts: about an incident, and about maintenance."""
    text = {"title": "Slow", "body": "We look into it.", "monitors": (monitor,)}
    times = {"starts_at": now(), "ends_at": now() + timedelta(hours=1)}
    store = store_of(app)
    page = store.status_pages.create(
        {"name": "Our shop", "monitors": (monitor,), "groups": (Group("All", (monitor,)),)}
    )
    posts = [
        store.posts.create(page.id, text | {"state": "investigating"}),
        store.posts.create(page.id, text | times | {"state": "scheduled"}),
    ]
    address = f"/status-pages/{page.id}"
    return address, [f"{address}/posts/{post.id}" for post in posts]


def test_a_key_that_may_not_write_costs_nothing_that_was_typed(app, over):
    monitor = make_monitor(app, name="Shop")
    incident = make_incident(app, monitor)
    editor = over((app, make_key(app, scope="read")))
    for path, button, typed in (
        ("/monitors/new", "Save", {"url": "http://a.test/", "name": "New"}),
        (f"/monitors/{monitor.id}/edit", "Save", {"name": "Other"}),
        (f"/incidents/{incident.id}", "Add comment", {"text": "On it."}),
        ("/maintenance/new", "Save", {"name": "Works"}),
        ("/status-pages/new", "Save", {"name": "Our shop"}),
    ):
        editor.open(path).press(button, **typed)
        assert editor.status == 403, path
        assert "Nothing was changed." in editor.text, path
        assert typed_in(editor, button, typed) == typed, path


REFUSED = [{"POST", "PATCH"}, {"GET", "POST", "PATCH"}]
REFUSALS: list[tuple[int, Any, str]] = [
    (422, {"message": "Your plan allows 10 monitors."}, "Your plan allows 10 monitors."),
    (422, {"errors": {"plan": ["It is full."]}}, "plan: It is full."),
    (422, {"errors": {"name": ["It is taken."]}}, "Name: It is taken."),
    (400, {"error": "It is closed."}, "It is closed."),
    (400, {"error": 7}, "The server did not accept the data."),
    (413, "<h1>Too large</h1>", "The server did not accept the data."),
    (401, {}, "does not accept this dashboard's API key"),
    (403, {"message": "Read only."}, "Read only. Nothing was changed."),
    (404, {}, "the id 1. Nothing was changed."),
    (409, {"message": "Somebody is at it."}, "Somebody is at it."),
    (429, {}, "too many requests from this dashboard. Wait a moment and try again. "
     "Your change did not arrive. Send it again when the server answers. "
     "It asked for a pause of 7 s."),
    (500, {}, "Your change may have been saved"),
]  # fmt: skip


def test_every_refusal_stands_above_the_form_that_was_typed(app, server, editor):
    monitor = make_monitor(app, name="Shop")
    incident = make_incident(app, monitor)
    for status, body, sentence in REFUSALS:
        if "name" in str(body):
            path, typed = f"/monitors/{monitor.id}/edit", {"name": "Other"}
        else:
            path, typed = f"/incidents/{incident.id}/edit", {"cause": "It burns"}
        server.answer = None
        editor.open(path)
        server.answer = (status, body)
        editor.press("Save", **typed)
        assert editor.status in (status, 403, 422, 503), path
        assert sentence in editor.text, path
        assert typed_in(editor, "Save", typed) == typed, path


def test_a_page_says_that_nothing_arrived_only_where_nothing_can_have(app, server, editor):
    monitor = make_monitor(app, name="Shop")
    editor.open(f"/monitors/{monitor.id}/edit")
    server.refused = {"PATCH"}
    editor.press("Save", name="Other").shows("Your change may have been saved")
    server.refused = set()
    with socket.socket() as nobody:  # bound, but nobody listens
        nobody.bind(("127.0.0.1", 0))
        store_behind(editor).connection.base = f"http://127.0.0.1:{nobody.getsockname()[1]}/api/v1"
        editor.press("Save")
    assert "cannot be reached. Your change did not arrive." in editor.text
    assert "may have arrived" not in editor.text


def test_other_posts_can_be_sent_again_and_are_never_repeated_by_us(app, server, editor):
    monitor = make_monitor(app, name="Shop")
    for page, button, typed, again, sentence in (
        ("/monitors", "Apply", {"ids": True, "action": "tag", "tag": "slow"}, "Continue",
         "1 monitor tagged."),
        (f"/monitors/{monitor.id}", "Pause", {}, "Send it again", "Shop paused"),
    ):  # fmt: skip
        editor.open(page)
        server.asked, server.refused = [], {"PATCH"}
        editor.press(button, **typed).shows("Your change may have been saved", status=503)
        assert [line for line in server.asked if line.startswith("PATCH")] == [
            f"PATCH /api/v1/monitors/{monitor.id}"
        ]
        server.refused = set()
        editor.press(again).shows(sentence)


def addresses(editor: Visitor) -> dict[str, str]:
    """The first part of the addresses of each server's pages, by its name, in the order of the
    servers.
    """
    names = editor.client.application.extensions["wakeful.store"].names
    return {name: f"/on/{slug(name)}" for name in names}


def test_a_form_is_carried_out_on_the_server_that_it_was_opened_on(app, over):
    """One cookie serves all tabs: with the choice in it alone, the other server's was deleted."""
    monitor, first, second = make_monitor(app, name="Shop"), Moody(app), Moody(app)
    editor = over((first, make_key(app)), (second, make_key(app)))
    shop_base, other_base = addresses(editor).values()
    assert editor.open(f"/monitors/{monitor.id}").path == f"{shop_base}/monitors/{monitor.id}"
    for page, button, typed in (
        (f"/monitors/{monitor.id}/edit", "Save", {"name": "Other"}),
        (f"/monitors/{monitor.id}", "Pause", {}),
        ("/monitors", "Apply", {"ids": True, "action": "resume"}),
        ("/maintenance/new", "Save", {"name": "Works"}),
        (f"/monitors/{monitor.id}/delete", "Delete this monitor", {}),
    ):
        tab = editor.open(f"{shop_base}{page}")
        elsewhere = another_tab(editor)
        switch = {"server": list(addresses(editor))[1]}
        elsewhere.open("/markers").press("Switch", _follow=False, **switch)
        assert elsewhere.page.location == f"{other_base}/", page
        first.asked, second.asked = [], []
        tab.press(button, **typed)
        assert tab.status == 200, page
        assert tab.path.startswith(f"{shop_base}/"), page
        assert any(not asked.startswith("GET") for asked in first.asked), page
        assert second.asked == [], page
    assert editor.open("/").path == f"{other_base}/", "the choice is kept for the next visit"


def another_tab(visitor: Visitor) -> Visitor:
    """Another tab of the same browser."""
    tab = Visitor(visitor.client.application)
    tab.client = visitor.client
    return tab


def test_a_page_that_does_not_say_its_server_changes_nothing(app, over):
    """From before there were two, or of a server that is not in the settings any more."""
    monitor = make_monitor(app, name="Shop")
    editor = over((app, make_key(app)), (app, make_key(app)))
    first, _two = addresses(editor).values()
    form, _ = editor.open(f"/monitors/{monitor.id}/delete").form_with("Delete this monitor")
    for path, status in ((f"/monitors/{monitor.id}/delete", 409), ("/on/gone/monitors", 404)):
        answer = editor.client.post(path, data=dict(form.values) | {"cause": "typed before"})
        assert answer.status_code == status, path
        assert "typed before" in answer.text, f"{path}: it is kept"
        assert "server" in answer.text, path
    stranger = Visitor(editor.client.application).open("/on/gone/monitors")
    assert stranger.status == 404
    assert "127.0.0.1" not in stranger.text, "who is not logged in learns of no server"
    assert editor.client.get(f"{first}/api/v1/monitors").status_code == 404
    assert store_of(app).monitors.get(monitor.id).name == "Shop"


@pytest.mark.parametrize(
    "names", [("h:1/a", "h:1/b"), ("h/a_b", "h/a/b"), ("h:1", "h_1"), ("h/a~b", "h/a/b")]
)
def test_no_two_servers_have_the_same_address(names: tuple[str, str]) -> None:
    assert slug(names[0]) != slug(names[1])


def test_a_moment_in_which_nothing_is_found_makes_no_bare_server_of_a_wakeful(app, server, editor):
    """A proxy answers 404 to everything while its server restarts."""
    monitor = make_monitor(app, name="Shop", tags="\nprod\n")
    editor.open(f"/monitors/{monitor.id}/edit")
    store = store_behind(editor)
    for extent in (store.me._extent, None):
        store.me._extent, store.me._asked_at = extent, -1e9  # it is time to ask again
        server.gone = True
        assert another_tab(editor).open("/monitors").status == 503, extent
        server.gone = False
        assert editor.press("Save", tags="prod, new", timeout="7").status == 200, extent
        kept = store_of(app).monitors.get(monitor.id)
        assert (kept.tags, kept.timeout) == (("prod", "new"), 7), extent
        assert "Reports" in editor.text, extent
        editor.open(f"/monitors/{monitor.id}/edit")


def test_what_a_server_has_no_place_for_is_never_called_saved(app, server, editor):
    monitor = make_monitor(app, name="Shop")
    editor.open(f"/monitors/{monitor.id}/edit")
    store = store_behind(editor)
    store.me._extent = Extent.BARE  # a bare one stands there now
    editor.press("Save", name="Other", timeout="7")
    editor.shows("This server cannot store it.", status=422)
    assert dict(editor.form_with("Save")[0].values)["timeout"] == "7"
    editor.press("Save", timeout="30").shows("Other saved.")


def test_what_looks_after_the_service_is_not_troubled_by_a_remote(app, server, editor):
    client = editor.client
    dashboard = client.application
    with dashboard.app_context(), writing() as session:  # from when it was a local installation
        session.add(SignOfLifeRow(name="checker:here:1", at=now() - timedelta(days=1)))
    assert client.get("/readyz").json["status"] == "ready"
    server.answer = None
    for status in (401, 403, 404, 409, 422, 500):
        server.reads = status
        answer = client.get("/metrics")
        assert (answer.status_code, "wakeful_ready 1.0" in answer.text) == (200, True), status


def test_a_link_of_this_installation_acts_on_no_other_servers_incident(app, server, editor):
    incident = make_incident(app, make_monitor(app))
    with editor.client.application.app_context():
        token = acknowledgement_token(incident.id, "Email")
    editor.open(f"/acknowledge/{token}")
    editor.shows("Open the link on the server that sent the message.", status=404)
    assert store_of(app).incidents.get(incident.id).acknowledged_at is None


def test_no_page_says_that_something_is_missing_while_nobody_knows(server, editor):
    server.refused = {"GET"}
    store = store_behind(editor)
    store.me._extent = None  # as after a start: it was not asked yet
    for path in ("/", "/monitors", "/monitors/new", "/maintenance", "/status-pages",
                 "/status-pages/new", "/status-pages/templates", "/deliveries",
                 "/reports"):  # fmt: skip
        assert editor.open(path).status == 503, path
        assert "failed with an internal error" in editor.text, path
    for path in ("/profile", "/jump"):
        assert editor.open(path).status == 200, path


def test_places_are_shown_by_their_names_while_the_server_does_not_list_them(app, server, editor):
    with app.app_context():
        ids = [journal.place_id(name) for name in ("berlin", "oslo")]
        monitor = make_monitor(app, places=ids, confirmations=0).id
        for name in ("berlin", "oslo"):
            outcome = make_outcome("down", now(), location=name)
            recorder.record([(monitor, outcome)], now(), location=name)
        incident = current_store().monitors.get(monitor).open_incident_id
    server.refused = {"GET /api/v1/locations"}
    for path in (f"/monitors/{monitor}", f"/monitors/{monitor}/checks", f"/incidents/{incident}"):
        assert editor.open(path).status == 200, path
        assert "oslo" in editor.text, path
    assert server.refused <= set(server.asked)
    assert editor.open(f"/monitors/{monitor}/checks?location=oslo").status == 200
    assert re.findall(r'data-label="Place">(\w+)<', editor.page.text) == ["oslo"]


def test_what_a_bare_server_lacks_is_left_out_not_broken(over):
    editor = over((BareServer(), KEY))
    days = editor.open("/monitors/new").form_with("Save")[0].choices["ssl_alert_days"]
    assert "auto" not in days
    assert "not set up" not in editor.text
    editor.press("Save", url="http://shop.example.com/", name="Shop")
    monitor = editor.path
    assert editor.status == 200
    editor.hides("Uptime, 24 hours", "Not checked yet", "Recent checks", "Check now")
    editor.open(f"/incidents/new?monitor_id={monitor.rpartition('/')[2]}")
    editor.press("Report an incident", cause="It burns")
    editor.hides("Status pages", "Post on a status page")
    places = editor.open("/jump").page.text
    assert 'href="/incidents"' in places
    for path in ("maintenance", "status-pages", "status-pages/templates", "deliveries"):
        assert f'href="/{path}"' not in places, path
    editor.open("/incidents").open(f"/incidents/{1 + int(monitor.rpartition('/')[2])}")
    editor.press("Acknowledge").press("Add comment", text="On it.", replace=True).press("Resolve")
    assert "On it." in editor.text
    assert "Was it a real incident?" not in editor.text
    for query in ("status=resolved", "search=x&search_by=cause", f"monitor_id={monitor[10:]}"):
        assert editor.open(f"/incidents?{query}").status == 200, query
    editor.open(f"{monitor}/edit").press("Save")  # and nothing was changed
    assert "Shop saved." in editor.text
    assert "tag" not in editor.open("/monitors").form_with("Apply")[0].choices["action"]
    assert "There may be more" not in editor.text
    for number in range(10):
        editor.open("/monitors/new").press("Save", url=f"http://{number}.test/", name="More")
    assert "1–10 of 10 monitors. There may be more" in editor.open("/monitors?per_page=10").text
    assert "1–11 of 11 monitors" in editor.open("/monitors?per_page=25").text
    editor.open(f"{monitor}/delete").press("Delete this monitor").shows("Shop deleted")


def test_an_import_drops_what_a_bare_server_lacks_and_says_so(over):
    editor = over((BareServer(), KEY))
    lines = "name,url,tags,contact,timeout\nShop,shop.example.com,prod,Ops,20\nBlog,blog.example,,,"
    editor.open("/monitors/import").press("Preview", urls=lines)
    for lost in ("Tags", "Contacts", "Time limit in seconds"):
        assert f"{lost} dropped: this server does not support it." in editor.text
    editor.press("Create 2 monitors").shows("2 monitors created")
    assert "Shop" in editor.open("/monitors").text


def test_a_page_does_without_what_stands_beside_its_subject(app, server, editor):
    monitor = make_monitor(app, name="Shop")
    for path in ("/", f"/monitors/{monitor.id}"):
        server.refused = set()
        server.asked.clear()
        editor.open(path).shows("Shop")
        beside = [
            asked for asked in server.asked if re.search("deliver|channel|maintenance", asked)
        ]
        assert beside, path
        server.refused = {*beside}
        editor.open(path).shows("Shop")
        assert {*beside} <= {*server.asked}
