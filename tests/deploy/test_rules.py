"""The rules for Prometheus: about metrics that /metrics prints, and tested where promtool is."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from flask import Flask
from flask.testing import FlaskClient

from app.db import places, writing
from app.db.tables import SignOfLifeRow
from tests.factories import make_monitor

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "prometheus"
RULES = FOLDER / "wakeful.rules.yml"
TESTS = FOLDER / "wakeful.rules.test.yml"
METRIC = re.compile(r"\bwakeful_[a-z_]+")


@pytest.fixture
def printed(app: Flask, client: FlaskClient) -> dict[str, set[str]]:
    """The metrics of an installation at work, each with the names of its labels."""
    now = datetime.now(UTC)
    make_monitor(app)
    with app.app_context():
        places.store_sign(
            "default", now, process="checker:a:1", checks_per_minute=1, last_check_at=now
        )
        with writing() as session:
            session.merge(SignOfLifeRow(name="worker:a:1", at=now))
    text = client.get("/metrics").text
    labels_by_metric: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        labels_by_metric.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return labels_by_metric


def rules() -> list[dict]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def test_rules_use_metrics_and_labels_that_are_printed(printed: dict[str, set[str]]):
    for rule in rules():
        for name in METRIC.findall(rule["expr"]):
            assert name in printed, rule["alert"]
        for name, matched in re.findall(r"(wakeful_\w+)\{([^}]*)\}", rule["expr"]):
            assert set(re.findall(r"(\w+)=", matched)) <= printed[name], rule["alert"]
        for label in re.findall(r"\$labels\.(\w+)", str(rule["annotations"])):
            [name] = set(METRIC.findall(rule["expr"]))
            assert label in printed[name], rule["alert"]


def test_the_manual_lists_each_metric_that_is_printed(printed: dict[str, set[str]]):
    manual = (ROOT / "docs" / "operate.md").read_text()
    labels_by_metric = {
        name: set(labels.split(",")) - {""}
        for name, labels in re.findall(r"`(wakeful_\w+)(?:\{([\w,]+)\})?`", manual)
        if not name.endswith("_total")
    }
    assert labels_by_metric == printed


def test_each_rule_says_how_urgent_it_is_what_is_wrong_and_what_to_do():
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "warn")
        assert set(rule["annotations"]) == {"summary", "do"}
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    tested = set(re.findall(r"\bWakeful[A-Z]\w+", TESTS.read_text()))
    assert tested == set(names), "a rule without a test may never fire"


@pytest.mark.parametrize("words", [["check", "rules", RULES], ["test", "rules", TESTS]])
def test_promtool_accepts_the_rules_and_their_tests_pass(words: list):
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout + done.stderr
