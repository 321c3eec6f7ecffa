"""Posts on the dashboard: written, drafted from incidents, updated, corrected, deleted."""

from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask

from app.db import writing
from app.db.tables import PersonRow
from app.errors import Unavailable
from app.records import ComponentName, MonitorImpact, Post, PostQuery
from app.rules.posts import built_in
from app.stores import current_store
from tests.factories import make_incident, make_monitor, now
from tests.support.store import store_of


@pytest.fixture
def shop(monitor):
    """Its id."""
    return monitor.id


@pytest.fixture
def monitor(app: Flask) -> Any:
    """The monitor of the page 1."""
    row = make_monitor(app, name="Shop 12 (Frankfurt)")
    names = (ComponentName(row.id, "The shop"),)
    store_of(app).status_pages.create({"name": "Our shop", "monitors": (row.id,), "names": names})
    return row


def write(app: Flask, **fields: Any) -> Post:
    values = {"title": "Slow", "state": "investigating", "body": "We look into it."} | fields
    return store_of(app).posts.create(1, values)


def stored(app: Flask) -> Post:
    return store_of(app).posts.list(PostQuery(1)).items[0]


def test_a_post_is_written_and_stands_on_its_page(app, editor, shop):
    assert "No posts yet" in editor.open("/status-pages/1").text
    editor.open("/status-pages/1/posts/new").press(
        "Publish", title="The shop is slow", body="We look into it.\r\nSoon more.", monitors=shop
    )
    assert "The shop is slow published." in editor.text
    post = stored(app)
    assert (post.title, post.state, post.monitors) == ("The shop is slow", "investigating", (shop,))
    assert post.body == "We look into it.\nSoon more."
    author = "by editor@wakeful.test"
    editor.open("/status-pages/1").shows("Investigating The shop is slow The shop", author)
    assert author in editor.open("/status-pages/1/posts/1").text
    public = editor.client.get("/status/our-shop").text
    assert "The shop is slow" in public
    assert author not in public
    assert "1" in editor.open("/status-pages").text
    assert "We look into it. Soon more." in editor.open("/status-pages/1/posts/1").text


def test_the_impact_of_a_post_is_chosen_beside_each_of_its_monitors(app, editor, shop):
    field = f"impact[{shop}][value]"
    editor.open("/status-pages/1/posts/new")
    editor.press("Publish", title="Away", body="We look.", **{field: "outage"})
    assert "Add it to monitors too." in editor.text, "the monitor is not ticked"
    editor.press("Publish", monitors=shop)
    assert stored(app).impact == (MonitorImpact(shop, "outage"),)
    editor.open("/status-pages/1/posts/1").shows("The shop (down)")
    editor.open("/status-pages/1/posts/1/edit").press("Save", "", **{field: ""})
    assert stored(app).impact == (MonitorImpact(shop, "degraded"),)


def test_maintenance_is_announced_in_the_zone_of_the_person(app, editor, shop):
    with app.app_context(), writing() as session:
        session.query(PersonRow).update({"time_zone": "Europe/Berlin"})
    editor.open("/status-pages/1/posts/new?kind=maintenance")
    form, _ = editor.form_with("Publish")
    assert form.choices["state"] == ["scheduled", "in_progress", "completed"]
    editor.press(
        "Publish", title="Move", body="We move.", starts_at="2027-07-01T22:00",
        ends_at="2027-07-02T01:30",
    )  # fmt: skip
    post = stored(app)
    assert post.state == "scheduled"
    assert post.starts_at == datetime(2027, 7, 1, 20, 0, tzinfo=UTC)
    assert post.ends_at == datetime(2027, 7, 1, 23, 30, tzinfo=UTC)
    assert "Thu 1 Jul 2027 22:00 CEST" in editor.text


