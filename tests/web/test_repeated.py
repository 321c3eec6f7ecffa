"""The same form sent twice at once, as by a double click without a script."""

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Event

import pytest

from app.access import sent_forms
from app.access.sent_forms import SentForms
from app.errors import Unavailable
from app.records import PostQuery, ResultQuery
from app.stores import current_store
from app.stores.local.deliveries import LocalChannels
from app.stores.local.incidents import LocalIncidents
from app.stores.local.monitors import LocalMonitors
from app.stores.local.posts import LocalPosts
from app.stores.local.results import LocalChecks
from app.web.frame import repeated
from app.web.views import channel_tests
from tests.factories import PASSWORD, make_incident, make_monitor, make_person
from tests.lab.http import serve
from tests.lab.net import Listener
from tests.support.store import store_of
from tests.support.web_process import installation, web_process

MONITOR = ("/monitors/new", "Save", {"url": "https://example.com/"}, LocalMonitors, "create")
REPORT = ("/incidents/new", "Report an incident", {"monitor_id": "1"}, LocalIncidents, "create")
RESOLVE = ("/incidents/1", "Resolve", {}, LocalIncidents, "update")
WRITTEN = {"title": "Slow", "body": "Soon."}
POST = ("/status-pages/1/posts/new", "Publish", WRITTEN, LocalPosts, "create")
CHECK = ("/monitors/1", "Check now", {}, LocalChecks, "run")
TEST = ("/monitors/1", "Send test alert to Webhook ••••1:9/", {}, LocalChannels, "test")
FORMS = (MONITOR, REPORT, RESOLVE, POST, CHECK, TEST)
DOUBLE_CLICK_WINDOW = sent_forms.DOUBLE_CLICK_WINDOW


@pytest.fixture(autouse=True)
def same_for(monkeypatch):
    monkeypatch.setattr(sent_forms, "DOUBLE_CLICK_WINDOW", DOUBLE_CLICK_WINDOW)


@pytest.fixture
def set_clock(app, monkeypatch):
    """Set the clock by so many seconds."""
    access = app.extensions["wakeful.access"]
    clock = access.clock
    return lambda by: monkeypatch.setattr(access, "clock", lambda: clock() + timedelta(seconds=by))


@pytest.fixture
def scene(app):
    monitor = make_monitor(app, alerts=[["webhook", "http://127.0.0.1:9/"]])
    page = {"name": "Shop", "slug": "shop", "monitors": [monitor.id]}
    store_of(app).status_pages.create(page)
    return monitor


def sent_by(admin, form):
    path, button, typed, _owner, _act = form
    page_form, _ = admin.open(path).form_with(button)
    return page_form.action or path, dict(page_form.values) | typed


def same_browser(app, admin):
    other = app.test_client()
    other._cookies = dict(admin.client._cookies)
    return other


@pytest.fixture
def slow(monkeypatch):
    """Make an act of a store wait until it may go on; count the calls."""

    class Slow:
        def __init__(self):
            self.begun, self.go_on, self.waiting, self.calls = Event(), Event(), Event(), 0

        def patch(self, owner, act):
            real, look = getattr(owner, act), SentForms.get

            def wrapped(*args, **fields):
                self.calls += 1
                self.begun.set()
                assert self.go_on.wait(30)
                return real(*args, **fields)

            def looked(access, digest):
                self.waiting.set()
                return look(access, digest)

            monkeypatch.setattr(owner, act, wrapped)
            monkeypatch.setattr(SentForms, "get", looked)

    return Slow()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[1].partition(" to ")[0])
