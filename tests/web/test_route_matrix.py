"""Rights: every route, method and kind of visitor, against a table of decisions.

The routes come from the URL map, the API's operations and the table of status pages. What is new
there and not decided here fails by its name; so does a decision about what is no longer there.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.routing import Rule
from werkzeug.routing.converters import NumberConverter

from app import create_app
from app.api.agent import HANDLERS
from app.api.operations import PATHS, PREFIX, Operation
from app.config import Settings
from app.db import db, writing
from app.db.tables import ApiKeyRow, PersonRow
from app.pages import routes
from app.records import PAGE_IMAGES
from tests import samples
from tests.conftest import SECRET_KEY
from tests.factories import make_key, make_person
from tests.pages.made import make_page, make_shown
from tests.web.visitor import Visitor, blank_pages

OPEN, VIEWER, EDITOR, ADMIN, READ, WRITE = "open", "viewer", "editor", "admin", "read", "write"
RANKS = {"stranger": 0, "disabled": 0, "viewer": 1, "editor": 2, "admin": 3}
NEEDS = {OPEN: 0, VIEWER: 1, EDITOR: 2, ADMIN: 3}
NOBODY = 999_999_999_999  # the id of no record: roles are compared before records are looked for

# The endpoints of the dashboard by role: first those that this role may open (GET), then those that
# it may send to (POST).
MAY_OPEN = {
    OPEN: """
        account.forgotten account.join account.recover acknowledge.page auth.login auth.setup
        bootstrap.static healthz metrics readyz screen.show second.show
        static
    """,
    VIEWER: """
        checks.day checks.index checks.open_day contacts.index contacts.named contacts.show
        deliveries.index deliveries.show docs.api docs.index docs.operation docs.picture docs.search
        docs.show home.show incidents.index incidents.show jump.show
        locations.index markers.index monitors.index monitors.show posts.show
        monitors.ping monitors.pings monitors.reach page_editor.colours_of
        profile.show remote.lacking reports.download reports.show sessions.index
        status_pages.index status_pages.show status_pages.subscribers two_factor.app
        two_factor.codes two_factor.new_passkey two_factor.remove_app two_factor.remove_passkey
        two_factor.show wall.show windows.index windows.show
    """,
    EDITOR: """
        contacts.delete contacts.edit contacts.new imports.start incidents.delete incidents.edit
        incidents.new keys.edit keys.index keys.revoke locations.delete locations.edit locations.new
        locations.start markers.delete monitors.clone monitors.delete monitors.edit monitors.new
        page_editor.edit page_editor.edit_images page_editor.new posts.add_update
        posts.correct_update posts.delete posts.edit posts.new shared_channels.make
        status_pages.clear status_pages.delete status_pages.export
        windows.delete windows.edit windows.new
    """,
    ADMIN: """
        audit.export audit.index backups.show invitations.new keys.adopt mail_settings.remove
        mail_settings.show people.delete people.edit people.index people.new
        people.reset_second_factor settings.change_secret
        settings.show wall_links.index wall_links.revoke locations.token
    """,
}
MAY_SEND = {
    OPEN: """
        account.forgotten account.join account.recover acknowledge.page auth.login auth.logout
        auth.setup second.code second.passkey second.passkey_request second.recovery
    """,
    VIEWER: """
        docs.operation profile.password profile.show profile.theme remote.choose sessions.end
        sessions.end_others
        sessions.forget two_factor.app two_factor.codes two_factor.new_passkey
        two_factor.passkey_options two_factor.remove_app two_factor.remove_passkey
    """,
    EDITOR: """
        bulk.act contacts.delete contacts.edit contacts.new contacts.test deliveries.give_up
        home.put_away
        deliveries.retry imports.create imports.start incidents.acknowledge
        incidents.acknowledge_all incidents.classify incidents.comment incidents.delete
        incidents.edit incidents.new incidents.reopen
        incidents.resolve keys.edit keys.index keys.revoke locations.delete locations.edit
        locations.new markers.add markers.delete monitors.check monitors.clone monitors.delete
        monitors.edit monitors.new monitors.new_ping_url monitors.pause monitors.resume
        monitors.test_alert
        page_editor.edit page_editor.edit_images page_editor.new page_editor.preview
        posts.add_update posts.correct_update
        posts.delete posts.edit posts.new reports.send_monthly reports.stop_monthly
        shared_channels.make status_pages.clear status_pages.delete windows.delete windows.edit
        windows.new
    """,
    ADMIN: """
        invitations.new invitations.password_link invitations.renew invitations.revoke
        keys.adopt mail_settings.remove mail_settings.show mail_settings.test people.delete
        people.edit
        people.end_sessions people.new people.password people.reset_second_factor
        backups.download settings.change_secret settings.require_second_factor settings.show
        settings.show_secret locations.token wall_links.index wall_links.revoke
    """,
}
for _name in samples.PAGES:
    MAY_OPEN[VIEWER] += f" {_name}.index"
    for _act in ("new", "edit", "delete"):
        MAY_OPEN[EDITOR] += f" {_name}.{_act}"
        MAY_SEND[EDITOR] += f" {_name}.{_act}"
# They end the session that asks: each is tried with a session of its own.
ENDS_SESSION = {"auth.logout", "sessions.forget"}
# They refuse what this test sends with 403, to everybody: it was not sealed by the page before.
REFUSES_ALL = {"imports.create"}

# The operations of the API by scope.
MAY_CALL = {
    OPEN: "openapi_show",
    READ: """
        contacts_list_ contacts_show deliveries_channels deliveries_list_ deliveries_show
        deliveries_unreadable incidents_list_ incidents_show locations_list_ locations_of_monitor
        locations_show me_show monitors_certificates monitors_list_ monitors_overview
        monitors_ping monitors_pings monitors_results monitors_show monitors_slow_alerts
        monitors_statistics posts_draft posts_list_ posts_show
        posts_show_update report_mails_list_ report_mails_show reports_show shared_channels_list_
        status_pages_list_ status_pages_show windows_list_ windows_show
    """,
    WRITE: """
        contacts_delete contacts_store contacts_test contacts_update deliveries_give_up
        deliveries_retry deliveries_test incidents_acknowledge incidents_delete incidents_store
        incidents_update
        locations_delete locations_store locations_update monitors_check monitors_check_unsaved
        monitors_heartbeat_token
        monitors_batch monitors_delete monitors_store monitors_test_alert monitors_update
        posts_add_update
        posts_correct_update posts_delete posts_store posts_update report_mails_delete
        report_mails_store report_mails_update shared_channels_store status_pages_delete
        status_pages_store status_pages_update subscribers_clear subscribers_list_ windows_delete
        windows_store windows_update
    """,
    ADMIN: "locations_token",
}
for _name in samples.SAMPLES:
    MAY_CALL[READ] += f" {_name}_list_ {_name}_show"
    MAY_CALL[WRITE] += f" {_name}_store {_name}_update {_name}_delete"
SCOPES = (READ, WRITE, ADMIN)
REFUSED = ("none", "session of an admin", "expired", "revoked", "of the disabled")
KEYS = ("none", "session of an admin", *SCOPES)

# The answer of a page to people without an account, by its visibility: 200, or the refusal. The
# front and the history of a page with a password ask for it.
TO_STRANGERS = {"public": {200}, "unlisted": {200}, "password": {200, 403}, "closed": {404}}
ANSWERS_OF_PAGES = {
    "", "history", "subscribe", "feed.rss", "feed.atom", "maintenance.ics", "summary.json",
    "badge/<id>.svg", "badge/<id>.json", "widget", "widget.js", "colours.css", *PAGE_IMAGES,
}  # fmt: skip
BY_TOKEN = {"confirm/<token>", "unsubscribe/<token>"}  # tests/pages/test_subscribe.py


class Scene:
    """One installation for all of these tests, which change nothing that another one reads."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        for role in (VIEWER, EDITOR, ADMIN):
            make_person(app, role)
        gone = make_person(app, ADMIN, "disabled@wakeful.test")
        self.clients = {who: self.log_in(who) for who in RANKS}
        self.keys = {scope: make_key(app, scope, scope) for scope in SCOPES}
        for name in ("expired", "revoked", "of the disabled"):
            self.keys[name] = make_key(app, WRITE, name)
        past = datetime.now(UTC) - timedelta(minutes=1)
        columns = {"expired": "expires_at", "revoked": "revoked_at", "of the disabled": "owner_id"}
        with app.app_context(), writing() as session:
            session.get_one(PersonRow, gone.id).disabled = True
            for row in session.query(ApiKeyRow).filter(ApiKeyRow.name.in_(columns)):
                value = gone.id if row.name == "of the disabled" else past
                setattr(row, columns[row.name], value)
        secret = {"password": "let me in, please"}
        images = dict.fromkeys(PAGE_IMAGES, b"\x89PNG\r\n\x1a\n")
        brand = {"accent": "#0b746f"} | images | {f"{name}_version": "1" for name in PAGE_IMAGES}
        self.pages = {}
        for name in TO_STRANGERS:
            more = secret if name == "password" else {"visibility": name}
            shown = [make_shown(app, name)]
            self.pages[name] = make_page(app, shown, slug=name, name=name, **brand, **more)

    def log_in(self, who: str) -> FlaskClient:
        """A browser with what its forms prove themselves with; a stranger's only looks."""
        visitor = Visitor(self.app).open("/login")
        form, _button = visitor.form_with("Log in")
        if who != "stranger":
            visitor.log_in(f"{who}@wakeful.test").open("/profile")
            form, _button = visitor.form_with("Log out")
        # Not in the form: a stranger who sends one is not redirected, so that it is not lost.
        token = dict(form.values)["csrf_token"]
        visitor.client.environ_base["HTTP_X_CSRFTOKEN"] = token
        return visitor.client

    def call(self, key: str, path: str, method: str) -> int:
        client = self.app.test_client()
        headers = {}
        if key == "session of an admin":
            client = self.clients[ADMIN]
        elif key != "none":
            headers["Authorization"] = f"Bearer {self.keys[key]}"
        return client.open(path, method=method, headers=headers).status_code


