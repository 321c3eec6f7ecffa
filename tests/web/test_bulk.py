"""Many monitors at once: actions on the ticked ones."""

import re
from itertools import count
from types import SimpleNamespace

from flask import Flask

from app.db import db
from app.db.tables import MonitorRow
from app.records import MAX_TAGS
from app.stores.local import LocalStore
from app.web.frame import progress
from app.web.views import bulk
from tests.factories import make_incident, make_monitor
from tests.support.store import store_of
from tests.web.visitor import Visitor, apply


def rows(app: Flask) -> list[MonitorRow]:
    with app.app_context():
        monitors = list(db.session.query(MonitorRow).order_by(MonitorRow.id))
        db.session.expunge_all()
        return monitors


def test_the_ticked_ones_are_changed_and_no_other(app, editor):
    for name in ("Alpha", "Beta", "Gamma"):
        make_monitor(app, name=name, tags="\nold\n")
    apply(editor, [1, 2], "pause")
    assert "2 monitors paused." in editor.text
    assert editor.page.request.url.endswith("/monitors?sort_by=name&sort=asc")
    assert [row.paused for row in rows(app)] == [True, True, False]
    apply(editor, [2], "resume")
    assert "1 monitor resumed." in editor.text
    assert [row.paused for row in rows(app)] == [True, False, False]
    apply(editor, [1, 3], "interval", interval="20")
    assert [(row.interval, row.check_every) for row in rows(app)] == [
        (20, 20),
        (60, None),
        (20, 20),
    ]
    apply(editor, [3], "interval", interval="600")
    assert [(row.interval, row.check_every) for row in rows(app)][2] == (600, None)
    apply(editor, [3], "tag", tag="prod")
    apply(editor, [1, 3], "untag", tag="old")
    assert [row.tags for row in rows(app)] == ["", "\nold\n", "\nprod\n"]
    for line in ("Ask Ben", "Runbook: https://wiki.example"):
        apply(editor, [1, 2], "note", note=line)
    assert store_of(app).monitors.notes(2) == "Ask Ben\nRunbook: https://wiki.example"
    assert store_of(app).monitors.notes(3) == ""


def test_of_monitors_that_are_gone_meanwhile_none_is_said_to_be_changed(app, editor):
    make_monitor(app, name="Alpha")
    form, _ = editor.open("/monitors").form_with("Apply")
    with app.app_context():
        LocalStore(app.extensions["wakeful.settings"]).monitors.delete(1)
    values = {**dict(form.values), "action": "pause", "ids": [1]}
    editor._take(editor.client.post(form.action, data=values, follow_redirects=True))
    assert "none of these monitors exists any more" in editor.text
    assert "0 monitors" not in editor.text


def test_what_was_ticked_and_typed_stays_when_something_is_missing(app, editor):
    for name in ("Alpha", "Beta", "Gamma"):
        make_monitor(app, name=name)
    for action, typed, missing in (
        ("interval", {}, "This field is required."),
        ("tag", {}, "This field is required."),
        ("interval", {"tag": "prod"}, "This field is required."),
    ):
        apply(editor, [1, 3], action, **typed)
        editor.shows("Nothing was changed.", missing)
        form, _ = editor.form_with("Apply")
        assert [value for name, value in form.values if name == "ids"] == ["1", "3"]
        assert dict(form.values)["action"] == action
        assert dict(form.values)["tag"] == typed.get("tag", "")
    editor.open("/monitors")
    form, _ = editor.form_with("Apply")
    assert "ids" not in dict(form.values), "ticks of another time"


def test_deleting_asks_first_and_names_what_goes(app, editor):
    for name in ("Alpha", "Beta", "Gamma"):
        make_incident(app, make_monitor(app, name=name))
    apply(editor, [1, 3], "delete")
    editor.shows("Delete 2 monitors?", "Alpha").hides("Beta")
    assert len(rows(app)) == 3
    editor.press("Delete all 2").shows("2 monitors deleted.")
    assert [row.name for row in rows(app)] == ["Beta"]
    apply(editor, [2], "delete")
    assert "Its incidents, results and pending alerts go with it." in editor.text


