"""No status page takes the dashboard's place at a host name where people use it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from flask import Flask

from app.access import Access, dashboard_hosts
from app.access.dashboard_hosts import MAX_PER_PERSON, RETENTION
from app.db import db, writing
from app.db.tables import DashboardHostRow
from app.records import Client
from tests.factories import make_key, make_person, now
from tests.pages.made import make_page
from tests.web.visitor import Visitor

UNNAMED = pytest.mark.settings(public_url=None)
DASHBOARD = "wakeful.lan"
API = "http://192.0.2.1:8000"  # a program can name any host, or none


def log_in(app: Flask, host: str = DASHBOARD) -> Visitor:
    visitor = Visitor(app)
    visitor.client.open = partial(visitor.client.open, base_url=f"http://{host}")
    return visitor.log_in("editor@wakeful.test").open("/")


def give(app: Flask, domain: str, base: str = API) -> tuple[int, str]:
    """The answer of the API to a page with this domain."""
    key = {"Authorization": f"Bearer {make_key(app)}"}
    page = {"name": "Shop", "domain": domain}
    answer = app.test_client().post("/api/v1/status-pages", json=page, headers=key, base_url=base)
    return answer.status_code, answer.text


def session_at(app: Flask, host: str, ago: timedelta) -> None:
    person = make_person(app, "viewer")
    access = Access(lambda: now() - ago)
    with app.app_context():
        access.sessions.begin(person.id, Client(host=host))


@UNNAMED
def test_where_somebody_is_logged_in_no_page_is_made_by_api_or_form(app: Flask):
    make_person(app, "editor")
    assert give(app, "status.lan")[0] == 201
    log_in(app, "Wakeful.LAN.:8000")
    status, answer = give(app, DASHBOARD)
    assert status == 422
    assert "WAKEFUL_PUBLIC_URL" in answer, "the way out"
    other = log_in(app, "other.lan")
    other.open("/status-pages/new").press("Save", name="Mine", domain=DASHBOARD)
    assert "People use Wakeful&#39;s dashboard at this host name." in other.page.text
    assert log_in(app).page.status_code == 200, "the dashboard is where it was"


@UNNAMED
def test_a_session_that_began_before_hosts_were_remembered_counts_by_its_use(app: Flask):
    make_person(app, "editor")
    visitor = log_in(app)
    with app.app_context():
        db.session.query(DashboardHostRow).delete()
        db.session.execute(db.text("UPDATE sessions SET last_used_at = last_used_at - 300000"))
        db.session.commit()
    visitor.open("/")
    assert give(app, DASHBOARD)[0] == 422


@UNNAMED
def test_a_page_that_already_has_the_host_can_still_be_saved(app: Flask):
    """The API is sent all fields of a page, also those that stay."""
    key = {"Authorization": f"Bearer {make_key(app)}"}
    id = make_page(app, domain=DASHBOARD)
    session_at(app, DASHBOARD, timedelta(0))
    fields = {"name": "New name", "domain": DASHBOARD}
    client = app.test_client()
    answer = client.put(f"/api/v1/status-pages/{id}", json=fields, headers=key, base_url=API)
    assert answer.status_code == 200, answer.text
    assert answer.json["data"]["name"] == "New name"
    assert give(app, DASHBOARD)[0] == 422, "no other page gets it"


@UNNAMED
@pytest.mark.parametrize(
    ("ago", "status"),
    [(RETENTION - timedelta(minutes=1), 422), (RETENTION + timedelta(minutes=1), 201)],
)
def test_a_host_that_nobody_has_used_for_90_days_is_free(app: Flask, ago: timedelta, status: int):
    session_at(app, DASHBOARD, ago)
    assert give(app, DASHBOARD)[0] == status
    with app.app_context():
        dashboard_hosts.forget_old(now())
        assert db.session.query(DashboardHostRow).count() == (status == 422)


@UNNAMED
def test_hosts_that_one_person_invents_push_out_no_other_persons_nor_fill_the_table(app: Flask):
    viewer, admin, present = 7, 1, now()
    invented = [f"h{number}.example" for number in range(MAX_PER_PERSON + 5)]
    with app.app_context(), writing() as session:
        dashboard_hosts.remember(session, admin, DASHBOARD, present - timedelta(days=1))
        for seconds, host in enumerate(invented):
            at = present - timedelta(hours=1) + timedelta(seconds=seconds)
            dashboard_hosts.remember(session, viewer, host, at)
        dashboard_hosts.remember(session, admin, "second.lan", present)
        dashboard_hosts.remember(session, viewer, "second.lan", present)
    with app.app_context():
        assert db.session.query(DashboardHostRow).count() == 2 + MAX_PER_PERSON
        used = {host for host in invented if dashboard_hosts.is_used(host, present)}
        assert used == set(invented[6:]), "their newest, of which one is second.lan"
        assert dashboard_hosts.is_used(DASHBOARD, present)
        assert dashboard_hosts.is_used("second.lan", present)


@UNNAMED
@pytest.mark.parametrize("later", [False, True])
def test_a_host_is_free_90_days_after_its_last_use_by_anybody(app: Flask, later: bool):
    present = now()
    with app.app_context(), writing() as session:
        dashboard_hosts.remember(session, 1, DASHBOARD, present - RETENTION)
        if later:
            dashboard_hosts.remember(session, 2, DASHBOARD, present)
    with app.app_context():
        assert dashboard_hosts.is_used(DASHBOARD, present) == later


@pytest.mark.settings(public_url="http://new.lan")
def test_with_named_hosts_only_those_are_refused(app: Flask):
    session_at(app, "old.lan", timedelta(0))
    assert give(app, "new.lan", "http://new.lan")[0] == 422
    assert give(app, "old.lan", "http://new.lan")[0] == 201


@pytest.mark.settings(public_url="http://new.lan", allowed_hosts=("*",))
def test_where_any_host_is_answered_the_others_are_refused_too(app: Flask):
    session_at(app, "old.lan", timedelta(0))
    assert give(app, "old.lan")[0] == 422


@pytest.mark.settings(
    public_url="http://new.lan", allowed_hosts=("*", "second.lan"), bind="third.lan:8000"
)
def test_the_dashboard_wins_over_a_page_that_has_its_host_already(app: Flask):
    """A page from before the setting: who sets it has the dashboard back."""
    for number, host in enumerate(("new.lan", "second.lan", "third.lan", "localhost")):
        make_page(app, domain=host, slug=f"page-{number}")
        assert app.test_client().get("/login", base_url=f"http://{host}").status_code == 200
