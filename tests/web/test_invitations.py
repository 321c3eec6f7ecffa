"""Inviting people: one link, once, for seven days."""

import re
from datetime import timedelta

import pytest

from app.db import db, writing
from app.db.tables import InvitationRow, PersonRow
from tests.factories import PASSWORD, make_incident, make_monitor, make_person, now
from tests.web.visitor import Visitor

LINK = re.compile(r"http://wakeful\.test(/invitation/[\w-]+)")


def use(app, mail):
    with app.app_context():
        url = f"smtp://127.0.0.1:{mail.port}?from=alerts@example.com"
        app.extensions["wakeful.access"].settings.set("smtp_url", url)


def invite(admin, email="eve@example.org", role="editor"):
    """The path of the link."""
    assert admin.open("/people/invite").press("Create link", email=email, role=role).status == 201
    return LINK.search(admin.page.text)[1]


def join(app, path, **more):
    fields = {"password": PASSWORD, "password_again": PASSWORD} | more
    return Visitor(app).open(path).press("Create account", **fields)


def test_the_invited_chooses_name_password_and_zone_and_is_logged_in(app, admin):
    path = invite(admin)
    assert "Anyone who has it can create the account" in admin.text
    assert admin.page.headers["Cache-Control"] == "no-store"
    admin.open("/people")
    line = r"eve@example.org Invited Editor Expires \w+ \d+ \w+ \d{4} \d\d:\d\d UTC"
    assert re.search(line, admin.text)
    assert path not in admin.page.text
    with app.app_context():
        rows = db.session.execute(db.text("SELECT * FROM invitations")).all()
    assert path.rpartition("/")[2] not in str(rows), "only its hash is stored"
    eve = join(app, path, password="short", password_again="short")
    assert (eve.status, "The password is too short" in eve.text) == (422, True)
    assert join(app, path, password_again=PASSWORD + "x").status == 422
    eve = join(app, path, name="Eve Ning", time_zone="Asia/Kolkata")
    assert eve.path == "/"
    assert "Account created. You are logged in." in eve.text
    assert "Eve Ning" in eve.open("/profile").page.text
    incident = make_incident(app, make_monitor(app))
    assert "by Eve Ning" in eve.open(f"/incidents/{incident.id}").press("Acknowledge").text
    with app.app_context():
        row = db.session.query(PersonRow).filter_by(email="eve@example.org").one()
        assert (row.name, row.role, row.time_zone) == ("Eve Ning", "editor", "Asia/Kolkata")
    admin.open("/people").hides("Invited").shows("eve@example.org Eve Ning Editor")
    assert Visitor(app).log_in("eve@example.org").open("/monitors").path == "/monitors"


def test_a_link_works_once_and_opening_it_uses_nothing_up(app, admin):
    path = invite(admin)
    for _ in range(3):  # mail scanners follow links
        assert Visitor(app).open(path).status == 200
    second = Visitor(app).open(path)
    join(app, path)
    second.press("Create account", password=PASSWORD, password_again=PASSWORD)
    assert second.status == 404
    assert "This link is not valid" in second.text
    assert Visitor(app).open(path).status == 404
    assert Visitor(app).open("/invitation/guess").status == 404


def test_a_link_expires_after_seven_days_and_can_be_renewed(app, admin):
    path = invite(admin)
    with app.app_context(), writing() as session:
        row = session.query(InvitationRow).one()
        assert timedelta(days=7) == row.expires_at - row.created_at
        row.created_at, row.expires_at = now() - timedelta(days=8), now() - timedelta(days=1)
    assert Visitor(app).open(path).status == 404
    assert "eve@example.org Expired" in admin.open("/people").text
    admin.press("New link for eve@example.org")
    fresh = LINK.search(admin.page.text)[1]
    assert Visitor(app).open(path).status == 404
    assert join(app, fresh).path == "/"


def test_a_revoked_link_is_void(app, admin):
    path = invite(admin)
    admin.open("/people").press("Revoke the invitation of eve@example.org")
    assert "Its link no longer works." in admin.text
    assert "Invited" not in admin.text.replace("Invite a person", "")
    assert Visitor(app).open(path).status == 404


def test_an_address_has_one_invitation_and_none_once_it_has_an_account(app, admin):
    first = invite(admin)
    second = invite(admin, "EVE@example.org", "viewer")
    assert Visitor(app).open(first).status == 404
    assert Visitor(app).open(second).status == 200
    assert admin.open("/people").text.count("Expires ") == 1
    make_person(app, "viewer", "eve@example.org")
    assert Visitor(app).open(second).status == 404
    admin.open("/people/invite").press("Create link", email="eve@example.org", role="viewer")
    admin.shows("This is already in use. Choose another one.", status=422)


def test_a_link_is_mailed_where_that_works_and_shown_in_any_case(app, admin, mail):
    use(app, mail)
    admin.open("/people/invite").press("Send invitation", email="eve@example.org", role="viewer")
    assert "Wakeful emailed the invitation to eve@example.org." in admin.text
    (sent,) = mail.mails
    assert sent["To"] == "eve@example.org"
    text = sent.get_body(("plain",)).get_content()
    assert LINK.search(text)[1] == LINK.search(admin.page.text)[1]
    assert "invites you to Wakeful" in text
    mail.script["bob@example.org"] = ["550 5.1.1 no such user"]
    admin.open("/people/invite").press("Send invitation", email="bob@example.org", role="viewer")
    assert "The invitation was not emailed. SMTP 550: 5.1.1 no such user" in admin.text
    assert join(app, LINK.search(admin.page.text)[1]).path == "/"


@pytest.mark.settings(public_url=None)
def test_without_a_public_url_a_link_begins_with_the_host_that_the_admin_uses(admin):
    admin.open("/people/invite").press("Create link", email="eve@example.org", role="viewer")
    assert "http://localhost/invitation/" in admin.page.text