def test_a_new_post_starts_from_a_template(app, editor, shop):
    text = editor.open("/status-pages/1/posts/new").text
    assert "Start from: Investigating , Identified , Monitoring , Resolved , Maintenance" in text
    for template in built_in():
        kind = "kind=maintenance&amp;" if template.name == "Maintenance" else ""
        address = f"/status-pages/1/posts/new?{kind}template={template.name}"
        assert f'href="{address}"' in editor.page.text
        editor.open(address.replace("&amp;", "&"))
        values = dict(editor.form_with("Publish")[0].values)
        assert values["title"] == template.title
        assert values["state"] == template.state
        assert values["body"].strip() == template.body
        assert f'aria-current="true">{template.name}</a>' in editor.page.text
        assert (values.get("starts_at") is not None) == (template.name == "Maintenance")
    editor.press("Publish", title="We move")
    post = stored(app)
    assert (post.title, post.state, post.body) == ("We move", "scheduled", built_in()[-1].body)


def test_a_draft_of_an_incident_may_take_its_text_from_a_template(app, editor, monitor, shop):
    incident = make_incident(app, monitor)
    address = f"/status-pages/1/posts/new?incident_id={incident.id}"
    editor.open(f"{address}&template=Maintenance")
    assert "Start from: Investigating , Identified , Monitoring , Resolved ·" in editor.text
    assert "Problems with The shop" in dict(editor.form_with("Publish")[0].values)["title"]
    editor.open(f"{address}&template=Identified").press("Publish")
    post = stored(app)
    assert (post.title, post.body) == (built_in()[1].title, built_in()[1].body)
    assert (post.incident_id, post.monitors) == (incident.id, (shop,))


def test_no_template_is_offered_where_it_would_overwrite_a_text(app, editor, monitor, shop):
    editor.open("/status-pages/1/posts/new").press("Publish", title="Kept", body="")
    assert editor.status == 422
    assert "Start from" not in editor.text
    write(app)
    assert "Start from" not in editor.open("/status-pages/1/posts/1/edit").text


def test_an_incident_leads_to_a_draft_for_the_public(app, editor, viewer, monitor, shop):
    incident = make_incident(
        app, monitor, cause="Connection to 10.0.0.7 refused", cause_code="connection_refused"
    )
    other = make_incident(app, make_monitor(app, name="Blog"))
    assert "Post on a status page" not in editor.open(f"/incidents/{other.id}").text
    assert "Post on a status page" not in viewer.open(f"/incidents/{incident.id}").text
    page = editor.open(f"/incidents/{incident.id}").page.text
    address = f"/status-pages/1/posts/new?incident_id={incident.id}"
    assert f'href="{address}"' in page
    editor.open(address)
    values = dict(editor.form_with("Publish")[0].values)
    assert "The shop" in values["title"]
    assert "10.0.0.7" not in editor.page.text
    assert values["monitors"] == str(shop)
    editor.press("Publish")
    post = stored(app)
    assert (post.incident_id, post.monitors) == (incident.id, (shop,))
    assert f"Incident {incident.id}" in editor.open("/status-pages/1/posts/1").text
    assert editor.open(f"/status-pages/1/posts/new?incident_id={other.id}").status == 404
    assert editor.open("/status-pages/1/posts/new?incident_id=x").status == 404


def test_every_page_that_shows_the_monitor_has_its_button(app, editor, monitor, shop):
    incident = make_incident(app, monitor)
    store_of(app).status_pages.create({"name": "For partners", "monitors": (shop,)})
    editor.open(f"/incidents/{incident.id}").shows("Post on For partners", "Post on Our shop")


def test_an_update_is_added_with_the_next_state_offered(app, editor, shop):
    write(app)
    editor.open("/status-pages/1/posts/1")
    form, _ = editor.form_with("Publish update")
    assert form.choices["state"] == ["investigating", "identified", "monitoring", "resolved"]
    editor.press("Publish update", body="It was the disk.").shows("Update published.")
    post = stored(app)
    assert post.state == "identified"
    assert [update.body for update in post.updates] == ["We look into it.", "It was the disk."]
    editor.press("Publish update", body="").shows("Text: This field is required.", status=422)
    assert editor.open("/status-pages/1/posts/1/updates").path == "/status-pages/1/posts/1"


