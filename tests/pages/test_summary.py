"""The JSON summary, read as programs read Statuspage's ``/api/v2/summary.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from hypothesis import example, given

from app.pages.summary import SOME_UNKNOWN, summary_json
from app.records import ComponentState, PageState, PostState
from app.rules import page_state
from app.rules.calendar_entries import uid
from tests.pages.a_page import (
    HOUR,
    LINK,
    NASTY,
    NOW,
    PAGE,
    TEXT,
    component,
    incident_post,
    page,
    planned_post,
    window,
    with_text,
)

# --- A reader of Statuspage's summary: it takes nothing but the documented fields and words.


def text(value: Any) -> str:
    assert isinstance(value, str)
    value.encode()
    return value


def word(*words: str):
    def read(value: Any) -> str:
        assert value in words
        return value

    return read


def flag(value: Any) -> bool:
    assert isinstance(value, bool)
    return value


def number(value: Any) -> int:
    assert isinstance(value, int)
    return value


def moment(value: Any) -> datetime:
    assert text(value).endswith("Z")
    assert len(value) == len("2026-11-21T08:00:00.000Z")
    return datetime.fromisoformat(value)


def nothing(value: Any) -> None:
    assert value is None


def maybe(read):
    return lambda value: None if value is None else read(value)


def many(shape):
    return lambda values: [take(shape, value) for value in values]


def take(shape: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """``data`` read by ``shape``: every field is there, and no other one."""
    assert data.keys() == shape.keys()
    return {name: read(data[name]) for name, read in shape.items()}


STATUS = word(
    "operational", "degraded_performance", "partial_outage", "major_outage", "under_maintenance"
)
COMPONENT = {
    "id": text, "name": text, "status": STATUS, "created_at": moment, "updated_at": moment,
    "position": number, "description": maybe(text), "showcase": flag, "start_date": maybe(text),
    "group_id": maybe(text), "page_id": text, "group": flag, "only_show_if_degraded": flag,
}  # fmt: skip
GROUP = COMPONENT | {"components": lambda ids: [text(id) for id in ids]}
UPDATE = {
    "id": text, "status": text, "body": text, "incident_id": text, "created_at": moment,
    "updated_at": moment, "display_at": moment, "affected_components": nothing,
    "deliver_notifications": flag, "custom_tweet": nothing, "tweet_id": nothing,
}  # fmt: skip
INCIDENT = {
    "id": text, "name": text, "status": word("investigating", "identified", "monitoring"),
    "created_at": moment, "updated_at": moment, "monitoring_at": maybe(moment),
    "resolved_at": nothing, "impact": word("none", "minor", "major", "critical"),
    "shortlink": text, "started_at": moment, "page_id": text, "incident_updates": many(UPDATE),
    "components": many(COMPONENT),
}  # fmt: skip
MAINTENANCE = INCIDENT | {
    "status": word("scheduled", "in_progress", "verifying"),
    "impact": word("maintenance"),
    "scheduled_for": moment,
    "scheduled_until": moment,
}
PAGE_SHAPE = {
    "id": text, "name": text, "url": text, "time_zone": text, "updated_at": moment,
}  # fmt: skip
STATUS_SHAPE = {
    "indicator": word("none", "minor", "major", "critical", "maintenance"),
    "description": text,
}


@dataclass
class Summary:
    page: dict[str, Any]
    components: list[dict[str, Any]]
    incidents: list[dict[str, Any]]
    scheduled_maintenances: list[dict[str, Any]]
    status: dict[str, Any]


def read(data: bytes) -> Summary:
    answer = json.loads(data.decode())
    assert answer.keys() == Summary.__annotations__.keys()
    components = [
        take(GROUP if entry["group"] else COMPONENT, entry) for entry in answer["components"]
    ]
    ids = [entry["id"] for entry in components]
    assert len(ids) == len(set(ids))
    assert [entry["position"] for entry in components] == [*range(1, len(ids) + 1)]
    for entry in components:
        assert entry["group_id"] is None or entry["group_id"] in ids
        assert set(entry.get("components", ())) <= set(ids)
    return Summary(
        page=take(PAGE_SHAPE, answer["page"]),
        components=components,
        incidents=many(INCIDENT)(answer["incidents"]),
        scheduled_maintenances=many(MAINTENANCE)(answer["scheduled_maintenances"]),
        status=take(STATUS_SHAPE, answer["status"]),
    )


# --- What it finds


def test_the_page_says_its_name_link_and_newest_change():
    shown = {"id": "3", "name": "Acme", "url": LINK, "time_zone": "Europe/Berlin"}
    assert read(summary_json(page())).page == shown | {"updated_at": NOW}


def test_a_group_comes_before_its_members_with_the_worst_of_their_states():
    group, first, second, alone = read(summary_json(page())).components
    assert (group["name"], group["group"], group["components"]) == ("Front", True, ["1", "2"])
    assert group["status"] == "degraded_performance"
    assert first["group_id"] == second["group_id"] == group["id"]
    assert (alone["id"], alone["name"], alone["group_id"]) == ("4", "Shop 4", None)


def test_an_open_post_is_an_incident_with_its_updates_newest_first():
    [incident] = read(summary_json(page())).incidents
    assert (incident["id"], incident["name"], incident["status"]) == (
        "5", "Checkout is slow", "monitoring",
    )  # fmt: skip
    assert incident["impact"] == "minor"
    assert incident["monitoring_at"] == NOW - HOUR
    assert incident["shortlink"] == f"{LINK}/history?month=2026-11#post-5"
    assert [entry["status"] for entry in incident["incident_updates"]] == [
        "monitoring",
        "investigating",
    ]
    assert {entry["incident_id"] for entry in incident["incident_updates"]} == {"5"}
    assert [entry["id"] for entry in incident["components"]] == ["1"]


def test_a_post_about_a_monitor_that_is_down_has_major_impact():
    down = (component(1, ComponentState.OUTAGE),)
    [incident] = read(summary_json(page(components=down))).incidents
    assert incident["impact"] == "major"


def test_ended_posts_and_cancelled_maintenance_are_left_out():
    ended = (incident_post(state=PostState.RESOLVED), planned_post(state=PostState.COMPLETED))
    shown = read(summary_json(page(posts=ended, windows=(replace(window(), cancelled=True),))))
    assert (shown.incidents, shown.scheduled_maintenances) == ([], [])


def test_planned_posts_and_windows_are_scheduled_maintenance_once_each():
    upgrade, backups = read(summary_json(page())).scheduled_maintenances
    assert (upgrade["id"], upgrade["scheduled_for"]) == ("6", NOW + 24 * HOUR)
    assert upgrade["scheduled_until"] == NOW + 26 * HOUR
    assert [entry["id"] for entry in upgrade["components"]] == ["2"]
    assert (backups["name"], backups["status"]) == ("Nightly backups", "scheduled")
    assert [entry["id"] for entry in backups["components"]] == ["1", "2", "4"]  # it is for all


def test_of_a_repeating_window_the_running_and_the_next_occurrence_are_there():
    nights = [
        window(
            uid=uid("window", 9, NOW, PAGE.id, f"202611{21 + day}"),
            start_at=NOW + (24 * day - 1) * HOUR,
            end_at=NOW + (24 * day + 1) * HOUR,
        )
        for day in range(5)
    ]
    answer = read(summary_json(page(posts=(), windows=nights))).scheduled_maintenances
    assert [entry["status"] for entry in answer] == ["in_progress", "scheduled"]
    assert [entry["scheduled_for"] for entry in answer] == [NOW - HOUR, NOW + 23 * HOUR]


def test_the_indicator_follows_the_state_of_the_page():
    for state, indicator in (
        (PageState.OPERATIONAL, "none"),
        (PageState.MAINTENANCE, "maintenance"),
        (PageState.DEGRADED, "minor"),
        (PageState.PARTIAL_OUTAGE, "major"),
        (PageState.MAJOR_OUTAGE, "critical"),
        (PageState.UNKNOWN, "minor"),
    ):
        status = read(summary_json(page(state=state))).status
        assert status == {"indicator": indicator, "description": page_state.PAGE[state].word}


def test_the_status_of_a_component_is_one_of_statuspages_words():
    for state, status in (
        (ComponentState.OPERATIONAL, "operational"),
        (ComponentState.DEGRADED, "degraded_performance"),
        (ComponentState.MAINTENANCE, "under_maintenance"),
        (ComponentState.OUTAGE, "major_outage"),
        (ComponentState.UNKNOWN, "degraded_performance"),
    ):
        [shown] = read(summary_json(page(components=(component(1, state),)))).components
        assert shown["status"] == status


def test_an_unknown_monitor_makes_the_indicator_minor_and_hides_no_outage():
    unknown = component(2, ComponentState.UNKNOWN)
    for state in (PageState.OPERATIONAL, PageState.MAINTENANCE):
        status = read(summary_json(page(state=state, components=(component(1), unknown)))).status
        assert status == {"indicator": "minor", "description": SOME_UNKNOWN}, state
    components = (component(1, ComponentState.OUTAGE), unknown)
    status = read(summary_json(page(state=PageState.MAJOR_OUTAGE, components=components))).status
    assert status["indicator"] == "critical"


def test_equal_pages_are_equal_bytes_whenever_they_were_read():
    assert summary_json(page()) == summary_json(page(made_at=NOW + HOUR / 2))


def test_addresses_of_monitors_are_not_in_it():
    shown = component(1, url="https://canary.example/secret", response_time=123)
    assert b"canary" not in summary_json(page(components=(shown,)))


@given(text=TEXT)
@example(text=NASTY)
def test_any_text_can_be_read(text):
    read(summary_json(with_text(text)))
