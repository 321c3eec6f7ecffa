"""Monitors of both kinds over the API: ``kind`` is returned and never sent (decision 3)."""

from __future__ import annotations

from sqlalchemy import select

from app.checks.kinds import FIELDS, KINDS, kinds_with
from app.db import db
from app.db.tables import AuditRow


def test_section_3_the_kind_follows_the_url_and_is_not_sent(api):
    monitor = api.monitor(url="tcp://127.0.0.1:25")
    assert (monitor["kind"], monitor["url"]) == ("tcp", "tcp://127.0.0.1:25")
    path = f"/monitors/{monitor['id']}"
    assert list(api.errors("PATCH", path, data={"kind": "http"})) == ["kind"]
    assert api.data("PATCH", path, data={"url": "HTTPS://shop.test"})["kind"] == "http"
    assert [record["kind"] for record in api.get("/monitors")["data"]] == ["http"]


def test_section_17_a_field_of_one_kind_is_a_field_as_any_other(app, api):
    """They share a column, but each is written alone, logged by its name, and refused elsewhere."""
    shop = f"/monitors/{api.monitor()['id']}"
    assert list(api.errors("PATCH", shop, data={"starttls": "smtp"})) == ["starttls"]
    mail = api.monitor(url="tls://127.0.0.1:25", starttls="smtp")
    path = f"/monitors/{mail['id']}"
    assert mail["starttls"] == "smtp"
    assert api.data("PATCH", path, data={"name": "Mail"})["starttls"] == "smtp"
    assert list(api.errors("PATCH", path, data={"url": "tcp://127.0.0.1:25"})) == ["starttls"]
    moved = {"url": "tcp://127.0.0.1:25", "starttls": ""}
    assert api.data("PATCH", path, data=moved)["starttls"] is None
    with app.app_context():
        changes = db.session.scalars(select(AuditRow.changes).order_by(AuditRow.id)).all()
    logged = [changed["starttls"] for changed in changes if "starttls" in (changed or {})]
    assert logged == [{"old": None, "new": "smtp"}, {"old": "smtp", "new": None}]


def test_the_document_says_which_kinds_have_a_field(stranger):
    document = stranger.get("/openapi.json")
    shown = document["components"]["schemas"]["Monitor"]["properties"]["kind"]
    names = [kind.name for kind in KINDS]
    assert shown["oneOf"] == [{"type": "string", "enum": names}, {"type": "null"}]
    for path, method in (("/monitors", "post"), ("/monitors/{id}", "patch"), ("/checks", "post")):
        body = document["paths"][path][method]["requestBody"]["content"]["application/json"]
        name = body["schema"]["$ref"].rpartition("/")[2]
        fields = document["components"]["schemas"][name]["properties"]
        assert "kind" not in fields
        assert "tcp://" in fields["url"]["description"]
        only = {name: kinds for name, field in fields.items() if (kinds := field.get("x-kinds"))}
        of_some = [name for name in FIELDS if len(kinds_with(name)) < len(KINDS)]
        assert only == {name: list(kinds_with(name)) for name in of_some}
        sentence = "Only for the kind http or tls; elsewhere empty or its default."
        assert fields["verify_tls"]["description"].endswith(sentence)
