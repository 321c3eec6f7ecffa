"""The people who can log in, and what they may do."""

import re

import pytest

from app.db import writing
from app.db.tables import SessionRow
from tests.factories import PASSWORD, make_incident, make_monitor, make_person
from tests.support.store import access_of
from tests.web.visitor import Visitor, token

NEW_PASSWORD = "another long password"


def test_a_page_whose_session_ended_says_why_the_login_is_there(app, viewer, stranger):
    viewer.open("/incidents")
    with app.app_context(), writing() as session:
        session.query(SessionRow).delete()
    for _ in range(2):  # the page refreshes itself meanwhile
        viewer.open("/incidents", headers={"X-Fragment": "live"})
    assert "Your session has ended" in viewer.open("/incidents").text
    assert viewer.path == "/login"
    assert "Your session has ended" not in viewer.open("/incidents").text
    assert "Your session has ended" not in stranger.open("/incidents").text


def test_what_was_typed_is_shown_without_what_forms_carry_for_themselves(app, editor):
    editor.open("/maintenance/new")
    with app.app_context(), writing() as session:
        session.query(SessionRow).delete()
    editor.press("Preview", name="Works").shows("You are logged out", "Repeat none")
    editor.hides("Often", "Preview 1")


def test_the_first_visitor_makes_the_admin_with_the_link_once(app, stranger):
    path = "/setup/" + access_of(app).setup.token()
    assert "Nobody has an account here yet" in stranger.open("/login").text
    assert stranger.open("/setup/guess").status == 404
    typed = {"email": "ada", "password": "short", "password_again": "shorter"}
    assert stranger.open(path).press("Create account", **typed).status == 422
    assert "This is not an email address." in stranger.text
    assert "The password is too short: use 8 characters or more." in stranger.text
    typed = {"email": "ada@example.org", "password": PASSWORD}
    stranger.press("Create account", **typed, password_again=PASSWORD + "x")
    assert "The two passwords are not the same." in stranger.text
    stranger.press("Create account", **typed, password_again=PASSWORD)
    assert stranger.path == "/monitors/new"
    assert "ada@example.org (you) Admin No just now just now" in stranger.open("/people").text
    assert Visitor(app).open(path).status == 404


def test_a_wrong_password_keeps_the_email_and_says_nothing_about_who_exists(app, stranger):
    make_person(app, "editor", "ada@example.org")
    stranger.log_in("ada@example.org", "wrong")
    with_account = stranger.text
    assert stranger.status == 422
    assert dict(stranger.form_with("Log in")[0].values)["email"] == "ada@example.org"
    stranger.log_in("bob@example.org", "wrong")
    assert stranger.text.replace("bob@", "ada@") == with_account
    stranger.log_in("ada@example.org")
    assert stranger.page.location == "/"
    assert stranger.open("/").path == "/"


def test_too_many_attempts_get_how_long_to_wait(app, stranger):
    make_person(app, "editor", "ada@example.org")
    for _ in range(10):
        stranger.log_in("ada@example.org", "wrong")
        assert stranger.status == 422
    stranger.log_in("ada@example.org")
    assert stranger.status == 429
    assert int(stranger.page.headers["Retry-After"]) > 0
    assert "Too many attempts" in stranger.text


def test_login_leads_on_to_pages_of_this_site_only(app):
    make_person(app, "editor", "ada@example.org")
    for target in (
        "/monitors?search=a&page=1",
        *("https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example"),
        *("javascript:alert(1)", "/%09/evil.example", "http:evil.example", "//["),
    ):
        visitor = Visitor(app).open("/login", query_string={"next": target})
        form, _ = visitor.form_with("Log in")
        values = dict(form.values) | {"email": "ada@example.org", "password": PASSWORD}
        answer = visitor.client.post("/login", query_string={"next": target}, data=values)
        leads = target if target.startswith(("/monitors", "/%09")) else "/"
        assert (answer.status_code, answer.location) == (302, leads), target


def test_a_viewer_is_offered_nothing_that_changes_a_monitor(app, viewer):
    make_incident(app, make_monitor(app))
    assert viewer.open("/monitors/1").status == 200
    posts = [form for form in viewer.forms if form.method == "post"]
    assert [button[0] for form in posts for button in form.buttons] == [
        "Same as system",
        "Light",
        "Dark",
        "Log out",
    ]


