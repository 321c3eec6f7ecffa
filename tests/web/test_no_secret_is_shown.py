"""A crawl for secrets: each one is planted; viewers, read keys and the log are shown none.

The secrets come from the schema. An encrypted column, or one of a hash, that is neither planted
here nor said to hold no secret, fails by its name.
"""

import html
import logging
import re
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.api.operations import PATHS, PREFIX
from app.db import db, unreadable, writing
from app.db.settings import store_setting
from app.db.tables import AuthenticatorAppRow, MonitorRow, RecoveryCodeRow
from app.records import SECRET_FIELDS
from app.stores import current_access
from tests.factories import PASSWORD, make_incident, make_key, make_person, make_subscriber, now
from tests.pages.made import make_page, make_shown
from tests.support.web_process import installation, web_process
from tests.web.visitor import Visitor

MAX_PAGES, MAX_ALIKE = 400, 2
# Encrypted columns, by table: those that are planted here ...
PLANTED = {
    "monitors": {
        "request_headers",
        "request_auth_password",
        "request_body",
        "alerts",
        "assertions",
    },
    "contacts": {"channels"},
    "settings": {"value"},
    "subscribers": {"value"},
    "authenticator_apps": {"secret"},
    "deliveries": {"value"},
    "heartbeat_states": {"token"},
}
# ... and those that show what was seen or told, which people are meant to read.
NO_SECRETS = {
    "incidents": {"evidence"},
    "monitor_evidence": {"last_good", "failing", "asked"},
    "deliveries": {"facts"},
    "pings": {"body"},
}
# Columns of hashes. What was hashed is planted, or nobody chose it.
HASHES = {
    "api_keys.digest", "invitations.digest", "locations.token_digest", "people.password_hash",
    "recoveries.digest", "recovery_codes.digest", "sessions.digest", "status_pages.password_hash",
    "wall_links.digest", "ended_agent_tokens.digest",
    # random, and never shown: a browser alone has them
    "sessions.former_digest",
    "devices.digest", "half_logins.digest", "passkey_challenges.digest",
    # of results, of addresses that are planted in "value", and fences: not secrets
    "result_contexts.digest", "sent_forms.digest", "subscribers.digest", "shards.token",
    "deliveries.lease_token", "heartbeat_states.token", "heartbeat_states.token_hash",
}  # fmt: skip


