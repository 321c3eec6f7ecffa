"""Lost passwords: a link by mail, which tells nobody who has an account, or one from an admin."""

import re
import threading
import time
from datetime import timedelta

import pytest

from app.access.recovery import MAILS_PER_ACCOUNT, REQUESTS_PER_ADDRESS
from app.db import db, writing
from app.db.tables import PersonRow, RecoveryRow
from app.stores import current_mail
from app.stores.mail import MAX_WAITING
from tests.alerts.sinks import mail_sink
from tests.factories import PASSWORD, make_person, now
from tests.support.command import environ_of, python
from tests.support.queries import queries
from tests.support.store import access_of
from tests.web.visitor import Visitor

NEW = "another long password"
LINK = re.compile(r"http://wakeful\.test(/new-password/[\w-]+)")


@pytest.fixture
def sink(app):
    """The mail server of this installation."""
    with mail_sink() as sink:
        url = f"smtp://127.0.0.1:{sink.port}?from=alerts@example.com"
        access_of(app).settings.set("smtp_url", url)
        yield sink


@pytest.fixture
def works(app, monkeypatch, sink):
    """The work after the answers; run by ``done``."""
    works = [sink]
    monkeypatch.setattr(app.extensions["wakeful.mail"].recoveries, "put", works.append)
    return works


def done(app, works):
    """The mails that go out after the answers."""
    sink = works[0]
    sink.mails.clear()
    while len(works) > 1:
        with app.app_context():
            works.pop(1)()
    return list(sink.mails)


def ask(app, email="ada@example.org"):
    return Visitor(app).open("/login").open("/login/forgotten").press("Send link", email=email)


def link_of(mail):
    return LINK.search(mail.get_body(("plain",)).get_content())[1]


def set_password(visitor, password=NEW):
    return visitor.press("Set password", password=password, password_again=password)


def test_a_mailed_link_sets_the_password_once_and_ends_all_sessions(app, works):
    ada = make_person(app, "editor", "ada@example.org")
    elsewhere = Visitor(app).log_in(ada.email)
    ask(app)
    (mail,) = done(app, works)
    assert mail["To"] == "ada@example.org"
    path = link_of(mail)
    with app.app_context():
        row = db.session.query(RecoveryRow).one()
        assert row.expires_at - row.created_at == timedelta(hours=1)
        assert path.rpartition("/")[2] not in row.digest
    assert Visitor(app).open(path).status == 200  # as mail scanners do
    assert elsewhere.open("/monitors").path == "/monitors"
    visitor = set_password(Visitor(app).open(path), "short")
    assert (visitor.status, "The password is too short" in visitor.text) == (422, True)
    assert set_password(visitor).path == "/login", "the link is kept"
    assert "Password changed. Log in with the new one." in visitor.text
    assert elsewhere.open("/monitors").path == "/login"
    assert Visitor(app).open(path).status == 404
    assert Visitor(app).log_in(ada.email, PASSWORD).status == 422
    assert Visitor(app).log_in(ada.email, NEW).status == 302


def test_known_and_unknown_addresses_get_the_same_answer_for_the_same_work(app, works):
    make_person(app, "editor", "ada@example.org")
    answers = []
    ask(app, "warm@example.org")
    for email in ("ada@example.org", "bob@example.org"):
        with app.app_context(), queries() as sent:
            answer = ask(app, email)
        answers.append((answer.status, answer.text.replace(email, "X"), sent))
    assert answers[0] == answers[1]
    assert "If X has an account here" in answers[0][1]
    assert len(done(app, works)) == 1


def test_recovery_mail_is_sent_on_a_thread_after_the_response(app, works, monkeypatch):
    monkeypatch.undo()
    make_person(app, "editor", "ada@example.org")
    ask(app)
    thread = app.extensions["wakeful.mail"].recoveries._thread
    assert thread.daemon
    deadline = time.monotonic() + 60
    while not works[0].mails and time.monotonic() < deadline:
        time.sleep(0.02)
    assert link_of(works[0].mails[0])


