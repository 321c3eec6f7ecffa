"""Post templates on the dashboard: listed, written, used, changed, deleted."""

from typing import Any

from flask import Flask

from app.records import PageQuery, PostTemplate
from app.rules.posts import built_in
from tests.support.store import store_of

PAGE = "/status-pages/templates"


def make_template(app: Flask, **fields: Any) -> PostTemplate:
    values = {"name": "Slow", "title": "Slow answers", "state": "identified", "body": "We look."}
    return store_of(app).post_templates.create(values | fields)


def make_page(app: Flask) -> None:
    store_of(app).status_pages.create({"name": "Our shop"})


def stored(app: Flask) -> list[PostTemplate]:
    return list(store_of(app).post_templates.list(PageQuery()).items)


def post_of(visitor: Any) -> dict[str, str]:
    return dict(visitor.form_with("Publish")[0].values)


def test_a_template_is_written_and_offered_for_a_post(app, editor):
    make_page(app)
    assert f'href="{PAGE}"' in editor.open("/status-pages/1").page.text
    assert "No templates of your own yet" in editor.open(PAGE).text
    editor.open(f"{PAGE}/new").press(
        "Save", name="Bank & co", title="Payments fail", state="identified", body="A bank is away."
    )
    editor.shows("Bank & co saved.", "Payments fail A bank is away.")
    editor.open("/status-pages/1/posts/new").shows("Maintenance , Bank & co")
    editor.open("/status-pages/1/posts/new?template=Bank+%26+co")
    assert post_of(editor).items() >= {"title": "Payments fail", "state": "identified"}.items()
    editor.press("Publish")
    post = store_of(app).posts.get(1, 1)
    assert (post.title, post.body) == ("Payments fail", "A bank is away.")


def test_a_template_with_the_name_of_a_built_in_one_replaces_it(app, editor):
    make_page(app)
    make_template(app, name="RESOLVED", title="All is well again", state="resolved")
    editor.open("/status-pages/1/posts/new")
    names = [template.name for template in built_in() if template.name != "Resolved"]
    assert f"Start from: {' , '.join([*names, 'RESOLVED'])} ·" in editor.text
    editor.open("/status-pages/1/posts/new?template=Resolved")
    assert post_of(editor)["title"] == "All is well again"
    make_template(app, name="Move", state="scheduled", title="We move")
    editor.open("/status-pages/1/posts/new?template=Move")
    assert post_of(editor)["state"] == "scheduled"
    assert post_of(editor)["starts_at"], "one of maintenance brings its times"


def test_a_template_is_changed_and_deleted(app, editor):
    make_template(app)
    editor.open(f"{PAGE}/1/edit").press("Save", name="Very slow", body="a\r\nb")
    assert "Very slow saved." in editor.text
    editor.open(f"{PAGE}/new").press("Save", name="VERY slow", title="Kept", body="Kept too")
    editor.shows("Name: This is already in use. Choose another one.", status=422)
    (template,) = stored(app)
    assert (template.name, template.title, template.body) == ("Very slow", "Slow answers", "a\nb")
    editor.open(PAGE).open(f"{PAGE}/1/delete").press("Delete this template")
    assert "Very slow deleted." in editor.text
    assert stored(app) == []
    assert editor.open(f"{PAGE}/1/edit").status == 404


def test_more_templates_than_a_page_holds_are_listed_and_offered(app, editor):
    make_page(app)
    for number in range(30):
        make_template(app, name=f"Own {number:02}")
    assert "of 30 templates" in editor.open(PAGE).text
    assert "Own 29" not in editor.text
    assert "Own 29" in editor.open(f"{PAGE}?page=3").text
    assert "The list has fewer pages" in editor.open(f"{PAGE}?page=9").text
    assert "Own 29" in editor.open("/status-pages/1/posts/new").text
