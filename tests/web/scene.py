"""An installation for pictures and browser tests: monitors in every state, with history, incidents,
evidence and deliveries. Deterministic except for the time that it counts back from.
"""

from __future__ import annotations

import math
import random
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, current_app
from sqlalchemy import select

from app.db import db, journal, places, rollups, writing
from app.db.tables import (
    AssignmentRow,
    DeliveryRow,
    IncidentRow,
    MonitorEvidenceRow,
    MonitorStateRow,
)
from app.records import DEFAULT_PLACE_ID, ComponentName, Group, Pair, Result, Timings, Verdict
from app.stores import current_store
from tests.factories import (
    keep_results,
    make_delivery,
    make_incident,
    make_monitor,
    make_subscriber,
    now,
)

HOURS, DAYS = 3600, 86400


@dataclass
class Part:
    """One monitor of the scene. ``outages``: (seconds ago, length) or (seconds ago, None): open."""

    name: str
    url: str
    tags: str = ""
    interval: int = 3600
    days: float = 90
    base_ms: int = 120
    outages: list[tuple[int, int | None]] = field(default_factory=list)
    cause: tuple[str, str] = ("connection_refused", "The server refused the connection")
    fields: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def is_well(self) -> bool:
        return not self.state.get("verdict") and all(length for _, length in self.outages)


PARTS = [
    Part("Shop", "https://shop.example.com/", "\nprod\nshop\n", base_ms=180,
         outages=[(2_340, None), (9 * DAYS, 4_000), (41 * DAYS, 9_500)],
         cause=("http_status:503", "The server answered 503 Service Unavailable")),
    Part("Checkout API", "https://api.example.com/checkout/health", "\nprod\napi\n", 300, 5, 95,
         outages=[(700, None)], cause=("timeout:ttfb", "No answer came within 30 s")),
    Part("Website", "https://www.example.com/", "\nprod\n", base_ms=140,
         outages=[(23 * DAYS, 4_000)]),
    Part("Documentation", "https://docs.example.com/", "\nprod\n", base_ms=70),
    Part("Login", "https://login.example.com/", "\nprod\n", 300, 5, 210,
         fields={"slow_after": 200}, state={"verdict": "degraded", "cause_code": "slow_response",
                                           "cause": "It took 412 ms, which is more than 200 ms"}),
    Part("Mail server with a name that is rather long and does not quite fit in a narrow column",
         "https://mail.example.com/owa/auth/logon.aspx?replaceCurrent=1&url=https%3a%2f%2fmail",
         "\noffice\n", base_ms=330, outages=[(3 * DAYS, 12_000)]),
    Part("Printer", "http://192.168.1.40/", "\noffice\n", 300, 2, 40,
         state={"verdict": "unknown", "cause_code": "blocked_by_policy",
                "cause": "192.168.1.40 is a private address (192.168.0.0/16) and not allowed. "
                         "To reach it, allow private on the Settings page."}),
    Part("Warehouse", "https://warehouse.example.com/", "\nprod\n", 300, 3, 160,
         fields={"maintenance_start_at": now() - timedelta(hours=1),
                 "maintenance_end_at": now() + timedelta(hours=2)}),
    Part("Old blog", "https://blog.example.com/", "", fields={"paused": True}, days=2),
    Part("Brand new", "https://new.example.com/", "", days=0),
    Part("Status page", "https://status.example.com/", "\nprod\n", base_ms=55,
         state={"ssl_expires_at": now() + timedelta(days=5)},
         fields={"ssl_alert_days": 14, "domain_alert_days": 30}),
    Part("Reports", "https://reports.example.com/", "\noffice\n", base_ms=620,
         outages=[(60 * DAYS, 40_000), (2 * DAYS, 3_700)]),
]  # fmt: skip


def fill(app: Flask, parts: list[Part] = PARTS) -> dict[str, int]:
    """Make the whole scene; the ids of its monitors by name."""
    ids = {}
    for part in parts:
        ids[part.name] = _make(app, part)
    add_found_late(app)
    with app.app_context():
        rollups.roll(now())
    return ids


