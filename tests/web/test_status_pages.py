"""Status pages on the dashboard: made, put in order, shown, embedded, deleted."""

import csv
import html
import io
import re
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask

from app.records import ComponentName, Group, PageQuery, StatusPage
from app.web.frame import choices
from app.web.views.status_pages import link_of
from tests.factories import make_monitor, make_subscriber
from tests.support.store import store_of
from tests.web.visitor import Visitor, token


def make_page(app: Flask, *monitors: int, **fields: Any) -> StatusPage:
    return store_of(app).status_pages.create({"name": "Our shop", "monitors": monitors} | fields)


def stored(app: Flask) -> StatusPage:
    return store_of(app).status_pages.list(PageQuery()).items[0]


def make_three(app: Flask) -> list[int]:
    addresses = {name: f"https://{name.lower()}.example.com/" for name in ("Shop", "Blog", "Mail")}
    return [make_monitor(app, name=name, url=url).id for name, url in addresses.items()]


def subscribe(app: Flask, page: int, *targets: str, **fields: Any) -> None:
    for target in targets:
        make_subscriber(app, page, value=target, digest=target, **fields)


def press(visitor: Visitor, value: str, **fields: object) -> Visitor:
    """Press the button with this value, whatever it says."""
    for form in visitor.forms:
        for name, _, own in form.buttons:
            if own == value:
                return visitor.press(name, value, **fields)
    raise AssertionError(f"no button sends {value!r}")


def order(visitor: Visitor) -> list[str]:
    form, _ = visitor.form_with("Add heading")
    return [value for name, value in form.values if name == "line"]


def test_the_first_page_is_made_from_the_menu(app, editor):
    make_monitor(app, name="Shop")
    assert "Status pages" in editor.open("/").text
    editor.open("/status-pages").shows("No status page yet")
    editor.open("/status-pages/new").press("Save", name="Our shop", description="How we are")
    editor.shows("Our shop saved.", status=200)
    page = stored(app)
    assert (page.slug, page.visibility, page.description) == ("our-shop", "public", "How we are")
    editor.open("/status-pages")
    editor.shows("Our shop", "http://wakeful.test/status/our-shop", "Public, 0 monitors")


def test_monitors_are_found_by_search_and_added(app, editor):
    shop, blog, _ = make_three(app)
    editor.open("/status-pages/new").press("Search", name="Kept", find="shop.example")
    assert editor.status == 200
    assert "Blog" not in editor.text
    editor.press("Add selected", pick=shop).shows("1 monitor added at the end.")
    editor.press("Search", find="B").press("Add selected", pick=blog)
    assert order(editor) == [f"m{shop}", f"m{blog}"]
    editor.press("Search", find="shop").shows("Shop is already on the page")
    press(editor, "enter")
    assert "Shop is already on the page" in editor.text, (
        "the Return key in the search field searches again"
    )
    editor.press("Save", "", find="")
    page = stored(app)
    assert (page.name, page.monitors) == ("Kept", (shop, blog))


def test_a_search_shows_the_first_and_says_that_there_are_more(app, editor):
    for number in range(35):
        make_monitor(app, name=f"Node {number:02}")
    editor.open("/status-pages/new").press("Search", find="node").shows("Node 29").hides("Node 30")
    assert "There are more." in editor.text
    assert "No matches." in editor.press("Search", find="nothing like it").text


def test_all_monitors_with_a_tag_are_added_at_once(app, editor, monkeypatch):
    monkeypatch.setattr(choices, "PAGE", 10)
    ids = [make_monitor(app, name=f"Node {n:03}", tags="\nprod\n").id for n in range(23)]
    other = make_monitor(app, name="Other", tags="\ntest\n").id
    editor.open("/status-pages/new").press("Add all with this tag", name="All", tag="prod")
    assert "23 monitors added at the end." in editor.text
    assert "They are already on the page." in editor.press("Add all with this tag", tag="prod").text
    assert "No monitor has the tag odd." in editor.press("Add all with this tag", tag="odd").text
    assert "Enter a tag first." in editor.press("Add all with this tag", tag="").text
    press(editor, "enter", tag="test")
    assert order(editor)[-1] == f"m{other}", "the Return key adds what was typed beside it"
    editor.press("Save", "")
    assert stored(app).monitors == (*ids, other)


