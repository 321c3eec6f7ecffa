"""The front of a status page: what a reader is told of the whole and of each monitor."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import time_machine
from flask import Flask
from flask.testing import FlaskClient

from app.db import writing
from app.db.tables import PostMonitorRow
from app.paths import STATIC
from app.rules.page_state import PAGE
from app.rules.time import iso
from app.stores.local.page_states import states_of_pages
from tests.factories import make_incident, now
from tests.pages.made import make_day, make_page, make_post, make_shown, make_window

OPERATIONAL = "All systems operational"


def front(client: FlaskClient, slug: str = "example") -> str:
    answer = client.get(f"/status/{slug}")
    assert answer.status_code == 200
    return answer.text


def test_one_sentence_says_how_all_of_it_is_and_changes_once_two_checks_say_so(
    app: Flask, client: FlaskClient
):
    new = {"checked_at": now(), "status_since": now()}
    shop, mail = make_shown(app, "Shop"), make_shown(app, "Mail", "down")
    slow = make_shown(app, "Search", "degraded")
    for slug, monitors in (
        ("good", [shop]),
        ("failed", [mail]),  # which is not confirmed
        ("unknown-once", [make_shown(app, "New", "unknown", state=new)]),
        ("slow-once", [make_shown(app, "New", "degraded", state=new)]),
    ):
        make_page(app, monitors, slug=slug)
        assert OPERATIONAL in front(client, slug), slug
    make_page(app, [slow], slug="slow")
    assert "Some systems have problems" in front(client, "slow")
    make_incident(app, mail)
    make_page(app, [shop, mail, make_shown(app, "Other")])
    assert "Some systems are down" in front(client)


def test_the_headline_names_what_is_affected_and_since_when(app: Flask, client: FlaskClient):
    yesterday, today = now() - timedelta(days=1), now()
    away = [make_shown(app, f"Shop {number}", "down") for number in range(12)]
    for shop in away:
        make_incident(app, shop, started_at=yesterday if shop is away[0] else today)
    make_page(app, [*away, make_shown(app, "Search", "degraded"), make_shown(app, "Mail")])

    headline = re.sub(r"<[^>]*>", "", front(client))

    first = f"{yesterday.day} {yesterday:%b}, {yesterday:%H:%M}"
    assert f"Down: Shop 0, since {first}; Shop 1, since {today:%H:%M}; Shop 2" in headline
    assert "Shop 9, since" in headline
    assert f"since {today:%H:%M} and 2 more" in headline
    assert "Degraded: Search, since" in headline


def test_a_group_says_its_state_and_is_folded_while_all_of_it_is_well(
    app: Flask, client: FlaskClient
):
    shop, mail = make_shown(app, "Shop"), make_shown(app, "Mail", "down")
    old = make_shown(app, "Old", paused=True)
    make_incident(app, mail)
    other = make_shown(app)
    make_page(app, [shop, mail, old, other], groups={"Front": [shop, old], "Office": [mail, other]})

    groups = re.findall(r"<details[^>]*list[^>]*>.*?</summary>", front(client), re.DOTALL)

    for group, name, word, count, is_open in zip(
        groups, ("Front", "Office"), ("Operational", "Down"), ("2", "1 of 2"), (False, True),
        strict=True,
    ):  # fmt: skip
        assert name in group
        assert word in group
        assert f'<span class="num">{count}</span>' in group
        assert (" open>" in group) == is_open


def test_an_incident_that_was_a_false_alarm_is_no_outage(app: Flask, client: FlaskClient):
    shop = make_shown(app)
    make_incident(app, shop, classification="false_alarm")
    make_page(app, [shop])
    assert OPERATIONAL in front(client)


def test_beside_an_open_post_nothing_is_called_operational(app: Flask, client: FlaskClient):
    page = make_page(app, [make_shown(app)])
    make_post(app, page, "Mails leave late")

    text = front(client)

    assert OPERATIONAL not in text
    assert "Mails leave late" in text
    assert "We are looking into it." in text


POSTED: list[tuple[str, dict[str, Any], tuple[str, str], str | None]] = [
    ("investigating", {}, ("Degraded", "degraded_performance"), "minor"),
    ("monitoring", {"impact": "outage"}, ("Down", "major_outage"), "major"),
    ("identified", {"impact": "none"}, ("Operational", "operational"), "none"),
    ("investigating", {"automatic": True}, ("Operational", "operational"), "none"),
    ("in_progress", {}, ("Maintenance", "under_maintenance"), "maintenance"),
    ("scheduled", {"impact": "outage"}, ("Operational", "operational"), "maintenance"),
    ("resolved", {"impact": "outage"}, ("Operational", "operational"), None),
]


def test_row_badge_and_json_show_what_an_open_post_says_of_a_monitor(
    app: Flask, client: FlaskClient
):
    for number, (state, fields, (word, status), impact) in enumerate(POSTED):
        slug = f"page-{number}"
        shop, mail = make_shown(app, "Shop"), make_shown(app, "Mail")
        page = make_page(app, [shop, mail], slug=slug)
        make_post(app, page, "News", (state, "Text."), monitors=[shop], **fields)
        text = front(client, slug)
        data = client.get(f"/status/{slug}.json").get_json()
        badge = client.get(f"/status/{slug}/badge/{shop.id}.svg").text
        assert word in text[text.index(f'id="m{shop.id}"') : text.index(f'id="m{mail.id}"')]
        assert [entry["status"] for entry in data["components"]] == [status, "operational"]
        assert {"Down": "outage"}.get(word, word.lower()) in badge
        posts = data["incidents"] + data["scheduled_maintenances"]
        assert {post["impact"] for post in posts} == ({impact} if impact else set()), state
        with app.app_context():
            state_of_page = states_of_pages([page], now())[page]
        assert PAGE[state_of_page].word in text, "the dashboard says the same of the page"


def test_a_resolved_post_and_announced_maintenance_leave_the_page_operational(
    app: Flask, client: FlaskClient
):
    page = make_page(app, [make_shown(app)])
    make_post(app, page, "Slow", ("investigating", "We look."), ("resolved", "It was a cable."))
    start = now() + timedelta(days=1)
    times = {"starts_at": start, "ends_at": start + timedelta(hours=1)}
    make_post(app, page, "New servers", ("scheduled", "An hour of work."), **times)

    text = front(client)

    assert OPERATIONAL in text
    assert text.index("It was a cable.") < text.index("We look."), "the newest update comes first"
    assert "Planned maintenance" in text
    assert text.count("New servers") == 1, "as a post, and not as a window besides"


def test_a_post_long_past_is_only_in_the_history(app: Flask, client: FlaskClient):
    page = make_page(app, [make_shown(app)])
    at = now() - timedelta(days=20)
    make_post(app, page, "Long ago", ("investigating", "a"), ("resolved", "b"), at=at)

    assert "Long ago" not in front(client)
    answer = client.get(f"/status/example/history?month={at:%Y-%m}")
    assert "Long ago" in answer.text


def test_the_last_part_says_no_incidents_only_where_there_were_none(
    app: Flask, client: FlaskClient
):
    shop = make_shown(app, "Shop")
    page = make_page(app, [shop])
    assert "No incidents in the last 14 days." in front(client)
    make_post(app, page)
    assert "No post has ended in the last 14 days." in front(client)
    for days, ended in ((20, True), (9, True), (3, True), (0, False)):
        at = now() - timedelta(days=days)
        make_incident(app, shop, started_at=at, ended_at=at + timedelta(hours=1) if ended else None)
    text = front(client)
    assert '<a href="example/history">3 incidents in the last 14 days</a>' in text
    assert "No post" not in text


def test_a_post_names_what_it_has_an_impact_on_and_keeps_since_when(
    app: Flask, client: FlaskClient
):
    shop, mail = make_shown(app, "Shop"), make_shown(app, "Mail")
    page = make_page(app, [shop, mail])
    start, at = now() - timedelta(hours=3), now() - timedelta(hours=2)
    make_incident(app, mail, severity="degraded", started_at=start, ended_at=now())
    post = make_post(app, page, "Slow", monitors=[shop, mail], at=at)
    make_post(app, page, "Works", ("in_progress", "An hour."), at=now())
    with app.app_context(), writing() as session:
        session.get(PostMonitorRow, (post, shop.id)).impact = "none"

    text = front(client)

    assert "Affects: Mail." in text
    assert text.index('id="post-2"') > text.index('id="post-1"'), "what is down comes first"
    since = re.search(r"<b>Degraded:</b> Mail, since <time datetime=\"([^\"]*)", text)
    assert since
    assert since[1] == iso(start), "the state is as old as the incident, not as the post"


def test_a_corrected_update_says_so_and_its_text_is_no_markup(app: Flask, client: FlaskClient):
    page = make_page(app, [make_shown(app)])
    update = ("investigating", "<b>See</b> https://help.example/a?b=1&c=2.")
    make_post(app, page, "Slow", update, corrected_at=datetime(2026, 11, 3, 12, 30, tzinfo=UTC))

    text = front(client)

    assert re.search(r"edited <time[^>]*>3 Nov 2026, 12:30 UTC", text)
    assert "&lt;b&gt;See&lt;/b&gt;" in text
    assert "<b>See" not in text
    assert '<a href="https://help.example/a?b=1&amp;c=2"' in text


def test_a_window_of_a_shown_monitor_is_announced_and_others_are_not(
    app: Flask, client: FlaskClient
):
    shown, hidden = make_shown(app, "Shop"), make_shown(app, "Internal")
    make_page(app, [shown])
    start = now() + timedelta(days=1)
    make_window(app, "Database upgrade", start, start + timedelta(hours=1), [shown, hidden])
    make_window(app, "Secret move", start, start + timedelta(hours=1), [hidden])
    make_window(app, "Vault", start, start + timedelta(hours=1), [shown], public=False)

    text = front(client)

    assert "Database upgrade" in text
    assert not [word for word in ("Secret move", "Vault", "nternal") if word in text]


REPEATED = [
    ("none", ["1 Mar"], ""),
    ("daily", ["1 Mar", "2 Mar"], "and each day"),
    ("weekly", ["1 Mar", "8 Mar"], "and each Sunday"),
    ("monthly", ["1 Mar", "1 Apr"], "and each month"),
    ("0 3 * * 1", ["1 Mar", "2 Mar"], "At 03:00 on Monday (UTC)"),
]


def test_maintenance_that_repeats_says_its_next_two_dates_and_how_it_goes_on(
    app: Flask, client: FlaskClient
):
    start = datetime(2026, 3, 1, 3, tzinfo=UTC)  # a Sunday
    with time_machine.travel(start - timedelta(days=1), tick=False):
        for number, (repeat, dates, goes_on) in enumerate(REPEATED):
            shop, mail = make_shown(app, "Shop"), make_shown(app, "Mail")
            make_page(app, [shop, mail], groups={"Office": [shop, mail]}, slug=f"page-{number}")
            of_both = (start, start + timedelta(hours=1), [shop, mail])
            make_window(app, "Upgrade", *of_both, repeat=repeat, public_text="Soon.")
            text = front(client, f"page-{number}")
            plan = re.sub("<[^>]*>", "", text.partition("Planned maintenance")[2])
            assert re.findall(r"([0-9]+ [A-Z][a-z]{2}) 2026, 03:00 – 04:00 UTC", plan) == dates
            assert goes_on in plan
            assert ("and each" in plan) == goes_on.startswith("and each")
            assert "Soon." in plan
            assert "Affects: Office." in plan


def test_a_running_window_makes_its_monitors_be_in_maintenance(app: Flask, client: FlaskClient):
    shop = make_shown(app, "Shop")
    make_page(app, [shop])
    make_window(app, "Upgrade", now() - timedelta(hours=1), now() + timedelta(hours=1), [shop])

    text = front(client)

    assert "Maintenance in progress" in text


def test_monitors_stand_in_the_order_of_the_page_under_their_groups_and_own_names(
    app: Flask, client: FlaskClient
):
    first, second, third = (
        make_shown(app, name) for name in ("internal-1", "internal-2", "internal-3")
    )
    make_page(
        app,
        [third, second, first],
        names={first.id: "Website", second.id: "Mail", third.id: "Search"},
        groups={"For customers": [first, second]},
    )

    text = front(client)

    places = [text.index(word) for word in (">Search<", "For customers", ">Website<", ">Mail<")]
    assert places == sorted(places)
    assert "internal-" not in text


def test_a_paused_monitor_counts_neither_for_nor_against_the_page(app: Flask, client: FlaskClient):
    make_page(app, [make_shown(app, "Shop"), make_shown(app, "Old", paused=True)])

    text = front(client)

    assert OPERATIONAL in text
    assert "<b>Unknown:</b> Old" in text


def test_urls_and_response_times_are_shown_where_the_page_says_so(app: Flask, client: FlaskClient):
    shop = make_shown(app, url="https://shop.example/health")
    make_page(app, [shop], slug="plain")
    make_page(app, [shop], slug="told", show_urls=True, show_response_times=True)

    assert "shop.example" not in front(client, "plain")
    assert "42 ms" not in front(client, "plain")
    assert "shop.example/health" in front(client, "told")
    assert "42 ms" in front(client, "told")


def test_ninety_days_are_one_graphic_with_a_text_and_a_link(app: Flask, client: FlaskClient):
    shop = make_shown(app)
    for ago in range(1, 90):
        make_day(app, shop, now() - timedelta(days=ago), down_s=864 if ago == 10 else 0)
    make_page(app, [shop])

    text = front(client)

    links = re.findall(r'<a class="days"[^>]*>', text)
    assert len(links) == 1
    worst = now() - timedelta(days=10)
    assert f"1 day with downtime, at most 14 min 24 s on {worst.day} {worst:%b %Y}" in links[0]
    assert f'href="example/history#m{shop.id}"' in links[0]
    assert 'data-count="90"' in text
    assert "99.98%" in text, "one per cent of one of 89 days"


def test_times_are_in_the_zone_of_the_page(app: Flask, client: FlaskClient):
    page = make_page(app, [make_shown(app)], zone="Asia/Tokyo")
    at = now()
    make_post(app, page, at=at)
    assert f"{at + timedelta(hours=9):%H:%M} JST</time>" in front(client)


def test_a_page_without_monitors_is_a_page(app: Flask, client: FlaskClient):
    make_page(app)
    assert "This page has no monitors yet." in front(client)
    make_page(app, [make_shown(app)], slug="other")
    counted = re.search(r"<details[^>]*><summary>How is this counted\?", front(client, "other"))
    assert counted, "the rule of counting is one click away"


def test_a_page_of_forty_monitors_is_light_with_all_that_it_loads(app: Flask, client: FlaskClient):
    monitors = [make_shown(app, f"Service number {number}") for number in range(40)]
    for number, shop in enumerate(monitors[:4]):
        for ago in range(1, 90, 30):
            make_day(app, shop, now() - timedelta(days=ago), down_s=60 * (number + 1))
    make_page(app, monitors)
    text = front(client)
    files = re.findall(r'"\.\./static/([^"?]+)\?', text)
    assert len(files) == 4
    loaded = [(STATIC / name).stat().st_size for name in files]
    assert len(text.encode()) + sum(loaded) <= 47_000, (len(text.encode()), loaded)


def test_the_list_has_the_public_pages_alone(app: Flask, client: FlaskClient):
    make_page(app, name="Open", slug="open")
    make_page(app, name="Hidden", slug="hidden", visibility="unlisted")
    make_page(app, name="Locked", slug="locked", password="let me in, please")
    make_page(app, name="Ours", slug="ours", visibility="closed")

    text = client.get("/status").text

    assert 'href="status/open"' in text
    assert not [word for word in ("Hidden", "Locked", "Ours") if word in text]