def test_a_post_without_its_token_changes_nothing_and_shows_what_was_typed(app, editor):
    answer = editor.client.post(
        "/monitors/new",
        data={"name": "Shop", "url": "http://a.test", "request_auth_password": "pss"},
    )
    assert answer.status_code == 400
    assert "Shop" in answer.text
    assert "pss" not in answer.text
    assert "No monitors yet" in editor.open("/monitors").text


def test_every_answer_carries_the_security_headers(app, editor):
    for path in ("/", "/login", "/nowhere", "/static/css/base.css"):
        answer = editor.client.get(path)
        answer.close()  # a static file would stay open
        headers = answer.headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"
    page = editor.client.get("/monitors/new").text
    assert " style=" not in page
    assert not re.search(r"<script(?![^>]*src=)", page)
    assert not re.search(r"\son\w+=", page)


def test_versioned_assets_are_kept_for_good(editor):
    page = editor.client.get("/").text
    addresses = re.findall(r'(?:href|src)="(/[^"]*\?v=[^"]+)"', page)
    assert len(addresses) > 5
    for address in addresses:
        answer = editor.client.get(address)
        answer.close()
        assert answer.status_code == 200, address
        assert "immutable" in answer.headers["Cache-Control"]


def test_what_was_typed_outlives_the_session(app, editor):
    typed = {"url": "http://shop.example.com/", "name": "Shop", "timeout": "7"}
    editor.open("/monitors/new")
    editor.client.delete_cookie("wakeful")
    editor.press("Save", **typed).shows("You are logged out, so nothing was changed.", status=400)
    tab = Visitor(app)
    tab.client = editor.client  # the other tab that "Log in" opens
    tab.log_in("editor@wakeful.test")
    editor.press("Send it again").shows("This page is from before you logged in.")
    editor.press("Send it again").shows("Shop saved.", "within 7 s")


def test_what_a_form_carries_for_itself_is_not_shown_as_typed(editor):
    editor.open("/monitors/import").press("Preview", urls="https://shop.example.com/")
    editor.client.delete_cookie("wakeful")
    editor.press("Create 1 monitor").shows("You are logged out, so nothing was changed.")
    assert "What you typed" not in editor.text
    assert "Send it again" in editor.text


def test_what_another_site_sent_gets_no_button_to_send_it_again(editor):
    for origin in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {}):
        answer = editor.client.post("/monitors/new", data={"name": "Bad"}, headers=origin)
        assert answer.status_code == 400
        assert "Send it again" not in answer.text
        assert "What you typed" in answer.text


def test_a_new_password_ends_every_other_session(app, editor):
    elsewhere = Visitor(app).log_in("editor@wakeful.test")
    new = {"password": NEW_PASSWORD, "password_again": NEW_PASSWORD}
    editor.open("/profile").press("Change password", current_password="wrong", **new)
    assert "The current password is wrong." in editor.text
    assert editor.press("Change password", current_password=PASSWORD, **new).path == "/profile"
    assert elsewhere.open("/monitors").path == "/login"
    assert Visitor(app).log_in("editor@wakeful.test", NEW_PASSWORD).open("/").path == "/"


def test_an_admin_adds_a_person_changes_their_role_and_locks_them_out(app, admin):
    typed = {"password": PASSWORD, "role": "editor"}
    admin.open("/people/new").press("Add person", email="eve@example.org", **typed)
    assert "eve@example.org can log in now." in admin.text
    admin.open("/people/new").press("Add person", email="EVE@example.org", **typed)
    assert "This is already in use. Choose another one." in admin.text
    eve = Visitor(app).log_in("eve@example.org")
    assert eve.open("/monitors/new").status == 200
    admin.open("/people/2").press("Save", role="viewer")
    assert eve.open("/monitors").path == "/login"
    eve.log_in("eve@example.org")
    assert eve.open("/monitors/new").status == 403
    admin.open("/people/2").press("Save", disabled=True)
    assert eve.open("/").path == "/login"
    assert eve.log_in("eve@example.org").status == 422
    admin.open("/people/2/delete").press("Delete this person").shows("eve@example.org deleted.")


def test_the_last_admin_cannot_be_removed(admin):
    admin.open("/people/1").press("Save", role="viewer").shows("This is the last admin.")
    admin.open("/people/1/delete").press("Delete this person")
    admin.shows("This is the last admin.", status=409)