def test_a_form_sent_twice_at_once_is_carried_out_once(app, admin, scene, slow, form, monkeypatch):
    monkeypatch.setattr(channel_tests, "WAIT_SECONDS", 0)  # nobody sends the test alert
    if form is RESOLVE:
        make_incident(app, scene)
    path, sent = sent_by(admin, form)
    slow.patch(*form[3:])
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(admin.client.post, path, data=sent)
        assert slow.begun.wait(30)
        other = same_browser(app, admin)
        second = pool.submit(other.post, path, data=sent)
        assert slow.waiting.wait(30)
        slow.go_on.set()
        assert first.result(30).status_code == second.result(30).status_code == 302
    assert slow.calls == 1
    assert second.result().location == first.result().location
    shown = other.get(second.result().location).text
    assert repeated.SENT_TWICE in shown


def test_a_form_that_takes_long_is_not_waited_for_without_end(app, admin, scene, slow, monkeypatch):
    monkeypatch.setattr(repeated, "WAIT_SECONDS", 0)
    path, sent = sent_by(admin, MONITOR)
    slow.patch(*MONITOR[3:])
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(admin.client.post, path, data=sent)
        assert slow.begun.wait(30)
        other = same_browser(app, admin)
        ours = {"Referer": "http://localhost/monitors/new?name=a"}
        assert other.post(path, data=sent, headers=ours).location == ours["Referer"]
        assert "The first one is still being carried out." in other.get("/").text
        foreign = {"Referer": "http://elsewhere.example/"}
        assert other.post(path, data=sent, headers=foreign).location == "/"
        slow.go_on.set()
        assert first.result(30).status_code == 302
    assert slow.calls == 1


def test_a_form_that_was_refused_may_be_sent_again(admin, scene, monkeypatch):
    path, sent = sent_by(admin, MONITOR)
    faulty = sent | {"url": ""}
    assert [admin.client.post(path, data=faulty).status_code for _ in range(2)] == [422, 422]
    with monkeypatch.context() as patch:

        def busy(*_args, **_fields):
            raise Unavailable("The database is busy.")

        patch.setattr(LocalMonitors, "create", busy)
        assert admin.client.post(path, data=sent).status_code == 503
    assert admin.client.post(path, data=sent).status_code == 302


HOUR = 3600


@pytest.mark.parametrize(
    ("form", "steps"),
    [
        (CHECK, ((0, 1), (9, 1), (11, 2))),  # pressed again on purpose
        (POST, ((0, 1), (11, 1), (11 * HOUR, 1), (13 * HOUR, 2))),  # after the Back button
    ],
    ids=["a button", "what makes something"],
)
def test_the_same_form_counts_again_after_a_while(
    admin, scene, set_clock, monkeypatch, form, steps
):
    calls, owner, act = [], *form[3:]
    real = getattr(owner, act)
    monkeypatch.setattr(owner, act, lambda *a, **kw: calls.append(1) or real(*a, **kw))
    path, sent = sent_by(admin, form)
    if form is POST:  # what was changed after Back is another form
        other = sent | {"title": "Another"}
        assert admin.client.post(path, data=other).status_code == 302
        calls.clear()
    for step, expected in steps:
        set_clock(step)
        assert admin.client.post(path, data=sent).status_code == 302
        assert len(calls) == expected, f"after {step} s"


def test_a_form_that_waited_for_the_password_is_carried_out_once(app, admin, scene, set_clock):
    """Back leads from the secret to the page that asked, and further to the form itself."""
    set_clock(601)  # the password was typed longer ago than that
    page_form, _ = admin.open("/keys").form_with("Create key")
    sent = dict(page_form.values) | {"name": "CI"}
    asking, _ = admin.press("Create key", name="CI").form_with("Create an API key")
    typed = dict(asking.values) | {"your_password": PASSWORD}
    answers = [admin.client.post("/keys", data=form) for form in (typed, typed, sent)]
    assert [answer.status_code for answer in answers] == [201, 302, 302]
    with app.app_context():
        assert len(app.extensions["wakeful.access"].keys.all()) == 1


