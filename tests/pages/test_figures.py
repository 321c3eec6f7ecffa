"""The figures of a status page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.db import writing
from app.db.tables import UnreachableRow
from tests.factories import make_incident, now
from tests.pages.made import make_day, make_page, make_post, make_shown, make_window


def test_no_time_is_lost_between_days_in_any_zone(app: Flask, client: FlaskClient):
    shop = make_shown(app)
    for ago in range(1, 10):
        make_day(app, shop, now() - timedelta(days=ago), down_s=8640)
    for slug, zone in enumerate(("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")):
        make_page(app, [shop], zone=zone, slug=f"page-{slug}")
        # A tenth of each hour was down, so of each day.
        assert "90%" in client.get(f"/status/page-{slug}").text, zone


@pytest.mark.both_databases
def test_a_page_with_all_that_there_is(app: Flask, client: FlaskClient):
    shop, mail = make_shown(app, "Shop"), make_shown(app, "Mail", "down")
    page = make_page(app, [shop, mail], groups={"Inner": [mail]})
    make_incident(app, mail, started_at=now() - timedelta(days=1))
    make_post(app, page, "Mails leave late", monitors=[mail])
    make_window(app, "Upgrade", now() + timedelta(days=1), now() + timedelta(days=2), [shop])

    front = client.get("/status/example")
    history = client.get("/status/example/history")

    assert front.status_code == history.status_code == 200
    assert "Major outage" in front.text
    for word in ("Inner", "Mails leave late", "Upgrade"):
        assert word in front.text
    assert "The service does not respond." in history.text


def test_the_length_of_an_incident_of_which_a_part_was_not_watched_is_a_limit(
    app: Flask, client: FlaskClient
):
    shop = make_shown(app)
    make_page(app, [shop])
    start = now().replace(hour=0, minute=0, second=0, microsecond=0)
    silent = {"from": start.isoformat(), "to": (start + timedelta(minutes=4)).isoformat()}
    for minutes, gaps in ((5, [silent]), (7, None)):
        end = start + timedelta(minutes=minutes)
        make_incident(app, shop, started_at=start, ended_at=end, unwatched=gaps)
    history = client.get("/status/example/history").text
    assert ", at most 5 min" in history
    assert ", 7 min" in history


@pytest.mark.both_databases
def test_unreachable_time_is_shown_as_down_and_counted_in_no_percentage(
    app: Flask, client: FlaskClient
):
    shop, mail, router = make_shown(app, "Shop"), make_shown(app, "Mail"), make_shown(app, "Router")
    yesterday = now().replace(hour=2, minute=0, second=0, microsecond=0) - timedelta(days=1)
    make_day(app, shop, yesterday, unknown_s=7200)
    make_day(app, mail, yesterday, maintenance_s=86400)
    with app.app_context(), writing() as session:
        for monitor in (shop, mail):
            session.add(
                UnreachableRow(
                    monitor_id=monitor.id,
                    parent_id=router.id,
                    started_at=yesterday,
                    ended_at=yesterday + timedelta(hours=1),
                )
            )
    make_page(app, [shop, mail])
    front = client.get("/status/example").text
    assert "Shop, Last 90 days: 100% up, 1 day with downtime, at most 1 h on" in front
    assert ",88:100:3600::3600" in front  # an hour down, an hour unknown
    assert "Mail, Last 90 days: No data yet." in front
    assert "unreachable time (something between us and the monitor was down)" in front
    month = f"{yesterday:%Y-%m}"
    history = client.get(f"/status/example/history?month={month}").text
    assert "<b>Shop</b> The service does not respond." in history