def _make(app: Flask, part: Part) -> int:
    at = now()
    born = at - timedelta(days=max(part.days, 0.01))
    alerts = [["email", "ops@example.com"], ["slack", "https://hooks.slack.com/services/T0/B0/x1"]]
    row = make_monitor(
        app, name=part.name, url=part.url, tags=part.tags, interval=part.interval,
        created_at=born, updated_at=born, alerts=alerts, **part.fields,
    )  # fmt: skip
    results = list(_history(row.id, part, at)) if part.days else []
    keep_results(app, results)
    with app.app_context():
        with writing() as session:
            state = session.get(MonitorStateRow, row.id)
            for name, value in _state(part, results).items():
                setattr(state, name, value)
            if results:
                session.get(AssignmentRow, (row.id, DEFAULT_PLACE_ID)).scheduled_at = now()
                session.add(MonitorEvidenceRow(monitor_id=row.id, last_good=_good(part, results)))
        db.session.remove()
    for ago, length in part.outages:
        _incident(app, row, part, at, ago, length)
    return row.id


SHARED = ("checked_at", "verdict", "cause_code", "cause", "response_time")  # by result and state


def _state(part: Part, results: list[Result]) -> dict[str, Any]:
    if not results:
        return part.state
    last = results[-1]
    columns = {name: getattr(last, name) for name in SHARED} | {
        "status_since": results[0].checked_at, "domain": "example.com",
        "ssl_expires_at": last.checked_at + timedelta(days=62),
        "ssl_fingerprint": ANSWER["tls"][0]["sha256"],
    }  # fmt: skip
    if part.outages:
        ago, length = min(part.outages)
        columns["status_since"] = now() - timedelta(seconds=ago - (length or 0))
    return columns | part.state


