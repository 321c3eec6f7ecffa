"""Every route and every operation that changes something leaves a line in the audit log, or says
why not. A new one without a decision fails here.
"""

import re

import pytest
from sqlalchemy import select

from app.api.operations import PATHS
from app.db import db
from app.db.tables import AuditRow
from app.stores import current_access
from app.web.frame.session import SAFE_METHODS
from tests import samples
from tests.api.conftest import MONITOR, Api
from tests.factories import PASSWORD, make_key
from tests.samples import SAMPLES
from tests.support.store import access_of
from tests.web.visitor import Visitor, blank_pages, token

pytestmark = pytest.mark.settings(rate_limit=0)

SENDS = "it sends a message and changes nothing"
CHECKS = "it checks; what comes of a check is a result"
PING_URL = "only a heartbeat has one; tests/api/test_pings.py looks at its line"
LOOKS = "it changes what one person looks at"

# Why an operation of the API leaves no line.
SILENT_OPERATIONS = {
    "POST /monitors/{id}/check": CHECKS,
    "POST /checks": CHECKS,
    "POST /monitors/{id}/test-alert": SENDS,
    "POST /alerts/test": SENDS,
    "POST /contacts/{id}/test": SENDS,
    "POST /monitors/{id}/heartbeat-token": PING_URL,
}
TIMES = {"start_at": "2027-01-01T00:00:00", "end_at": "2027-01-01T01:00:00"}
# What is sent to each operation, in an order in which there is what it changes.
REQUESTS = [
    ("POST /contacts", {"name": "Ada", "channels[0][key]": "email",
                        "channels[0][value]": "ada@example.com"}),
    ("PUT /contacts/{id}", {"name": "Eve"}),
    ("PATCH /contacts/{id}", {"name": "Bob"}),
    ("POST /monitors", MONITOR | {"alerts[0][key]": "email", "alerts[0][value]": "x@example.com"}),
    ("PUT /monitors/{id}", {"name": "Store"}),
    ("PATCH /monitors/{id}", {"interval": "300"}),
    ("POST /incidents", {"monitor_id": "1", "started_at": "2026-11-20T08:00:00"}),
    ("PUT /incidents/{id}", {"comment": "one"}),
    ("PATCH /incidents/{id}", {"comment": "two"}),
    ("POST /incidents/acknowledge", {"ids[0]": "1"}),
    ("POST /maintenance-windows", {"name": "Works", **TIMES}),
    ("PUT /maintenance-windows/{id}", {"name": "More"}),
    ("PATCH /maintenance-windows/{id}", {"monitors[0]": "1"}),
    ("POST /status-pages", {"name": "Page"}),
    ("PUT /status-pages/{id}", {"name": "Other"}),
    ("PATCH /status-pages/{id}", {"monitors[0]": "1"}),
    ("POST /status-pages/{id}/posts", {"title": "T", "state": "investigating", "body": "B"}),
    ("PUT /status-pages/{id}/posts/{post}", {"title": "U"}),
    ("PATCH /status-pages/{id}/posts/{post}", {"title": "V"}),
    ("POST /status-pages/{id}/posts/{post}/updates", {"state": "monitoring", "body": "C"}),
    ("PUT /status-pages/{id}/posts/{post}/updates/{update}", {"body": "D"}),
    ("PATCH /status-pages/{id}/posts/{post}/updates/{update}", {"body": "E"}),
    ("DELETE /status-pages/{id}/posts/{post}", {}),
    ("DELETE /status-pages/{id}/subscribers", {}),
    ("DELETE /status-pages/{id}", {}),
    ("POST /report-mails", {"contact": "Bob"}),
    ("PUT /report-mails/{id}", {"tag": "a"}),
    ("PATCH /report-mails/{id}", {"tag": "b"}),
    ("DELETE /report-mails/{id}", {}),
    ("POST /locations", {"name": "berlin", "carrier": "agent"}),
    ("PUT /locations/{id}", {"label": "Berlin"}),
    ("PATCH /locations/{id}", {"label": "Hamburg"}),
    ("POST /locations/{id}/token", {}),
    ("DELETE /locations/{id}", {}),
    ("POST /deliveries/{id}/give-up", {}),
    ("POST /deliveries/{id}/retry", {}),
    ("DELETE /maintenance-windows/{id}", {}),
    ("DELETE /incidents/{id}", {}),
    ("POST /contacts/from-channel", None),
    ("DELETE /contacts/{id}", {}),
    ("DELETE /monitors/{id}", {}),
    ("POST /monitors/batch", {f"monitors[0][{name}]": value for name, value in MONITOR.items()}),
]  # fmt: skip
for _name, _sample in SAMPLES.items():
    _path, (_field, _value, _other) = samples.PATHS[_name], _sample.change
    REQUESTS += [
        (f"POST {_path}", dict(_sample.fields)),
        (f"PUT {_path}/{{id}}", {_field: _value}),
        (f"PATCH {_path}/{{id}}", {_field: _other}),
        (f"DELETE {_path}/{{id}}", {}),
    ]


