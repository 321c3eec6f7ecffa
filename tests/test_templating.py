"""A name that a template spells wrongly: a line in the log in production, a failure in tests."""

from __future__ import annotations

import logging

import pytest
from jinja2 import UndefinedError

from app.templating import Missing
from app.web.frame.assets import Environment

WRONG = {
    "printed": "[{{ monitor.nmae }}]",
    "tested": "[{% if monitor.nmae %}x{% endif %}]",
    "compared": "[{% if monitor.nmae == 'up' %}x{% endif %}]",
    "looped over": "[{% for x in monitor.nmae %}x{% endfor %}]",
    "counted": "[{% if monitor.nmae|length %}x{% endif %}]",
}
wrong = pytest.mark.parametrize("source", WRONG.values(), ids=WRONG)


@pytest.fixture
def environment(core) -> Environment:
    return Environment(core)


@wrong
def test_a_wrong_name_fails_in_tests(environment, source):
    with pytest.raises(UndefinedError, match="nmae"):
        environment.from_string(source).render(monitor={"name": "shop"})


@wrong
def test_a_wrong_name_is_logged_once_in_production(environment, source, monkeypatch, caplog):
    monkeypatch.setattr(Missing, "strict", False)
    monkeypatch.setattr("app.templating.log._logged", {})
    template = environment.from_string(source)
    pages = [template.render(monitor={"name": "shop"}) for _ in range(2)]
    assert pages == ["[]", "[]"]
    [line] = caplog.records
    assert line.levelno == logging.ERROR
    assert "nmae" in line.getMessage()


def test_an_absent_name_may_be_asked_for(environment):
    source = "{{ 'yes' if monitor.note is defined else 'no' }} {{ monitor.note|default('none') }}"
    assert environment.from_string(source).render(monitor={}) == "no none"
