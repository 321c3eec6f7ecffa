"""Second factors: set up, asked for at login, recovered, required by role, reset."""

import hashlib
import re
from base64 import b32encode
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pyotp
import pytest

from app.access import passwords, pending_logins, second_factor
from app.access.pending_logins import LIFETIME
from app.access.people import LOGIN_WINDOW_SECONDS, LOGINS_PER_ACCOUNT
from app.db import db, writing
from app.db.tables import AuditRow, AuthenticatorAppRow, PendingLoginRow, PersonRow, RecoveryCodeRow
from app.db.unreadable import scan
from app.errors import Invalid, WakefulError
from app.pages.visitors import Visitors
from app.web.frame import session as sessions
from tests.alerts.sinks import mail_sink
from tests.factories import PASSWORD, make_key, make_person
from tests.support.logins import CODES, EMAIL, is_in, pending_login
from tests.support.queries import queries
from tests.support.store import access_of
from tests.web.visitor import Visitor, blank_pages, token

SECRET = re.compile(r'<code id="secret">([A-Z2-7 ]+)</code>')


class Phone:
    """Ada's authenticator app: it has the secret, and a clock of its own."""

    def __init__(self, access, secret):
        self.access, self.totp = access, pyotp.TOTP(secret)

    def code(self, ahead=0):
        return self.totp.at(self.access.clock() + timedelta(seconds=ahead))


def begin(visitor):
    """Open the page that sets up an app; the secret that it shows."""
    visitor.open("/profile/two-factor/app")
    return SECRET.search(visitor.page.text)[1].replace(" ", "")


def confirm(visitor, phone, password=PASSWORD):
    return visitor.press("Confirm", second_code=phone.code(), current_password=password)


@pytest.fixture
def secured(app, access, ada):
    """Ada, logged in, with an app and recovery codes."""
    visitor, factors = Visitor(app), access.factors
    with app.app_context():
        secret, sealed = factors.start_app(ada.id)
        visitor.phone = Phone(access, secret)
        code = visitor.phone.code()
        person, visitor.codes = factors.add_app(ada.id, sealed, code, current=PASSWORD)
    visitor.let_in(person)
    access.clock.advance(seconds=30)  # the code that confirmed it counts as used
    return visitor


def test_an_app_is_set_up_with_a_picture_a_key_and_a_first_code(app, access, ada):
    elsewhere = Visitor(app).log_in(EMAIL)
    visitor = Visitor(app).log_in(EMAIL)
    phone = Phone(access, begin(visitor))
    assert "<svg" in visitor.page.text
    wrong = visitor.press("Confirm", second_code="000000", current_password=PASSWORD)
    assert (wrong.status, "This code is wrong" in wrong.text) == (422, True)
    assert SECRET.search(wrong.page.text)[1].replace(" ", "") == phone.totp.secret, "kept"
    wrong = confirm(visitor, phone, "not her password")
    assert (wrong.status, "The current password is wrong." in wrong.text) == (422, True)
    made = confirm(visitor, phone)
    assert (made.status, made.page.headers["Cache-Control"]) == (201, "no-store")
    codes = CODES.findall(made.text)
    assert len(set(codes)) == second_factor.RECOVERY_CODES
    assert "shown only once" in made.text
    assert is_in(visitor), "in a new session"
    assert not is_in(elsewhere), "every other session ends"
    page = visitor.open("/profile/two-factor")
    assert "10 codes are left." in page.text
    assert not set(CODES.findall(page.text)), "never shown again"
    with app.app_context():
        stored = db.session.connection().exec_driver_sql("SELECT * FROM authenticator_apps").one()
        assert phone.totp.secret not in str(stored)
        digests = set(db.session.scalars(db.select(RecoveryCodeRow.digest)))
        assert digests == {second_factor.digest_of_code(code, 1) for code in codes}