def test_recovery_mails_are_limited_and_the_answer_does_not_change(app, works):
    make_person(app, "editor", "ada@example.org")
    answers = {ask(app).text for _ in range(MAILS_PER_ACCOUNT + 2)}
    assert len(answers) == 1
    assert len(done(app, works)) == MAILS_PER_ACCOUNT


def test_a_client_asks_for_few_links_an_hour(app, works):
    for number in range(REQUESTS_PER_ADDRESS):
        assert ask(app, f"p{number}@example.org").status == 200
    refused = ask(app, "p@example.org")
    assert refused.status == 429
    assert int(refused.page.headers["Retry-After"]) > 0
    assert "Too many requests for a new password." in refused.text


def test_a_link_expires(app, works):
    make_person(app, "editor", "ada@example.org")
    ask(app)
    path = link_of(*done(app, works))
    waiting = Visitor(app).open(path)
    with app.app_context(), writing() as session:
        session.query(RecoveryRow).update({"expires_at": now() - timedelta(seconds=1)})
    assert Visitor(app).open(path).status == 404
    assert set_password(waiting).status == 404
    assert Visitor(app).log_in("ada@example.org", PASSWORD).status == 302


def test_a_used_link_ends_the_others_and_so_does_a_new_email_address(app, works, admin):
    ada = make_person(app, "editor", "ada@example.org")
    ask(app)
    ask(app)
    first, second = map(link_of, done(app, works))
    set_password(Visitor(app).open(first))
    assert Visitor(app).open(second).status == 404
    ask(app)
    third = link_of(*done(app, works))
    admin.open(f"/people/{ada.id}").press("Save", email="ada@new.example")
    assert Visitor(app).open(third).status == 404


def test_somebody_without_access_gets_no_link(app, works, admin):
    ada = make_person(app, "editor", "ada@example.org")
    ask(app)
    path = link_of(*done(app, works))
    ask(app)
    admin.open(f"/people/{ada.id}").press("Save", disabled=True)
    assert done(app, works) == []
    assert Visitor(app).open(path).status == 404


def test_guessers_do_not_keep_the_owner_out(app, works):
    make_person(app, "editor", "ada@example.org")
    for _ in range(11):
        locked = Visitor(app).log_in("ada@example.org", "wrong")
    assert locked.status == 429
    ask(app)
    set_password(Visitor(app).open(link_of(*done(app, works))))
    assert Visitor(app).log_in("ada@example.org", NEW).status == 302


@pytest.mark.settings(allowed_hosts=("*",))
def test_links_never_begin_with_the_host_that_a_stranger_names(app, works):
    make_person(app, "editor", "ada@example.org")
    client = app.test_client()
    app.config["WTF_CSRF_ENABLED"] = False
    answer = client.post(
        "/login/forgotten", data={"email": "ada@example.org"}, headers={"Host": "evil.example"}
    )
    assert answer.status_code == 200
    (mail,) = done(app, works)
    assert "evil" not in mail.as_string()
    assert link_of(mail)


def test_without_email_the_page_sends_people_to_an_admin(app, stranger):
    stranger.open("/login/forgotten").shows("Ask an admin to create a password link")
    assert stranger.forms == []
    with app.app_context():
        assert not current_mail().is_set()


def test_an_admin_makes_a_link_that_works_once_for_a_day(app, admin):
    ada = make_person(app, "editor", "ada@example.org")
    assert admin.open(f"/people/{ada.id}").press("Create a link").status == 201
    assert admin.page.headers["Cache-Control"] == "no-store"
    path = LINK.search(admin.page.text)[1]
    with app.app_context():
        row = db.session.query(RecoveryRow).one()
        assert row.expires_at - row.created_at == timedelta(hours=24)
    assert set_password(Visitor(app).open(path)).path == "/login"
    assert Visitor(app).open(path).status == 404
    assert Visitor(app).log_in(ada.email, NEW).status == 302