def test_lines_are_put_in_order_without_a_script(app, editor):
    shop, blog, mail = make_three(app)
    make_page(app, shop, blog, mail)
    editor.open("/status-pages/1/edit")
    press(editor, f"up:m{mail}")
    assert "Blog" in editor.text, "its name, without a search"
    assert order(editor) == [f"m{shop}", f"m{mail}", f"m{blog}"]
    press(editor, f"up:m{shop}")
    assert order(editor)[0] == f"m{shop}", "nothing is above the first"
    press(editor, f"down:m{shop}")
    assert order(editor) == [f"m{mail}", f"m{shop}", f"m{blog}"]
    assert stored(app).monitors == (shop, blog, mail), "nothing is saved yet"
    press(editor, f"remove:m{shop}")
    editor.press("Save", "")
    assert stored(app).monitors == (mail, blog)


def test_what_stands_below_a_heading_is_its_group(app, editor):
    shop, blog, mail = make_three(app)
    make_page(app, shop, blog, mail)
    editor.open("/status-pages/1/edit").press("Add heading", heading="Words")
    assert order(editor) == [f"m{shop}", f"m{blog}", f"m{mail}", "g1"]
    press(editor, f"down:m{mail}")
    editor.press("Add heading", heading="Selling")
    press(editor, "up:g2")  # groups change places as a whole
    assert order(editor) == [f"m{shop}", f"m{blog}", "g2", "g1", f"m{mail}"]
    editor.press("Save", "", **{f"own[{mail}]": "Letters", "group[1]": "Paper"})
    page = stored(app)
    assert page.groups == (Group("Selling"), Group("Paper", (mail,)))
    assert page.names == (ComponentName(mail, "Letters"),)
    editor.open("/status-pages/1/edit")
    assert order(editor) == [f"m{shop}", f"m{blog}", "g1", "g2", f"m{mail}"]
    press(editor, "remove:g2")
    editor.press("Save", "")
    assert stored(app).groups == (Group("Selling", (mail,)),), "its monitors go to the group above"


def previewed(visitor: Visitor) -> str:
    """The document in the frame of the editor."""
    match = re.search('srcdoc="([^"]+)"', visitor.page.text)
    assert match
    return html.unescape(match[1])


def test_the_preview_looks_as_the_public_page_will(app, editor):
    shop, blog, mail = make_three(app)
    groups = (Group("Front", (shop,)), Group("Back", (mail,)))
    make_page(app, shop, blog, mail, groups=groups, description="How we are", theme="dark")
    preview = previewed(editor.open("/status-pages/1/edit"))
    public = editor.client.get("/status/our-shop").text

    def skeleton(text: str) -> list[str]:
        """Tags with their classes, headings with their text; states and links are examples."""
        text = re.sub("<svg.*?</svg>|<script.*?</script>| tone-[a-z]+", "", text, flags=re.DOTALL)
        tags = re.findall('<h[1-4][^>]*>[^<]*|<[a-z]+(?: class="[^"]*")?', text)
        return [tag for tag in tags if "whole" not in tag and tag not in ("<p", "<b")]

    assert skeleton(preview) == skeleton(public)
    assert 'data-theme="dark"' in preview