def test_the_password_alone_opens_nothing(app, secured):
    visitor = Visitor(app).log_in(EMAIL)
    for path in ("/", "/monitors", "/profile", "/profile/two-factor", "/login/second"):
        assert visitor.open(path).path in ("/login", "/login/second")
    with app.app_context():
        assert db.session.get(PersonRow, 1).last_login_at is None
    visitor.press("Log in", second_code=secured.phone.code())
    assert is_in(visitor)
    with app.app_context():
        assert db.session.get(PersonRow, 1).last_login_at, "now it counts as a login"


def test_login_goes_on_to_the_page_that_was_asked_for_and_to_no_other_site(app, secured):
    visitor = Visitor(app).open("/incidents")
    visitor.press("Log in", email=EMAIL, password=PASSWORD)
    assert visitor.press("Log in", second_code=secured.phone.code()).path == "/incidents"
    for evil in ("https://evil.example/", "//evil.example", "/\\evil.example"):
        visitor = Visitor(app).open("/login", query_string={"next": evil})
        visitor.press("Log in", email=EMAIL, password=PASSWORD)
        visitor.press("Log in with this code", recovery_code=secured.codes.pop())
        assert (visitor.path, visitor.page.request.host) == ("/", "localhost")


def test_a_phone_may_be_one_period_off(access):
    secret = pyotp.random_base32()
    access.clock.now = access.clock.now.replace(second=0)
    for ahead, right in ((-61, False), (-30, True), (0, True), (30, True), (61, False)):
        code = Phone(access, secret).code(ahead)
        assert (second_factor.step_of(secret, code, access.clock()) is not None) == right, ahead


def test_codes_are_those_of_the_standard():
    # RFC 6238, appendix B: SHA-1, the last six of the eight digits.
    secret = b32encode(b"12345678901234567890").decode()
    for seconds, code in ((59, "287082"), (1111111109, "081804"), (20000000000, "353130")):
        moment = datetime.fromtimestamp(seconds, UTC)
        assert second_factor.step_of(secret, code, moment) == seconds // 30
        assert second_factor.step_of(secret, f"{code[:3]} {code[3:]}", moment) == seconds // 30
    for odd in ("", "28708", "2870820", "٢٨٧٠٨٢", "abcdef", "-28708", "287082\0"):
        assert second_factor.step_of(secret, odd, datetime.fromtimestamp(59, UTC)) is None


def test_each_code_logs_in_once(app, access, secured):
    assert pending_login(app).press("Log in", second_code=secured.phone.code(-30)).status == 422, (
        "set up by"
    )
    code = secured.phone.code()
    first, second = pending_login(app), pending_login(app)
    assert first.press("Log in", second_code=code).path == "/"
    assert second.press("Log in", second_code=code).status == 422
    assert "was used already" in second.text
    older = secured.phone.code(-30)
    assert second.press("Log in", second_code=older).status == 422, "nor an earlier one"
    access.clock.advance(seconds=30)
    assert second.press("Log in", second_code=secured.phone.code()).path == "/"


def test_after_the_clock_was_set_back_codes_work_again(app, access, secured):
    access.clock.advance(seconds=3600)
    assert pending_login(app).press("Log in", second_code=secured.phone.code()).path == "/"
    access.clock.advance(seconds=-3600)
    code = secured.phone.code()
    assert pending_login(app).press("Log in", second_code=code).path == "/"
    assert pending_login(app).press("Log in", second_code=code).status == 422, "and each once again"


def at_once(app, act, *choices):
    """Do it at the same moment with each of these arguments, in a context of its own; what each
    returned or raised.
    """

    def run(arguments):
        with app.app_context():
            try:
                return act(*arguments)
            except WakefulError as fault:
                return fault

    with ThreadPoolExecutor(len(choices)) as pool:
        return list(pool.map(run, choices))


