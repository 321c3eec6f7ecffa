"""The figures of a status page."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.factories import make_incident, now
from tests.pages.made import make_day, make_page, make_post, make_shown, make_window


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def test_no_time_is_lost_between_days_in_any_zone(app: Flask, client: FlaskClient, zone: str):
    shop = make_shown(app)
    for ago in range(1, 10):
        make_day(app, shop, now() - timedelta(days=ago), down_s=8640)
    make_page(app, [shop], zone=zone)
    assert "90%" in client.get("/status/example").text, (
        "a tenth of each hour was down, so of each day"
    )


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