def test_the_preview_shows_what_is_typed_and_saves_nothing(app, editor):
    shop, *_ = make_three(app)
    editor.open(f"/status-pages/new?monitor_id={shop}")
    editor.press(
        "Refresh the preview", name="Mine", **{f"own[{shop}]": "The <b>shop</b>"}, show_urls=True
    )
    assert editor.status == 200
    preview = previewed(editor)
    assert "<h1>Mine</h1>" in preview
    assert "<h3>The &lt;b&gt;shop&lt;/b&gt;</h3>" in preview
    assert "<b>shop" not in editor.page.text + preview
    assert "https://shop.example.com/" in preview
    assert not store_of(app).status_pages.list(PageQuery()).items
    form, _ = editor.form_with("Refresh the preview")
    answer = editor.client.post("/status-pages/preview", data=dict(form.values) | {"name": ""})
    assert answer.status_code == 200
    assert "<h1>Your page</h1>" in answer.text


def test_the_first_heading_takes_the_monitors_above_it_into_its_group(app, editor):
    a, b, c = (f"m{id}" for id in make_three(app))
    make_page(app, *(int(key[1:]) for key in (a, b, c)))
    editor.open("/status-pages/1/edit").press("Add heading", heading="Ours")
    assert order(press(editor, "up:g1")) == [a, b, "g1", c]
    assert order(press(editor, "up:g1")) == [a, "g1", b, c]
    assert order(press(editor, "down:g1")) == [a, b, "g1", c]
    editor.press("Add heading", heading="Theirs")
    assert order(press(editor, "down:g1")) == [a, b, "g2", "g1", c], "past the other group"
    assert order(press(editor, "up:g1")) == [a, b, "g1", c, "g2"]
    assert order(press(editor, "up:g1")) == [a, "g1", b, c, "g2"]
    assert order(press(editor, "down:g2")) == [a, "g1", b, c, "g2"], "nothing is below it"


def test_faults_stand_at_their_fields_and_nothing_typed_is_lost(app, editor):
    shop, *_ = make_three(app)
    make_page(app, name="First")
    for typed, sentence in (
        ({"name": ""}, "Name: This field is required."),
        ({"slug": "first"}, "This is already in use. Choose another one."),
        ({"visibility": "password"}, "Enter a password for this page."),
        ({"domain": "wakeful.test"}, "Custom domain: This host name leads to Wakeful's dashboard."),
        ({f"own[{shop}]": "x" * 256}, "Names:"),
    ):
        typed = {"name": "Kept"} | typed
        editor.open(f"/status-pages/new?monitor_id={shop}").press("Save", "", **typed)
        assert (editor.status, sentence in editor.text) == (422, True), typed
        values = dict(editor.form_with("Add heading")[0].values)
        assert {name: values[name] for name in typed} == typed
        assert order(editor) == [f"m{shop}"]
    assert store_of(app).status_pages.list(PageQuery()).total == 1


def test_a_heading_without_text_is_a_fault_unless_nothing_stands_below_it(app, editor):
    shop, *_ = make_three(app)
    make_page(app, shop)
    editor.open("/status-pages/1/edit").press("Add heading", heading="Words")
    press(editor, f"down:m{shop}")
    editor.press("Save", "", **{"group[1]": ""})
    editor.shows("Groups: This field is required.", status=422)
    assert 'href="#groups-0-name"' in editor.page.text
    assert 'id="groups-0-name"' in editor.page.text
    press(editor, f"up:m{shop}")
    editor.press("Save", "")
    assert (stored(app).monitors, stored(app).groups) == ((shop,), ())


def test_a_line_that_moves_is_not_judged_yet(app, editor):
    shop, blog, _ = make_three(app)
    make_page(app, shop, blog)
    editor.open("/status-pages/1/edit")
    press(editor, f"down:m{shop}", name="", auto_post_after="99")
    assert editor.status == 200
    assert "This needs another look" not in editor.text
    assert ("auto_post_after", "99") in editor.form_with("Add heading")[0].values


def test_an_untouched_page_is_saved_as_it_was(app, editor):
    shop, blog, mail = make_three(app)
    before = make_page(
        app, shop, blog, mail,
        names=(ComponentName(blog, "Words"),), groups=(Group("All", (blog, mail)),),
        visibility="password", password="open sesame", auto_post_after=5, zone="Asia/Tokyo",
        theme="dark", show_urls=True, domain="status.example.com", description="x",
    )  # fmt: skip
    editor.open("/status-pages/1/edit").press("Save", "").shows("Our shop saved.")
    after = stored(app)
    assert after.password_set, "an empty password keeps the stored one"
    assert replace(after, updated_at=before.updated_at) == before