def last_line(app):
    with app.app_context():
        newest = select(AuditRow.id).order_by(AuditRow.id.desc()).limit(1)
        return db.session.scalar(newest) or 0


def changing_operations():
    return {
        f"{method} {path.template}"
        for path in PATHS.values()
        for method in path.operations
        if method not in SAFE_METHODS
    }


def shared_mark(api):
    """A channel that three monitors have."""
    for _ in range(3):
        made = api.monitor(**{"alerts[0][key]": "email", "alerts[0][value]": "two@example.com"})
    [channel] = api.data("GET", f"/monitors/{made['id']}/shared-channels")["channels"]
    return {"name": "Two", "monitor_id": str(made["id"]), "mark": channel["mark"]}


def test_every_operation_is_decided():
    sent = {name for name, _fields in REQUESTS}
    assert not sent & SILENT_OPERATIONS.keys()
    assert sent | SILENT_OPERATIONS.keys() == changing_operations()


def test_every_operation_that_changes_something_leaves_a_line_of_the_key(app):
    api = Api(app.test_client(), make_key(app, "admin", name="Terraform"))
    for name, fields in REQUESTS:
        method, _, template = name.partition(" ")
        path = re.sub(r"\{\w+\}", "1", template)
        if "/locations/" in path:
            path = path.replace("/1", "/2")  # the first is the default place
        if fields is None:
            fields = shared_mark(api)
        before = last_line(app)
        answer = api(method, path, data=fields or None)
        assert answer.status_code in (200, 201), f"{name}: {answer.text}"
        assert last_line(app) > before, name
    with app.app_context():
        kinds = set(db.session.scalars(select(AuditRow.actor_kind)))
        assert kinds == {"key"}
        assert current_access().keys.all()[0].name == "Terraform"


