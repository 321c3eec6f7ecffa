"""A number in an address that no record can have as its id is not found: it is no fault of ours."""

from __future__ import annotations

import re

import pytest
from flask import Flask

from tests.factories import make_person
from tests.web.visitor import Visitor, token

pytestmark = pytest.mark.settings(rate_limit=0)


@pytest.fixture
def admin(app: Flask) -> Visitor:
    return Visitor(app).let_in(make_person(app, "admin")).open("/")


def test_a_number_that_is_no_id_is_not_found_on_any_page(app: Flask, admin: Visitor) -> None:
    """Each tenth number has 5000 digits; the others are one too large."""
    proof = token(admin)
    app.testing = False  # an exception is answered as it is in life
    app.config["PROPAGATE_EXCEPTIONS"] = False
    rules = [rule for rule in app.url_map.iter_rules() if "<int:" in rule.rule]
    assert len(rules) > 50
    for index, rule in enumerate(rules):
        number = "9" * 5000 if index % 10 == 0 else 2**63
        path = re.sub("<[^>]+>", "x", re.sub("<int:[^>]+>", str(number), rule.rule))
        for method in rule.methods & {"GET", "POST"}:
            sent = {"data": proof, "headers": {"Origin": "http://localhost"}}
            answer = admin.client.open(path, method=method, **(sent if method == "POST" else {}))
            assert answer.status_code < 500, (method, rule.rule)