@pytest.fixture(scope="module")
def scene(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("matrix")
    copyfile(sqlite_template, folder / "wakeful.db")
    url = f"sqlite:///{folder / 'wakeful.db'}"
    settings = Settings(folder, url, SECRET_KEY, canaries="", rate_limit=0)
    app = create_app(settings)
    yield Scene(app)
    with app.app_context():
        db.engine.dispose()


def decided(table: dict[str, str]) -> dict[str, str]:
    """The least that is needed, by what it is needed for."""
    rows = [(name, least) for least, names in table.items() for name in names.split()]
    assert len(rows) == len(dict(rows)), "decided twice"
    return dict(rows)


def routes_of(app: Flask, method: str) -> dict[str, Rule]:
    rules = app.url_map.iter_rules()
    return {rule.endpoint: rule for rule in rules if method in (rule.methods or ())}


def path_of(rule: Rule) -> str:
    values: dict[str, Any] = dict.fromkeys(rule.arguments, "none")
    values |= {
        name: NOBODY for name, kind in rule._converters.items() if isinstance(kind, NumberConverter)
    }
    built = rule.build(values)
    assert built is not None, rule
    return str(built[1])


@pytest.mark.parametrize(("method", "table"), [("GET", MAY_OPEN), ("POST", MAY_SEND)])
def test_every_route_of_the_dashboard_lets_in_whom_it_should_and_nobody_else(
    scene: Scene, method: str, table: dict[str, str]
):
    rules, needs = routes_of(scene.app, method), decided(table)
    assert rules.keys() - needs.keys() == set(), "Decide who may use these routes."
    assert needs.keys() - rules.keys() == set(), "These routes are gone."
    wrong = []
    for endpoint, rule in rules.items():
        for who, rank in RANKS.items():
            if endpoint in ENDS_SESSION and who == "disabled":
                continue  # cannot log in for it
            client = scene.log_in(who) if endpoint in ENDS_SESSION else scene.clients[who]
            with blank_pages():
                answer = client.open(path_of(rule), method=method)
            answer.close()
            if endpoint in ENDS_SESSION and rank > 0:
                assert answer.status_code == 302, endpoint
                continue
            if not _is_right(
                answer.status_code, answer.location, needs[endpoint], rank, endpoint in REFUSES_ALL
            ):
                wrong.append(f"{who}: {method} {endpoint} is {answer.status_code}")
    assert not wrong, "\n".join(wrong)


def _is_right(status: int, location: str | None, least: str, rank: int, refuses_all: bool) -> bool:
    to_login = status == 302 and "/login" in (location or "")
    if least == OPEN:
        return status < 500 or status == 503  # /readyz: no checker runs here
    if rank == 0:
        return to_login
    if rank < NEEDS[least] or refuses_all:
        return status == 403
    return not to_login and status not in (401, 403) and status < 500


def operations() -> Iterator[tuple[str, str, Operation]]:
    for path in PATHS.values():
        parts = [str(NOBODY) if part in path.ids else part for part in path.template.split("/")]
        for method, operation in path.operations.items():
            yield PREFIX + "/".join(parts), method, operation


def test_every_operation_of_the_api_takes_the_keys_that_it_should_and_no_others(scene: Scene):
    names = {operation.name for _path, _method, operation in operations()}
    needs = decided(MAY_CALL)
    assert names - needs.keys() == set(), "Decide which keys may call these operations."
    assert needs.keys() - names == set(), "These operations are gone."
    wrong = []
    for path, method, operation in operations():
        least = needs[operation.name]
        for key in KEYS:
            status = scene.call(key, path, method)
            if least == OPEN:
                right = status == 200
            elif key not in SCOPES:
                right = status == 401
            elif SCOPES.index(key) < SCOPES.index(least):
                right = status == 403
            else:
                right = status not in (401, 403) and status < 500
            if not right:
                wrong.append(f"{key}: {method} {path} ({operation.name}) is {status}")
    assert not wrong, "\n".join(wrong)


def test_keys_that_are_no_longer_valid_open_nothing(scene: Scene):
    for key in REFUSED:
        assert scene.call(key, f"{PREFIX}/monitors", "GET") == 401, key


def test_what_no_operation_is_needs_a_key_too(scene: Scene):
    for template, path in PATHS.items():
        parts = [str(NOBODY) if part in path.ids else part for part in template.split("/")]
        method = min({"GET", "POST", "PUT", "PATCH", "DELETE"} - path.operations.keys(), default="")
        for key in ("none", READ) if method else ():
            allowed = path.public or key in SCOPES
            status = scene.call(key, PREFIX + "/".join(parts), method)
            assert status == (405 if allowed else 401), f"{key}: {method} {template}"


def test_agents_addresses_take_no_key_and_no_session(scene: Scene):
    for name in HANDLERS:
        for key in (*REFUSED, *SCOPES):
            status = scene.call(key, f"{PREFIX}/agent/{name}", "POST")
            assert status == 401, f"{key}: {name} is {status}"


def test_every_answer_of_a_status_page_is_for_those_who_may_see_the_page(scene: Scene):
    names = {route.name for route in (*routes.CACHED_ROUTES, *routes.FORM_ROUTES)} | {
        "", "history", *PAGE_IMAGES,
    }  # fmt: skip
    assert names - ANSWERS_OF_PAGES - BY_TOKEN == set(), "Decide who may see these answers."
    assert (ANSWERS_OF_PAGES | BY_TOKEN) - names == set(), "These answers are gone."
    wrong = []
    for visibility, page in scene.pages.items():
        for name in ANSWERS_OF_PAGES:
            path = _page_path(visibility, name.replace("<id>", str(page)))
            for who, rank in RANKS.items():
                answer = scene.clients[who].get(path)
                with_account = visibility == "closed" and rank > 0
                right = {200} if with_account else TO_STRANGERS[visibility]
                asks = answer.status_code == 200 and visibility == "password"
                if answer.status_code not in right or (
                    asks and 'type="password"' not in answer.text
                ):
                    wrong.append(f"{who}: {path} is {answer.status_code}")
    assert not wrong, "\n".join(wrong)


def _page_path(slug: str, name: str) -> str:
    if name == "summary.json":
        return f"/status/{slug}.json"
    return f"/status/{slug}/{name}" if name else f"/status/{slug}"