def _history(id: int, part: Part, at: datetime) -> Iterator[Result]:
    dice = random.Random(part.name)
    count = int(part.days * DAYS // part.interval)
    for step in range(count, -1, -1):
        ago = step * part.interval + 20
        moment = at - timedelta(seconds=ago)
        down = next((o for o in part.outages if o[0] - (o[1] or o[0]) < ago <= o[0]), None)
        if down:
            code, cause = part.cause
            yield Result(moment, Verdict.DOWN, monitor_id=id, cause_code=code, cause=cause)
            continue
        wave = 1 + 0.25 * math.sin(ago / DAYS * 2 * math.pi)
        spike = 3 if dice.random() < 0.01 else 1
        ms = int(part.base_ms * wave * spike * dice.uniform(0.85, 1.2))
        shares = [0.08, 0.17, 0.25, 0.42, 0.08]
        timings = Timings(*(int(ms * share) for share in shares))
        yield Result(
            moment, _good_verdict(part, ms), monitor_id=id, status_code=200, response_time=ms,
            timings=timings, ip="203.0.113.7", http_version="2",
        )  # fmt: skip


def _good_verdict(part: Part, ms: int) -> Verdict:
    slow_after = part.fields.get("slow_after")
    return Verdict.DEGRADED if slow_after and ms > slow_after else Verdict.UP


UNAVAILABLE = "The server answered 503 Service Unavailable"
ANSWER = {
    "url": "https://shop.example.com/",
    "request": {"method": "GET", "hops": 1},
    "status_line": "HTTP/2 503 Service Unavailable",
    "headers": [["content-type", "text/html; charset=utf-8"], ["retry-after", "120"],
                ["server", "nginx"]],
    "body": "<html><head><title>503</title></head>\n<body><h1>Back soon</h1>"
            "<script>alert('never run')</script></body></html>",
    "body_bytes": 96,
    "body_cut": False,
    "resolved": ["203.0.113.7", "2001:db8::7"],
    "refused": [],
    "ip": "203.0.113.7",
    "http_version": "2",
    "tls": [{"subject": "shop.example.com", "issuer": "Example CA R3",
             "not_before": "2026-10-01T00:00:00Z", "not_after": "2026-12-30T00:00:00Z",
             "sha256": "ab" * 32, "names": ["shop.example.com"]},
            {"subject": "Example CA R3", "issuer": "Example Root",
             "not_before": "2024-10-01T00:00:00Z", "not_after": "2034-10-01T00:00:00Z",
             "sha256": "cd" * 32, "names": []}],
    "timings": {"dns": 12, "connect": 23, "tls": 41, "ttfb": 87, "download": 2},
    "redirects": [],
    "curl": {"code": 0, "words": ""},
}  # fmt: skip


def _good(part: Part, results: list[Result]) -> dict[str, Any]:
    """The last good check, with the certificates of that host."""
    host = urlsplit(part.url).hostname
    own, *others = ANSWER["tls"]
    chain = [own | {"subject": host, "names": [host]}, *others]
    return ANSWER | {"tls": chain, "checked_at": f"{results[-1].checked_at:%Y-%m-%dT%H:%M:%SZ}"}


EVIDENCE = {
    "failing": ANSWER | {"checked_at": "2026-11-21T08:00:00Z", "verdict": "down",
                         "status_code": 503, "response_time": 165, "cause": UNAVAILABLE},
    "confirming": [
        {"checked_at": f"2026-11-21T08:00:{second}Z", "verdict": "down", "status_code": 503,
         "response_time": 160, "cause": UNAVAILABLE} for second in (12, 24)
    ],
    "last_good": ANSWER | {"checked_at": "2026-11-21T07:59:00Z", "verdict": "up",
                         "status_code": 200, "response_time": 181, "cause": None,
                         "status_line": "HTTP/2 200 OK",
                         "headers": [["content-type", "text/html; charset=utf-8"]],
                         "body": "<html><head><title>Shop</title></head>\n<body><h1>Welcome</h1>",
                         "timings": {"dns": 11, "connect": 22, "tls": 40, "ttfb": 106,
                                     "download": 2}},
    "usual": {"checked_at": "2026-11-21T07:59:00Z", "response_time": 180,
              "timings": {"dns": 11, "connect": 22, "tls": 40, "ttfb": 105, "download": 2},
              "addresses": ["203.0.113.7"]},
}  # fmt: skip


def _evidence(started: datetime) -> dict[str, Any]:
    """The same evidence, at the times of an incident."""

    def at(check: dict[str, Any], seconds: int) -> dict[str, Any]:
        moment = started + timedelta(seconds=seconds)
        return check | {"checked_at": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}

    first, second = EVIDENCE["confirming"]
    return {
        "failing": at(EVIDENCE["failing"], 0),
        "confirming": [at(first, 12), at(second, 24)],
        "last_good": at(EVIDENCE["last_good"], -60),
        "usual": at(EVIDENCE["usual"], -60),
    }


def _incident(app: Flask, row: Any, part: Part, at: datetime, ago: int, length: int | None) -> None:
    started = at - timedelta(seconds=ago)
    ended = None if length is None else started + timedelta(seconds=length)
    code, cause = part.cause
    acknowledged = started + timedelta(minutes=4)
    over = {
        "acknowledged_at": acknowledged, "acknowledged_by": "grace@example.com",
        "comment": f"[{acknowledged:%Y-%m-%d %H:%M:%S} UTC, grace@example.com]\nThe disk of the "
                   "database was full. Cleaned up; a bigger one is ordered.",
    }  # fmt: skip
    incident = make_incident(
        app, row, started_at=started, ended_at=ended, cause=cause, cause_code=code,
        evidence=_evidence(started), created_at=started + timedelta(seconds=24),
        updated_at=ended or started, **(over if ended else {}),
    )  # fmt: skip
    targets = {"email": "ops@example.com", "slack": "https://hooks.slack.com/services/x1"}
    for event, moment in [("opened", started)] + ([("resolved", ended)] if ended else []):
        for number, (channel, value) in enumerate(targets.items()):
            late, done = number and ended is None, moment + timedelta(seconds=26 + number)
            attempt = {"at": done.isoformat(), "ok": not late,
                       "answer": "HTTP 503" if late else "250 OK"}  # fmt: skip
            make_delivery(
                app, event=f"incident.{event}", monitor_id=row.id, incident_id=incident.id,
                channel=channel, value=value, lane=f"{channel}-1", attempts=[attempt],
                at=moment + timedelta(seconds=25), status="pending" if late else "delivered",
                next_attempt_at=done + timedelta(hours=1) if late else None,
                delivered_at=None if late else done,
            )  # fmt: skip


def add_found_late(app: Flask) -> None:
    """Half an hour before each incident, one that late results showed. After all others: pages of
    these are looked at by their numbers.
    """
    with app.app_context():
        incidents = list(db.session.scalars(select(IncidentRow).order_by(IncidentRow.id)))
        db.session.expunge_all()
    for incident in incidents:
        started = incident.started_at - timedelta(minutes=30)
        ended = started + timedelta(minutes=12)
        make_incident(
            app, SimpleNamespace(id=incident.monitor_id), started_at=started, ended_at=ended,
            cause=incident.cause, cause_code=incident.cause_code, found_late=True,
            seen_by=["Oslo", "Sydney"],
        )  # fmt: skip


LOGO = b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><circle cx="20" cy="20" r="18"'
    b' fill="#0b746f"/></svg>'
).decode()


