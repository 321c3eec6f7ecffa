"""Monitors of both kinds over the API: ``kind`` is returned and never sent (decision 3)."""

from __future__ import annotations

from contextlib import closing

from sqlalchemy import select

from app.checks.kinds import FIELDS, KINDS, kinds_with
from app.db import db
from app.db.tables import AuditRow
from tests.lab.net import ClosedPort, Listener
from tests.lab.tcp import greeting


def test_section_3_the_kind_follows_the_url_and_is_not_sent(api):
    monitor = api.monitor(url="tcp://127.0.0.1:25")
    assert (monitor["kind"], monitor["url"]) == ("tcp", "tcp://127.0.0.1:25")
    path = f"/monitors/{monitor['id']}"
    assert list(api.errors("PATCH", path, data={"kind": "http"})) == ["kind"]
    assert api.data("PATCH", path, data={"url": "HTTPS://shop.test"})["kind"] == "http"
    assert [record["kind"] for record in api.get("/monitors")["data"]] == ["http"]


def test_section_3_the_fields_of_another_kind_are_refused_by_name(api):
    path = f"/monitors/{api.monitor(url='tcp://127.0.0.1:25')['id']}"
    sent = {"request_method": "PUT", "follow_redirects": "0", "ssl_alert_days": "7"}
    assert sorted(api.errors("PATCH", path, data=sent)) == sorted(sent)
    empty = {"request_method": "", "follow_redirects": "1", "ssl_alert_days": None}
    assert api.data("PATCH", path, json=empty)["request_method"] == "GET"
    shop = api.monitor(request_auth_username="ada", request_auth_password="secret")
    path = f"/monitors/{shop['id']}"
    moved = {"url": "tcp://127.0.0.1:25", "request_auth_username": ""}
    assert list(api.errors("PATCH", path, data=moved)) == ["request_auth_password"]
    assert api.data("PATCH", path, data=moved | {"request_auth_password": ""})["kind"] == "tcp"


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


def test_a_port_is_checked_now_and_before_saving(api):
    with closing(Listener(greeting)) as mail, closing(ClosedPort()) as closed:
        path = f"/monitors/{api.monitor(url=f'tcp://127.0.0.1:{mail.port}')['id']}"
        result = api.data("POST", path + "/check")
        sent = {"url": f"tcp://127.0.0.1:{closed.port}"}
        refused = api.data("POST", "/checks", data=sent)
    assert (result["verdict"], result["status_code"], result["ip"]) == ("up", None, "127.0.0.1")
    assert list(result["timings"]) == ["dns", "connect", "tls", "ttfb", "download"]
    assert result["timings"]["connect"] == result["response_time"]
    (place,) = result.pop("places")
    assert api.get(path + "/results")["data"] == [result] == [place["result"]]
    assert (refused["verdict"], refused["cause_code"]) == ("down", "connection_refused")


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
