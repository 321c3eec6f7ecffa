"""Every page of the dashboard, over two installations that tests only read: one that has been
running for months, and one on its first day.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask, request
from flask.sessions import SecureCookieSessionInterface

from app import create_app
from app.access.second_factor import CODE_GROUP, CODE_GROUPS, SecondFactors
from app.access.tokens import acknowledgement_token
from app.config import Settings
from app.db import db, writing
from app.db.tables import AuthenticatorAppRow, InvitationRow, PasskeyRow, RecoveryCodeRow
from app.records import Person, Role
from app.rules.time import iso
from app.stores import current_access, current_store
from app.web.frame import progress, session
from app.web.frame.session import TOKEN
from tests.factories import (
    PASSWORD,
    make_delivery,
    make_incident,
    make_key,
    make_monitor,
    make_person,
    now,
)
from tests.support.once import once
from tests.web import scene

if TYPE_CHECKING:
    from playwright.sync_api import Page

SECRET_KEY = "a secret key for pictures only"
ADMIN, VIEWER = "admin@wakeful.test", "viewer@wakeful.test"
SECURED = "secured@wakeful.test"  # with a second factor; the cookie of a session lets them in
FORCED = "somebody.with-a-rather-long-name@department.example.org"  # must set a second factor up
LATE = "late@wakeful.test"  # an admin who has not typed the password lately


@dataclass(frozen=True)
class Sight:
    """One thing to see. ``who``: an email address, or empty for somebody without an account.
    ``status``: what the server answers. ``then``: what the person does before looking.
    """

    path: str
    who: str = ADMIN
    status: int = 200
    then: Callable[[Page], None] = lambda page: None
    width: int = 0  # where alone it is to be seen, if not everywhere
    like: bool = False  # like another one: `make test` leaves it to `make test-more`
    dialog: bool = False  # it covers the page, so overflow below it does not matter


def plain(paths: str, who: str = ADMIN, status: int = 200, like: bool = False) -> dict[str, Sight]:
    """The pages at these addresses, by names made of them."""
    role = "" if who == ADMIN else f"-{who.partition('@')[0] or 'stranger'}"
    return {
        (re.sub(r"\W+", "-", path).strip("-") or "home") + role: Sight(path, who, status, like=like)
        for path in paths.split()
    }


def press(name: str, /, **typed: str) -> Callable[[Page], None]:
    """Type into the fields with these ids, then press the button."""

    def act(page: Page) -> None:
        for id, text in typed.items():
            page.locator(f"#{id}").evaluate("(field, text) => { field.value = text }", text)
        with page.expect_navigation():
            page.get_by_role("button", name=name, exact=True).first.click()

    return act


def fresh_secret(page: Page) -> None:
    """Each secret is shown once, so each look makes a new one."""
    press("Change secret")(page)
    press("Show secret")(page)


def ask_password(page: Page) -> None:
    press("Create link", email="new@example.org")(page)


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")


def tick_and_choose(action: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        for box in page.get_by_label("Select ").all()[1:4]:
            box.check()
        page.get_by_label("Action").select_option(action)

    return act


def ask_to_delete_ticked(page: Page) -> None:
    tick_and_choose("delete")(page)
    press("Apply")(page)


def ask_to_replace_alerts(page: Page) -> None:
    tick_and_choose("recontact")(page)
    page.locator("#contact").select_option(index=1)
    press("Apply")(page)


def stop_midway(page: Page) -> None:
    """The progress page, between two steps of a long action."""
    page.route("**/progress.js*", lambda route: route.fulfill(content_type="text/javascript"))
    seconds, progress.SECONDS = progress.SECONDS, 0
    tick_and_choose("resume")(page)
    press("Apply")(page)
    progress.SECONDS = seconds


def jump(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("link").first.wait_for()


def preview_backup(page: Page) -> None:
    """The backup of another tool: what fits, what changes and what does not fit."""
    page.get_by_label("File (optional)").set_input_files(BACKUP)
    press("Preview")(page)


def create_nothing(page: Page) -> None:
    """The last step. These installations are only read, so nothing is ticked."""
    press("Preview", urls="https://one.example.com")(page)
    page.locator("input[name=pick]").evaluate("box => { box.checked = false }")
    press("Create 1 monitor")(page)


def jump_to(typed: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        jump(page)
        page.keyboard.type(typed)
        page.get_by_role("dialog").get_by_role("button").first.wait_for()

    return act


def find_monitors(page: Page) -> None:
    page.get_by_label("Find monitors").fill("e")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("button", name="Add selected").wait_for()


def read_chart(page: Page) -> None:
    """A part of it is selected by keyboard."""
    page.locator(".chart-scroll").focus()
    for key in ("End", *["ArrowLeft"] * 9, *["Shift+ArrowLeft"] * 20):
        page.keyboard.press(key)


def open_phases(page: Page) -> None:
    for summary in page.locator(".checks summary").all()[:2]:
        summary.click()


def menu(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 900})
    page.get_by_role("button", name="Menu").click()


def type_password(page: Page) -> None:
    """A login that waits for the second factor."""
    press("Log in", email=SECURED, password=PASSWORD)(page)


@contextmanager
def codes_in_vain() -> Iterator[None]:
    """New recovery codes are shown, but the old ones and all sessions stay: others look too."""

    def renew(factors: SecondFactors, id: int, *, current: str) -> tuple[Person, list[str]]:
        return factors.people.get(id), CODES

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SecondFactors, "renew_codes", renew)
        patched.setattr(session, "begin", lambda *_arguments, **_named: None)
        yield


def renew_codes(page: Page) -> None:
    with codes_in_vain():
        press("Make new codes", current_password=PASSWORD)(page)


# The values are as long as real ones: a test looks whether they fit a phone.
CODES = ["-".join([f"{number:0{CODE_GROUP}}"] * CODE_GROUPS) for number in range(10)]
BACKUP = Path(__file__).parents[1] / "imports" / "samples" / "kuma-backup.json"
FAULTY = {"url": "shop.example.com", "name": "x" * 300, "timeout": "99",
          "accepted_statuses": "up to 300", "maintenance_start_at": "2027-01-01T10:00",
          "request_headers-0-value": "no name"}  # fmt: skip
TROUBLED = {"name": "", "start_at": "2027-01-02T10:00", "end_at": "2027-01-01T10:00"}
FAULTY_PAGE = {"name": "", "slug": "Not good", "groups-0-name": ""}
# Forms that come back, which look like the others: where, the button, and what is typed.
FAULTS: list[tuple[str, str, dict[str, str]]] = [
    ("/settings/locations/new", "Save", {"name": "New York"}),
    ("/settings/wall-links", "Create link", {"name": "", "zone": "Mars"}),
    ("/monitors/import", "Preview", {}),
    ("/incidents/1", "Add comment", {}),
    ("/incidents/new", "Report an incident", {"started_at": ""}),
    ("/markers", "Add marker", {"name": "", "link": "javascript:1"}),
    ("/contacts/new", "Save", {"name": "4711"}),
    ("/status-pages/1/posts/new", "Publish", {}),
    ("/status-pages/templates/1/edit", "Save", {"name": "", "body": ""}),
    ("/keys", "Create key", {}),
    ("/people/new", "Add person", {"email": "nobody", "password": "short"}),
    ("/people/invite", "Create link", {}),
    ("/profile/two-factor/app", "Confirm", {"second_code": "12"}),
    ("/settings/email", "Save", {"host": "a b", "sender": "nobody"}),
]
PASTED = "https://one.example.com\nnonsense\nShop, https://shop.example.com/ten\nftp://x.example\none.example.com"

LIVING = {
    **plain("""
        / /jump?q=s /wall /settings/locations /settings/locations/new /settings/locations/2/start
        /settings/locations/2/edit /settings/locations/3/token /settings/wall-links /monitors
        /monitors/1 /monitors/12?range=365d&phases=1
        /monitors/1/checks?verdict=down /monitors/12/days/{day} /monitors/1/edit
        /monitors/1/delete /incidents /incidents/1 /incidents/2
        /incidents/{by_hand} /incidents/new?monitor_id=3 /incidents/2/edit /deliveries
        /deliveries/{failed} /maintenance /maintenance/2 /markers /contacts
        /contacts/1 /contacts/new /contacts/from-channel?monitor=1&mark={mark} /status-pages
        /status-pages/1 /status-pages/1/images
        /status-pages/1/subscribers /status-pages/1/posts/2
        /status-pages/1/posts/new
        /status-pages/1/posts/1/edit /status-pages/1/posts/2/updates/2 /status-pages/templates
        /status-pages/templates/new /keys /keys/{prefix} /audit /people /people/new
        /people/invite /people/2 /people/2/delete /profile /profile/sessions
        /profile/two-factor/app /settings /settings/webhook-secret/change /settings/backup
        /settings/email /docs/heartbeats /docs/api/posts_update
    """),
    **plain("""
        /screen/{screen} /login/forgotten /new-password/{recovery} /invitation/{invitation} /login
        /acknowledge/{token}
    """, ""),
    **plain("""
        /profile/two-factor /profile/two-factor/passkeys/new /profile/two-factor/codes
    """, SECURED),
    **plain("/nowhere", status=404),
    **plain("/setup/used-up", "", 404),
    "broken": Sight("/broken", status=500),
    # The same templates in other states and for other people; what is pressed on some of them below
    # shows them too.
    **plain("""
        /monitors/3?range=7d /monitors/4 /monitors/11 /monitors/new /monitors/import
        /maintenance/new /reports /status-pages/1/edit /status-pages/1/posts/new?kind=maintenance
        /jump?q=zzz /wall?tag=prod /wall?theme=light /settings/locations/4/delete
        /settings/locations/2/delete /settings/wall-links/1/revoke /monitors?state=down
        /monitors?state=degraded /monitors?state=unknown /monitors?state=pending
        /monitors?tag=prod&sort_by=name&sort=asc /monitors?search=nothing+like+it /monitors?page=7
        /monitors/4?range=24h&phases=1 /monitors/12?range=90d /monitors/5?range=3h /monitors/6
        /monitors/7 /monitors/8 /monitors/9 /monitors/10 /monitors/3/checks?verdict=unknown
        /monitors/12/days/{day}?page=2 /monitors/6/clone /incidents?status=unresolved
        /incidents?search=nothing+like+it /incidents/2/delete /deliveries?status=failed
        /maintenance?month=2031-03 /maintenance/1/edit /maintenance/1/delete /markers/1/delete
        /contacts/2 /contacts/1/edit /contacts/1/delete /status-pages/new /status-pages/1/delete
        /status-pages/1/subscribers/clear /status-pages/1/posts/new?incident_id=1
        /status-pages/1/posts/2/delete /status-pages/templates/1/delete /reports?month={month}
        /keys/{prefix}/revoke /keys/{prefix}/adopt /profile/two-factor /people/{secured}
        /people/{secured}/second-factor/reset /docs /docs/search?q=api+key /docs/api
        /docs/api-manual /docs/api/monitors_store
    """, like=True),
    **plain("""
        / /jump?q=shop /settings/locations /monitors /monitors/3 /incidents/1 /markers /contacts
        /status-pages /status-pages/2 /status-pages/1/posts/1 /status-pages/templates
    """, VIEWER, like=True),
    **plain("""
        /profile/two-factor/app/remove /profile/two-factor/passkeys/1/remove
    """, SECURED, like=True),
    **plain("/monitors /profile/two-factor/app", FORCED, like=True),
    **plain("/people", VIEWER, 403, like=True),
    **plain("/audit?action=none /monitors?sort_by=colour", status=422, like=True),
    **plain("""
        /screen/nonsense /nowhere /new-password/used-up /invitation/used-up
        /acknowledge/not-a-token
    """, "", 404, like=True),
    "menu": Sight("/", then=menu, width=375, dialog=True),
    "jump": Sight("/", then=jump, dialog=True),
    "jump-action": Sight("/", then=jump_to("ack"), dialog=True, like=True),
    "place-made": Sight("/settings/locations/new", then=press("Save", name="bergen")),
    "monitors-ticked": Sight("/monitors", then=tick_and_choose("interval")),
    "monitors-contact": Sight("/monitors", then=tick_and_choose("contact"), like=True),
    "bulk-delete": Sight("/monitors", then=ask_to_delete_ticked),
    "bulk-recontact": Sight("/monitors", then=ask_to_replace_alerts, like=True),
    "bulk-progress": Sight("/monitors?state=up", then=stop_midway),
    "chart-read": Sight("/monitors/3?range=7d", then=read_chart),
    "chart-zoomed": Sight("/monitors/12?from={from}&to={to}", then=open_phases),
    "form-unfolded": Sight("/monitors/new", then=unfold),
    "form-twin": Sight("/monitors/new", then=press("Save", url="warehouse.example.com")),
    "form-faults": Sight("/monitors/new", then=press("Save", **FAULTY)),
    "import-preview": Sight("/monitors/import", then=press("Preview", urls=PASTED)),
    "import-file": Sight("/monitors/import", then=preview_backup),
    "import-result": Sight("/monitors/import", then=create_nothing),
    "incident-evidence": Sight("/incidents/2", then=unfold),
    "window-faults": Sight("/maintenance/new", then=press("Save", **TROUBLED)),
    "status-page-find": Sight("/status-pages/1/edit", then=find_monitors),
    "status-page-faults": Sight("/status-pages/1/edit", then=press("Save", **FAULTY_PAGE)),
    "reports-tag": Sight("/reports?tag=prod", then=unfold),
    "key-made": Sight("/keys", then=press("Create key", name="A new one")),
    "invited": Sight("/people/invite", then=press("Create link", email="new@example.org")),
    "person-link": Sight("/people/2", then=press("Create a link"), like=True),
    "ask-password": Sight("/people/invite", LATE, then=ask_password),
    "codes-made": Sight("/profile/two-factor/codes", SECURED, then=renew_codes),
    "api-tried": Sight("/docs/api/me_show", then=press("Send GET", api_secret="wk_nobody")),
    "second-step": Sight("/login", "", then=type_password),
    "settings-secret": Sight("/settings/webhook-secret/change", then=fresh_secret, like=True),
    "invitation-faults": Sight("/invitation/{invitation}", "",
                               then=press("Create account", password="short")),
    "login-wrong": Sight("/login", "", then=press("Log in", email=ADMIN, password="no"), like=True),
    **{f"faults-{number}": Sight(path, then=press(button, **typed), like=True)
       for number, (path, button, typed) in enumerate(FAULTS)},
}  # fmt: skip

# The same places before anything has happened, where one next step must be plain.
FIRST_DAY = {
    **plain("/ /wall /monitors /incidents /deliveries /maintenance /markers /contacts"),
    **plain("/status-pages /reports /settings/email"),
    **plain("/login/forgotten", ""),
    **plain("""
        /incidents/new /maintenance/new /status-pages/new /status-pages/templates /keys
        /settings/email/remove /people/invite
    """, like=True),
    **plain("/", VIEWER, like=True),
    "forgotten-asked": Sight("/login/forgotten", "", like=True,
                             then=press("Send link", email="nobody@example.org")),
}  # fmt: skip
# When nothing is down.
CALM = plain("/")
# Before there is any account.
UNTOUCHED = {
    **plain("/setup/{setup}", ""),
    **plain("/login", "", like=True),
    "faults": Sight("/setup/{setup}", "",
                    then=press("Create account", email="ada", password="short")),
}  # fmt: skip
ALL = {"living": LIVING, "calm": CALM, "first-day": FIRST_DAY, "untouched": UNTOUCHED}


def open_app(folder: Path) -> Flask:
    """An application on a migrated database that lies in ``folder`` as wakeful.db."""
    app = create_app(
        Settings(
            instance=folder,
            database_url=f"sqlite:///{folder / 'wakeful.db'}",
            secret_key=SECRET_KEY,
            canaries="",
        )
    )

    @app.before_request  # not a route: applications of one process share their addresses
    def broken() -> None:
        if request.path != "/broken":
            return
        raise RuntimeError("broken for a picture of what that looks like")

    return app


def untouched(app: Flask) -> dict[str, Any]:
    with app.app_context():
        return {"setup": current_access().setup.token()}


def people(app: Flask) -> dict[str, Any]:
    make_person(app, "admin", ADMIN)
    make_person(app, "viewer", VIEWER)
    # A test that looks at all pages takes longer than the password is recent.
    app.extensions["wakeful.access"].sessions.password_is_recent = lambda record: True
    return {}


def calm(app: Flask) -> dict[str, Any]:
    people(app)
    ids = scene.fill(app, [part for part in scene.PARTS if part.is_well])
    with app.app_context():
        start = now().replace(minute=0, second=0) + timedelta(days=6)
        fields = {"name": "Patch day", "start_at": start, "end_at": start + timedelta(hours=2)}
        current_store().windows.create(fields | {"tags": ("prod",), "monitors": (ids["Reports"],)})
    return {}


def first_day(app: Flask) -> dict[str, Any]:
    """An installation that can send email."""
    with app.app_context():
        url = "smtp://wakeful:secret@mail.example.org:587?from=wakeful@example.org&tls=required"
        current_access().settings.set("smtp_url", url)
    return people(app)


def open_living(
    folder: Path, sqlite_template: Path, factory: pytest.TempPathFactory
) -> tuple[Flask, dict[str, Any]]:
    """An installation in ``folder`` that has run for months, and what the paths of LIVING name in
    braces. It is filled once in a run, and copied.
    """

    def fill(first: Path) -> None:
        shutil.copyfile(sqlite_template, first / "wakeful.db")
        app = open_app(first)
        (first / "names.json").write_text(json.dumps(_fill(app)))
        with app.app_context():
            db.engine.dispose()

    first = once(factory, "living", fill)
    shutil.copyfile(first / "wakeful.db", folder / "wakeful.db")
    names = json.loads((first / "names.json").read_text())
    app = open_app(folder)
    access = app.extensions["wakeful.access"]
    access.sessions.password_is_recent = lambda record: record.person_id != names["late"]
    return app, names


def _fill(app: Flask) -> dict[str, Any]:
    people(app)
    make_person(app, "editor", FORCED)
    late = make_person(app, "admin", LATE)
    ids = scene.fill(app)
    by_hand = make_incident(
        app, make_monitor(app, name="Parcel desk", state={"verdict": "down"}),
        cause="Customers say that labels come out empty", cause_code=None,
        by_hand=True,
    )  # fmt: skip
    make_key(app, name="CI")
    make_key(app, "read", name="Dashboard in the lobby", expires_at=now() + timedelta(days=3))
    failed = _deliveries(app)
    storm = make_delivery(app, event="incidents.opened", monitor_id=None)
    for incident in (1, by_hand.id):
        make_delivery(app, incident_id=incident, status="held", reason="burst", covered_by=storm)
    with app.app_context():
        _windows(ids)
        scene.add_status_pages(ids)
        scene.add_contacts(ids)
        scene.add_places(ids)
        contact = current_store().contacts.names()[0]
        current_store().report_mails.create({"contact": contact, "tag": "prod"})
        scene.add_markers(ids)
        prefix = current_access().keys.all()[0].prefix
        current_access().factors.set_required_roles([Role.EDITOR])
        token = acknowledgement_token(1, delivery_id=storm)
        mark = current_store().contacts.shared(1)[-1].mark
        _, screen = current_access().wall_links.create("Operations room", "UTC", tag="prod")
        links = _links()
    return links | _secured(app) | {
        "late": late.id, "by_hand": by_hand.id, "failed": failed, "prefix": prefix, "token": token,
        "screen": screen, "mark": mark, "day": f"{now() - timedelta(days=2):%Y-%m-%d}",
        "month": f"{now() - timedelta(days=40):%Y-%m}",
        "from": iso(now() - timedelta(hours=50)), "to": iso(now() - timedelta(hours=36)),
    }  # fmt: skip


def _secured(app: Flask) -> dict[str, Any]:
    """Somebody with an app, a passkey and recovery codes, and the cookie of their session."""
    id = make_person(app, "viewer", SECURED).id
    of = {"person_id": id, "created_at": now()}
    with app.app_context():
        with writing() as session:
            session.add(AuthenticatorAppRow(**of, secret="A" * 32, used_step=0))
            session.add(PasskeyRow(**of, name="Laptop", host="localhost", credential="gallery",
                                   public_key="", sign_count=0, verifies=True))  # fmt: skip
            session.add_all(
                RecoveryCodeRow(person_id=id, digest=f"{number:064}") for number in range(8)
            )
        token = current_access().sessions.begin(id).session
    serializer = SecureCookieSessionInterface().get_signing_serializer(app)
    assert serializer is not None
    cookie = serializer.dumps({TOKEN: token, "_fresh": True, "_permanent": True})
    return {"secured": id, "cookie": cookie}


def _links() -> dict[str, str]:
    """Invitations, one of them expired, and a link to set a new password."""
    access = current_access()
    late, _ = access.invitations.invite("grace@example.org", "viewer")
    with writing() as session:
        row = session.get_one(InvitationRow, late.id)
        row.expires_at = now() - timedelta(days=2)
    _, invitation = access.invitations.invite(
        "a.rather.long.name.for.a.new.colleague@example.org", "editor"
    )
    return {"invitation": invitation, "recovery": access.recovery.make_link(1)}


def _deliveries(app: Flask) -> int:
    """Messages that did not arrive; the id of the first one."""
    long = "503 Service Unavailable: " + "please come back in a moment, we are working on it. " * 6
    ids = [
        make_delivery(app, monitor_id=1, incident_id=1, at=now() - timedelta(minutes=7), **fields)
        for fields in (
            {"status": "failed", "reason": "410 Gone: no_service",
             "attempts": [_attempt(9, long), _attempt(8, "410 Gone: no_service")]},
            {"status": "held", "reason": "burst"},
            {"status": "held", "reason": "outage not delivered", "channel": "telegram"},
        )
    ]  # fmt: skip
    return ids[0]


def _attempt(minutes: int, answer: str) -> dict[str, Any]:
    at = now() - timedelta(minutes=minutes)
    return {"at": at.isoformat(), "ok": False, "answer": answer}


def _windows(ids: dict[str, int]) -> None:
    hour = now().replace(minute=0, second=0)
    for name, start, hours, more in (
        ("Database move", 50, 30, {"monitors": (ids["Shop"], ids["Checkout API"])}),
        ("Backups", 19, 1, {"repeat": "daily"}),
        ("Patch day for all of the office machines and printers", 30, 3, {"repeat": "weekly"}),
        ("Nightly restart", 8, 0.25, {"repeat": "0 3 * * 1-5", "monitors": (ids["Printer"],)}),
    ):  # fmt: skip
        start_at = hour + timedelta(hours=start)
        fields = {"name": name, "start_at": start_at, "end_at": start_at + timedelta(hours=hours)}
        current_store().windows.create(fields | more)
