"""Nobody gets an account with a password that is tried first (decision 15)."""

from __future__ import annotations

import pytest
from zxcvbn.frequency_lists import FREQUENCY_LISTS

from app.access import Access, passwords
from app.access.people import LOGINS_PER_ACCOUNT
from app.errors import Invalid, Throttled
from app.records import MIN_PASSWORD
from tests.factories import PASSWORD, make_person

ADDRESS = "ada.lovelace@shop-berlin.example"
COMMON = "one of the most common passwords"


@pytest.fixture
def access(app) -> Access:
    return app.extensions["wakeful.access"]


def test_a_password_that_is_tried_first_is_refused(app, access):
    with app.app_context():
        person = access.people.create("other@shop.example", PASSWORD, "viewer")
        for password, fault in (
            ("1234567", "8 characters or more"),
            ("12345678", COMMON),
            ("PassWord", COMMON),
            ("wakeful1", '"wakeful"'),
            ("xxLovelace1815", '"lovelace"'),
            ("my berlin password", '"berlin"'),
            ("only at shop nine", '"shop"'),
        ):
            with pytest.raises(Invalid) as refused:
                access.people.create(ADDRESS, password, "viewer")
            assert fault in " ".join(refused.value.errors["password"])
        assert [person.id for person in access.people.all()] == [person.id]
        for password in ("1234567", "PassWord", "only at shop nine"):
            with pytest.raises(Invalid):
                access.people.change_password(person.id, password)
        assert access.people.login("other@shop.example", PASSWORD) is not None
        # Short parts of the address are no fault.
        assert access.people.create(ADDRESS, "adamant and 1815", "viewer")


def test_the_ten_thousand_most_common_are_refused_and_no_more():
    ranked = FREQUENCY_LISTS["passwords"]
    long = [
        (rank, password) for rank, password in enumerate(ranked, 1) if len(password) >= MIN_PASSWORD
    ]
    last = next(password for rank, password in reversed(long) if rank <= 10_000)
    next_one = next(password for rank, password in long if rank > 10_000)
    assert COMMON in passwords.fault_of(last, ADDRESS)
    assert passwords.fault_of(next_one, ADDRESS) is None


def test_the_current_password_cannot_be_guessed_in_a_browser_that_was_left_open(app, access):
    person = make_person(app)
    with app.app_context():
        for _attempt in range(LOGINS_PER_ACCOUNT):
            with pytest.raises(Invalid):
                access.people.change_password(person.id, "another password", current="a guess")
        with pytest.raises(Throttled):
            access.people.change_password(person.id, "another password", current=PASSWORD)
