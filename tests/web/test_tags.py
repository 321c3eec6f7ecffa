"""Fields that take tags offer those that exist, and say how many monitors they reach."""

import pytest

from app.records import PageQuery, Pair
from tests.factories import make_monitor, now
from tests.support.store import store_of

ADMINS = ("/keys", "/settings/wall-links")


@pytest.mark.parametrize(
    "path",
    [
        "/monitors", "/monitors/new", "/monitors/import", "/maintenance/new", "/markers",
        "/reports", "/status-pages/new", *ADMINS,
    ],
)  # fmt: skip
def test_every_field_for_tags_offers_those_that_exist(app, admin, path):
    make_monitor(app, tags="\nshop\neu\n")
    make_monitor(app, tags="\nshop\n")
    store_of(app).contacts.create({"name": "Ops", "channels": ()})
    page = admin.open(path).page.text
    assert '<option value="shop" label="shop (2 monitors)">' in page
    assert page.count(' list="tag') == page.count("<datalist") - page.count('id="mail-tag-list"')


@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("/maintenance/new", {"name": "Works", "scope": "chosen", "tags": "shopp"}),
        ("/markers", {"name": "Deploy", "tags": "shopp"}),
        (ADMINS[0], {"name": "CI", "tag": "shopp"}),
        (ADMINS[1], {"name": "Lobby", "tag": "shopp"}),
    ],
)
def test_who_chooses_by_a_tag_that_no_monitor_has_is_warned_once(app, admin, path, typed):
    make_monitor(app, tags="\nshop\n")
    admin.open(path).shows("shop (1)")
    button = {"/maintenance/new": "Save", "/markers": "Add marker", ADMINS[0]: "Create key"}
    press = button.get(path, "Create link")
    admin.press(press, **typed)
    admin.shows("This reaches no monitor now: none has the tag shopp.", "Save again to keep it")
    admin.press(press).hides("This reaches no monitor now: none has the tag shopp. Save again")


def test_a_window_says_how_many_monitors_it_reaches_before_it_is_saved(app, admin):
    shop, other = make_monitor(app, tags="\nshop\n"), make_monitor(app)
    make_monitor(app, tags="\nshop\neu\n")
    make_monitor(app)
    admin.open("/maintenance/new").press(
        "Preview", name="Works", scope="chosen", tags="shop, eu", monitors=other.id
    )
    admin.shows("This reaches 3 monitors now.")
    admin.press("Preview", scope="all").shows("This reaches 4 monitors now.")
    assert not store_of(app).windows.list(PageQuery()).items
    asked = admin.open(f"/monitors/reach?tags=shop, eu&monitors={shop.id}&monitors=77")
    assert asked.page.text == "This reaches 2 monitors now."


def test_a_tag_that_none_has_is_not_said_to_be_removed(app, admin):
    shop = make_monitor(app, tags="\nshop\n")
    admin.open("/monitors").press("Apply", action="untag", tag="shopp", ids=[str(shop.id)])
    admin.shows("Nothing was changed: none of them has the tag shopp.")


def test_a_monthly_report_by_a_tag_that_no_monitor_has_is_refused(app, admin):
    make_monitor(app, tags="\nshop\n", created_at=now())
    channels = (Pair("email", "ops@example.com"),)
    store_of(app).contacts.create({"name": "Ops", "channels": channels})
    admin.open("/reports").press("Send monthly", contact="Ops", tag="shopp")
    admin.shows("none has the tag shopp", status=422)
    admin.open("/reports").press("Send monthly", contact="Ops", tag="shop")
    admin.shows("monitors tagged shop (1 monitor)")