def add_status_pages(ids: dict[str, int]) -> None:
    """Two pages, one of them with posts and subscribers. Needs an application context."""
    store = current_store()
    shown = [ids[name] for name in ("Website", "Shop", "Checkout API", "Login", "Documentation")]
    mail = next(id for name, id in ids.items() if name.startswith("Mail"))
    page = store.status_pages.create({
        "name": "Example Ltd", "monitors": (*shown, mail), "auto_post_after": 10,
        "description": "How our services are, and what we are doing about it.",
        "names": (ComponentName(ids["Checkout API"], "Payment"), ComponentName(mail, "Mail")),
        "groups": (Group("Selling", tuple(shown[1:4])), Group("Everything else", (mail,))),
        "accent": "#0b746f", "home_url": "https://example.com/", "footer": "Example Ltd, Oslo",
        "logo": LOGO, "favicon": LOGO,
    })  # fmt: skip
    store.status_pages.create({
        "name": "Status of everything that our partners in the warehouses and offices depend on",
        "visibility": "unlisted", "monitors": (ids["Warehouse"], ids["Reports"]), "theme": "dark",
    })  # fmt: skip
    start = now().replace(minute=0, second=0) + timedelta(days=2)
    store.posts.create(page.id, {
        "title": "The database moves to a new home", "state": "scheduled", "monitors": shown[:2],
        "body": "The shop cannot be reached for up to an hour.",
        "starts_at": start, "ends_at": start + timedelta(hours=1),
    })  # fmt: skip
    store.post_templates.create({
        "name": "A bank is slow", "title": "Payments take long", "state": "identified",
        "body": "A bank answers slowly. Payments go through, but take longer than a minute."
        " Nobody pays twice. We are in contact with the bank and post an update every hour.",
    })  # fmt: skip
    post = store.posts.create(page.id, {
        "title": "Payments take long", "state": "investigating", "monitors": (shown[2],),
        "body": "Some payments take longer than a minute.\nWe are looking into it.",
        "incident_id": None,
    })  # fmt: skip
    store.posts.add_update(page.id, post.id, {
        "state": "identified", "body": "A bank answers slowly: https://bank.example.com/status",
    })  # fmt: skip
    store.posts.correct_update(page.id, post.id, post.updates[0].id, {
        "body": "Some payments take longer than a minute. Nobody pays twice.\nWe look into it.",
    })  # fmt: skip
    for days, (channel, value) in enumerate((
        ("email", "ada.lovelace@example.com"), ("email", "grace@example.org"),
        ("webhook", "https://hooks.example.com/status/abcdef123456"),
    )):  # fmt: skip
        at = now() - timedelta(days=days)
        times = {"created_at": at, "confirmed_at": at}
        make_subscriber(current_app, page.id, channel=channel, value=value, digest=value, **times)


def add_markers(ids: dict[str, int]) -> None:
    """Deploys, some shortly before an incident. Needs an application context."""
    at = now()
    for name, ago, tags, link in (
        ("shop v2.1", timedelta(minutes=42), ("shop",), "https://ci.example.com/shop/2.1"),
        ("api 2026-11-22.4, a rather long name", timedelta(minutes=15), ("api", "prod"), None),
        ("Firewall rules", timedelta(hours=7), (), None),
        ("shop v2.0", timedelta(days=3), ("shop",), "https://ci.example.com/shop/2.0"),
    ):  # fmt: skip
        fields = {"name": name, "time": at - ago, "tags": tags, "link": link}
        current_store().markers.create(fields)