@pytest.mark.both_databases
@pytest.mark.parametrize("how", ["code", "recovery code"])
def test_of_two_who_send_the_same_code_at_once_one_gets_in(app, access, secured, how):
    logins = access.pending_logins
    with app.app_context():
        tokens = [logins.begin(1) for _ in range(4)]
    act = logins.by_code if how == "code" else logins.by_recovery_code
    code = secured.phone.code() if how == "code" else secured.codes[0]
    outcomes = at_once(app, act, *((token, code) for token in tokens))
    assert sum(not isinstance(outcome, WakefulError) for outcome in outcomes) == 1, outcomes


@pytest.mark.both_databases
def test_of_two_requests_with_one_half_login_one_gets_in(app, access, secured):
    with app.app_context():
        token = access.pending_logins.begin(1)
    choices = [(token, code) for code in secured.codes[:4]]
    outcomes = at_once(app, access.pending_logins.by_recovery_code, *choices)
    assert sum(not isinstance(outcome, WakefulError) for outcome in outcomes) == 1, outcomes
    with app.app_context():
        assert access.factors.of(1).codes_left == 9, "the others keep their codes"


def test_recovery_codes_log_in_once_each_however_they_are_typed(app, secured):
    first, second = secured.codes[:2]
    visitor = pending_login(app).press("Log in with this code", recovery_code=first)
    assert "If you have lost your app or passkey, remove it" in visitor.text
    assert is_in(visitor)
    again = pending_login(app).press("Log in with this code", recovery_code=first)
    assert (again.status, "wrong or was used already" in again.text) == (422, True)
    sloppy = f" {second.upper().replace('-', ' ').replace('0', 'O').replace('1', 'l')} "
    assert is_in(pending_login(app).press("Log in with this code", recovery_code=sloppy))
    assert "8 codes are left." in visitor.open("/profile/two-factor").text
    for code in secured.codes[2:8]:
        visitor = pending_login(app).press("Log in with this code", recovery_code=code)
    assert "You have 2 recovery codes left." in visitor.text


def test_new_recovery_codes_end_the_old_ones(app, secured):
    page = secured.open("/profile/two-factor/codes")
    assert page.press("Make new codes", current_password="no").status == 422
    fresh = CODES.findall(page.press("Make new codes", current_password=PASSWORD).text)
    assert len(fresh) == 10
    assert not set(fresh) & set(secured.codes)
    old = pending_login(app).press("Log in with this code", recovery_code=secured.codes[0])
    assert old.status == 422
    assert is_in(pending_login(app).press("Log in with this code", recovery_code=fresh[0]))


def test_a_recovery_code_has_16_letters_and_one_slow_hash_checks_it(app, secured, monkeypatch):
    codes = second_factor.make_recovery_codes()
    assert {tuple(map(len, code.split("-"))) for code in codes} == {(4, 4, 4, 4)}
    assert len(set(second_factor.CODE_LETTERS)) == 32
    calls, hash_slowly = [], passwords.hash_secret_raw

    def counted(*given, **more):
        calls.append(given)
        return hash_slowly(*given, **more)

    monkeypatch.setattr(passwords, "hash_secret_raw", counted)
    assert is_in(pending_login(app).press("Log in with this code", recovery_code=secured.codes[9]))
    assert len(calls) == 1
    with app.app_context():
        digests = {second_factor.digest_of_code(codes[0], person) for person in (1, 2)}
    assert len(digests) == 2, "each person has a salt"


def test_codes_of_28_letters_that_were_made_before_go_on_working(app, secured):
    old = "0123456-789abcd-efghjkm-npqrstv"
    digest = hashlib.sha256(old.replace("-", "").encode()).hexdigest()
    with app.app_context(), writing() as session:
        session.add(RecoveryCodeRow(person_id=1, digest=digest))
    assert is_in(pending_login(app).press("Log in with this code", recovery_code=old.upper()))
    assert not is_in(pending_login(app).press("Log in with this code", recovery_code=old))


