"""The behaviour of every page with the form of a record: one test for each, over all of them."""

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
    return next(
        update for update in current_store().posts.get(page, post).updates if update.id == id
    )


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
            """The record is changed by somebody else, or in another tab."""
            with app.app_context():
                self.resource.update(*self.ids, fields)

        def send(self, **typed: str) -> Any:
            return self.page.press(self.resource.button, **typed)

        def typed(self) -> dict[str, str]:
            return dict(self.page.form_with(self.resource.button)[0].values)

    return Opened()


@each_resource
def test_the_form_of_a_stored_record(app, opened, admin, monkeypatch):
    resource, text = opened.resource, opened.resource.text
    before = opened.stored(text)
    assert (opened.page.status, opened.typed()[text]) == (200, before or "")
    if resource.edit != "/profile":
        assert admin.client.get(resource.edit.format(*[99] * len(opened.ids))).status_code == 404

    # A fault is shown with all that was typed.
    typed = {text: "Typed with care"} | resource.bad
    opened.send(**typed)
    assert opened.page.status == 422
    assert "Please correct the following" in opened.page.text
    assert {name: opened.typed()[name] for name in typed} == typed
    assert opened.stored(text) == before
    assert admin.page.headers["Cache-Control"] == "no-store", "it may be a secret"

    # Only what was changed is written: what somebody else changed in another field stays.
    other, value = resource.other
    admin.open(opened.path)
    opened.change({other: value})
    opened.send(**{text: "Mine"})
    assert (opened.page.status, admin.path) == (200, resource.leads)
    assert (opened.stored(text), opened.stored(other)) == ("Mine", value)
    assert any(word in opened.page.text for word in ("saved.", "edited."))

    # A change of somebody else's that was replaced is named.
    admin.open(opened.path)
    opened.change({text: "Theirs"})
    opened.send(**{text: "Mine again"})
    assert opened.stored(text) == "Mine again"
    assert "This was changed after you opened the page." in opened.page.text

    # An edit that is sent twice is carried out once.
    admin.open(opened.path)
    with monkeypatch.context() as patch:
        patch.setattr(sent_forms, "DOUBLE_CLICK_WINDOW", timedelta(seconds=10))
        sent = opened.typed() | {text: "Sent twice"}
        first = admin.client.post(opened.path, data=sent)
        opened.change({text: "Theirs"})
        second = admin.client.post(opened.path, data=sent)
    assert first.status_code == second.status_code == 302
    assert first.location == second.location
    assert opened.stored(text) == "Theirs"

    # The typed values come back if the record is gone.
    if resource.delete:
        admin.open(opened.path)
        with app.app_context():
            resource.delete(*opened.ids)
        opened.send(**{text: "Typed with care"})
        assert opened.page.status == 404
        assert "Nothing was changed." in opened.page.text
        assert opened.typed()[text] == "Typed with care"


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
    """The form is sent twice by a double click, a reload of the answer, or the Back button."""
    make_monitor(app, name="Shop")
    _post(app)
    path, button, typed = NEW[name]
    admin.open(path).press(button, **{**typed, next(iter(typed)): ""})
    assert admin.status == 422, "with a fault it comes back"
    assert "Please correct the following" in admin.text
    form, _ = admin.open(path).form_with(button)
    sent, to = dict(form.values) | typed, form.action or path
    first, second, third = (admin.client.post(to, data=sent) for _ in range(3))
    assert first.status_code in (201, 302), first.text
    assert (second.status_code, third.status_code) == (302, 302)
    assert first.location == second.location == third.location
