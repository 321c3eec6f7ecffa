"""What every page with the form of a record does: one test for each behaviour, over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from app.access import sent_forms
from app.records import Pair
from app.rules import recurrence
from app.stores import current_access, current_store
from tests.factories import make_incident, make_key, make_monitor, make_person, now
from tests.support.store import access_of, store_of

PASSWORD = "a long enough password"
Ids = tuple[Any, ...]


@dataclass
class Resource:
    """``make`` stores a record and returns the ids in its address. ``text``: a field that is
    edited; ``other``: one that somebody else changes meanwhile, and its value.
    """

    edit: str
    make: Callable[[Any], Ids]
    get: Callable[..., Any]
    update: Callable[..., Any]
    delete: Callable[..., Any] | None
    other: tuple[str, Any]
    leads: str
    text: str = "name"
    bad: dict[str, str] = field(default_factory=lambda: {"name": ""})
    button: str = "Save"


def of_store(edit: str, fields: dict[str, Any], leads: str, **more: Any) -> Resource:
    """A resource whose collection is in the store, by its first word in ``edit``."""
    name = more.pop("collection")

    def records() -> Any:
        return getattr(current_store(), name)

    def make(app: Any) -> Ids:
        with app.app_context():
            return (records().create(fields).id,)

    return Resource(
        edit,
        make,
        lambda id: records().get(id),
        lambda id, changed: records().update(id, changed),
        lambda id: records().delete(id),
        leads=leads,
        **more,
    )


def _post(app: Any) -> Ids:
    page = store_of(app).status_pages.create({"name": "Shop"})
    post = {"title": "Slow", "body": "We look into it.", "state": "investigating"}
    return page.id, store_of(app).posts.create(page.id, post).id


def _update_of_post(app: Any) -> Ids:
    page, post = _post(app)
    return page, post, store_of(app).posts.get(page, post).updates[0].id


def _update(page: int, post: int, id: int) -> Any:
    return next(one for one in current_store().posts.get(page, post).updates if one.id == id)


def _key(app: Any) -> Ids:
    make_key(app, name="CI")
    return (access_of(app).keys.all()[0].prefix,)


def _change_key(prefix: str, changed: dict[str, Any]) -> None:
    key = current_access().keys.get(prefix)
    fields = {"name": key.name, "expires_at": key.expires_at, "networks": ""} | changed
    current_access().keys.change(prefix, **fields)


HOUR = timedelta(hours=1)
WINDOW = {"name": "Works", "start_at": now() + HOUR, "end_at": now() + 2 * HOUR,
          "repeat": recurrence.ONCE, "zone": "UTC"}  # fmt: skip
TEMPLATE = {"name": "Slow", "title": "Slow", "state": "investigating", "body": "We look into it."}
RESOURCES = {
    "monitor": of_store(
        "/monitors/{}/edit", {"name": "Shop", "url": "https://shop.test/", "interval": 60},
        "/monitors/1", collection="monitors", other=("interval", 300),
    ),
    "contact": of_store(
        "/contacts/{}/edit", {"name": "Ops", "channels": [Pair("email", "ops@a.test")]},
        "/contacts/1", collection="contacts", other=("default", True),
    ),
    "window": of_store(
        "/maintenance/{}/edit", WINDOW, "/maintenance/1", collection="windows",
        other=("end_at", WINDOW["end_at"] + HOUR),
    ),
    "post template": of_store(
        "/status-pages/templates/{}/edit", TEMPLATE, "/status-pages/templates",
        collection="post_templates", other=("title", "Slower"),
    ),
    "place": of_store(
        "/settings/locations/{}/edit", {"name": "oslo", "label": "Oslo"}, "/settings/locations",
        collection="locations", text="label", bad={"label": "x" * 300}, other=("carrier", "queue"),
    ),
    "status page": of_store(
        "/status-pages/{}/edit", {"name": "Shop"}, "/status-pages/1", collection="status_pages",
        other=("description", "Of our shop"),
    ),
    "post": Resource(
        "/status-pages/{}/posts/{}/edit", _post,
        lambda page, id: current_store().posts.get(page, id),
        lambda page, id, changed: current_store().posts.update(page, id, changed),
        lambda page, id: current_store().posts.delete(page, id),
        ("monitors", ()), "/status-pages/1/posts/1", text="title", bad={"title": ""},
    ),
    "update of a post": Resource(
        "/status-pages/{}/posts/{}/updates/{}", _update_of_post, _update,
        lambda page, post, id, changed: (
            current_store().posts.correct_update(page, post, id, changed)
        ),
        lambda page, post, id: current_store().posts.delete(page, post),
        ("state", "identified"), "/status-pages/1/posts/1", text="body", bad={"body": ""},
    ),
    "incident": Resource(
        "/incidents/{}/edit", lambda app: (make_incident(app, make_monitor(app)).id,),
        lambda id: current_store().incidents.get(id),
        lambda id, changed: current_store().incidents.update(id, changed, by="Eve"),
        lambda id: current_store().incidents.delete(id),
        ("comment", "Eve is on it."), "/incidents/1", text="cause", bad={"ended_at": "never"},
    ),
    "person": Resource(
        "/people/{}", lambda app: (make_person(app, "viewer").id,),
        lambda id: current_access().people.get(id),
        lambda id, changed: current_access().people.update(id, changed),
        lambda id: current_access().people.delete(id),
        ("role", "editor"), "/people", bad={"email": ""},
    ),
    "profile": Resource(
        "/profile", lambda app: (1,),
        lambda id: current_access().people.get(id),
        lambda id, changed: current_access().people.update(id, changed),
        None, ("theme", "dark"), "/profile", bad={"name": "x" * 300},
    ),
    "key": Resource(
        "/keys/{}", _key, lambda prefix: current_access().keys.get(prefix), _change_key, None,
        ("expires_at", now() + HOUR), "/keys", bad={"name": ""},
    ),
}  # fmt: skip
each_resource = pytest.mark.parametrize("name", RESOURCES)


@pytest.fixture
def opened(app, admin, name):
    """The form of a stored record, open in a browser."""

    class Opened:
        resource = RESOURCES[name]

        def __init__(self) -> None:
            self.ids = self.resource.make(app)
            self.path = self.resource.edit.format(*self.ids)
            self.page = admin.open(self.path)

        def stored(self, field: str) -> Any:
            with app.app_context():
                return getattr(self.resource.get(*self.ids), field)

        def change(self, fields: dict[str, Any]) -> None:
            """As somebody else, or in another tab."""
            with app.app_context():
                self.resource.update(*self.ids, fields)

        def send(self, **typed: str) -> Any:
            return self.page.press(self.resource.button, **typed)

        def typed(self) -> dict[str, str]:
            return dict(self.page.form_with(self.resource.button)[0].values)

    return Opened()


@each_resource
def test_the_form_shows_what_is_stored(opened, admin):
    shown, stored = opened.typed()[opened.resource.text], opened.stored(opened.resource.text)
    assert (opened.page.status, shown) == (200, stored or "")
    if opened.resource.edit != "/profile":
        assert admin.open(opened.resource.edit.format(*[99] * len(opened.ids))).status == 404


@each_resource
def test_what_was_typed_comes_back_where_the_record_is_gone(app, opened):
    if opened.resource.delete is None:
        pytest.skip("it is never deleted")
    with app.app_context():
        opened.resource.delete(*opened.ids)
    opened.send(**{opened.resource.text: "Typed with care"})
    assert opened.page.status == 404
    assert "Nothing was changed." in opened.page.text
    assert opened.typed()[opened.resource.text] == "Typed with care"


@each_resource
def test_only_what_was_changed_is_written(opened):
    """What somebody else changed meanwhile, in another field, stays."""
    other, value = opened.resource.other
    opened.change({other: value})
    opened.send(**{opened.resource.text: "Mine"})
    assert opened.page.status == 200
    assert opened.stored(opened.resource.text) == "Mine"
    assert opened.stored(other) == value


@each_resource
def test_a_fault_is_shown_with_all_that_was_typed(opened, admin):
    text = opened.resource.text
    before = opened.stored(text)
    typed = {text: "Typed with care"} | opened.resource.bad
    opened.send(**typed)
    assert opened.page.status == 422
    assert "Please correct the following" in opened.page.text
    assert {name: opened.typed()[name] for name in typed} == typed
    assert opened.stored(text) == before
    assert admin.page.headers["Cache-Control"] == "no-store", "it may be a secret"


@each_resource
def test_what_was_saved_is_told_and_shown(opened, admin):
    opened.send(**{opened.resource.text: "Mine"})
    assert (opened.page.status, admin.path) == (200, opened.resource.leads)
    assert opened.stored(opened.resource.text) == "Mine"
    assert any(word in opened.page.text for word in ("saved.", "edited."))


@each_resource
def test_a_change_of_somebody_elses_that_was_replaced_is_named(opened):
    text = opened.resource.text
    opened.change({text: "Theirs"})
    opened.send(**{text: "Mine"})
    assert opened.stored(text) == "Mine"
    assert "This was changed after you opened the page." in opened.page.text


@each_resource
def test_an_edit_that_is_sent_twice_is_carried_out_once(opened, admin, monkeypatch):
    monkeypatch.setattr(sent_forms, "SAME_FOR", timedelta(seconds=10))
    sent = opened.typed() | {opened.resource.text: "Mine"}
    first = admin.client.post(opened.path, data=sent)
    opened.change({opened.resource.text: "Theirs"})
    second = admin.client.post(opened.path, data=sent)
    assert first.status_code == second.status_code == 302
    assert first.location == second.location
    assert opened.stored(opened.resource.text) == "Theirs"


CONTACT = {"name": "Ops", "channels[0][key]": "email", "channels[0][value]": "ops@a.test"}
NEW = {
    "monitor": ("/monitors/new", "Save", {"url": "https://a.test/"}),
    "clone": ("/monitors/1/clone", "Save", {"url": "https://b.test/"}),
    "contact": ("/contacts/new", "Save", CONTACT),
    "window": ("/maintenance/new", "Save", {"name": "Works"}),
    "post template": ("/status-pages/templates/new", "Save", TEMPLATE),
    "place": ("/settings/locations/new", "Save", {"name": "oslo"}),
    "status page": ("/status-pages/new", "Save", {"name": "Shop"}),
    "post": ("/status-pages/1/posts/new", "Publish", {"title": "Slow", "body": "Soon."}),
    "update of a post": ("/status-pages/1/posts/1", "Publish update", {"body": "It was the disk."}),
    "incident": ("/incidents/new", "Report an incident", {"monitor_id": "1"}),
    "marker": ("/markers", "Add marker", {"name": "Release 7"}),
    "person": (
        "/people/new", "Add person", {"email": "a@b.test", "password": PASSWORD, "role": "viewer"}
    ),
    "invitation": ("/people/invite", "Create link", {"email": "a@b.test"}),
    "key": ("/keys", "Create key", {"name": "CI"}),
    "wall link": ("/settings/wall-links", "Create link", {"name": "Hall"}),
}  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_what_is_new_is_made_once_however_often_its_form_is_sent(app, admin, name):
    """By a double click, a reload of the answer, or the Back button."""
    make_monitor(app, name="Shop")
    _post(app)
    path, button, typed = NEW[name]
    form, _ = admin.open(path).form_with(button)
    sent, to = dict(form.values) | typed, form.action or path
    first, second, third = (admin.client.post(to, data=sent) for _ in range(3))
    assert first.status_code in (201, 302), first.text
    assert (second.status_code, third.status_code) == (302, 302)
    assert first.location == second.location == third.location


@pytest.mark.parametrize("name", NEW)
def test_a_new_form_with_a_fault_comes_back(app, admin, name):
    make_monitor(app, name="Shop")
    _post(app)
    path, button, typed = NEW[name]
    main = next(iter(typed))
    admin.open(path).press(button, **{**typed, main: ""})
    assert admin.status == 422
    assert "Please correct the following" in admin.text
