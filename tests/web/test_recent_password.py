"""A person who changes access or sees a secret has typed the password within the last 10
minutes.
"""

import random
import re
from datetime import timedelta

import pytest

from app.access.people import LOGINS_PER_ACCOUNT
from app.access.sessions import GRACE, RECENT
from app.db import db
from app.db.tables import InvitationRow, PersonRow, SessionRow
from app.records import Role
from app.rules.clocks import SKEW
from app.web.frame.recent import CHANGES, MASK, MAX_SEALED, SEALED_FOR
from app.web.frame.session import SAFE_METHODS
from tests import samples
from tests.factories import PASSWORD, make_person
from tests.support.store import access_of
from tests.web.visitor import Visitor, blank_pages, token

MOMENT = timedelta(milliseconds=1)
ASKED = "Confirm with your password"
NEW = "another long password"


@pytest.fixture
def admin(app, clock):
    return Visitor(app).log_in(make_person(app, "admin").email)


@pytest.fixture
def late(admin, clock):
    """An admin whose password is not recent any more."""
    clock.now += RECENT
    return admin


def emails(app):
    return {person.email for person in access_of(app).people.all()}


def carried(visitor):
    return dict(visitor.form_with("Add a person")[0].values)["sealed_form"]


def add(visitor, email="eve@wakeful.test"):
    return visitor.open("/people/new").press("Add person", email=email, password=NEW, role="viewer")


# --- The rule


def test_a_change_asks_for_the_password_and_then_needs_nothing_typed_again(app, late):
    add(late)
    late.shows(ASKED, "Add a person", "eve@wakeful.test", MASK, status=200)
    assert NEW not in late.page.text, "it is carried encrypted"
    assert late.page.headers["Cache-Control"] == "no-store"
    assert late.page.headers["X-Frame-Options"] == "DENY"
    assert emails(app) == {"admin@wakeful.test"}, "nothing has been changed yet"
    assert late.press("Add a person", your_password=PASSWORD).path == "/people"
    assert "eve@wakeful.test can log in now." in late.text
    assert Visitor(app).log_in("eve@wakeful.test", NEW).open("/").path == "/"
    add(late, "bob@wakeful.test")
    assert "bob@wakeful.test can log in now." in late.text, "the next one does not ask again"


def test_the_password_is_recent_for_ten_minutes(app, admin, clock):
    clock.now += RECENT - MOMENT
    assert ASKED not in add(admin).text
    assert ASKED not in admin.open("/people/1").press("Save", name="Ada").text, "not typed by that"
    clock.now += MOMENT
    assert ASKED in add(admin, "bob@wakeful.test").text


def test_a_clock_that_was_set_back_makes_no_password_recent(app, admin, clock):
    access = app.extensions["wakeful.access"]
    with app.app_context():
        (record,) = access.sessions.of(1)
    clock.now -= SKEW
    assert access.sessions.password_is_recent(record), "another machine may be a moment ahead"
    clock.now -= MOMENT
    assert not access.sessions.password_is_recent(record)


def test_pages_open_without_it_and_other_changes_too(late):
    for path in ("/people", "/people/new", "/people/1", "/settings", "/keys"):
        assert ASKED not in late.open(path).text
    late.open("/profile").press("Save", theme="dark").shows("Profile saved.")
    late.open("/monitors/new").press("Save", url="https://shop.example.com/", name="Shop")
    assert "Shop saved." in late.text


def test_a_wrong_password_changes_nothing_and_keeps_the_form(app, late):
    add(late).press("Add a person", your_password="wrong")
    late.shows("This is not your password.", "eve@wakeful.test", status=422)
    assert emails(app) == {"admin@wakeful.test"}
    late.press("Add a person", your_password=PASSWORD).shows("eve@wakeful.test can log in now.")
    assert "Typed a wrong password" in late.open("/audit").text


@pytest.mark.parametrize("current", ["", "wrong"])
def test_a_form_that_has_a_password_field_is_not_asked_for_it_twice(app, late, current):
    own = {"email": "new@wakeful.test"}
    late.open("/people/1").press("Save", current_password=current, **own).shows(ASKED)
    late.press("Change a person", your_password=PASSWORD).shows("new@wakeful.test saved.")


