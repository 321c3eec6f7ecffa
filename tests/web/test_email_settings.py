"""Setting up email on the dashboard: who may, what is stored, who uses it, and the test."""

import time

import pytest

from app.access.settings import smtp_url
from app.alerts.worker import Worker
from app.db import db
from app.db.tables import DeliveryRow
from app.records import DeliveryStatus
from app.rules import smtp
from app.rules.smtp import Server, Tls
from app.stores import current_mail, current_store
from tests.factories import make_monitor

PASSWORD = "mail password 123"


def set_up(admin, mail, **more):
    fields = {"host": "127.0.0.1", "port": mail.port, "tls": "offered",
              "sender": "Wakeful <alerts@example.com>"}  # fmt: skip
    return admin.open("/settings/email").press("Save", **(fields | more))


def stored(app):
    with app.app_context():
        return smtp_url(app.extensions["wakeful.settings"])


def test_an_admin_sets_email_up_and_sends_a_test(app, admin, mail):
    assert "Send test email" not in admin.open("/settings/email").page.text
    set_up(admin, mail)
    assert "Email settings saved." in admin.text
    admin.press("Send test email", address="ada@example.org")
    assert "Test email sent to ada@example.org. The server said: SMTP 250" in admin.text
    (sent,) = mail.mails
    assert sent["Subject"] == "Test email from Wakeful"
    assert sent["From"] == "Wakeful <alerts@example.com>"
    assert mail.envelopes == [("alerts@example.com", ["ada@example.org"])]


def test_a_test_is_tried_once_and_says_what_the_server_says(admin, mail):
    mail.script["ada@example.org"] = ["450 4.2.1 come back later"]
    set_up(admin, mail).press("Send test email", address="ada@example.org")
    assert "The test email was not sent. SMTP 450: 4.2.1 come back later" in admin.text
    assert mail.mails == []
    set_up(admin, mail, port=9).press("Send test email", address="ada@example.org")
    assert "The mail server 127.0.0.1 refused the connection." in admin.text


def test_the_password_is_stored_encrypted_and_shown_nowhere(app, admin, mail):
    set_up(admin, mail, user="me", password=PASSWORD)
    assert smtp.parse(stored(app)).password == PASSWORD
    with app.app_context():
        raw = db.session.execute(db.text("SELECT value FROM settings")).scalars().all()
    assert not any(PASSWORD in value or "127.0.0.1" in value for value in raw)
    admin.open("/settings/email")
    assert PASSWORD not in admin.page.text
    assert "mail%20password" not in admin.page.text
    admin.press("Save", sender="other@example.com")
    assert smtp.parse(stored(app)).password == PASSWORD


def test_a_stored_password_goes_to_no_other_server(app, admin, mail):
    set_up(admin, mail, user="me", password=PASSWORD)
    before = stored(app)
    for change in ({"host": "mail.evil.example"}, {"user": "other"}):
        admin.open("/settings/email").press("Save", **change)
        assert (admin.status, "Enter the password again" in admin.text) == (422, True), change
        assert stored(app) == before, change


def test_a_fault_stands_beside_its_field(app, admin, mail):
    for field, value, fault in (
        ("host", "", "This field is required"),
        ("host", "smtp://mail.example.com", "Enter a host name or an IP address"),
        ("host", "user@host", "Enter a host name or an IP address"),
        ("port", "70000", "from 1 to 65535"),
        ("sender", "Wakeful", "Enter an address such as"),
        ("password", "alone", "A password needs a user name."),
    ):
        set_up(admin, mail, **{field: value})
        assert (admin.status, fault in admin.text) == (422, True), (field, value)
        assert stored(app) is None, (field, value)


@pytest.mark.settings(smtp_url="smtp://me:hunter2hunter@mail.example.com?from=a@b.example")
def test_the_environment_wins_and_is_shown_read_only(app, admin):
    admin.open("/settings/email")
    admin.shows("Set by WAKEFUL_SMTP_URL in the environment", "mail.example.com")
    assert "hunter2hunter" not in admin.page.text
    assert "Save" not in [button[0] for form in admin.forms for button in form.buttons]
    with app.app_context():
        app.extensions["wakeful.access"].settings.set("smtp_url", "smtp://other.example")
    assert "mail.example.com" in stored(app)


def test_a_running_worker_follows_a_change_without_a_restart(app, admin, mail):
    monitor = make_monitor(app, alerts=[["email", "ops@example.com"]])
    worker = Worker(app, app.extensions["wakeful.settings"])

    def try_one():
        with app.app_context():
            (id,) = current_store().channels.test_all(monitor.id)
            db.session.commit()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            worker.take_turn(0.05)
            with app.app_context():
                row = db.session.get(DeliveryRow, id)
                if row.status != DeliveryStatus.PENDING:
                    return row.status, row.attempts[-1]["answer"]
        raise AssertionError("the test alert was not tried")

    status, answer = try_one()
    assert status == DeliveryStatus.FAILED
    assert "No mail server is set up. An admin can set one up under Settings, Email" in answer
    set_up(admin, mail)
    assert try_one()[0] == DeliveryStatus.DELIVERED
    admin.open("/settings/email/remove").press("Remove settings").shows("Email settings removed")
    assert try_one()[0] == DeliveryStatus.FAILED


def test_status_pages_offer_email_as_soon_as_it_is_set_up(app, admin, mail):
    public = app.extensions["wakeful.public"]
    with app.app_context():
        assert "email" not in public.channels
        assert not current_mail().is_set()
    set_up(admin, mail)
    with app.app_context():
        assert "email" in public.channels
        assert current_mail().is_set()


def test_settings_that_cannot_be_read_say_so_and_can_be_entered_again(app, admin, mail):
    with app.app_context():
        db.session.execute(db.text(
            "INSERT INTO settings (name, value, updated_at) VALUES ('smtp_url', 'odd', 0)"
        ))  # fmt: skip
        db.session.commit()
    assert "The stored email settings cannot be read." in admin.open("/settings/email").text
    set_up(admin, mail)
    assert "cannot be read" not in admin.open("/settings/email").text


@pytest.mark.parametrize("tls", Tls)
def test_a_server_is_read_as_it_was_written(tls):
    for host, user, password in (
        ("mail.example.com", None, None),
        ("::1", "me@example.com", "p@ss:w/rd?#%&+ ü"),
        ("10.0.0.1", "me", None),
    ):
        sender = "Wäkeful & co <a+b@example.com>"
        server = Server(host, 2525, sender, user, password, tls)
        assert smtp.parse(smtp.compose(server)) == server, host
