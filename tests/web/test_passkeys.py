"""Passkeys: in a real browser with a virtual authenticator, and what the server refuses."""

import base64
import hashlib
import json
from copy import copy
from datetime import timedelta

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from playwright.sync_api import expect

from app.access.passkeys import CHALLENGE_LASTS, Site
from app.db import db, writing
from app.db.tables import PasskeyChallengeRow, PasskeyRow
from app.errors import Conflict
from app.records import MAX_PASSKEYS
from tests.factories import PASSWORD, make_person
from tests.support.browser import opened
from tests.support.logins import CODES, EMAIL, is_in, pending_login
from tests.web.visitor import Visitor, token

pytestmark = pytest.mark.settings(public_url=None)

SITE = "http://localhost"


# --- In a browser


def authenticator(page):
    """Plug a security key in: it has a PIN, and somebody who touches it at once."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "usb"} | dict.fromkeys(
        ("hasUserVerification", "isUserVerified", "automaticPresenceSimulation"), True
    )
    id = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session, id["authenticatorId"]


def type_password(page):
    page.goto("/login")
    page.locator("input[name=email]:focus").wait_for()
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


@pytest.mark.browser
def test_a_passkey_is_added_logs_in_and_is_removed(app, ada, site, chromium):
    with opened(chromium, base_url=site.replace("127.0.0.1", "localhost")) as page:
        session, key = authenticator(page)
        type_password(page)
        page.goto("/profile/two-factor")
        page.get_by_role("link", name="Add a passkey").click()
        page.get_by_label("Name").fill("Blue key")
        page.get_by_label("Current password").fill("not it")
        page.get_by_role("button", name="Add passkey").click()
        expect(page.get_by_role("alert")).to_contain_text("The current password is wrong.")
        page.get_by_label("Current password").fill(PASSWORD)
        page.get_by_role("button", name="Add passkey").click()
        page.get_by_role("heading", name="Your recovery codes").wait_for()
        assert len(CODES.findall(page.inner_text("main"))) == 10
        with app.app_context():
            stored = db.session.query(PasskeyRow).one()
            assert (stored.host, stored.verifies) == ("localhost", True)
        page.get_by_role("link", name="I have saved them").click()
        page.get_by_role("button", name="Log out").click()

        type_password(page)
        page.get_by_role("heading", name="Second step").wait_for()
        session.send("WebAuthn.setUserVerified", {"authenticatorId": key, "isUserVerified": False})
        page.get_by_role("button", name="Use a passkey").click()
        sentence = "The passkey could not be verified."
        failed = page.get_by_text("The browser gave no passkey").or_(page.get_by_text(sentence))
        failed.wait_for()
        session.send("WebAuthn.setUserVerified", {"authenticatorId": key, "isUserVerified": True})
        page.get_by_role("button", name="Use a passkey").click()
        page.get_by_role("heading", name="Second step").wait_for(state="detached")
        page.goto("/profile/two-factor")
        expect(page.get_by_role("row", name="Blue key")).to_contain_text("just now")
        with app.app_context():
            counts = [row.sign_count for row in db.session.query(PasskeyRow)]
            assert counts[0] > stored.sign_count

        page.get_by_role("link", name="Remove Blue key").click()
        page.get_by_label("Current password").fill(PASSWORD)
        page.get_by_role("button", name="Remove the passkey").click()
        page.get_by_text("A passkey was removed.").wait_for()
        page.get_by_role("button", name="Log out").click()
        type_password(page)
        page.get_by_role("heading", name="Log in").wait_for(state="detached")
        assert page.url.endswith("/"), "the password alone"


# --- A key of software, for what no browser would send


class Key:
    """An authenticator of our own, which can lie. ES256, without attestation."""

    def __init__(self, host="localhost", origin=SITE, *, verifies=True, counts=True):
        self.host, self.origin, self.verifies = host, origin, verifies
        self.counts, self.count = counts, 0
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.id = b"key of software " + bytes(str(id(self)), "ascii")

    def _client(self, kind, challenge):
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _data(self, more=b""):
        self.count += self.counts
        flags = 0x01 | (0x04 if self.verifies else 0) | (0x40 if more else 0)
        digest = hashlib.sha256(self.host.encode()).digest()
        return digest + bytes([flags]) + self.count.to_bytes(4, "big") + more

    def create(self, options):
        public = self.private.public_key().public_numbers()
        x, y = (number.to_bytes(32, "big") for number in (public.x, public.y))
        cose = {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        more = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + cbor2.dumps(cose)
        made = {"fmt": "none", "attStmt": {}, "authData": self._data(more)}
        return self._answer(
            clientDataJSON=self._client("webauthn.create", options["challenge"]),
            attestationObject=cbor2.dumps(made),
        )

    def get(self, options):
        client, data = self._client("webauthn.get", options["challenge"]), self._data()
        signature = self.private.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        return self._answer(clientDataJSON=client, authenticatorData=data, signature=signature)

    def _answer(self, **response):
        return json.dumps({
            "id": text(self.id), "rawId": text(self.id), "type": "public-key",
            "response": {name: text(value) for name, value in response.items()},
        })  # fmt: skip


def text(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def ask_to_add(visitor, password=PASSWORD):
    visitor.open("/profile/two-factor/passkeys/new")
    data = token(visitor) | {"name": "Soft key", "current_password": password}
    return visitor.client.post("/profile/two-factor/passkeys/options", data=data)


def add(visitor, key, name="Soft key"):
    options = ask_to_add(visitor).json
    fields = {"credential": key.create(options), "current_password": PASSWORD}
    return visitor.press("Add passkey", name=name, **fields)


def ask_to_use(visitor):
    values = dict(visitor.form_with("Use a passkey")[0].values)
    data = {"csrf_token": values["csrf_token"]}
    return visitor.client.post("/login/second/passkey/request", data=data)


def use(visitor, key):
    return visitor.press("Use a passkey", credential=key.get(ask_to_use(visitor).json))


@pytest.fixture
def owner(app, access, ada):
    """Ada, logged in, with a passkey."""
    visitor = Visitor(app).log_in(EMAIL)
    visitor.key = Key()
    add(visitor, visitor.key)
    visitor.codes = CODES.findall(visitor.text)
    assert len(visitor.codes) == 10
    return visitor


def test_a_signature_logs_in_once(app, owner):
    visitor, other = pending_login(app), pending_login(app)
    answer = owner.key.get(ask_to_use(visitor).json)
    assert other.press("Use a passkey", credential=answer).status == 422, "of another browser"
    assert is_in(visitor.press("Use a passkey", credential=answer))
    again = pending_login(app)
    ask_to_use(again)
    assert again.press("Use a passkey", credential=answer).status == 422
    assert "could not be verified" in again.text
    assert not is_in(again)


def test_a_challenge_ends_with_the_first_answer_and_after_five_minutes(app, access, owner):
    visitor = pending_login(app)
    options = ask_to_use(visitor).json
    assert visitor.press("Use a passkey", credential="{}").status == 422
    late = visitor.press("Use a passkey", credential=owner.key.get(options))
    assert (late.status, "This took too long" in late.text) == (422, True)
    options = ask_to_use(visitor).json
    access.clock.now += CHALLENGE_LASTS
    assert visitor.press("Use a passkey", credential=owner.key.get(options)).status == 422
    options = ask_to_use(visitor).json
    access.clock.now += CHALLENGE_LASTS - timedelta(seconds=1)
    with app.app_context():
        access.passkeys.forget_old()
        assert db.session.query(PasskeyChallengeRow).count() == 1
    assert is_in(visitor.press("Use a passkey", credential=owner.key.get(options)))


def test_a_lying_key_does_not_log_in(app, owner):
    for lie in (
        {"origin": "https://localhost"},
        {"origin": "http://localhost.evil.example"},
        {"host": "evil.example"},
        {"verifies": False},
        {"count": 0},
        {"private": Key().private},
        {"id": b"of nobody"},
    ):
        key = copy(owner.key)
        vars(key).update(lie)
        visitor = use(pending_login(app), key)
        assert visitor.status == 422, lie
        assert "The passkey could not be verified. Try again." in visitor.text, lie
        assert not is_in(visitor), lie


def test_nonsense_is_refused_with_a_sentence(app, owner):
    empty = json.dumps({"id": "a", "rawId": "a", "type": "public-key", "response": {}})
    visitor = pending_login(app)
    for answer in ("", "x", "[]", "null", '{"id": 5}', '{"id": "\\u0000"}', "[" * 20_000, empty):
        ask_to_use(visitor)
        visitor.press("Use a passkey", credential=answer)
        assert (visitor.status, "Login failed" in visitor.text) == (422, True), answer[:12]
        ask_to_add(owner)
        owner.press("Add passkey", credential=answer, name="Odd", current_password=PASSWORD)
        assert owner.status == 422, answer[:12]


def test_a_key_that_asks_for_nothing_works_and_need_not_count(app, access, ada):
    visitor = Visitor(app).log_in(EMAIL)
    key = Key(verifies=False, counts=False)
    add(visitor, key)
    assert is_in(use(pending_login(app), key))
    assert is_in(use(pending_login(app), key))


def test_a_passkey_of_somebody_else_does_not_log_in(app, access, owner):
    mallory = make_person(app, "viewer", "mallory@example.org")
    visitor = Visitor(app).log_in(mallory.email)
    key = Key()
    add(visitor, key)
    victim = pending_login(app)
    assert use(victim, key).status == 422
    assert not is_in(victim)
    again = add(visitor, owner.key)
    assert (again.status, "This passkey was added already." in again.text) == (422, True)


def test_adding_needs_the_password_a_name_and_the_challenge_of_this_session(app, access, owner):
    assert ask_to_add(owner, "not it").status_code == 422
    assert add(owner, Key(), name="  ").status == 422
    assert add(owner, Key(), name="x" * 81).status == 422
    other = pending_login(app).press("Log in with this code", recovery_code=owner.codes[0])
    options = ask_to_add(other).json
    stolen = {"credential": Key().create(options), "current_password": PASSWORD}
    owner.open("/profile/two-factor/passkeys/new").press("Add passkey", name="x", **stolen)
    assert (owner.status, "could not be verified" in owner.text) == (422, True)
    without = owner.press("Add passkey", name="x", current_password=PASSWORD)
    assert "Passkeys need JavaScript" in without.text
    with app.app_context():
        assert db.session.query(PasskeyRow).count() == 1


def keep_another(number):
    """Store a passkey like the first one."""
    with writing() as session:
        row = session.query(PasskeyRow).order_by(PasskeyRow.id).first()
        values = {"credential": f"other{number}", "name": f"Key {number}"}
        kept = ("person_id", "host", "public_key", "sign_count", "verifies", "created_at")
        session.add(PasskeyRow(**values, **{name: getattr(row, name) for name in kept}))


def test_there_are_twenty_passkeys_at_most_also_where_two_were_asked_for_at_once(
    app, access, owner
):
    keys = {holder: Key() for holder in ("one tab", "another")}
    site = Site("localhost", SITE)
    with app.app_context():
        for number in range(MAX_PASSKEYS - 2):
            keep_another(number)
        asked = {
            holder: json.loads(access.passkeys.creation_options(1, site, holder, current=PASSWORD))
            for holder in keys
        }

        def store(holder):
            made = keys[holder].create(asked[holder])
            access.passkeys.add(1, site, holder, made, holder, current=PASSWORD)

        store("one tab")
        with pytest.raises(Conflict, match="20 passkeys at most"):
            store("another")
        assert db.session.query(PasskeyRow).count() == MAX_PASSKEYS
    owner = use(pending_login(app), owner.key)  # a new one ends all sessions
    assert ask_to_add(owner).status_code == 422
    owner.press("Add passkey", name="x", current_password=PASSWORD)
    assert "There can be 20 passkeys at most." in owner.text


def test_one_passkey_of_several_is_removed(app, access, owner):
    add(owner, Key(), name="Second")
    owner.open("/profile/two-factor/passkeys/1/remove")
    assert "Your other second factors and recovery codes stay." in owner.text
    owner.press("Remove the passkey", current_password=PASSWORD)
    with app.app_context():
        assert [passkey.name for passkey in access.factors.of(1).passkeys] == ["Second"]
        assert access.factors.of(1).codes_left == 10
    assert owner.open("/profile/two-factor/passkeys/1/remove").status == 404
    make_person(app, "viewer", "mallory@example.org")
    mallory = Visitor(app).log_in("mallory@example.org")
    assert mallory.open("/profile/two-factor/passkeys/2/remove").status == 404


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("http://wakeful.example", "browsers allow them only over HTTPS"),
        ("https://192.0.2.7", "browsers do not allow them at an IP address (192.0.2.7)"),
        ("http://[::1]:8000", "browsers do not allow them at an IP address (::1)"),
        ("https://wakeful.example", None),
        ("http://localhost:8000", None),
    ],
)
def test_the_page_says_where_passkeys_cannot_work(app, ada, host, says):
    visitor = Visitor(app)
    visitor.open("/login", base_url=host)
    token_of_form = dict(visitor.form_with("Log in")[0].values)["csrf_token"]
    data = {"csrf_token": token_of_form, "email": EMAIL, "password": PASSWORD}
    headers = {"Referer": f"{host}/login"}
    visitor.client.post("/login", base_url=host, data=data, headers=headers)
    page = visitor.client.get("/profile/two-factor", base_url=host).text
    assert ("Add a passkey" in page) == (says is None)
    assert says is None or says in page


@pytest.mark.settings(public_url="https://wakeful.example")
def test_with_a_public_url_passkeys_are_of_that_address_alone(app, ada):
    access = app.extensions["wakeful.access"]
    with app.app_context():
        session = access.sessions.begin(1)
    client = app.test_client()
    for base, works in (("https://wakeful.example", True), ("https://wakeful.example:8443", False)):
        with client.session_transaction(base_url=base) as cookie:
            cookie["_user_id"] = session.session
        page = client.get("/profile/two-factor", base_url=base)
        if page.status_code == 200:
            assert ("Add a passkey" in page.text) == works
            assert works or "Open Wakeful at https://wakeful.example to use them." in page.text


def test_passkeys_of_another_address_are_named_at_the_login(app, owner):
    with app.app_context(), writing() as session:
        session.query(PasskeyRow).one().host = "old.example"
    visitor = pending_login(app)
    assert "Your passkeys were made at another address (old.example)" in visitor.text
    assert is_in(visitor.press("Log in with this code", recovery_code=owner.codes[0]))
    assert "only at old.example" in visitor.open("/profile/two-factor").text