ELSEWHERE = "tests/web/test_second_factor.py and test_sessions.py look at its lines"
BUILT = "what it shows is built, and nothing is stored"
# Why a route of the dashboard leaves no line, or where that is tested.
SILENT_ROUTES = {
    "bulk.act": "it calls the store once for each monitor, as monitors.edit does",
    "contacts.test": SENDS,
    "imports.start": BUILT,
    "mail_settings.test": SENDS,
    "monitors.check": CHECKS,
    "monitors.test_alert": SENDS,
    "monitors.new_ping_url": PING_URL,
    "page_editor.preview": BUILT,
    "docs.operation": "it sends a request to the API; the line is that of its key",
    "home.put_away": LOOKS,
    "remote.choose": LOOKS,
    "account.forgotten": "who asks for a link gets it by mail; test_recovery.py",
    "sessions.forget": "this browser is asked for the second factor again",
    "two_factor.passkey_options": BUILT,
    "second.passkey_request": BUILT,
    **dict.fromkeys(
        (
            "auth.login", "auth.logout", "second.code", "second.passkey", "second.recovery",
            "sessions.end", "sessions.end_others", "people.end_sessions",
            "people.reset_second_factor", "two_factor.app", "two_factor.codes",
            "two_factor.new_passkey", "two_factor.remove_app", "two_factor.remove_passkey",
            "settings.require_second_factor",
        ),
        ELSEWHERE,
    ),
}  # fmt: skip
# Routes that end in the method of the store which this operation has called above.
AS_THE_API = {
    "acknowledge.page": "PATCH /incidents/{id}",
    "deliveries.give_up": "POST /deliveries/{id}/give-up",
    "deliveries.retry": "POST /deliveries/{id}/retry",
    "imports.create": "POST /monitors",
    "incidents.acknowledge_all": "POST /incidents/acknowledge",
    **{f"incidents.{act}": "PATCH /incidents/{id}"
       for act in ("acknowledge", "classify", "comment", "reopen", "resolve")},
    "locations.token": "POST /locations/{id}/token",
    "markers.add": "POST /markers",
    "markers.delete": "DELETE /markers/{id}",
    "monitors.clone": "POST /monitors",
    "monitors.pause": "PATCH /monitors/{id}",
    "monitors.resume": "PATCH /monitors/{id}",
    "page_editor.edit": "PATCH /status-pages/{id}",
    "page_editor.edit_images": "PATCH /status-pages/{id}",
    "page_editor.new": "POST /status-pages",
    "posts.add_update": "POST /status-pages/{id}/posts/{post}/updates",
    "posts.correct_update": "PATCH /status-pages/{id}/posts/{post}/updates/{update}",
    "posts.delete": "DELETE /status-pages/{id}/posts/{post}",
    "posts.edit": "PATCH /status-pages/{id}/posts/{post}",
    "posts.new": "POST /status-pages/{id}/posts",
    "reports.send_monthly": "POST /report-mails",
    "reports.stop_monthly": "DELETE /report-mails/{id}",
    "shared_channels.make": "POST /contacts/from-channel",
    "status_pages.clear": "DELETE /status-pages/{id}/subscribers",
    "status_pages.delete": "DELETE /status-pages/{id}",
}  # fmt: skip
for _name in ("contacts", "incidents", "locations", "monitors", "windows", *samples.PAGES):
    _path = samples.PATHS[_name]
    AS_THE_API |= {
        f"{_name}.new": f"POST {_path}",
        f"{_name}.edit": f"PATCH {_path}/{{id}}",
        f"{_name}.delete": f"DELETE {_path}/{{id}}",
    }
SECRET = "canary-of-a-password-1"
# What an admin sends to the rest: endpoint, path, fields, and what the line says.
SENT = [
    ("people.new", "/people/new",
     {"email": "ada@example.org", "password": SECRET, "role": "editor"}, "created person"),
    ("people.edit", "/people/2", {"email": "ada@example.org", "role": "viewer"}, "changed person"),
    ("people.password", "/people/2/password", {"password": f"{SECRET}2"}, "changed person"),
    ("invitations.password_link", "/people/2/password-link", {}, "created recovery_link"),
    ("people.delete", "/people/2/delete", {}, "deleted person"),
    ("invitations.new", "/people/invite", {"email": "eve@example.org", "role": "viewer"},
     "created invitation"),
    ("invitations.renew", "/people/invitations/1/renew", {}, "created invitation"),
    ("invitations.revoke", "/people/invitations/1/revoke", {}, "revoked invitation"),
    ("keys.index", "/keys", {"name": "CI", "scope": "write"}, "created key"),
    ("keys.edit", "/keys/{prefix}", {"name": "CD"}, "changed key"),
    ("keys.adopt", "/keys/{orphan}/adopt", {}, "changed key"),
    ("keys.revoke", "/keys/{prefix}/revoke", {}, "revoked key"),
    ("wall_links.index", "/settings/wall-links", {"name": "Lobby", "zone": "UTC"},
     "created wall_link"),
    ("wall_links.revoke", "/settings/wall-links/1/revoke", {}, "deleted wall_link"),
    ("mail_settings.show", "/settings/email",
     {"host": "mail.example.org", "port": "587", "tls": "required", "user": "u",
      "password": SECRET, "sender": "a@example.org"}, "changed setting"),
    ("mail_settings.remove", "/settings/email/remove", {}, "changed setting"),
    ("settings.show", "/settings", {"allow_networks": "private"}, "changed setting"),
    ("settings.show_secret", "/settings/webhook-secret/show", {}, "changed setting"),
    ("settings.change_secret", "/settings/webhook-secret/change", {}, "changed setting"),
    ("profile.show", "/profile", {"email": "admin@wakeful.test", "name": "Ada", "theme": "dark",
                                  "time_zone": "UTC"}, "changed person"),
    ("backups.download", "/settings/backup/download", {}, "backed_up installation"),
    ("profile.theme", "/profile/theme", {"theme": "light"}, "changed person"),
    ("profile.password", "/profile/password",
     {"current_password": PASSWORD, "password": f"{SECRET}3", "password_again": f"{SECRET}3"},
     "changed person"),
]  # fmt: skip
LINKS = ("account.join", "account.recover", "auth.setup")  # with a token, below


