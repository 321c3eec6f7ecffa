"""A status page to make answers of, with one of everything, and texts that break formats."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

from hypothesis import strategies as st

from app.records import (
    Component,
    ComponentState,
    PageState,
    Post,
    PostState,
    PostUpdate,
    PublicPage,
    PublicWindow,
    StatusPage,
)
from app.rules.calendar_entries import sequence, uid, uid_of_post

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
LINK = "https://status.example.com"
PAGE = StatusPage(
    id=3,
    name="Acme",
    slug="acme",
    description="Shops & tills",
    link=f"{LINK}/",
    zone="Europe/Berlin",
    created_at=NOW - 1000 * HOUR,
    updated_at=NOW - 500 * HOUR,
)

NASTY = "a\x00b\x0b]]>\r\n<b>&amp;\u202eشكر\u202c 👩‍🚒 \ufffe\ud800;,\\n\u2028z"
# Everything that Python takes for text, lone surrogates and control characters too.
TEXT = st.text(max_size=200) | st.text(alphabet="\r\n\t ;,\\:\"'<>&]\x00\x85\u2028é字👩\ud800")


def xml(data: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(data)  # noqa: S314 (written by ourselves)


def component(id: int, state: str = ComponentState.OPERATIONAL, **fields: Any) -> Component:
    return Component(**{"id": id, "name": f"Shop {id}", "state": state, "since": NOW} | fields)


def update(id: int, state: str, body: str, at: datetime, **fields: Any) -> PostUpdate:
    return PostUpdate(id=id, state=state, body=body, created_at=at, **fields)


def incident_post(**fields: Any) -> Post:
    updates = (
        update(11, PostState.INVESTIGATING, "We look into it.", NOW - 3 * HOUR),
        update(12, PostState.MONITORING, "It is mended.\nSee https://a.example/x.", NOW - HOUR),
    )
    values = {
        "id": 5, "status_page_id": PAGE.id, "title": "Checkout is slow",
        "state": PostState.MONITORING, "body": "We look into it.", "monitors": (1,),
        "updates": updates, "created_at": NOW - 3 * HOUR, "updated_at": NOW - HOUR,
    }  # fmt: skip
    return Post(**values | fields)


def planned_post(**fields: Any) -> Post:
    body = "A new database."
    values = {
        "id": 6, "status_page_id": PAGE.id, "title": "Database upgrade",
        "state": PostState.SCHEDULED, "body": body, "monitors": (2,), "starts_at": NOW + 24 * HOUR,
        "ends_at": NOW + 26 * HOUR,
        "updates": (update(13, PostState.SCHEDULED, body, NOW - 2 * HOUR),),
        "created_at": NOW - 2 * HOUR, "updated_at": NOW - 2 * HOUR,
    }  # fmt: skip
    return Post(**values | fields)


def window_of_post(post: Post) -> PublicWindow:
    assert post.starts_at is not None
    assert post.ends_at is not None
    return window(
        uid=uid_of_post(post),
        name=post.title,
        start_at=post.starts_at,
        end_at=post.ends_at,
        components=post.monitors,
        description=post.body,
    )


def window(**fields: Any) -> PublicWindow:
    values = {
        "uid": uid("window", 9, NOW - 90 * HOUR, PAGE.id, "20261121"),
        "sequence": sequence(NOW - 80 * HOUR),
        "name": "Nightly backups",
        "start_at": NOW + HOUR,
        "end_at": NOW + 2 * HOUR,
        "updated_at": NOW - 80 * HOUR,
    }
    return PublicWindow(**values | fields)


def page(**fields: Any) -> PublicPage:
    planned = planned_post()
    values = {
        "page": PAGE,
        "state": PageState.DEGRADED,
        "components": (
            component(1, ComponentState.DEGRADED, group="Front"),
            component(2, group="Front"),
            component(4),
        ),
        "posts": (planned, incident_post()),
        "windows": (window(), window_of_post(planned)),
        "made_at": NOW,
    }
    return PublicPage(**values | fields)


def with_text(text: str) -> PublicPage:
    """The page with this text in every place that people write."""
    newest = update(11, PostState.INVESTIGATING, text, NOW - 3 * HOUR)
    return page(
        page=replace(PAGE, name=text, description=text),
        components=(component(1, name=text, group=text),),
        posts=(incident_post(title=text, body=text, updates=(newest,)),),
        windows=(window(name=text, description=text, components=(1,)),),
    )
