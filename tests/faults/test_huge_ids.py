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


@pytest.mark.parametrize("number", [2**63, "9" * 5000], ids=["one too large", "5000 digits"])
def test_a_number_that_is_no_id_is_not_found_on_any_page(
    app: Flask, admin: Visitor, number
) -> None:
    proof = token(admin)
    app.testing = False  # an exception is answered as it is in life
    app.config["PROPAGATE_EXCEPTIONS"] = False
    asked = 0
    for rule in app.url_map.iter_rules():
        if "<int:" not in rule.rule:
            continue
        path = re.sub("<[^>]+>", "x", re.sub("<int:[^>]+>", str(number), rule.rule))
        for method in rule.methods & {"GET", "POST"}:
            sent = {"data": proof, "headers": {"Origin": "http://localhost"}}
            answer = admin.client.open(path, method=method, **(sent if method == "POST" else {}))
            assert answer.status_code < 500, (method, rule.rule)
            asked += 1
    assert asked > 50