def test_the_right_password_in_the_form_itself_is_enough(app, late, clock):
    late.open("/people/1").press("Save", current_password=PASSWORD, email="new@wakeful.test")
    assert "new@wakeful.test saved." in late.text
    clock.now += RECENT - MOMENT
    assert ASKED not in add(late).text, "it counts as typed"
    clock.now += MOMENT
    assert ASKED in add(late, "bob@wakeful.test").text


def test_wrong_passwords_are_throttled_and_the_form_survives_it(app, late, clock):
    add(late)
    for _ in range(LOGINS_PER_ACCOUNT):
        assert late.press("Add a person", your_password="wrong").status == 422
    assert late.press("Add a person", your_password=PASSWORD).status == 429
    assert int(late.page.headers["Retry-After"]) > 0
    assert emails(app) == {"admin@wakeful.test"}
    clock.now += timedelta(minutes=5)
    late.press("Add a person", your_password=PASSWORD).shows("eve@wakeful.test can log in now.")


def test_strangers_who_fail_to_log_in_do_not_keep_an_admin_from_typing_it(app, late):
    for _ in range(LOGINS_PER_ACCOUNT + 1):
        Visitor(app).log_in("admin@wakeful.test", "guess")
    add(late).press("Add a person", your_password=PASSWORD)
    assert "eve@wakeful.test can log in now." in late.text


def test_a_fault_of_the_form_is_shown_on_its_own_page(late):
    late.open("/people/new").press("Add person", email="eve", password=NEW, role="viewer")
    late.press("Add a person", your_password=PASSWORD)
    late.shows("This is not an email address.", status=422)
    late.press("Add person", email="eve@wakeful.test", password=NEW)
    assert "eve@wakeful.test can log in now." in late.text


def test_the_page_names_whom_it_concerns_and_what_is_emptied(app, late):
    eve = access_of(app).people.create("eve@wakeful.test", NEW, "viewer")
    access_of(app).people.update(eve.id, {"name": "Eve"})
    late.open(f"/people/{eve.id}").press("Save", name="", role="editor", disabled=True)
    assert "Change a person: eve@wakeful.test" in late.text
    assert "Name empty" in late.text
    assert "Role Editor: monitors and incidents" in late.text
    assert "No access Yes" in late.text
    late.press("Change a person", your_password=PASSWORD)
    changed = access_of(app).people.get(eve.id)
    assert (changed.name, changed.role, changed.disabled) == (None, "editor", True)


def test_a_secret_is_shown_in_the_answer_to_the_password(late):
    late.open("/settings").press("Show secret").shows("Show the webhook secret")
    late.press("Show the webhook secret", your_password=PASSWORD)
    assert late.page.headers["Cache-Control"] == "no-store"
    assert re.search(r"whsec_[A-Za-z0-9+/]+", late.text)


def test_a_link_that_is_made_is_made_once(app, late):
    late.open("/people/invite").press("Create link", email="eve@wakeful.test")
    assert late.press("Invite a person", your_password=PASSWORD).status == 201
    with app.app_context():
        assert db.session.query(InvitationRow).count() == 1


# --- The session


def test_the_session_gets_a_new_token_so_a_copied_cookie_ends(app, late, clock):
    thief = Visitor(app)
    thief.client.set_cookie("wakeful", late.client.get_cookie("wakeful").value)
    assert thief.open("/profile").path == "/profile"
    add(late).press("Add a person", your_password=PASSWORD)
    assert ASKED in add(thief, "bob@wakeful.test").text, "it never has what the password gives"
    clock.now += GRACE - MOMENT
    assert thief.open("/profile").path == "/profile", "as another tab, whose page is on its way"
    clock.now += MOMENT
    assert thief.open("/profile").path == "/login"
    assert late.open("/profile").path == "/profile"
    with app.app_context():
        assert db.session.query(SessionRow).count() == 1