def test_a_key_is_shown_once_and_works_until_it_is_revoked(app, editor):
    assert editor.open("/keys").press("Create key", name="CI", scope="write").status == 201
    assert editor.page.headers["Cache-Control"] == "no-store"
    secret = re.search(r"wk_\w{8}_[\w-]+", editor.text)[0]
    call = {"Authorization": f"Bearer {secret}"}
    api = app.test_client()
    assert api.get("/api/v1/monitors", headers=call).status_code == 200
    editor.open("/keys")
    assert secret not in editor.page.text
    prefix = secret.split("_")[1]
    editor.open(f"/keys/{prefix}/revoke").press("Revoke this key")
    assert api.get("/api/v1/monitors", headers=call).status_code == 401


def test_times_are_shown_and_typed_in_the_persons_zone(app, editor):
    editor.open("/profile").press("Save", time_zone="Asia/Kolkata", theme="dark")
    assert 'data-theme="dark"' in editor.page.text
    monitor = make_monitor(app, url="http://127.0.0.1:9/")
    editor.open(f"/monitors/{monitor.id}/edit").press(
        "Save", maintenance_start_at="2030-01-02T05:30", maintenance_end_at="2030-01-02T06:00"
    )
    assert "Wed 2 Jan 2030 05:30 IST" in editor.text
    assert '<time datetime="2030-01-02T00:00:00Z"' in editor.page.text
    form, _ = editor.open(f"/monitors/{monitor.id}/edit").form_with("Save")
    assert dict(form.values)["maintenance_start_at"] == "2030-01-02T05:30:00"


@pytest.mark.settings(allow_networks=None)
def test_an_admin_opens_networks_and_a_wrong_one_is_refused_by_name(app, admin):
    admin.open("/settings").press("Save", allow_networks="10.0.0.0/8, nonsense")
    admin.shows("nonsense", status=422)
    admin.press("Save", allow_networks="10.0.0.0/8, loopback").shows("Networks saved.")
    assert dict(admin.form_with("Save")[0].values)["allow_networks"] == "10.0.0.0/8, loopback"


def test_networks_from_the_environment_lock_the_page(admin):
    admin.open("/settings").shows("WAKEFUL_ALLOW_NETWORKS")
    assert not [form for form in admin.forms if "allow_networks" in form.names()]


def test_the_webhook_secret_is_shown_once_and_changed_with_an_overlap(admin):
    assert "whsec_" not in admin.open("/settings").text
    form, _ = admin.form_with("Show secret")
    first = re.search(r"whsec_\S+", admin.press("Show secret").text)[0]
    assert admin.page.headers["Cache-Control"] == "no-store"
    # Neither the page again nor the same request sent again shows it once more.
    assert "whsec_" not in admin.open("/settings").text
    admin.client.post(form.action, data=dict(form.values))
    admin.open("/settings").shows("The secret has already been shown.").hides("whsec_")
    admin.shows("Webhook secret: shown just now")
    assert "wakeful webhook-secret prints it" in admin.text
    assert "signs too" not in admin.text
    assert "also signs" not in admin.open("/settings/webhook-secret/change").text
    admin.press("Change secret").shows("The previous secret also signs until")
    second = re.search(r"whsec_\S+", admin.press("Show secret").text)[0]
    assert second != first
    change = admin.open("/settings/webhook-secret/change")
    assert "The previous secret also signs until" in change.text


def test_a_wrong_address_and_a_wrong_method_get_a_page_that_leads_on(editor):
    assert editor.open("/monitors/999").status == 404
    assert "There is no monitor with the id 999." in editor.text
    assert editor.open("/monitors/999999999999999999999999").status == 404
    assert editor.open("/nowhere").status == 404
    assert editor.client.get("/monitors/1/pause").status_code == 405
    assert editor.open("/monitors?sort=sideways").status == 422
    assert editor.open("/monitors?serach=x").status == 422


def test_an_own_email_address_needs_the_password_and_an_own_password_the_profile(app, admin):
    page = admin.open("/people/1").press("Save", email="new@wakeful.test")
    assert page.status == 422
    assert "The current password is wrong." in page.text
    admin.open("/people/1").press("Save", email="new@wakeful.test", current_password=PASSWORD)
    assert "new@wakeful.test saved." in admin.text
    assert "Set a password for them" not in admin.open("/people/1").text
    answer = admin.client.post("/people/1/password", data=token(admin) | {"password": NEW_PASSWORD})
    assert answer.location == "/profile"
    assert access_of(app).people.login("new@wakeful.test", PASSWORD) is not None