def test_a_correction_is_marked(app, editor, shop):
    write(app, monitors=(shop,))
    editor.open("/status-pages/1/posts/1/edit").press("Save", title="Very slow")
    assert "Saved. The page shows that this was edited." in editor.text
    post = stored(app)
    assert (post.title, post.body, post.monitors) == ("Very slow", "We look into it.", (shop,))
    assert post.corrected_at is not None
    assert "Edited" in editor.text
    update = post.updates[0].id
    editor.open(f"/status-pages/1/posts/1/updates/{update}").press("Save", body="We looked.")
    assert "Saved. The page shows that this was edited." in editor.text
    post = stored(app)
    assert post.updates[0].body == "We looked."
    assert post.updates[0].corrected_at is not None
    assert ", edited" in editor.text
    assert editor.open("/status-pages/1/posts/1/updates/99").status == 404
    for path in ("posts/1/edit", f"posts/1/updates/{update}"):
        before = stored(app)
        editor.open(f"/status-pages/1/{path}").press("Save")
        assert stored(app) == before, "nothing was touched, so nothing is corrected"
    assert "Delete Very slow?" in editor.open("/status-pages/1/posts/1/delete").text
    editor.press("Delete this post")
    assert editor.open("/status-pages/1/posts/1").status == 404


def test_faults_stand_at_their_fields_and_nothing_typed_is_lost(app, editor, shop):
    for path, typed, sentence in (
        ("new", {"title": "", "body": "Kept"}, "Title: This field is required."),
        ("new?kind=maintenance", {"title": "T", "body": "B", "ends_at": ""}, "when it ends"),
    ):
        editor.open(f"/status-pages/1/posts/{path}").press("Publish", **typed)
        assert (editor.status, sentence in editor.text) == (422, True), typed
        values = dict(editor.form_with("Publish")[0].values)
        assert {name: values[name] for name in typed} == typed
    assert not store_of(app).posts.list(PostQuery(1)).items


def test_a_post_of_another_page_is_not_found(app, editor, shop):
    write(app)
    store_of(app).status_pages.create({"name": "Another"})
    for path in ("posts/1", "posts/1/edit", "posts/1/delete"):
        assert editor.open(f"/status-pages/2/{path}").status == 404
    assert editor.open("/status-pages/9/posts/new").status == 404


def test_old_posts_are_on_further_pages(app, viewer, shop):
    for number in range(27):
        write(app, title=f"Post number {number:02}")
    text = viewer.open("/status-pages/1").text
    assert "1–25 of 27 posts" in text
    assert text.index("Post number 26") < text.index("Post number 02")
    assert "Post number 01" in viewer.open("/status-pages/1?page=2").text
    assert "The list has fewer pages." in viewer.open("/status-pages/1?page=9").text


@pytest.mark.parametrize("step", ["pages", "posts"])
def test_what_was_typed_comes_back_when_the_store_is_away(app, editor, shop, step, monkeypatch):
    write(app)
    update = stored(app).updates[0].id
    away = Unavailable("The server does not answer.")

    def fail(*_args: object, **_kwargs: object) -> None:
        raise away

    with app.app_context():
        store = current_store()
    for path, button, typed in (
        ("posts/new", "Publish", {"title": "Kept", "body": "A long text"}),
        ("posts/1/edit", "Save", {"title": "Kept"}),
        ("posts/1", "Publish update", {"body": "A long text"}),
        (f"posts/1/updates/{update}", "Save", {"body": "A long text"}),
    ):
        editor.open(f"/status-pages/1/{path}")
        with monkeypatch.context() as patched:
            for name in ("create", "update", "add_update", "correct_update"):
                patched.setattr(type(store.posts), name, fail)
            if step == "pages":
                patched.setattr(type(store.status_pages), "get", fail)
                patched.setattr(type(store.posts), "get", fail)
            editor.press(button, **typed)
            assert editor.status == 503, path
            assert "The server does not answer." in editor.text
            values = dict(editor.form_with(button)[0].values)
            assert {name: values[name] for name in typed} == typed, path


def test_a_scheduled_post_counts_as_open_in_the_list(app, viewer, shop):
    write(app, state="scheduled", starts_at=now(), ends_at=now().replace(year=2099))
    write(app, state="resolved")
    text = viewer.open("/status-pages/1/posts/1").text
    assert "We look into it." in text
    assert "Publish update" not in text, "who only looks publishes none"
    page = viewer.open("/status-pages").page.text
    assert 'data-label="Open posts">1</td>' in page