def test_codes_cannot_be_guessed(app, access, secured):
    for _ in range(LOGINS_PER_ACCOUNT):
        assert pending_login(app).press("Log in", second_code="000000").status == 422
    visitor = pending_login(app)
    locked = visitor.press("Log in", second_code=secured.phone.code())
    assert (locked.status, "Too many attempts" in locked.text) == (429, True)
    assert int(locked.page.headers["Retry-After"]) > 0
    by_code = pending_login(app).press("Log in with this code", recovery_code=secured.codes[0])
    assert by_code.status == 429, "one count for all ways"
    access.clock.advance(seconds=LOGIN_WINDOW_SECONDS)
    assert pending_login(app).press("Log in", second_code=secured.phone.code()).path == "/"


def test_whoever_waits_between_guesses_is_stopped_for_hours(app, access, secured, monkeypatch):
    many = 2 * LOGINS_PER_ACCOUNT
    monkeypatch.setattr(pending_logins, "LONG_WINDOW_MAX", many)
    access.clock.now = access.clock.now.replace(hour=1, minute=0, second=0) + timedelta(days=1)
    for guess in range(many):
        if guess and guess % LOGINS_PER_ACCOUNT == 0:
            access.clock.advance(seconds=LOGIN_WINDOW_SECONDS)
        with app.app_context(), pytest.raises(Invalid):
            access.pending_logins.by_code(access.pending_logins.begin(1), "000000")
    access.clock.advance(seconds=LOGIN_WINDOW_SECONDS)
    assert pending_login(app).press("Log in", second_code="000000").status == 429
    access.clock.advance(seconds=12 * 3600)
    assert pending_login(app).press("Log in", second_code=secured.phone.code()).path == "/"


@pytest.mark.both_databases
def test_guesses_at_once_all_count(app, access, secured):
    with app.app_context():
        tokens = [access.pending_logins.begin(1) for _ in range(LOGINS_PER_ACCOUNT + 4)]
    outcomes = at_once(app, access.pending_logins.by_code, *((token, "000000") for token in tokens))
    names = [type(outcome).__name__ for outcome in outcomes]
    assert (names.count("Invalid"), names.count("Throttled")) == (LOGINS_PER_ACCOUNT, 4)


def test_a_half_login_ends_after_ten_minutes(app, access, secured):
    visitor = pending_login(app)
    access.clock.advance(seconds=LIFETIME.total_seconds() - 1)
    assert visitor.open("/login/second").path == "/login/second"
    access.clock.advance(seconds=1)
    late = visitor.press("Log in", second_code=secured.phone.code())
    assert late.path == "/login"
    assert "The login took too long" in late.text
    with app.app_context():
        access.pending_logins.forget_old()
        assert db.session.query(PendingLoginRow).count() == 0


def test_a_half_login_is_of_its_browser_and_for_one_login(app, secured):
    visitor = pending_login(app)
    cookie = visitor.client.get_cookie("wakeful")
    other = Visitor(app).open("/login/second")
    assert other.path == "/login"
    assert visitor.press("Log in", second_code=secured.phone.code()).path == "/"
    thief = Visitor(app)
    thief.client.set_cookie("wakeful", cookie.value)
    assert thief.open("/login/second").path == "/login", "the copy of its cookie is worth nothing"


@pytest.mark.parametrize(
    "end",
    [
        lambda access: access.people.update(1, {"disabled": True}),
        lambda access: access.people.update(1, {"role": "viewer"}),
        lambda access: access.people.update(1, {"email": "other@example.org"}),
        lambda access: access.people.change_password(1, "another long passphrase"),
        lambda access: access.factors.reset(1),
        lambda access: access.people.delete(1),
    ],
    ids=["disabled", "role", "email", "password", "reset", "deleted"],
)
def test_what_ends_sessions_ends_pending_logins(app, access, secured, end):
    visitor = pending_login(app)
    with app.app_context():
        end(access)
    assert visitor.press("Log in", second_code=secured.phone.code()).path == "/login"
    assert not is_in(visitor)


