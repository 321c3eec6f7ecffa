"""Forms that make a secret that is shown once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from app.access.keys import ApiKeys
from app.access.wall_links import WallLinks
from app.errors import Unavailable
from app.stores.local.locations import LocalLocations
from tests.support.store import store_of

KEYS = ("/keys", "Create key", {"name": "CI"}, ApiKeys, "create")
LINKS = ("/settings/wall-links", "Create link", {"name": "Hall"}, WallLinks, "create")
PLACE = ("/settings/locations/new", "Save", {"name": "oslo"}, LocalLocations, "create")
TOKEN = ("/settings/locations/2/token", "Make a new token", {}, LocalLocations, "new_token")


@pytest.mark.parametrize("form", [KEYS, LINKS, PLACE, TOKEN])
def test_a_form_counts_as_sent_when_its_work_was_done(app, admin, monkeypatch, form):
    """The database is busy: the form does not count as sent, nor its secret as shown."""
    path, button, typed, owner, act = form
    if form is TOKEN:
        store_of(app).locations.create({"name": "oslo", "carrier": "agent"})
    page_form, _ = admin.open(path).form_with(button)
    sent = dict(page_form.values) | typed

    def busy(*_args, **_fields):
        raise Unavailable("The database is busy.")

    with monkeypatch.context() as patch:
        patch.setattr(owner, act, busy)
        assert admin.client.post(path, data=sent).status_code == 503
    assert admin.client.post(path, data=sent).status_code == 201
    assert admin.client.post(path, data=sent).status_code == 302, "it was done, so nothing is made"


def test_a_second_click_before_the_answer_makes_nothing(app, admin, monkeypatch):
    path, button, typed, owner, act = KEYS
    page_form, _ = admin.open(path).form_with(button)
    sent = dict(page_form.values) | typed
    begun, go_on, create = Event(), Event(), owner.create

    def slow(*args, **fields):
        begun.set()
        assert go_on.wait(30)
        return create(*args, **fields)

    monkeypatch.setattr(owner, act, slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(admin.client.post, path, data=sent)
        assert begun.wait(30)
        other = app.test_client()
        other._cookies = dict(admin.client._cookies)
        second = pool.submit(other.post, path, data=sent)
        go_on.set()
        assert first.result(30).status_code == 201
        assert second.result(30).status_code == 302