@dataclass
class Planted:
    """The secrets, by where they stand, in the form in which they could be shown."""

    app: Flask
    secrets: dict[str, str] = field(default_factory=dict)
    viewer: FlaskClient = field(init=False)
    admin: FlaskClient = field(init=False)
    read_key: str = ""

    def canary(self, where: str) -> str:
        secret = f"canary{len(self.secrets):02}{where.replace('.', '').replace('_', '')}kept"
        self.secrets[where] = secret
        return secret

    def shown_in(self, text: str) -> list[str]:
        """The secrets that a text shows, also escaped or in an address; or half of one: a mask has
        the last four characters.
        """
        plain = text + html.unescape(text) + unquote(text)
        return [
            where for where, secret in self.secrets.items() if secret[: len(secret) // 2] in plain
        ]


@pytest.fixture
def planted(app: Flask) -> Planted:
    plan = Planted(app)
    canary = plan.canary
    write = {"Authorization": f"Bearer {make_key(app, 'admin', 'writer')}"}
    client = app.test_client()
    # Through the API, so that the audit log and the change feed have it too.
    hook = f"https://h.example/{canary('contacts.channels')}"
    contact = {"name": "Night", "channels": [{"key": "webhook", "value": hook}]}
    slack = f"https://hooks.example/{canary('monitors.alerts')}"
    monitor = {
        "name": "Shop", "url": "https://shop.example/", "interval": 60, "request_method": "POST",
        "request_auth_username": "robot",
        "request_auth_password": canary("monitors.request_auth_password"),
        "request_body": canary("monitors.request_body"),
        "request_headers": [{"key": "X-Key", "value": canary("monitors.request_headers")}],
        "alerts": [{"key": "slack", "value": slack}, {"key": "contact", "value": "Night"}],
        "assertions": [{
            "source": "header", "property": "X-Token", "op": "=",
            "value": canary("monitors.assertions"),
        }],
    }  # fmt: skip
    for path, body in (("contacts", contact), ("monitors", monitor)):
        stored = client.post(f"{PREFIX}/{path}", json=body, headers=write)
        assert stored.status_code == 201, stored.text
    client.patch(
        f"{PREFIX}/monitors/1", json={"request_auth_password": canary("changed")}, headers=write
    )
    token = canary("heartbeat_states.token")
    heartbeat = {"name": "Backup", "url": "heartbeat:", "heartbeat_token": token}
    stored = client.post(f"{PREFIX}/monitors", json=heartbeat, headers=write)
    assert stored.status_code == 201, stored.text
    assert client.post(f"/ping/{token}", data=f"called /ping/{token}").status_code == 200
    test = client.post(f"{PREFIX}/monitors/1/test-alert", headers=write)  # a delivery to each
    assert test.status_code == 200, test.text
    agent = {"name": "oslo", "carrier": "agent"}
    place = client.post(f"{PREFIX}/locations", json=agent, headers=write)
    plan.secrets["ended_agent_tokens.digest"] = place.json["data"]["token"]
    made = client.post(f"{PREFIX}/locations/{place.json['data']['id']}/token", headers=write)
    plan.secrets["locations.token_digest"] = made.json["data"]["token"]
    page = make_page(app, [make_shown(app)], password=canary("status_pages.password_hash"))
    reader = f"https://readers.example/{canary('subscribers.value')}"
    make_subscriber(app, page, channel="webhook", value=reader)

    admin, viewer = make_person(app, "admin"), make_person(app, "viewer")
    plan.admin, plan.viewer = (
        Visitor(app).log_in(person.email).client for person in (admin, viewer)
    )
    make_person(app, "editor", password=canary("people.password_hash"))
    plan.secrets["people.password_hash of all"] = PASSWORD
    with app.app_context():
        make_incident(app, db.session.get_one(MonitorRow, 1))
        access = current_access()
        plan.secrets["invitations.digest"] = access.invitations.invite("new@example.org", "viewer")[
            1
        ]
        plan.secrets["recoveries.digest"] = access.recovery.make_link(viewer.id)
        plan.secrets["wall_links.digest"] = access.wall_links.create("Hall", "UTC")[1]
        for name in ("webhook_secret", "smtp_url", "setup_token"):
            value = canary(f"settings.{name}")
            smtp = f"smtp://mailer:{value}@mail.example?from=a@example.org"
            store_setting(name, smtp if name == "smtp_url" else f"whsec_{value}", now())
        with writing() as session:
            # The viewer's own secrets are shown once, when they were made.
            app_secret, code = canary("authenticator_apps.secret"), canary("recovery_codes.digest")
            app_of = {"person_id": viewer.id, "secret": app_secret, "used_step": 0}
            session.add(AuthenticatorAppRow(**app_of, created_at=now()))
            session.add(RecoveryCodeRow(person_id=viewer.id, digest=code))
    for name, scope in (("api_keys.digest", "write"), ("api_keys.digest of the read key", "read")):
        plan.secrets[name] = make_key(app, scope, f"{scope} key").split("_", 2)[2]
    plan.read_key = make_key(app, "read", "crawler")
    cookie = plan.viewer.get_cookie("wakeful")
    assert cookie is not None
    plan.secrets["sessions.digest"] = cookie.value
    return plan


def test_every_secret_of_the_schema_is_planted(app: Flask, planted: Planted):
    with app.app_context():
        encrypted = {
            table.name: {column.name for column in has} for table, has in unreadable.encrypted()
        }
        columns = {
            f"{table.name}.{column.name}"
            for table in db.metadata.sorted_tables
            for column in table.c
        }
    for table, planted_columns in encrypted.items():
        decided = PLANTED.get(table, set()) | NO_SECRETS.get(table, set())
        assert planted_columns == decided, (
            f"Plant a secret in these columns of {table}, or say why not."
        )
    assert set(SECRET_FIELDS) == PLANTED["monitors"]
    hashes = {column for column in columns if re.search(r"digest|_hash|\.\w*token|secret_", column)}
    assert hashes == HASHES
    assert planted.shown_in(f"<b>{planted.secrets['contacts.channels']}") == ["contacts.channels"]
    named = {where.partition(" ")[0] for where in planted.secrets}
    of_settings = {column for column in named if column.startswith("settings.")}
    assert len(of_settings) == 3
    for table, fields in PLANTED.items():
        for column in fields - {"value"}:
            assert f"{table}.{column}" in named


def crawl(client: FlaskClient) -> dict[str, str]:
    """The pages that a person gets at from the home page, by address, and all that they load. The
    first few of those that differ in numbers or in parameters alone, such as the days of a month,
    and of the manuals, which show nothing of the database. Nobody reads a PDF here.
    """
    pages: dict[str, str] = {}
    alike: Counter[str] = Counter()
    waiting = ["/", "/audit", "/audit.jsonl", "/settings/backup", "/profile/two-factor"]
    waiting += ["/profile/sessions", "/monitors/1", "/status", "/status/example", "/reports/csv"]
    while waiting and len(pages) < MAX_PAGES:
        path = waiting.pop(0)
        if path in pages or path.startswith(("/static", "/bootstrap")) or "format=pdf" in path:
            continue
        kind = re.sub(r"\d+|(?<=^/docs)/.+|(?<==)[^&]+", "0", path)
        alike[kind] += 1
        if alike[kind] > MAX_ALIKE:
            continue
        answer = client.get(path)
        pages[path] = f"{answer.headers}\n{answer.text}" if _is_text(answer.mimetype) else ""
        answer.close()
        if answer.location:
            waiting.append(_inside(path, answer.location))
        if answer.mimetype == "text/html":
            links = re.findall(r'(?:href|action|src)="([^"#][^"]*)"', answer.text)
            waiting += [inside for link in links if (inside := _inside(path, html.unescape(link)))]
    return pages


def _is_text(mimetype: str) -> bool:
    return mimetype.startswith("text/") or "json" in mimetype or "xml" in mimetype


def _inside(path: str, link: str) -> str:
    """A link as a path of ours; "" for any other. Lists in each order show the same rows."""
    where = urldefrag(urljoin(f"http://localhost{path}", link)).url
    inside = where.removeprefix("http://localhost")
    return "" if inside == where or "sort" in inside or "/logout" in inside else inside


def test_no_page_shows_a_secret_to_a_viewer_and_no_audit_line_to_an_admin(planted: Planted, caplog):
    with caplog.at_level(logging.DEBUG):
        pages = crawl(planted.viewer)
        lines = {path: planted.admin.get(path).text for path in ("/audit", "/audit.jsonl")}
    assert 60 < len(pages) < MAX_PAGES, sorted(pages)
    assert {"/contacts", "/deliveries", "/incidents/1", "/monitors/1"} <= pages.keys()
    assert "request_auth_password" in lines["/audit.jsonl"]
    # A browser is told its own cookie.
    cookie = planted.secrets.pop("sessions.digest")
    for path, text in (pages | lines).items():
        assert planted.shown_in(text) == [], path
        assert cookie not in text.partition("\n\n")[2], path
    assert planted.shown_in(caplog.text) == []


def test_the_api_shows_no_secret_to_a_read_key(planted: Planted, caplog):
    key = {"Authorization": f"Bearer {planted.read_key}"}
    asked = 0
    with caplog.at_level(logging.DEBUG):
        for template, path in PATHS.items():
            if "GET" not in path.operations:
                continue
            parts = ["1" if part in path.ids else part for part in template.split("/")]
            answer = planted.viewer.get(PREFIX + "/".join(parts), headers=key)
            asked += answer.status_code == 200
            assert planted.shown_in(answer.text) == [], template
        for path in ("/healthz", "/readyz", "/metrics"):
            assert planted.shown_in(planted.viewer.get(path).text) == [], path
    assert asked > 20
    assert planted.shown_in(caplog.text) == []


def test_the_web_server_prints_no_secret(tmp_path, sqlite_template, capfd):
    installed = installation(tmp_path, sqlite_template)
    secret = "canaryofarunningserver"
    with installed.app() as app:
        make_person(app, "admin")
        key = make_key(app)
    with web_process(installed) as web:
        session = web.log_in("admin@wakeful.test", PASSWORD)
        bad = {"Authorization": f"Bearer wk_{secret}_{secret}"}
        assert web.get("/api/v1/monitors", headers=bad).status_code == 401
        good = {"Authorization": f"Bearer {key}"}
        body = {"name": "Shop", "url": f"https://a:{secret}@shop.example", "interval": 60}
        assert web.post("/api/v1/monitors", headers=good, json=body).status_code == 422
        for path in (f"/invitation/{secret}", f"/screen/{secret}", f"/acknowledge/{secret}"):
            assert session.get(web.base + path, timeout=60).status_code < 500
        assert web.get(f"/monitors/{secret}").status_code == 404
    out, err = capfd.readouterr()
    for text in (out, err):
        assert secret not in text
        assert key not in text
        assert PASSWORD not in text
        assert session.cookies["wakeful"] not in text