def test_the_second_step_needs_the_pages_token(app, secured):
    visitor = pending_login(app)
    answer = visitor.client.post("/login/second", data={"second_code": secured.phone.code()})
    assert answer.status_code == 400
    assert not is_in(visitor)
    answer = secured.client.post("/login/second", data=token(secured.open("/profile")))
    assert answer.location.startswith("/login")
    assert is_in(secured), "who is logged in stays so"


def test_removing_it_needs_the_password_and_ends_other_sessions(app, access, secured):
    other = pending_login(app).press("Log in", second_code=secured.phone.code())
    page = secured.open("/profile/two-factor/app/remove")
    assert "your only second factor" in page.text
    assert page.press("Remove the app", current_password="no").status == 422
    assert page.press("Remove the app", current_password=PASSWORD).path == "/profile/two-factor"
    assert "You are logged out everywhere else." in page.text
    assert is_in(secured)
    assert not is_in(other)
    assert Visitor(app).log_in(EMAIL).page.location == "/"
    with app.app_context():
        assert access.factors.of(1).codes_left == 0, "codes alone would be none"


def test_the_password_cannot_be_guessed_where_it_is_asked_for(app, secured):
    secured.open("/profile/two-factor/app/remove")
    for _ in range(LOGINS_PER_ACCOUNT):
        assert secured.press("Remove the app", current_password="no").status == 422
    assert secured.press("Remove the app", current_password=PASSWORD).status == 429
    assert secured.open("/profile/two-factor").text.count("Remove the app") == 1


def test_a_page_of_another_account_sets_nothing_up(app, access, secured):
    mallory = make_person(app, "viewer", "mallory@example.org")
    visitor = Visitor(app).log_in(mallory.email)
    visitor.phone = Phone(access, begin(visitor))
    sealed = dict(visitor.form_with("Confirm")[0].values)["sealed"]
    secured.open("/profile/two-factor/app")
    answer = secured.press(
        "Confirm", sealed=sealed, second_code=visitor.phone.code(), current_password=PASSWORD
    )
    assert answer.status == 422
    assert "This page belongs to another account." in answer.text
    assert is_in(pending_login(app).press("Log in", second_code=secured.phone.code()))


def test_a_secret_that_cannot_be_read_lets_nobody_in_and_says_what_to_do(app, secured):
    with app.app_context(), writing() as session:
        session.connection().exec_driver_sql("UPDATE authenticator_apps SET secret = 'damaged'")
    visitor = pending_login(app)
    assert "cannot be read on the server" in visitor.text
    assert not any(name == "Log in" for form in visitor.forms for name, *_ in form.buttons)
    assert is_in(visitor.press("Log in with this code", recovery_code=secured.codes[0]))
    assert "The stored secret cannot be read" in visitor.open("/profile/two-factor").text
    with app.app_context():
        (broken,) = scan()
        assert str(broken) == (
            "The secret of authenticator app of person 1 cannot be read, because the value is "
            "damaged"
        )
    phone = Phone(secured.phone.access, begin(visitor))
    confirm(visitor, phone)
    assert visitor.open("/profile/two-factor").text.count("Change the app") == 1


def test_the_person_is_notified_by_mail(app, access, ada, monkeypatch):
    works = []
    monkeypatch.setattr(app.extensions["wakeful.mail"].notices, "put", works.append)
    with mail_sink() as sink:
        url = f"smtp://127.0.0.1:{sink.port}?from=alerts@example.com"
        access_of(app).settings.set("smtp_url", url)
        visitor = Visitor(app).log_in(EMAIL)
        phone = Phone(access, begin(visitor))
        confirm(visitor, phone)
        codes = CODES.findall(visitor.text)
        pending_login(app).press("Log in with this code", recovery_code=codes[0])
        with app.app_context():
            while works:
                works.pop(0)()
        texts = [mail.get_body(("plain",)).get_content() for mail in sink.mails]
    assert [mail["To"] for mail in sink.mails] == [EMAIL, EMAIL]
    assert "An authenticator app was set up. If it was not you, change your password" in texts[0]
    assert "Somebody logged in with a recovery code of this account." in texts[1]
    assert not any(phone.totp.secret in text or codes[0] in text for text in texts)