def changing_routes(app):
    return {
        rule.endpoint
        for rule in app.url_map.iter_rules()
        if not rule.rule.startswith("/api") and (rule.methods or set()) - SAFE_METHODS
    }


def test_every_route_is_decided_once(app):
    decided = [*SILENT_ROUTES, *AS_THE_API, *(sent[0] for sent in SENT), *LINKS]
    assert len(decided) == len(set(decided))
    assert set(decided) == changing_routes(app)
    assert set(AS_THE_API.values()) <= {name for name, _fields in REQUESTS}


def lines_after(app, id):
    with app.app_context():
        rows = db.session.scalars(select(AuditRow).where(AuditRow.id > id)).all()
        return [f"{row.action} {row.object_kind}" for row in rows]


@pytest.mark.settings(rate_limit=0, allow_networks=None)
def test_every_route_of_access_and_settings_leaves_a_line_without_its_secrets(app, admin):
    make_key(app, name="Nobody's")
    proof = token(admin.open("/profile"))
    for endpoint, path, fields, line in SENT:
        keys = {key.name: key.prefix for key in access_of(app).keys.all()}
        path = path.format(prefix=keys.get("CD") or keys.get("CI"), orphan=keys["Nobody's"])
        assert path_of(app, path) == endpoint
        before = last_line(app)
        with blank_pages():
            answer = admin.client.post(path, data=proof | fields)
        answer.close()
        assert answer.status_code in (200, 201, 302), f"{endpoint}: {answer.status_code}"
        assert line in lines_after(app, before), f"{endpoint}: {lines_after(app, before)}"
    with app.app_context():
        everything = str(db.session.execute(select(AuditRow.__table__)).all())
    assert SECRET not in everything
    assert "mail.example.org" in everything


def path_of(app, path):
    return app.url_map.bind("localhost").match(path, method="POST")[0]


def test_links_leave_lines_in_the_name_of_who_has_them(app, stranger):
    setup = access_of(app).setup.token()
    names = {"password": PASSWORD, "password_again": PASSWORD}
    stranger.open(f"/setup/{setup}").press("Create account", email="ada@example.org", **names)
    _invitation, invited = access_of(app).invitations.invite("eve@example.org", "viewer")
    recovery = access_of(app).recovery.make_link(1)
    new = {"password": SECRET, "password_again": SECRET}
    Visitor(app).open(f"/invitation/{invited}").press("Create account", **new)
    Visitor(app).open(f"/new-password/{recovery}").press("Set password", **new)
    with app.app_context():
        rows = db.session.scalars(select(AuditRow).where(AuditRow.actor_kind != "wakeful")).all()
        lines = [(row.actor_kind, row.action, row.object_kind, row.address) for row in rows]
        everything = str(db.session.execute(select(AuditRow.__table__)).all())
    assert ("visitor", "created", "person", "127.0.0.1") in lines
    assert ("visitor", "accepted", "invitation", "127.0.0.1") in lines
    assert ("link", "used", "recovery_link", "127.0.0.1") in lines
    for secret in (SECRET, setup, invited, recovery):
        assert secret not in everything