def test_what_cannot_be_done_is_named_and_the_rest_is_done(app, editor, viewer):
    make_monitor(app, name="Full", tags="".join(f"\nt{n}" for n in range(MAX_TAGS)) + "\n")
    make_monitor(app, name="Free")
    apply(editor, [1, 2], "tag", tag="more")
    editor.shows("Full was not changed.", "1 monitor tagged.")
    form, _ = editor.form_with("Apply")
    kept = {name: value for name, value in form.values if name in ("ids", "action", "tag")}
    assert kept == {"ids": "1", "action": "tag", "tag": "more"}, "to be tried once more"
    assert rows(app)[1].tags == "\nmore\n"
    for ids, action, fields, sentence in (
        ([], "pause", {}, "Monitors: Select the monitors first."),
        ([1], "", {}, "Action: Choose what to do."),
        ([1], "tag", {}, "Tag: This field is required."),
        ([1], "interval", {}, "Interval: This field is required."),
    ):
        assert f"Nothing was changed. {sentence}" in apply(editor, ids, action, **fields).text
        for id in re.findall(r'<li><a href="#([^"]+)">', editor.page.text):
            assert f'id="{id}"' in editor.page.text
    assert "Nothing was changed." not in viewer.open("/monitors").text
    assert "Apply" not in viewer.text, "who only looks has nothing to tick"
    apply(editor, [2, 77], "pause")  # somebody else has deleted one of them
    assert "1 monitor paused." in editor.text


def go_on(visitor: Visitor) -> list[str]:
    """Press the button of each step until the work is done; returns the text of each page."""
    texts = []
    while any(button[0] == "Continue" for form in visitor.forms for button in form.buttons):
        assert visitor.status == 200
        texts.append(visitor.text)
        visitor.press("Continue")
    return texts


def test_all_that_were_found_are_changed_step_by_step(app, editor, monkeypatch):
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=count().__next__))
    monkeypatch.setattr(progress, "SECONDS", 4)  # so four in each step
    for number in range(26):
        make_monitor(app, name=f"Shop {number}")
    make_monitor(app, name="Shop full", tags="".join(f"\nt{n}" for n in range(MAX_TAGS)) + "\n")
    make_monitor(app, name="Blog")
    for action, fields, sentence in (
        ("interval", {"interval": "600"}, "27 monitors changed."),
        ("tag", {"tag": "new"}, "26 monitors tagged."),
    ):
        editor.open("/monitors?search=shop").press(
            "Apply", action=action, everything=True, **fields
        )
        texts = go_on(editor)
        assert len(texts) == 6
        assert "12 of 27 done." in texts[2]
        assert sentence in editor.text
        assert editor.page.request.url.endswith("/monitors?search=shop")
    assert [row.interval for row in rows(app)] == [600] * 27 + [60]
    assert [row.tags for row in rows(app)].count("\nnew\n") == 26
    assert "All 27 that match" in editor.text
    editor.press("Apply", action="delete", everything=True).shows("Delete 27 monitors?")
    assert len(rows(app)) == 28
    editor.press("Delete all 27")
    go_on(editor)
    assert "27 monitors deleted." in editor.text
    assert [row.name for row in rows(app)] == ["Blog"]


def test_of_many_that_cannot_be_changed_a_few_are_named(app, editor):
    for number in range(bulk.MAX_REASONS + 2):
        tags = "".join(f"\nt{n}" for n in range(MAX_TAGS)) + "\n"
        make_monitor(app, name=f"Full {number}", tags=tags)
    ids = [row.id for row in rows(app)]
    text = apply(editor, ids, "tag", tag="more").text
    assert text.count("was not changed.") == bulk.MAX_REASONS
    assert "2 more were not changed." in text
