"""The page of API keys: owners, networks, tags, and the keys of people who leave."""

import pytest

from app.db import writing
from app.db.tables import ApiKeyRow, PersonRow
from tests.factories import make_key, make_monitor, make_person
from tests.support.store import access_of


def key_named(app, name):
    keys = access_of(app).keys.all()
    return next(key for key in keys if key.name == name)


def keys_path(app, name, what=""):
    return f"/keys/{key_named(app, name).prefix}{what}"


def test_a_key_belongs_to_who_creates_it_and_can_be_changed(app, editor):
    make_monitor(app, tags="\nprod\n")
    editor.open("/keys").press(
        "Create key", name="CI", scope="write", networks="203.0.113.7, ::ffff:10.0.0.0/104",
        tag="prod",
    )  # fmt: skip
    assert editor.status == 201
    editor.open("/keys").shows("CI", "editor@wakeful.test", "prod", "203.0.113.7/32, 10.0.0.0/8")
    editor.open(keys_path(app, "CI")).press("Save", name="CD", networks="")
    key = key_named(app, "CD")
    assert (key.networks, key.tag, key.scope) == ((), "prod", "write")
    editor.open(keys_path(app, "CD", "/revoke")).press("Revoke this key")
    assert key_named(app, "CD").revoked_at is not None
    editor.open(keys_path(app, "CD")).press("Save", name="Back")
    assert "revoked, so it cannot be changed" in editor.text


def test_what_a_key_cannot_be_bound_to_is_named_and_nothing_is_lost(editor):
    for field, value, sentence in (
        ("networks", "10.0.0.0/8, home", "'home' is neither an address nor a network"),
        ("networks", ", ".join(f"10.0.{n}.0/24" for n in range(51)), "At most 50 networks."),
        ("tag", "a,b", "without a comma"),
    ):
        editor.open("/keys").press("Create key", name="CI", **{field: value})
        assert (editor.status, sentence in editor.text) == (422, True), sentence
        assert "CI" in editor.page.text, sentence
    networks = ", ".join(f"10.0.{n}.0/24" for n in range(50))
    assert editor.press("Create key", networks=networks, tag="").status == 201


def test_a_ping_key_that_jobs_have_already_is_kept(app, editor):
    own = "aBcDeFgHiJkLmNoPqRsT-_"
    for scope, key, sentence in (
        ("ping", "short", "A ping key has 22 of"),
        ("read", own, "Only a key of scope ping"),
    ):
        editor.open("/keys").press("Create key", name="Jobs", scope=scope, own_secret=key)
        editor.shows(sentence, status=422)
    editor.open("/keys").press("Create key", name="Jobs", scope="ping", own_secret=own)
    assert editor.shows("The key", status=201).page.text.count(own) == 1
    with app.app_context():
        assert access_of(app).keys.ping_key(own, None).name == "Jobs"
    editor.open("/keys").press("Create key", name="More", scope="ping", own_secret=own)
    editor.shows("already in use", status=422)


def test_an_editor_manages_their_own_keys_and_an_admin_those_of_all(app, admin, editor):
    other = make_person(app, "editor", "eve@wakeful.test")
    make_key(app, name="Eve's", owner_id=other.id)
    make_key(app, name="Nobody's")
    assert "no owner" in editor.open("/keys").text
    assert "Eve's" in editor.text
    for name in ("Eve's", "Nobody's"):
        for what in ("", "/revoke"):
            assert editor.open(keys_path(app, name, what)).status == 403
        assert editor.open(keys_path(app, name, "/adopt")).status == 403
    admin.open(keys_path(app, "Nobody's", "/adopt")).press("Take over this key")
    assert key_named(app, "Nobody's").owner == "admin@wakeful.test"
    admin.open(keys_path(app, "Eve's")).press("Save", name="Hers")
    admin.open(keys_path(app, "Hers", "/revoke")).press("Revoke this key")
    assert key_named(app, "Hers").revoked_at is not None
    assert admin.open("/keys/unknown1").status == 404


def test_deleting_somebody_asks_what_becomes_of_their_keys(app, admin):
    ada, eve = (make_person(app, "editor", f"{name}@wakeful.test") for name in ("ada", "eve"))
    for person in (ada, eve):
        make_key(app, name=person.email, owner_id=person.id)
    admin.open(f"/people/{ada.id}/delete").shows("They own 1 API key: ada@wakeful.test.")
    assert admin.press("Delete this person").status == 422
    admin.press("Delete this person", keys="revoke").shows("Their API keys are revoked.")
    key = key_named(app, ada.email)
    assert key.revoked_at is not None
    admin.open(f"/people/{eve.id}/delete").press("Delete this person", keys="mine")
    assert "Their API keys are yours now." in admin.text
    key = key_named(app, eve.email)
    assert (key.owner, key.revoked_at) == ("admin@wakeful.test", None)
    admin.open("/audit?object_kind=key").shows("Owner eve@wakeful.test → admin@wakeful.test")


def test_closing_somebody_out_asks_it_too_and_a_lower_role_limits_their_keys(app, admin):
    ada = make_person(app, "editor", "ada@wakeful.test")
    make_key(app, name="Ada's", owner_id=ada.id)
    admin.open(f"/people/{ada.id}").press("Save", role="viewer")
    assert "(no more than its owner may)" in admin.open("/keys").text
    admin.open(f"/people/{ada.id}").press("Save", disabled=True)
    admin.shows("Choose what becomes of their API keys.", status=422)
    admin.press("Save", disabled=True, keys="mine").shows("Their API keys are yours now.")
    key = key_named(app, "Ada's")
    assert (key.owner, key.scope) == ("admin@wakeful.test", "write")
    eve = make_person(app, "editor", "eve@wakeful.test")
    form, _ = admin.open(f"/people/{eve.id}").form_with("Save")
    assert "API keys" not in form.names(), "who has none"
    admin.press("Save", disabled=True).shows("saved")


def test_only_admins_make_keys_of_scope_admin(app, admin, editor):
    assert "admin" not in editor.open("/keys").form_with("Create key")[0].choices["scope"]
    values = dict(editor.form_with("Create key")[0].values)
    values |= {"name": "CI", "scope": "admin"}
    assert editor.client.post("/keys", data=values).status_code == 422
    admin.open("/keys").press("Create key", name="Terraform", scope="admin")
    assert key_named(app, "Terraform").scope == "admin"
    ada = make_person(app, "editor", "ada@wakeful.test")
    make_key(app, "admin", name="Ada's", owner_id=ada.id)
    assert key_named(app, "Ada's").scope == "write"


@pytest.mark.parametrize("damaged", [(ApiKeyRow, "scope"), (PersonRow, "role")])
def test_a_damaged_scope_or_role_gives_the_least_and_stops_no_list(app, admin, damaged):
    ada = make_person(app, "editor", "ada@wakeful.test")
    secret = make_key(app, "write", name="Ada's", owner_id=ada.id)
    table, column = damaged
    with app.app_context(), writing() as session:
        row = session.query(table).filter_by(id=ada.id if table is PersonRow else 1).one()
        setattr(row, column, "gone")
    assert key_named(app, "Ada's").scope == "read"
    assert admin.open("/keys").status == 200
    headers = {"Authorization": f"Bearer {secret}"}
    assert app.test_client().get("/api/v1/monitors", headers=headers).status_code == 200
    assert app.test_client().delete("/api/v1/monitors/1", headers=headers).status_code == 403