def test_a_double_click_ends_no_session(app, late):
    """Both requests are on their way with the old cookie, and the browser reads one answer."""
    add(late)
    twin = Visitor(app)
    twin.client.set_cookie("wakeful", late.client.get_cookie("wakeful").value)
    twin.open("/people/new")
    form = dict(late.form_with("Add a person")[0].values) | {"your_password": PASSWORD}
    assert late.client.post("/people/new", data=form).status_code == 302
    assert twin.client.post("/people/new", data=form).status_code == 302, "it was sent twice"
    assert ASKED in add(twin, "bob@wakeful.test").text, "only the first has the new cookie"


def test_the_answer_is_read_although_the_session_ended_meanwhile(app, late, monkeypatch):
    late.open("/people/invite").press("Create link", email="eve@wakeful.test")
    access = app.extensions["wakeful.access"]
    invite = access.invitations.invite

    def ended_meanwhile(*values):
        access.sessions.end_all(1)
        return invite(*values)

    monkeypatch.setattr(access.invitations, "invite", ended_meanwhile)
    assert late.press("Invite a person", your_password=PASSWORD).status == 201
    assert "/invitation/" in late.page.text
    assert late.open("/profile").path == "/login"


def test_a_logout_with_the_former_cookie_ends_the_session_too(app, late):
    tab = Visitor(app)
    tab.client.set_cookie("wakeful", late.client.get_cookie("wakeful").value)
    tab.open("/profile")
    add(late).press("Add a person", your_password=PASSWORD)
    tab.press("Log out")
    assert late.open("/profile").path == "/login"


def test_a_change_that_is_refused_leaves_the_password_recent(late):
    late.open("/people/1/delete").press("Delete this person")
    late.press("Delete a person", your_password=PASSWORD)
    late.shows("This is the last admin.", status=409)
    assert ASKED not in add(late).text


def test_typing_it_does_not_make_the_session_last_longer(app, late, clock):
    began = clock.now - RECENT
    add(late).press("Add a person", your_password=PASSWORD)
    with blank_pages():
        while clock.now < began + timedelta(days=29, hours=13):
            clock.now += timedelta(hours=11)  # a session that is unused for 12 hours ends
            assert late.open("/profile").path == "/profile"
    clock.now = began + timedelta(days=30)
    assert late.open("/profile").path == "/login"


def test_a_late_answer_to_another_tab_does_not_bring_the_old_cookie_back(late):
    late.open("/people/new")
    assert "Set-Cookie" not in late.open("/monitors").page.headers


# --- The carried form is worth something here alone


def post(visitor, path, text, password=PASSWORD):
    """The asking page's answer, with another carried form or to another address."""
    fields = {"sealed_form": text, "your_password": password} | token(visitor.open("/people/new"))
    return visitor.client.post(path, data=fields)


@pytest.fixture
def form(late):
    """The form that an admin's page carries."""
    return carried(add(late))


def test_it_is_void_elsewhere_and_for_others(app, late, form):
    again = Visitor(app).log_in("admin@wakeful.test")
    other = Visitor(app).log_in(make_person(app, "admin", email="bob@wakeful.test").email)
    for visitor, path, text in (
        (again, "/people/new", form),
        (other, "/people/new", form),
        *((late, path, form) for path in ("/people/invite", "/people/new?x=1", "/keys")),
        *((late, "/people/new", made_up) for made_up in ("", "gAAAAA" + 100 * "x", "ü")),
    ):
        assert post(visitor, path, text).status_code == 403, (path, text[:9])
    without_token = {"sealed_form": form, "your_password": PASSWORD}
    assert late.client.post("/people/new", data=without_token).status_code == 400
    assert emails(app) == {"admin@wakeful.test", "bob@wakeful.test"}


def test_it_is_void_after_an_hour(app, late, clock, form):
    clock.now += SEALED_FOR - MOMENT
    assert post(late, "/people/new", form, "wrong").status_code == 422
    clock.now += MOMENT
    answer = post(late, "/people/new", form)
    assert answer.status_code == 403
    assert "Start again." in answer.text


def test_it_needs_the_right_password_however_recent_the_session_is(app, late, form):
    add(late, "bob@wakeful.test").press("Add a person", your_password=PASSWORD)
    assert post(late, "/people/new", form, "wrong").status_code == 422
    assert "eve@wakeful.test" not in emails(app)