# --- Required by role


@pytest.fixture
def required(app, admin):
    """Editors need a second factor."""
    admin.open("/settings").press("Save roles", editor=True)
    return admin


def test_the_settings_count_who_has_none_in_a_fixed_number_of_queries(app, access, required):
    make_person(app, "editor", EMAIL)
    counts = []
    for sentence in ("1 person has none yet.", "4 people have none yet."):
        with app.app_context(), queries() as sent:
            assert sentence in required.open("/settings").text
        counts.append(len(sent))
        for number in range(3):
            make_person(app, "editor", f"bob{number}{sentence[0]}@example.org")
    assert counts[0] == counts[1]


def test_whoever_needs_one_sets_it_up_first_and_can_do_nothing_else(app, access, required):
    make_person(app, "editor", EMAIL)
    assert "1 person has none yet." in required.open("/settings").text
    visitor = Visitor(app).open("/login").press("Log in", email=EMAIL, password=PASSWORD)
    assert visitor.path == "/profile/two-factor"
    assert "Your role requires one." in visitor.text
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint not in OPEN]
    rules = [rule for rule in rules if not rule.rule.startswith(PROGRAMS)]
    assert len(rules) > 100
    proof = token(visitor)
    for rule in rules:
        path = rule.build({name: 1 if "int" in str(rule) else "x" for name in rule.arguments})[1]
        for method in rule.methods & {"GET", "POST"}:
            with blank_pages():
                answer = visitor.client.open(path, method=method, data=proof)
            led = answer.status_code == 302 and answer.location == "/profile/two-factor"
            assert led or answer.status_code == 403, f"{method} {path}: {answer.status_code}"
    phone = Phone(access, begin(visitor))
    assert confirm(visitor, phone).status == 201
    assert is_in(visitor)


PROGRAMS = ("/api", "/healthz", "/readyz", "/metrics")
# What strangers may open too, or what sets a second factor up.
OPEN = {
    "auth.login", "auth.logout", "auth.setup", "account.forgotten", "account.recover",
    "account.join", "acknowledge.page", "static", "bootstrap.static", "screen.show",
    "second.show", "second.code", "second.recovery", "second.passkey", "second.passkey_request",
    "two_factor.show", "two_factor.app", "two_factor.new_passkey", "two_factor.passkey_options",
    "docs.index", "docs.show", "docs.picture", "docs.search",
}  # fmt: skip


def test_a_required_factor_cannot_be_removed_and_keys_go_on(app, access, required, client):
    make_person(app, "editor", EMAIL)
    visitor = Visitor(app).log_in(EMAIL)
    confirm(visitor, Phone(access, begin(visitor)))
    page = visitor.open("/profile/two-factor/app/remove")
    page.press("Remove the app", current_password=PASSWORD)
    assert page.status == 422
    assert "Your role requires a second factor" in page.text
    assert is_in(visitor)
    key = make_key(app)
    headers = {"Authorization": f"Bearer {key}"}
    assert client.get("/api/v1/monitors", headers=headers).status_code == 200


def test_a_role_that_changes_in_the_middle_is_asked_for_its_factor(app, access, required):
    person = make_person(app, "viewer", EMAIL)
    visitor = Visitor(app).log_in(EMAIL)
    assert is_in(visitor)
    with app.app_context():
        access.people.update(person.id, {"role": "editor"})
    visitor.log_in(EMAIL)
    assert visitor.open("/monitors").path == "/profile/two-factor"
    required.open("/settings").press("Save roles", editor=False)
    assert is_in(visitor), "the requirement ended"