def add_contacts(ids: dict[str, int]) -> None:
    """Two contacts, one of them used by monitors. Needs an application context."""
    store = current_store()
    name = "Everybody in the warehouses and offices who looks after what our partners depend on"
    shop = store.contacts.create({
        "name": name[:80], "default": True, "quiet_start": "22:00", "quiet_end": "07:00",
        "channels": (
            Pair("email", "shop-team@example.com"),
            Pair("slack", "https://hooks.slack.com/services/T0/B0/shop"),
        ),
    })  # fmt: skip
    store.contacts.create({
        "name": "Night shift", "channels": (Pair("sms", "+447700900123"),), "min_severity": "down",
        "acknowledgements": False,
    })  # fmt: skip
    for monitor in ("Shop", "Checkout API"):
        alerts = (*store.monitors.get(ids[monitor]).alerts, Pair("contact", shop.name))
        store.monitors.update(ids[monitor], {"alerts": alerts})
    with writing() as session:
        row = session.get(DeliveryRow, 1)
        if row is not None:
            row.sources = f",{shop.id},"


def add_places(ids: dict[str, int]) -> None:
    """Places of each state; "Documentation" is checked from two of them. Its incident, which is
    over, was seen from three of four. Needs an application context.
    """
    store, at = current_store(), now()
    for name, label, carrier in (
        ("oslo", "Oslo, Norway", "queue"),
        ("sydney", "Sydney", "agent"),
        ("a-place-with-a-rather-long-name-in-a-far-away-country", None, "agent"),
    ):
        store.locations.create({"name": name, "label": label, "carrier": carrier})
    for role, name, ago, offset in (
        ("checker", "default", 2, None),
        ("prober", "oslo", 3, 4),
        ("agent", "sydney", 5_000, -3_250),
    ):
        last_sign = at - timedelta(seconds=ago)
        places.store_sign(
            name, last_sign, process=f"{role}:{name}:1", version="1.0", clock_offset_ms=offset,
            checks_per_minute=None if ago > 60 else 1_240, last_check_at=last_sign,
        )  # fmt: skip
    id = ids["Documentation"]
    store.monitors.update(id, {"locations": ("default", "oslo", "sydney")})
    with writing() as session:
        slow = Result(
            at - timedelta(seconds=25), Verdict.UP, monitor_id=id, status_code=200,
            response_time=412, ip="203.0.113.7", http_version="2",
        )  # fmt: skip
        journal.assign_numbers([slow])
        journal.insert_results([journal.row_of(slow, journal.place_id("oslo"))])
        for name, ms in (("oslo", 190), ("sydney", 310)):
            times = {at - timedelta(seconds=1800 * step + 25): ms + 40 * (step % 5)
                     for step in range(1, 48)}  # fmt: skip
            earlier = [replace(slow, checked_at=when, response_time=time)
                       for when, time in times.items()]  # fmt: skip
            number = journal.place_id(name)
            journal.insert_results([journal.row_of(outcome, number) for outcome in earlier])
        incident = session.get_one(IncidentRow, 2)
        down = {"verdict": "down", "cause_code": "http_status:503", "cause": UNAVAILABLE,
                "status_code": 503, "response_time": 165, "earlier": False}  # fmt: skip
        good = {"verdict": "up", "cause_code": None, "cause": None, "status_code": 200,
                "response_time": 310, "earlier": False}  # fmt: skip
        kept = incident.evidence
        incident.evidence = {**kept, "places": [
            {"name": "default", "label": None, **down, "check": None},
            {"name": "oslo", "label": "Oslo, Norway", **down, "check": kept["failing"]},
            {"name": "bergen", "label": "Bergen", **down, "check": None},
            {"name": "sydney", "label": "Sydney", **good, "check": None},
        ]}  # fmt: skip
