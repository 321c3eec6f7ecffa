"""Two tabs of a browser ask for a passkey at the same moment."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from app.access.passkeys import Site
from app.db import db, writing
from app.db.tables import PasskeyChallengeRow, PasskeyRow
from tests.factories import make_person, now

pytestmark = pytest.mark.both_databases

SITE = Site("localhost", "http://localhost")
HOLDER = "the token of a login that waits for its second factor"
DELAY = 0.5  # s in which the second comes to the row of the first


def test_the_challenge_of_the_second_counts_and_neither_fails(app):
    person = make_person(app, "editor")
    access = app.extensions["wakeful.access"]

    def ask() -> str:
        with app.app_context():
            options = access.passkeys.request_options(person.id, SITE, HOLDER)
            return str(json.loads(options)["challenge"])

    with app.app_context(), ThreadPoolExecutor(1) as pool:
        with writing() as session:
            session.add(PasskeyRow(
                person_id=person.id, name="Key", host=SITE.host, credential="abcd", public_key="",
                sign_count=0, verifies=False, created_at=now(),
            ))  # fmt: skip
        with writing():
            access.passkeys.request_options(person.id, SITE, HOLDER)
            second = pool.submit(ask)
            wait([second], DELAY)
        challenge = second.result(60)
        assert db.session.query(PasskeyChallengeRow).one().challenge == challenge