def test_a_private_status_page_is_closed_to_whoever_has_to_set_it_up(app, access, required):
    make_person(app, "editor", EMAIL)
    visitor = Visitor(app).log_in(EMAIL)
    visitors = Visitors(app, None)  # no password is asked for
    environ = {"HTTP_COOKIE": f"wakeful={visitor.client.get_cookie('wakeful').value}"}
    assert not visitors.logged_in(environ)
    required.open("/settings").press("Save roles", editor=False)
    assert visitors.logged_in(environ)


# --- Reset by an admin


def test_an_admin_sees_who_has_one_and_resets_it(app, access, secured, admin):
    row = next(line for line in admin.open("/people").page.text.split("<tr>") if EMAIL in line)
    assert re.search(r'data-label="Second factor">Yes', row)
    page = admin.open("/people/1")
    admin.open("/people/1/second-factor/reset")
    assert f"Reset the second factor of {EMAIL}?" in page.text
    page.press("Reset second factor")
    assert f"Second factor of {EMAIL} reset." in page.text
    assert not is_in(secured), "they are logged out"
    assert Visitor(app).log_in(EMAIL).page.location == "/"
    with app.app_context():
        assert not access.people.get(1).second_factor
        assert db.session.query(AuthenticatorAppRow).count() == 0
        assert db.session.query(RecoveryCodeRow).count() == 0


def test_nobody_resets_their_own_without_the_password(app, access, secured):
    with app.app_context():
        access.people.update(1, {"role": "admin"})
    boss = pending_login(app).press("Log in", second_code=secured.phone.code())
    app.config["WTF_CSRF_ENABLED"] = False
    assert boss.client.post("/people/1/second-factor/reset").location == "/profile/two-factor"
    with app.app_context():
        assert access.people.get(1).second_factor


def test_a_mailed_password_link_still_asks_for_the_second_factor(app, access, secured):
    with app.app_context():
        token = access.recovery.make_link(1)
    visitor = Visitor(app).open(f"/new-password/{token}")
    new = "another long passphrase"
    visitor.press("Set password", password=new, password_again=new)
    assert visitor.press("Log in", email=EMAIL, password=new).path == "/login/second"
    assert sessions.PENDING_LOGIN == "half_login"


def test_the_log_and_the_audit_log_say_what_happened_and_hold_no_secret(app, access, ada, caplog):
    caplog.set_level("INFO", logger="app.access.security_log")
    visitor = Visitor(app).log_in(EMAIL)
    phone = Phone(access, begin(visitor))
    confirm(visitor, phone)
    codes = CODES.findall(visitor.text)
    pending_login(app).press("Log in", second_code="000000")
    pending_login(app).press("Log in with this code", recovery_code=codes[0])
    pending_login(app)
    with app.app_context():
        access.factors.reset(1)
        rows = db.session.scalars(db.select(AuditRow).order_by(AuditRow.id)).all()
        lines = [(row.action, row.object_kind, row.changes) for row in rows]
    events = re.findall(r"event=(second-factor\.\w+) who=person:1 address=\S+", caplog.text)
    expected = ("changed", "asked", "wrong", "asked", "asked", "changed")
    assert events == [f"second-factor.{event}" for event in expected]
    of_factor = [line for line in lines if line[1] == "second_factor"]
    assert [(action, list(changes)) for action, _, changes in of_factor] == [
        ("created", ["app"]),
        ("created", ["recovery_codes"]),
        ("used", ["recovery_codes"]),
        ("deleted", ["second_factor"]),
    ]
    assert ("login_failed", "person") in [line[:2] for line in lines]
    for text in (caplog.text, str(lines)):
        assert phone.totp.secret not in text
        assert not any(code in text for code in codes)


def test_somebody_in_a_known_browser_is_not_locked_out_by_others(app, access, secured):
    for _ in range(LOGINS_PER_ACCOUNT + 1):
        stranger = pending_login(app).press("Log in", second_code="000000")
    assert stranger.status == 429, "a thief with the password"
    secured.open("/profile").press("Log out")
    secured.log_in(EMAIL).open("/login/second")
    assert secured.press("Log in", second_code=secured.phone.code()).path == "/"