def test_it_is_worth_nothing_once_the_role_is_lost(app, late, form):
    with app.app_context():
        db.session.get(PersonRow, 1).role = Role.VIEWER  # as if no session had ended
        db.session.commit()
    fields = {"sealed_form": form, "your_password": PASSWORD} | token(late.open("/profile"))
    assert late.client.post("/people/new", data=fields).status_code == 403
    assert emails(app) == {"admin@wakeful.test"}


def test_it_is_not_shown_as_typed_when_the_session_ended_meanwhile(app, late):
    add(late)
    access_of(app).sessions.end_all(1)
    late.press("Add a person", your_password=PASSWORD)
    late.shows("You are logged out, so nothing was changed.", status=400)
    assert PASSWORD not in late.page.text
    assert "gAAAA" not in late.page.text


def test_a_form_that_is_too_large_to_carry_is_refused(late):
    form = dict(late.open("/people/new").form_with("Add person")[0].values)
    noise = random.Random(0).randbytes(MAX_SEALED).hex()
    answer = late.client.post("/people/new", data=form | {"email": noise})
    assert answer.status_code == 413
    answer = late.client.post("/people/new", data=form | {"email": "x" * 300})
    assert answer.status_code == 200


# --- Every address has been decided

# What everybody with the role may do at any time, by blueprint: monitors and what belongs to them.
ORDINARY = {
    "acknowledge", "bulk", "checks", "contacts", "deliveries", "imports", "incidents", "markers",
    "monitors", "page_editor", *samples.PAGES, "posts", "reports", "shared_channels",
    "status_pages", "windows",
}  # fmt: skip
UNASKED = {
    **dict.fromkeys(
        ("account.forgotten", "account.join", "account.recover", "auth.login", "auth.setup",
         "second.code", "second.passkey", "second.passkey_request", "second.recovery"),
        "nobody is logged in",
    ),
    **dict.fromkeys(
        ("profile.password", "two_factor.app", "two_factor.codes", "two_factor.new_passkey",
         "two_factor.passkey_options", "two_factor.remove_app", "two_factor.remove_passkey"),
        "its form asks for the password each time",
    ),
    **dict.fromkeys(
        ("invitations.revoke", "keys.revoke", "wall_links.revoke"),
        "it takes access away, and may be urgent",
    ),
    "auth.logout": "it takes access away",
    "docs.operation": "it does what the key may that is typed there",
    "mail_settings.test": "it changes nothing",
    "profile.show": "name, time zone and colours",
    "profile.theme": "colours",
    "home.put_away": "a card of the home page",
    "remote.choose": "what a person looks at",
    "sessions.forget": "it logs this browser out",
}  # fmt: skip


def changing(app):
    """The endpoints of the dashboard that change something."""
    for rule in app.url_map.iter_rules():
        if not rule.rule.startswith("/api") and (rule.methods or set()) - SAFE_METHODS:
            yield rule.endpoint


def test_every_route_that_changes_something_asks_or_says_why_not(app):
    undecided = []
    for endpoint in changing(app):
        role = getattr(app.view_functions[endpoint], "needs_role", None)
        ordinary = endpoint.partition(".")[0] in ORDINARY and role != Role.ADMIN
        if not ordinary and endpoint not in CHANGES and endpoint not in UNASKED:
            undecided.append(endpoint)
    assert undecided == []


def test_what_is_decided_exists_and_is_decided_once(app):
    routes = set(changing(app))
    assert CHANGES.keys() <= routes
    assert UNASKED.keys() <= routes
    assert not CHANGES.keys() & UNASKED.keys()


def test_every_route_in_the_table_asks(app, late):
    """This holds even if somebody sends a field of the asking page themselves."""
    app.config["WTF_CSRF_ENABLED"] = False
    access_of(app).invitations.invite("eve@wakeful.test", "viewer")
    key, _secret = access_of(app).keys.create("CI", "read")
    for rule in app.url_map.iter_rules():
        if rule.endpoint in CHANGES:
            path = rule.rule.replace("<int:id>", "1").replace("<prefix>", key.prefix)
            answer = late.client.post(path, data={"your_password": PASSWORD, "name": "x"})
            assert answer.status_code == 200, path
            assert ASKED in answer.text, path
            assert CHANGES[rule.endpoint].name in answer.text, path