def test_without_a_mail_server_the_settings_of_a_page_lead_to_it(app, admin):
    make_page(app)
    sentence = "Visitors cannot subscribe by email: that needs a mail server. Set up email"
    for address in ("/status-pages/1", "/status-pages/1/edit"):
        admin.open(address).shows(sentence)
        assert 'href="/settings/email"' in admin.page.text


def test_what_others_embed_can_be_copied(app, viewer):
    shop, blog, _ = make_three(app)
    make_page(app, shop, blog, names=(ComponentName(blog, 'Words "and" more'),))
    page = viewer.open("/status-pages/1")
    assert f'<img src="http://wakeful.test/status/our-shop/badge/{shop}.svg"' in page.text
    assert f"[![Status of Shop](http://wakeful.test/status/our-shop/badge/{shop}.svg)]" in page.text
    assert 'src="http://wakeful.test/status/our-shop/widget"' in page.text
    assert "http://wakeful.test/status/our-shop.json" in page.text
    assert "http://wakeful.test/status/our-shop/feed.rss" in page.text
    page = viewer.open(f"/status-pages/1?badge={blog}")
    assert f"badge/{blog}.svg" in page.text
    assert 'alt="Status of Words &quot;and&quot; more"' in page.text
    store_of(app).status_pages.update(1, {"domain": "status.example.com"})
    page = viewer.open("/status-pages/1?badge=odd")
    assert f"http://status.example.com/badge/{shop}.svg" in page.text
    assert "http://status.example.com/summary.json" in page.text


def test_subscribers_are_masked_exported_by_editors_and_cleared(app, editor, viewer):
    page = make_page(app)
    assert "Nobody has subscribed yet" in editor.open("/status-pages/1/subscribers").text
    subscribe(app, page.id, "ada.lovelace@example.com", "=grace@example.com")
    subscribe(app, page.id, "unsure@example.com", confirmed_at=None)
    text = viewer.open("/status-pages/1/subscribers").text
    assert "a••••@" in text
    assert "lovelace" not in viewer.page.text
    assert "Download as CSV" not in text
    assert viewer.open("/status-pages/1/subscribers.csv").status == 403
    answer = editor.open("/status-pages/1/subscribers.csv").page
    assert answer.mimetype == "text/csv"
    assert answer.headers["Cache-Control"] == "no-store"
    targets = [row[1] for row in csv.reader(io.StringIO(answer.text))][1:]
    assert targets == ["'=grace@example.com", "ada.lovelace@example.com"]
    assert viewer.open("/status-pages/1/subscribers/clear").status == 403
    editor.open("/status-pages/1/subscribers/clear").shows("Delete all subscribers of Our shop?")
    editor.press("Delete all subscribers").shows("3 subscriptions deleted.")
    assert stored(app).subscribers == 0


def test_viewers_look(app, viewer):
    make_page(app)
    text = viewer.open("/status-pages/1").text
    assert "Our shop" in text
    for word in ("Edit", "Delete", "Write a post"):
        assert word not in text
    assert "New status page" not in viewer.open("/status-pages").text


def test_odd_lines_and_ids_harm_nothing(app, editor):
    make_page(app)
    path = "/status-pages/1/edit"
    sent = {
        **token(editor.open(path)), "name": "Kept", "group[1]": "G",
        "line": ["m1x", "g-1", "x", "m0", "m99999", "m99999", "g1"], "pick": ["x", "9" * 99],
    }  # fmt: skip
    for act in ("add", "up:m5", "odd"):
        assert editor.client.post(path, data=sent | {"do": act}).status_code == 200, act
    answer = editor.client.post(path, data=sent | {"do": ""})
    assert answer.status_code == 422
    assert "There is no monitor with the id 99999." in answer.text
    assert editor.open("/status-pages/new?monitor_id=x").status == 200
    assert editor.open("/status-pages/99").status == 404