def test_a_form_of_a_killed_process_or_a_clock_that_was_ahead_keeps_none_away(app, set_clock):
    forms = app.extensions["wakeful.access"].sent_forms
    with app.app_context():
        for number, (step, begins) in enumerate(
            [(0, False), (119, False), (121, True), (-9, False), (-11, True)]
        ):
            set_clock(0)
            assert forms.begin(f"{number}" * 64)
            set_clock(step)
            assert (forms.begin(f"{number}" * 64) is not None) is begins, step


@pytest.mark.parametrize("location", ["/monitors/1", None])
def test_who_was_taken_for_killed_does_not_end_the_form_of_who_took_it_over(
    app, set_clock, location
):
    """Otherwise a third one is carried out, or sent to where the wrong one led."""
    access = app.extensions["wakeful.access"]
    with app.app_context():
        late = access.sent_forms.begin("a" * 64)
        set_clock(121)
        owner = access.sent_forms.begin("a" * 64)
        access.sent_forms.end(late, location)
        assert access.sent_forms.begin("a" * 64) is None, "it is still being carried out"
        assert access.sent_forms.get("a" * 64).location is None
        access.sent_forms.end(owner, "/monitors/2")
        assert access.sent_forms.get("a" * 64).location == "/monitors/2"


def test_housekeeping_deletes_what_is_over(app, set_clock):
    forms = app.extensions["wakeful.access"].sent_forms
    with app.app_context():
        for number, (step, kept) in enumerate(
            [(0, True), (12 * HOUR, True), (12 * HOUR + 121, False), (-9, True), (-11, False)]
        ):
            set_clock(0)
            forms.begin(f"{number}" * 64)
            set_clock(step)
            forms.forget_old()
            assert (forms.get(f"{number}" * 64) is not None) is kept, step


def test_the_second_form_is_carried_out_if_the_first_is_refused(
    app, admin, scene, slow, monkeypatch
):
    path, sent = sent_by(admin, POST)
    create, refused = LocalPosts.create, []

    def refuse_first(*args, **fields):
        if not refused:
            refused.append(1)
            raise Unavailable("The database is busy.")
        return create(*args, **fields)

    monkeypatch.setattr(LocalPosts, "create", refuse_first)
    slow.patch(LocalPosts, "create")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(admin.client.post, path, data=sent)
        assert slow.begun.wait(30)
        second = pool.submit(same_browser(app, admin).post, path, data=sent)
        assert slow.waiting.wait(30)
        slow.go_on.set()
        assert first.result(30).status_code == 503
        assert second.result(30).status_code == 302


def test_two_processes_carry_a_form_out_once(tmp_path, sqlite_template):
    own = installation(tmp_path, sqlite_template)
    with closing(Listener(serve)) as site, own.app() as app:
        person = make_person(app, "editor")
        make_monitor(app, url=f"http://127.0.0.1:{site.port}/status/200")
        page = store_of(app).status_pages.create({"name": "Shop"})
        with web_process(own) as first, web_process(own) as second, ThreadPoolExecutor(2) as pool:
            session = first.log_in(person.email, PASSWORD)

            def send_twice(page, path, **sent):
                form = session.get(first.base + page, timeout=60).text
                sent["csrf_token"] = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', form)[1]
                cookies = session.cookies.get_dict()
                both = [
                    pool.submit(web.post, path, sent, cookies=cookies) for web in (first, second)
                ]
                answers = [first.result(60) for first in both]
                assert [answer.status_code for answer in answers] == [302, 302]
                assert len({answer.headers["Location"] for answer in answers}) == 1

            path = f"/status-pages/{page.id}/posts/new"
            for number in range(2):
                sent = {"title": f"Slow {number}", "body": "Soon.", "state": "investigating"}
                send_twice(path, path, **sent)
            send_twice("/monitors/1", "/monitors/1/check")
        with app.app_context():
            posts = current_store().posts.list(PostQuery(page.id)).items
            results = current_store().results.list(ResultQuery(1)).items
        assert sorted(post.title for post in posts) == ["Slow 0", "Slow 1"]
        assert [result.verdict for result in results] == ["up"]
        assert site.connections == 1
