"""The pages' sentences on a check on request."""

import random
from contextlib import closing
from dataclasses import fields

import pytest

from app.codec import reader
from app.records import MAX_CAUSE, MAX_LOCATION_LABEL, CheckedNow, PlaceChecked, Result
from app.stores.local import LocalStore
from app.stores.local.results import LocalChecks
from app.web.shown import checked
from tests.factories import make_monitor, make_outcome
from tests.lab.http import serve
from tests.lab.net import Listener
from tests.support.agents import page
from tests.support.store import store_of

COOKIE = 4093  # bytes: the least that browsers keep of a cookie, with its name
ALPHABETS = {
    "latin": range(0x41, 0x5B),
    "greek": range(0x391, 0x3CA),
    "han": range(0x4E00, 0x9FFF),
    "emoji": range(0x1F300, 0x1F5FF),
}


def answered(result, places=()):
    values = {field.name: getattr(result, field.name) for field in fields(Result)}
    return CheckedNow(**values, places=list(places))


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_the_longest_message_fits_into_a_cookie(app, admin, monkeypatch, alphabet):
    """Browsers drop a longer one, and with it the session."""
    letters, chance = [chr(number) for number in ALPHABETS[alphabet]], random.Random(1)

    def text(length):
        return "".join(chance.choices(letters, k=length))

    def failed():
        return make_outcome("down", cause=text(MAX_CAUSE)).result

    places = [
        PlaceChecked(f"place-{number}", text(MAX_LOCATION_LABEL), failed()) for number in range(100)
    ]
    monkeypatch.setattr(LocalChecks, "run", lambda _checks, _id: answered(failed(), places))
    path = f"/monitors/{make_monitor(app, name=text(100)).id}"
    admin.open(path).press("Check now", _follow=False)
    kept = admin.client._cookies.values()
    longest = max(len(f"{number.key}={number.value}".encode()) for number in kept)
    assert 200 < longest <= COOKIE
    admin.open(path).shows(f"and {100 - checked.MAX_NAMED} more")


def test_an_answer_of_an_older_server_tells_no_places(app, settings):
    result = make_outcome("up", response_time=42, location="oslo").result
    old = {"checked_at": result.checked_at.isoformat(), "verdict": "up", "response_time": 42}
    read = reader(CheckedNow, "the result")(old | {"location": "oslo"})
    id = make_monitor(app).id
    with app.test_request_context():
        message = checked.message(read, LocalStore(settings).monitors.get(id))
    assert message == ("Checked now from oslo. Up in 42 ms", "success")


def test_the_form_names_the_places_that_have_not_checked(app, admin):
    for name, label in (("oslo", "Oslo office"), ("rome", None)):
        store_of(app).locations.create({"name": name, "label": label})
    with closing(Listener(serve)) as site:
        for chosen, sentence in (
            (["default"], None),
            (["default", "oslo"], "Checked from default. Oslo office has not checked it."),
            (["oslo", "rome"], "Checked from default. Oslo office, rome have not checked it."),
        ):
            admin.open("/monitors/new").press("Check now", url=page(site), locations=chosen)
            if sentence:
                admin.shows(sentence)
            else:
                admin.hides("checked it")
