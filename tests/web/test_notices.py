"""The notices at the top of every page."""

from app.records import Notice


def keep(app, notice, value):
    with app.app_context():
        app.extensions["wakeful.access"].settings.set(notice, value)


def test_every_page_says_that_our_own_network_does_not_work_until_it_does(app, admin):
    keep(app, Notice.NETWORK_DOWN, "2026-11-21T08:00:00Z")
    for page in ("/", "/monitors", "/keys"):
        assert "own network has not worked since 21 Nov" in admin.open(page).text
    keep(app, Notice.NETWORK_DOWN, None)
    assert "own network" not in admin.open("/").text


def test_a_demonstration_says_that_it_is_one(app, admin, stranger):
    keep(app, Notice.DEMO, "1")
    assert "This is a demonstration" in admin.open("/").text
    assert "This is a demonstration" not in stranger.open("/login").text