@pytest.mark.parametrize("link", ["javascript:alert(1)", "JavaScript:alert(1)", "data:,x", "shop"])
def test_a_link_of_another_server_that_is_no_web_address_is_not_followed(app, link):
    page = StatusPage(1, "Our shop", "our-shop", link=link)
    with app.test_request_context(base_url="http://dash.test"):
        assert link_of(page) == "http://wakeful.test/status/our-shop"


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><circle r="4"/></svg>'


def send_images(visitor: Visitor, **files: bytes) -> Visitor:
    form, _ = visitor.open("/status-pages/1/images").form_with("Save")
    values: dict[str, Any] = {name: value for name, value in form.values if name not in files}
    values |= {name: (io.BytesIO(data), f"{name}.svg") for name, data in files.items()}
    visitor._take(visitor.client.post(form.action, data=values, follow_redirects=True))
    return visitor


def test_a_logo_is_chosen_shown_and_removed(app, editor):
    make_page(app)
    send_images(editor, logo=SVG).shows("Our shop saved.", status=200)
    first = stored(app).logo_link
    send_images(editor, logo=SVG.replace(b"4", b"5"))
    link = stored(app).logo_link
    assert link != first, "another file is another form"
    editor.open("/status-pages/1/images")
    assert f'src="/status/our-shop/logo?{link.partition("?")[2]}"' in editor.page.text
    assert "/status/our-shop/logo?v=" in editor.open("/status-pages/1/edit").page.text
    editor.open("/status-pages/1/images").press("Save", remove_logo="1")
    assert stored(app).logo_link is None


def test_a_file_that_is_no_image_is_refused_beside_its_field(app, editor):
    make_page(app)
    send_images(editor, favicon=b"%PDF-1.4").shows("This is no image that is taken.", status=422)
    bad = SVG.replace(b"<circle", b"<script/><circle")
    send_images(editor, logo=bad).shows("This SVG file holds scripts", status=422)
    assert stored(app).favicon_link is None


def test_a_form_says_how_its_colour_will_be_read_and_the_preview_shows_the_brand(app, editor):
    make_page(app)
    editor.open("/status-pages/1/edit").press(
        "Save", accent="FFCC00", language="de", home_url="https://shop.example/", footer="Imprint"
    )
    page = stored(app)
    assert (page.accent, page.language) == ("#ffcc00", "de")
    assert (page.home_url, page.footer) == ("https://shop.example/", "Imprint")
    editor.open("/status-pages/1/edit").shows("Links and buttons are #")
    preview = html.unescape(editor.page.text)
    for part in ("/status-pages/colours/ffcc00.css", "shop.example", "Imprint", '<html lang="de">'):
        assert part in preview
    sheet = editor.client.get("/status-pages/colours/ffcc00.css")
    assert (sheet.status_code, sheet.mimetype) == (200, "text/css")
    for field, value in (("accent", "yellow"), ("home_url", "javascript:alert(1)")):
        editor.open("/status-pages/1/edit").press("Save", **{field: value})
        assert editor.status == 422


def test_badge_and_widget_are_shown_as_they_look_where_others_may_have_them(app, editor):
    monitor = make_monitor(app, name="Shop").id
    make_page(app, monitor)
    text = editor.open("/status-pages/1").page.text
    assert f'<img src="/status/our-shop/badge/{monitor}.svg" alt="Status of Shop">' in text
    assert '<iframe class="widget-frame" src="/status/our-shop/widget"' in text
    assert "frame-src 'self'" in editor.page.headers["Content-Security-Policy"]
    assert 'style="border:0"' in html.unescape(text)
    store_of(app).status_pages.update(1, {"visibility": "closed"})
    text = editor.open("/status-pages/1").page.text
    assert "<iframe" not in text
    assert "do not work on other sites" in text
