"""Links that show the wall on a screen, without an account."""

import hashlib
import logging
import re

from sqlalchemy import select

from app.db import db
from app.db.tables import WallLinkRow
from app.web.views import wall
from tests.factories import make_incident, make_monitor
from tests.web.visitor import Visitor


def make_link(admin: Visitor, **typed: str) -> str:
    """The path of a new link, as its page shows it."""
    admin.open("/settings/wall-links").press("Create link", **{"name": "Lobby"} | typed)
    assert admin.status == 201
    match = re.search(r"http://[^/]+(/screen/[\w-]+)<", admin.page.text)
    assert match
    return match[1]


def test_a_link_is_shown_once_and_kept_as_a_hash(app, admin):
    path = make_link(admin)
    assert admin.page.headers["Cache-Control"] == "no-store"
    token = path.rpartition("/")[2]
    with app.app_context():
        row = db.session.scalars(select(WallLinkRow)).one()
        assert row.digest == hashlib.sha256(token.encode()).hexdigest()
    assert token not in admin.open("/settings/wall-links").page.text
    admin.shows("Lobby All monitors", "never")


def test_whoever_has_the_link_sees_the_wall_and_nothing_else(app, admin, stranger):
    shop = make_monitor(app, name="Shop", state={"verdict": "down"})
    make_incident(app, shop)
    make_monitor(app, name="Blog", state={"verdict": "up"})
    path = make_link(admin, zone="Asia/Tokyo")
    page = stranger.open(path).page
    stranger.shows("1 down", "Shop", "Asia/Tokyo", status=200)
    assert "Set-Cookie" not in page.headers
    assert page.headers["X-Robots-Tag"] == "noindex, nofollow"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["Cache-Control"] == "private, no-store"
    assert set(re.findall(r'<a [^>]*href="([^"]+)"', page.text)) == {"#main", f"{path}?theme=light"}
    part = stranger.open(path, headers={"X-Fragment": "live"}).page
    assert "<html" not in part.text
    assert "href" not in re.sub(r'href="#i-', "", part.text)
    assert stranger.open("/wall").path == "/login"
    assert stranger.open("/").path == "/login"
    assert "never" not in admin.open("/settings/wall-links").text  # it was used


def test_a_link_may_show_a_tag_alone(app, admin, stranger):
    make_monitor(app, name="Shop", tags="\nprod\n", state={"verdict": "up"})
    down = make_monitor(app, name="Blog", state={"verdict": "down"})
    make_incident(app, down)
    path = make_link(admin, tag="prod")
    stranger.open(path).shows("Everything is up").hides("Blog")
    assert "Blog" not in stranger.open(f"{path}?tag=").text
    assert 'href="/wall?tag=prod"' in admin.open("/monitors?tag=prod").page.text
    assert "Link for a screen" in admin.open("/wall").text


def test_a_revoked_link_shows_nothing_not_even_on_a_screen_that_is_on(app, admin, stranger):
    make_monitor(app, name="Shop", state={"verdict": "up"})
    path = make_link(admin)
    assert "Shop" in stranger.open(path).text
    admin.open("/settings/wall-links/1/revoke").press("Revoke this link").shows("Link revoked.")
    assert stranger.open(path).status == 404
    assert stranger.page.headers["Referrer-Policy"] == "no-referrer"
    refreshed = stranger.open(path, headers={"X-Fragment": "live"})
    assert refreshed.status == 200
    assert "Shop" not in refreshed.text
    assert "This link is not valid" in refreshed.text
    assert stranger.open("/screen/nonsense").status == 404


def test_a_crash_does_not_log_the_token(app, admin, stranger, monkeypatch, caplog):
    path = make_link(admin)

    def crash(*_args, **_kwargs):
        raise RuntimeError("broken")

    monkeypatch.setattr(wall, "page", crash)
    app.config["PROPAGATE_EXCEPTIONS"] = False
    with caplog.at_level(logging.INFO):
        assert stranger.open(path).status == 500
    assert "broken" in caplog.text
    assert path.rpartition("/")[2] not in caplog.text


def test_the_wall_of_a_tag(app, viewer):
    shop = make_monitor(app, name="Shop", tags="\nprod\n", state={"verdict": "up"})
    make_monitor(app, name="Blog", tags="\nproduct\n", state={"verdict": "down"})
    viewer.open("/wall?tag=prod").shows("Everything is up").hides("Blog").shows("All monitors")
    make_incident(app, shop, by_hand=True)
    assert "1 incident open" in viewer.open("/wall?tag=prod").text
    assert "No monitor has the tag none" in viewer.open("/wall?tag=none").text
    assert viewer.open(f"/wall?tag={'x' * 51}").status == 422
