"""Every page of the dashboard, over two installations that tests only read: one that has been
running for months, and one on its first day.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask
from flask.sessions import SecureCookieSessionInterface

from app import create_app
from app.access.acknowledgements import make_token
from app.access.second_factor import CODE_GROUP, CODE_GROUPS, SecondFactors
from app.config import Settings
from app.db import db, writing
from app.db.tables import (
    AuthenticatorAppRow,
    DeliveryRow,
    InvitationRow,
    PasskeyRow,
    RecoveryCodeRow,
)
from app.records import Person, Role
from app.rules.time import iso
from app.stores import current_access, current_store
from app.web.frame import progress, session
from app.web.frame.session import TOKEN
from tests.factories import PASSWORD, make_incident, make_key, make_monitor, make_person, now
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
    widths: tuple[int, ...] = ()  # where it is to be seen, if not everywhere
    brief: bool = False  # like another one: enough to see it wide and light, and narrow and dark
    dialog: bool = False  # it covers the page, so overflow below it does not matter


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


def mistype_password(page: Page) -> None:
    ask_password(page)
    press("Invite a person", your_password="not this")(page)


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")


def choose_email(page: Page) -> None:
    page.get_by_label("Alerts, row 1: Channel").select_option("email")


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
    """By keyboard, with a part of it selected."""
    page.locator(".chart-scroll").focus()
    for key in ("End", *["ArrowLeft"] * 9, *["Shift+ArrowLeft"] * 20):
        page.keyboard.press(key)


def open_phases(page: Page) -> None:
    for one in page.locator(".checks summary").all()[:2]:
        one.click()


def menu(page: Page) -> None:
    page.set_viewport_size({"width": 375, "height": 900})
    page.get_by_role("button", name="Menu").click()


def type_password(page: Page) -> None:
    """Half a login."""
    press("Log in", email=SECURED, password=PASSWORD)(page)


def type_wrong_code(page: Page) -> None:
    type_password(page)
    press("Log in", second_code="12")(page)


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


# As long as real ones: whether they fit a phone is looked at.
CODES = ["-".join([f"{number:0{CODE_GROUP}}"] * CODE_GROUPS) for number in range(10)]
BACKUP = Path(__file__).parents[1] / "imports" / "samples" / "kuma-backup.json"
FAULTY = {"url": "shop.example.com", "name": "x" * 300, "timeout": "99",
          "accepted_statuses": "up to 300", "maintenance_start_at": "2027-01-01T10:00",
          "request_headers-0-value": "no name"}  # fmt: skip
TROUBLED = {"name": "", "start_at": "2027-01-02T10:00", "end_at": "2027-01-01T10:00"}
FAULTY_PAGE = {"name": "", "slug": "Not good", "groups-0-name": ""}
PASTED = "https://one.example.com\nnonsense\nShop, https://shop.example.com/ten\nftp://x.example\none.example.com"

ZOOM_FROM, ZOOM_TO = (iso(now() - timedelta(hours=hours)) for hours in (50, 36))

LIVING = {
    "home": Sight("/"),
    "home-viewer": Sight("/", VIEWER, brief=True),
    "home-menu": Sight("/", then=menu, widths=(375,), dialog=True),
    "home-jump": Sight("/", then=jump, dialog=True),
    "home-jump-action": Sight("/", then=jump_to("ack"), dialog=True),
    "jump": Sight("/jump?q=s"),
    "jump-viewer": Sight("/jump?q=shop", VIEWER, brief=True),
    "jump-nothing": Sight("/jump?q=zzz", brief=True),
    "wall": Sight("/wall"),
    "wall-tag": Sight("/wall?tag=prod", brief=True),
    "screen": Sight("/screen/{screen}", ""),
    "screen-void": Sight("/screen/nonsense", "", 404, brief=True),
    "places": Sight("/settings/locations"),
    "places-viewer": Sight("/settings/locations", VIEWER, brief=True),
    "place-new": Sight("/settings/locations/new"),
    "place-faults": Sight(
        "/settings/locations/new", then=press("Save", name="New York"), brief=True
    ),
    "place-made": Sight(
        "/settings/locations/new", then=press("Save", name="bergen", label="Bergen")
    ),
    "place-queue": Sight("/settings/locations/2/start"),
    "place-edit": Sight("/settings/locations/2/edit", brief=True),
    "place-token": Sight("/settings/locations/3/token", brief=True),
    "place-delete": Sight("/settings/locations/4/delete", brief=True),
    "place-delete-used": Sight("/settings/locations/2/delete", brief=True),
    "wall-links": Sight("/settings/wall-links"),
    "wall-links-faults": Sight(
        "/settings/wall-links", then=press("Create link", name="", zone="Mars"), brief=True
    ),
    "wall-link-made": Sight(
        "/settings/wall-links", then=press("Create link", name="Lobby"), brief=True
    ),
    "wall-link-revoke": Sight("/settings/wall-links/1/revoke", brief=True),
    "wall-light": Sight("/wall?theme=light", brief=True),
    "monitors": Sight("/monitors"),
    "monitors-viewer": Sight("/monitors", VIEWER, brief=True),
    "monitors-down": Sight("/monitors?state=down", brief=True),
    "monitors-degraded": Sight("/monitors?state=degraded", brief=True),
    "monitors-unknown": Sight("/monitors?state=unknown", brief=True),
    "monitors-pending": Sight("/monitors?state=pending", brief=True),
    "monitors-tag": Sight("/monitors?tag=prod&sort_by=name&sort=asc", brief=True),
    "monitors-search": Sight("/monitors?search=nothing+like+it", brief=True),
    "monitors-far-page": Sight("/monitors?page=7", brief=True),
    "monitors-misspelt": Sight("/monitors?sort_by=colour", status=422, brief=True),
    "monitors-ticked": Sight("/monitors", then=tick_and_choose("interval")),
    "monitors-contact": Sight("/monitors", then=tick_and_choose("contact"), brief=True),
    "bulk-delete": Sight("/monitors", then=ask_to_delete_ticked),
    "bulk-recontact": Sight("/monitors", then=ask_to_replace_alerts, brief=True),
    "bulk-progress": Sight("/monitors?state=up", then=stop_midway, brief=True),
    "monitor-down": Sight("/monitors/1"),
    "monitor-up": Sight("/monitors/3?range=7d"),
    "monitor-phases": Sight("/monitors/4?range=24h&phases=1", brief=True),
    "monitor-places": Sight("/monitors/4"),
    "monitor-year": Sight("/monitors/12?range=365d&phases=1"),
    "monitor-chart-read": Sight("/monitors/3?range=7d", then=read_chart),
    "monitor-zoomed": Sight(f"/monitors/12?from={ZOOM_FROM}&to={ZOOM_TO}", then=open_phases),
    "monitor-quarter": Sight("/monitors/12?range=90d"),
    "monitor-degraded": Sight("/monitors/5?range=3h", brief=True),
    "monitor-long-name": Sight("/monitors/6", brief=True),
    "monitor-unknown": Sight("/monitors/7", brief=True),
    "monitor-maintenance": Sight("/monitors/8", brief=True),
    "monitor-paused": Sight("/monitors/9"),
    "monitor-pending": Sight("/monitors/10", brief=True),
    "monitor-certificate": Sight("/monitors/11"),
    "monitor-viewer": Sight("/monitors/3", VIEWER, brief=True),
    "checks": Sight("/monitors/1/checks?verdict=down"),
    "checks-none": Sight("/monitors/3/checks?verdict=unknown", brief=True),
    "day": Sight(f"/monitors/12/days/{(now() - timedelta(days=2)):%Y-%m-%d}"),
    "day-checks": Sight(
        f"/monitors/12/days/{(now() - timedelta(days=2)):%Y-%m-%d}?page=2", brief=True
    ),
    "form-new": Sight("/monitors/new"),
    "form-unfolded": Sight("/monitors/new", then=unfold),
    "form-channel": Sight("/monitors/new", then=choose_email),
    "form-twin": Sight("/monitors/new", then=press("Save", url="warehouse.example.com")),
    "form-edit": Sight("/monitors/1/edit", brief=True),
    "form-clone": Sight("/monitors/6/clone", brief=True),
    "form-faults": Sight("/monitors/new", then=press("Save", **FAULTY)),
    "monitor-delete": Sight("/monitors/1/delete", brief=True),
    "import": Sight("/monitors/import"),
    "import-faults": Sight("/monitors/import", then=press("Preview"), brief=True),
    "import-preview": Sight("/monitors/import", then=press("Preview", urls=PASTED)),
    "import-file": Sight("/monitors/import", then=preview_backup),
    "import-result": Sight("/monitors/import", then=create_nothing, brief=True),
    "incidents": Sight("/incidents"),
    "incidents-open": Sight("/incidents?status=unresolved", brief=True),
    "incidents-none": Sight("/incidents?search=nothing+like+it", brief=True),
    "incident-open": Sight("/incidents/1"),
    "incident-over": Sight("/incidents/2"),
    "incident-evidence": Sight("/incidents/2", then=unfold, brief=True),
    "incident-viewer": Sight("/incidents/1", VIEWER, brief=True),
    "incident-by-hand": Sight("/incidents/{by_hand}"),
    "incident-comment-faults": Sight("/incidents/1", then=press("Add comment"), brief=True),
    "incident-new": Sight("/incidents/new?monitor_id=3"),
    "incident-new-faults": Sight(
        "/incidents/new", then=press("Report an incident", started_at=""), brief=True
    ),
    "incident-edit": Sight("/incidents/2/edit"),
    "incident-delete": Sight("/incidents/2/delete", brief=True),
    "deliveries": Sight("/deliveries"),
    "deliveries-failed": Sight("/deliveries?status=failed", brief=True),
    "delivery-failed": Sight("/deliveries/{failed}"),
    "maintenance": Sight("/maintenance"),
    "maintenance-far-month": Sight("/maintenance?month=2031-03", brief=True),
    "window": Sight("/maintenance/2"),
    "window-new": Sight("/maintenance/new"),
    "window-edit": Sight("/maintenance/1/edit", brief=True),
    "window-faults": Sight("/maintenance/new", then=press("Save", **TROUBLED)),
    "window-delete": Sight("/maintenance/1/delete", brief=True),
    "markers": Sight("/markers"),
    "markers-viewer": Sight("/markers", VIEWER, brief=True),
    "markers-faults": Sight(
        "/markers", then=press("Add marker", name="", link="javascript:1"), brief=True
    ),
    "marker-delete": Sight("/markers/1/delete", brief=True),
    "contacts": Sight("/contacts"),
    "contacts-viewer": Sight("/contacts", VIEWER, brief=True),
    "contact": Sight("/contacts/1"),
    "contact-unused": Sight("/contacts/2", brief=True),
    "contact-new": Sight("/contacts/new"),
    "contact-faults": Sight("/contacts/new", then=press("Save", name="4711"), brief=True),
    "contact-from-channel": Sight("/contacts/from-channel?monitor=1&mark={mark}"),
    "contact-edit": Sight("/contacts/1/edit", brief=True),
    "contact-delete": Sight("/contacts/1/delete", brief=True),
    "status-pages": Sight("/status-pages"),
    "status-pages-viewer": Sight("/status-pages", VIEWER, brief=True),
    "status-page": Sight("/status-pages/1"),
    "status-page-viewer": Sight("/status-pages/2", VIEWER, brief=True),
    "status-page-edit": Sight("/status-pages/1/edit"),
    "status-page-new": Sight("/status-pages/new", brief=True),
    "status-page-find": Sight("/status-pages/1/edit", then=find_monitors),
    "status-page-faults": Sight("/status-pages/1/edit", then=press("Save", **FAULTY_PAGE)),
    "status-page-delete": Sight("/status-pages/1/delete", brief=True),
    "subscribers": Sight("/status-pages/1/subscribers"),
    "subscribers-clear": Sight("/status-pages/1/subscribers/clear", brief=True),
    "post": Sight("/status-pages/1/posts/2"),
    "post-viewer": Sight("/status-pages/1/posts/1", VIEWER, brief=True),
    "post-new": Sight("/status-pages/1/posts/new"),
    "post-draft": Sight("/status-pages/1/posts/new?incident_id=1", brief=True),
    "post-maintenance": Sight("/status-pages/1/posts/new?kind=maintenance"),
    "post-faults": Sight("/status-pages/1/posts/new", then=press("Publish"), brief=True),
    "post-edit": Sight("/status-pages/1/posts/1/edit", brief=True),
    "post-update": Sight("/status-pages/1/posts/2/updates/2", brief=True),
    "post-delete": Sight("/status-pages/1/posts/2/delete", brief=True),
    "post-templates": Sight("/status-pages/templates"),
    "post-templates-viewer": Sight("/status-pages/templates", VIEWER, brief=True),
    "post-template-new": Sight("/status-pages/templates/new"),
    "post-template-faults": Sight(
        "/status-pages/templates/1/edit", then=press("Save", name="", body=""), brief=True
    ),
    "post-template-delete": Sight("/status-pages/templates/1/delete", brief=True),
    "reports": Sight("/reports"),
    "reports-tag": Sight("/reports?tag=prod", then=unfold),
    "reports-month": Sight(f"/reports?month={(now() - timedelta(days=40)):%Y-%m}", brief=True),
    "keys": Sight("/keys"),
    "keys-faults": Sight("/keys", then=press("Create key"), brief=True),
    "key-made": Sight("/keys", then=press("Create key", name="A new one")),
    "key-revoke": Sight("/keys/{prefix}/revoke", brief=True),
    "key-edit": Sight("/keys/{prefix}", brief=True),
    "key-adopt": Sight("/keys/{prefix}/adopt", brief=True),
    "audit": Sight("/audit"),
    "audit-faults": Sight("/audit?action=none", status=422, brief=True),
    "people": Sight("/people"),
    "people-new": Sight("/people/new"),
    "people-faults": Sight(
        "/people/new", then=press("Add person", email="nobody", password="short"), brief=True
    ),
    "invite": Sight("/people/invite"),
    "invite-faults": Sight("/people/invite", then=press("Create link"), brief=True),
    "invited": Sight("/people/invite", then=press("Create link", email="new@example.org")),
    "invited-again": Sight("/people", then=press("New link for grace@example.org"), brief=True),
    "person": Sight("/people/2"),
    "person-link": Sight("/people/2", then=press("Create a link"), brief=True),
    "person-delete": Sight("/people/2/delete", brief=True),
    "profile": Sight("/profile"),
    "sessions": Sight("/profile/sessions"),
    "ask-password": Sight("/people/invite", LATE, then=ask_password),
    "ask-password-wrong": Sight("/people/invite", LATE, then=mistype_password, brief=True),
    "two-factor": Sight("/profile/two-factor", SECURED),
    "two-factor-off": Sight("/profile/two-factor", brief=True),
    "two-factor-forced": Sight("/monitors", FORCED, brief=True),
    "two-factor-forced-app": Sight("/profile/two-factor/app", FORCED, brief=True),
    "two-factor-app": Sight("/profile/two-factor/app"),
    "two-factor-app-faults": Sight(
        "/profile/two-factor/app", then=press("Confirm", second_code="12"), brief=True
    ),
    "two-factor-app-remove": Sight("/profile/two-factor/app/remove", SECURED, brief=True),
    "two-factor-passkey-remove": Sight(
        "/profile/two-factor/passkeys/1/remove", SECURED, brief=True
    ),
    "two-factor-passkey": Sight("/profile/two-factor/passkeys/new", SECURED),
    "two-factor-passkey-faults": Sight(
        "/profile/two-factor/passkeys/new", SECURED, then=press("Add passkey"), brief=True
    ),
    "two-factor-codes": Sight("/profile/two-factor/codes", SECURED, brief=True),
    "two-factor-codes-made": Sight("/profile/two-factor/codes", SECURED, then=renew_codes),
    "second-step": Sight("/login", "", then=type_password),
    "second-step-faults": Sight("/login", "", then=type_wrong_code, brief=True),
    "person-secured": Sight("/people/{secured}", brief=True),
    "person-reset": Sight("/people/{secured}/second-factor/reset", brief=True),
    "settings": Sight("/settings"),
    "settings-secret": Sight("/settings/webhook-secret/change", then=fresh_secret, brief=True),
    "settings-change-secret": Sight("/settings/webhook-secret/change"),
    "settings-backup": Sight("/settings/backup", brief=True),
    "settings-email": Sight("/settings/email"),
    "settings-email-faults": Sight(
        "/settings/email", then=press("Save", host="a b", sender="nobody"), brief=True
    ),
    "forgotten": Sight("/login/forgotten", ""),
    "new-password": Sight("/new-password/{recovery}", ""),
    "new-password-void": Sight("/new-password/used-up", "", 404, brief=True),
    "invitation": Sight("/invitation/{invitation}", ""),
    "invitation-faults": Sight(
        "/invitation/{invitation}", "", then=press("Create account", password="short")
    ),
    "invitation-void": Sight("/invitation/used-up", "", 404, brief=True),
    "login": Sight("/login", ""),
    "login-wrong": Sight(
        "/login", "", then=press("Log in", email=ADMIN, password="not this"), brief=True
    ),
    "setup-void": Sight("/setup/used-up", "", 404),
    "acknowledge": Sight("/acknowledge/{token}", ""),
    "acknowledge-void": Sight("/acknowledge/not-a-token", "", 404, brief=True),
    "not-found": Sight("/nowhere", status=404),
    "not-found-stranger": Sight("/nowhere", "", 404, brief=True),
    "not-allowed": Sight("/people", VIEWER, 403, brief=True),
    "broken": Sight("/broken", status=500),
}  # fmt: skip

# The same places before anything has happened, where one next step must be plain.
FIRST_DAY = {
    "home": Sight("/"),
    "home-viewer": Sight("/", VIEWER, brief=True),
    "wall": Sight("/wall"),
    "monitors": Sight("/monitors"),
    "incidents": Sight("/incidents"),
    "incident-new": Sight("/incidents/new", brief=True),
    "deliveries": Sight("/deliveries"),
    "maintenance": Sight("/maintenance"),
    "window-new": Sight("/maintenance/new", brief=True),
    "markers": Sight("/markers"),
    "contacts": Sight("/contacts"),
    "status-pages": Sight("/status-pages"),
    "status-page-new": Sight("/status-pages/new", brief=True),
    "post-templates": Sight("/status-pages/templates", brief=True),
    "reports": Sight("/reports"),
    "keys": Sight("/keys", brief=True),
    "settings-email": Sight("/settings/email"),
    "settings-email-remove": Sight("/settings/email/remove", brief=True),
    "invite": Sight("/people/invite", brief=True),
    "forgotten": Sight("/login/forgotten", ""),
    "forgotten-asked": Sight(
        "/login/forgotten", "", then=press("Send link", email="nobody@example.org"), brief=True
    ),
}
# When nothing is down.
CALM = {"home": Sight("/")}
# Before there is any account.
UNTOUCHED = {
    "setup": Sight("/setup/{setup}", ""),
    "setup-faults": Sight(
        "/setup/{setup}", "", then=press("Create account", email="ada", password="short")
    ),
    "login": Sight("/login", "", brief=True),
}
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

    @app.get("/broken")
    def broken() -> str:
        raise RuntimeError("broken for a picture of what that looks like")

    return app


def untouched(app: Flask) -> dict[str, Any]:
    with app.app_context():
        return {"setup": current_access().setup.token()}


def people(app: Flask) -> dict[str, Any]:
    make_person(app, "admin", ADMIN)
    make_person(app, "viewer", VIEWER)
    # Whoever looks at all pages takes longer than the password is recent.
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
    with app.app_context():
        _windows(ids)
        scene.add_status_pages(ids)
        scene.add_contacts(ids)
        scene.add_places(ids)
        contact = current_store().contacts.names()[0]
        current_store().report_mails.create({"contact": contact, "tag": "prod"})
        scene.add_markers(ids)
        prefix = current_access().keys.all()[0].prefix
        current_access().factors.require([Role.EDITOR])
        token = make_token(1)
        mark = current_store().contacts.shared(1)[-1].mark
        _, screen = current_access().wall_links.create("Operations room", "UTC", tag="prod")
        links = _links()
    return (
        links
        | _secured(app)
        | {
            "late": late.id,
            "by_hand": by_hand.id,
            "failed": failed,
            "prefix": prefix,
            "token": token,
            "screen": screen,
            "mark": mark,
        }
    )


def _secured(app: Flask) -> dict[str, Any]:
    """Somebody with an app, a passkey and recovery codes, and the cookie of their session."""
    person = make_person(app, "viewer", SECURED)
    with app.app_context():
        with writing() as session:
            session.add(
                AuthenticatorAppRow(
                    person_id=person.id, secret="A" * 32, used_step=0, created_at=now()
                )
            )
            session.add(
                PasskeyRow(
                    person_id=person.id,
                    name="Laptop",
                    host="localhost",
                    credential="gallery",
                    public_key="",
                    sign_count=0,
                    verifies=True,
                    created_at=now(),
                )
            )
            session.add_all(
                RecoveryCodeRow(person_id=person.id, digest=f"{number:064}") for number in range(8)
            )
        token = current_access().sessions.begin(person.id).session
    serializer = SecureCookieSessionInterface().get_signing_serializer(app)
    assert serializer is not None
    cookie = serializer.dumps({TOKEN: token, "_fresh": True, "_permanent": True})
    return {"secured": person.id, "cookie": cookie}


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
    return {"invitation": invitation, "recovery": access.recovery.make(1)}


def _deliveries(app: Flask) -> int:
    long = "503 Service Unavailable: " + "please come back in a moment, we are working on it. " * 6
    told = [
        {"status": "failed", "reason": "410 Gone: no_service",
         "attempts": [_attempt(9, long), _attempt(8, "410 Gone: no_service")]},
        {"status": "held", "reason": "burst"},
        {"status": "held", "reason": "outage not delivered", "channel": "telegram"},
    ]  # fmt: skip
    with app.app_context(), writing() as session:
        rows = [
            DeliveryRow(**{
                "message_id": f"m{number}", "event": "incident.opened", "monitor_id": 1,
                "incident_id": 1, "channel": "webhook", "value": "https://hooks.example.com/abcdef",
                "lane": f"l{number}", "facts": {}, "attempts": [],
                "created_at": now() - timedelta(minutes=7 * number),
            } | fields)
            for number, fields in enumerate(told, 1)
        ]  # fmt: skip
        session.add_all(rows)
        session.flush()
        return rows[0].id


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
