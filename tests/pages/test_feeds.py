"""RSS and Atom, read with feedparser."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import feedparser
import pytest
from hypothesis import example, given

from app.pages import feeds
from app.pages.feed_text import post_link
from app.records import PostState
from tests.pages.a_page import (
    HOUR,
    LINK,
    NASTY,
    NOW,
    PAGE,
    TEXT,
    incident_post,
    page,
    with_text,
    xml,
)
from tests.pages.a_page import update as post_update

FEEDS = pytest.mark.parametrize("make", [feeds.rss, feeds.atom])
ATOM = "{http://www.w3.org/2005/Atom}"


def read(data):
    feed = feedparser.parse(data)
    assert feed.bozo == 0, feed.bozo_exception
    return feed


@FEEDS
def test_each_update_of_a_post_is_an_entry_the_newest_first(make):
    feed = read(make(page()))
    assert feed.feed.title == "Acme: status updates"
    assert [entry.title for entry in feed.entries] == [
        "Checkout is slow (Monitoring)",
        "Database upgrade (Scheduled)",
        "Checkout is slow (Investigating)",
    ]
    entry = feed.entries[0]
    assert entry.link == f"{LINK}/history?month=2026-11#post-5"
    assert "It is mended.<br />See " in entry.summary
    assert re.search('<a href="https://a.example/x"[^>]*>https://a.example/x</a>[.]', entry.summary)
    assert "Affects: Shop 1." in entry.summary


@FEEDS
def test_maintenance_says_when_it_is_planned_on_the_clocks_of_the_page(make):
    entry = read(make(page())).entries[1]
    assert "Planned: 2026-11-22 09:00 CET to 2026-11-22 11:00 CET." in entry.summary
    lost = page(page=replace(PAGE, zone="Nowhere/Else"))
    assert "2026-11-22 08:00 UTC" in read(make(lost)).entries[1].summary


@FEEDS
def test_a_page_without_posts_is_an_empty_feed(make):
    feed = read(make(page(posts=())))
    assert feed.entries == []
    assert feed.feed.updated_parsed[:3] == (2026, 10, 31)  # the page's own change


@FEEDS
def test_ids_stay_whatever_the_host_the_slug_and_the_texts_are(make):
    moved = replace(PAGE, link="https://other.example/status/x", slug="x", name="New")
    before, after = make(page()), make(page(page=moved))
    assert before == make(page(made_at=NOW + 24 * HOUR)), "whenever it was read"
    ids = [entry.id for entry in read(before).entries]
    assert [entry.id for entry in read(after).entries] == ids
    assert len(set(ids)) == 3
    assert all(id.startswith("tag:wakeful.invalid,2026-10-10:status-pages/3-") for id in ids)


@FEEDS
def test_a_corrected_update_keeps_its_id_and_says_when(make):
    first = post_update(
        11, PostState.INVESTIGATING, "Now right.", NOW - 3 * HOUR, corrected_at=NOW - 2 * HOUR
    )
    [before] = read(make(page(posts=(incident_post(updates=incident_post().updates[:1]),)))).entries
    [after] = read(make(page(posts=(incident_post(updates=(first,)),)))).entries
    assert after.id == before.id
    assert after.published_parsed == before.published_parsed
    assert "Edited" not in before.summary
    assert "<em>Edited 2026-11-21 07:00 CET.</em>" in after.summary
    assert after.updated_parsed[3] == 6


@FEEDS
def test_a_corrected_title_marks_the_first_entry(make):
    post = incident_post(title="Checkout is down", corrected_at=NOW)
    entries = read(make(page(posts=(post,)))).entries
    assert ["Edited" in entry.summary for entry in entries] == [False, True]


@FEEDS
def test_long_histories_are_cut_to_the_newest_entries(make):
    updates = [
        post_update(id, PostState.INVESTIGATING, "x", NOW - (200 - id) * HOUR)
        for id in range(1, 101)
    ]
    feed = read(make(page(posts=(incident_post(updates=tuple(updates)),))))
    assert len(feed.entries) == feeds.MAX
    assert feed.entries[0].id.endswith("/updates/100")


@FEEDS
def test_text_is_never_markup(make):
    [entry] = read(make(with_text("<script>alert(1)</script> ]]> & 👩‍🚒 \u202eشكر"))).entries
    assert entry.title.startswith("<script>alert(1)</script> ]]> & 👩‍🚒 \u202eشكر")
    root = xml(make(with_text("<script>x</script>")))
    bodies = [
        element.text for element in root.iter() if element.tag in ("description", f"{ATOM}content")
    ]
    assert "&lt;script&gt;x&lt;/script&gt;" in bodies[-1]
    assert "<script" not in bodies[-1]


@FEEDS
@given(text=TEXT)
@example(text=NASTY)
def test_any_text_is_valid_xml(make, text):
    feed = read(make(with_text(text)))
    assert len(feed.entries) == 1


def test_the_feeds_name_themselves_and_the_page():
    links = {link.rel: link.href for link in read(feeds.atom(page())).feed.links}
    assert links == {"self": f"{LINK}/feed.atom", "alternate": LINK}
    assert f'href="{LINK}/feed.rss"'.encode() in feeds.rss(page())


def test_atom_has_what_rfc_4287_requires():
    root = xml(feeds.atom(page()))
    for element in (root, *root.iter(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert element.find(f"{ATOM}{name}").text
    assert root.find(f"{ATOM}author/{ATOM}name").text == "Acme"
    assert datetime.fromisoformat(root.find(f"{ATOM}updated").text) == datetime(
        2026, 11, 21, 7, tzinfo=UTC
    )


@pytest.mark.parametrize(
    ("zone", "month"), [("Asia/Tokyo", "2026-12"), ("UTC", "2026-11"), (None, "2026-11")]
)
def test_a_post_is_in_the_month_that_its_page_has_then(zone, month):
    shown = page(page=replace(PAGE, zone=zone))
    link = post_link(shown, 7, datetime(2026, 11, 30, 20, tzinfo=UTC))
    assert link == f"{LINK}/history?month={month}#post-7"