def test_the_first_login_takes_the_browsers_zone_and_later_ones_do_not(app):
    ada = make_person(app, "editor", "ada@example.org")

    notices = []

    def log_in(zone):
        visitor = Visitor(app).open("/login")
        visitor.press("Log in", email=ada.email, password=PASSWORD, time_zone=zone)
        notices.append("Times are shown in the time zone of your browser" in visitor.text)
        with app.app_context():
            return db.session.get(PersonRow, ada.id).time_zone

    assert log_in("Asia/Calcutta") == "Asia/Kolkata"  # as Chromium names it
    assert log_in("Europe/Berlin") == "Asia/Kolkata"
    with app.app_context(), writing() as session:
        row = session.get(PersonRow, ada.id)
        row.time_zone, row.last_login_at = "UTC", None
    assert log_in("Mars/Base") == "UTC"
    assert notices == [True, False, False]


def test_a_stored_zone_that_is_not_offered_stays_selectable(app):
    ada = make_person(app, "editor", "ada@example.org")
    with app.app_context(), writing() as session:
        session.get(PersonRow, ada.id).time_zone = "Etc/GMT+5"
    visitor = Visitor(app).log_in(ada.email)
    visitor.open("/profile").press("Save", theme="dark").shows("Profile saved.")
    assert access_of(app).people.get(ada.id).time_zone == "Etc/GMT+5"
    assert "EST5EDT" not in visitor.open("/profile").page.text


def test_with_a_hundred_mails_waiting_who_asks_gets_a_sentence_and_a_notice_still_goes_out(
    app, sink, caplog
):
    """They were dropped without a line, and strangers can ask for that many."""
    make_person(app, email="ada@example.org")
    release, begun, sent = threading.Event(), threading.Event(), threading.Event()

    def hang():
        begun.set()
        release.wait(60)

    with app.app_context():
        mail = current_mail()
        mail.recoveries.put(hang)
        assert begun.wait(60)
        for _ in range(MAX_WAITING):
            mail.recoveries.put(lambda: None)
    visitor = ask(app)
    visitor.shows("Too many emails are waiting, so it was not sent.", status=429)
    with app.app_context():
        for _ in range(3):
            mail.recoveries.put(lambda: None)
        tell = mail.send_second_factor
        mail.send_second_factor = lambda *args: (tell(*args), sent.set())[0]
        mail.notify_of_second_factor("ada@example.org", "A passkey was added.")
    assert sent.wait(60)
    assert [mail["Subject"] for mail in sink.mails] == ["The second factor of your Wakeful account"]
    release.set()
    lines = [record.getMessage() for record in caplog.records if record.name == "app.stores.mail"]
    assert lines == [
        "100 recovery links wait to be mailed, and more are dropped. Is the mail server slow?"
    ]


def test_the_end_of_the_process_sends_what_waits_and_logs_what_is_lost(app, monkeypatch, caplog):
    release, sent = threading.Event(), threading.Event()
    with app.app_context():
        mail = current_mail()
        mail.recoveries.put(sent.set)
        mail.close()
        assert sent.is_set()
        mail.recoveries.put(lambda: release.wait(60))
        mail.recoveries.put(sent.clear)
        monkeypatch.setattr("app.stores.mail.STOP_SECONDS", 0.05)
        mail.close()
    release.set()
    assert "At the stop, 2 recovery links were not mailed yet. They are lost." in caplog.text


def test_the_end_of_any_web_server_sends_what_waits(app):
    script = (
        "import atexit, time, wsgi; wsgi.app.app_context().push();"
        "mail = wsgi.app.extensions['wakeful.mail'];"
        "mail.recoveries.put(lambda: (time.sleep(0.5), print('mailed', flush=True)));"
        "atexit._run_exitfuncs()"  # as at the end of a program that was not forked
    )
    environ = environ_of(app.extensions["wakeful.settings"])
    done = python(script, [], environ)
    assert (done.stdout, done.returncode) == ("mailed\n", 0), done.stderr
