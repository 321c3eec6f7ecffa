"""A monitor's field is everywhere, or a test says by name where it is missing.

CONTRIBUTING.md lists the places. What follows from the annotation alone (JSON, schema, reading from
another server) is shown with fields that no other code knows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from app.codec import MalformedData, json_of, reader, schema_of
from app.codec.schema import CLOCK_TIME, INTEGER, MOMENT, PAIR, STRING, array, nullable, words
from app.db import assignments, journal
from app.db.tables import MonitorRow
from app.engine.recorder.monitors import FIELDS_THAT_FORCE_A_CHECK
from app.forms.monitor import ADDED_FIELDS, MonitorForm
from app.records import (
    KIND_OPTIONS,
    UPTIME_RANGES,
    Assertion,
    CheckSpec,
    ClockTime,
    Id,
    Mark,
    Monitor,
    Pair,
    Scope,
    Verdict,
)
from app.stores import current_store
from app.stores.remote import monitors
from tests.factories import make_person
from tests.web.visitor import Visitor

# The fields of the base API: a server that speaks it alone has these.
BASE_API_FIELDS = {
    "name", "url", "interval", "alert_condition", "alert_text_lookup", "request_method",
    "request_headers", "request_auth_username", "request_auth_password", "cache_buster",
    "ssl_alert_days", "domain_alert_days", "maintenance_start_at", "maintenance_end_at", "alerts",
}  # fmt: skip
# Fields that are not entered: they follow from the monitor's state.
READ_ONLY = {
    "id", "request_auth_password_set", "status", "status_since", "cause_code", "cause", "paused",
    "last_checked_at", "next_check_at", "response_time", "uptime", "ssl_expires_at", "domain",
    "domain_expires_at", "ssl_issued_at", "open_incident_id", "created_at", "updated_at", "hours",
    "unreadable", "missing", "misread", "ping_url", "last_ping_at", "expected_at", "running_since",
    "behind_id",
}  # fmt: skip
SETTABLE = [field.name for field in fields(Monitor) if field.name not in READ_ONLY]
IN_FORM = [field.short_name for field in MonitorForm().schema_fields()]

SOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
# For each field a value that is not its default, and fits to the others.
UNUSUAL: dict[str, Any] = {
    "name": "Shop",
    "url": "http://127.0.0.1:9/shop",
    "interval": 300,
    "check_every": 290,
    "alert_condition": "url_text",
    "alert_text_lookup": "Sold out",
    "request_method": "POST",
    "request_headers": (Pair("X-Key", "header"),),
    "request_auth_username": "user",
    "request_body": "body",
    "cache_buster": 1,
    "ssl_alert_days": 7,
    "domain_alert_days": 14,
    "maintenance_start_at": SOON,
    "maintenance_end_at": SOON + timedelta(hours=1),
    "alerts": (Pair("email", "ops@example.com"),),
    "timeout": 7,
    "accepted_statuses": "204",
    "follow_redirects": False,
    "verify_tls": False,
    "slow_after": 1234,
    "slow_alert_after": 7,
    "confirmations": 5,
    "tags": ("a", "b"),
    "notes": "Runbook: https://wiki.example/shop",
    "remind_after": 60,
    "quiet_start": "22:00",
    "quiet_end": "07:00",
    "quiet_zone": "Europe/Berlin",
    "locations": ("default", "oslo"),
    "location_rule": "any",
    "depends_on": (1,),
    "starttls": "imap",
    "ping_count": 5,
    "assertions": (
        Assertion("json", "$.status", "=", "ok"),
        Assertion("header", "X-Version", "exists"),
    ),
    "period": 7200,
    "schedule": ("0 3 * * *", "Mon 12:00"),
    "zone": "Europe/Berlin",
    "grace": 600,
    "max_run": 900,
    "slug": "nightly",
}
# Kept as rows of another table.
NO_COLUMN = {"locations", "depends_on"}


# --- What follows from the annotation -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Longer(Monitor):
    """A monitor with fields that no other code knows."""

    new_note: str | None = None
    new_level: int = 3
    new_seen_at: datetime | None = None
    new_at: ClockTime | None = None
    new_scope: Annotated[str, Scope] = Scope.READ
    new_verdict: Annotated[str | None, Verdict] = None
    new_words: tuple[str, ...] = ()
    new_numbers: tuple[int, ...] = ()
    new_tokens: Annotated[tuple[Pair, ...], Mark.SECRET] = ()
    new_secret: Annotated[str | None, Mark.SECRET] = None
    new_other: Annotated[Id | None, Mark.PROMISED] = None
    new_extra: Annotated[str | None, Mark.OMIT_EMPTY] = None
    new_hidden: Annotated[str, Mark.INTERNAL] = ""


MIN = Longer(7, "Shop", "https://shop.test/", 60)
FULL = replace(
    MIN, new_note="n", new_level=4, new_seen_at=SOON, new_at="22:00", new_scope=Scope.WRITE,
    new_verdict=Verdict.DOWN,
    new_words=("a", "b"), new_numbers=(1, 2), new_tokens=(Pair("k", "a long secret value"),),
    new_secret="another long secret", new_other=9, new_extra="e", new_hidden="h",
)  # fmt: skip
SCHEMAS = {
    "new_note": nullable(STRING),
    "new_level": INTEGER,
    "new_seen_at": nullable(MOMENT),
    "new_at": nullable(CLOCK_TIME),
    "new_scope": words(Scope),
    "new_verdict": nullable(words(Verdict)),
    "new_words": array(STRING),
    "new_numbers": array(INTEGER),
    "new_tokens": array(PAIR),
    "new_secret": nullable(STRING),
    "new_other": INTEGER,
    "new_extra": nullable(STRING),
}
NEW = [name for name in Longer.__annotations__ if name != "new_hidden"]
read = reader(Longer, "monitor")


def through_json(record: Monitor) -> Any:
    return json.loads(json.dumps(json_of(record)))


def test_a_new_field_is_in_the_json_after_those_before_it():
    assert list(json_of(FULL))[-len(NEW) :] == NEW
    assert json_of(FULL)["new_seen_at"] == "2030-01-01T12:00:00Z"
    assert json_of(FULL)["new_verdict"] == "down"
    assert "new_extra" not in json_of(MIN)


def test_a_new_secret_is_masked_for_who_may_only_read():
    shown = json_of(FULL, masked=True)
    assert shown["new_secret"] == "••••cret"
    assert shown["new_tokens"] == [{"key": "k", "value": "••••alue"}]


@pytest.mark.parametrize("name", NEW)
def test_a_new_field_is_in_the_schema(name):
    schema = schema_of(Longer)
    assert schema["properties"][name] == SCHEMAS[name]
    assert (name in schema["required"]) == (name != "new_extra")


@pytest.mark.parametrize("record", [MIN, FULL], ids=["least", "full"])
def test_a_new_field_is_read_from_another_server(record):
    assert read(through_json(record)) == replace(
        record, new_hidden="", uptime=dict.fromkeys(UPTIME_RANGES)
    )


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("lie", [None, [], {}, True], ids=repr)
def test_what_a_new_field_cannot_be_reads_as_its_default(name, lie):
    sent = through_json(FULL) | {name: lie}
    assert getattr(read(sent), name) == getattr(MIN, name)


def test_a_new_field_that_must_be_there_is_missed_by_name():
    @dataclass(frozen=True)
    class Needed:
        note: str
        level: int

    with pytest.raises(MalformedData, match="level"):
        reader(Needed, "thing")({"note": "n"})


def test_a_type_without_a_rule_is_refused():
    @dataclass(frozen=True)
    class Strange:
        note: complex

    with pytest.raises(TypeError, match="complex"):
        schema_of(Strange)


# --- What somebody has to write -------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTABLE)
def test_a_field_of_the_record_is_in_the_form(name):
    """Or nobody sets it, and it belongs into ``READ_ONLY`` above."""
    assert name in IN_FORM


@pytest.mark.parametrize("name", IN_FORM)
def test_a_field_of_the_form_is_in_the_record(name):
    names = {field.name for field in fields(Monitor)}
    assert name in names or f"{name}_set" in names


@pytest.mark.parametrize("name", IN_FORM)
def test_a_field_of_the_form_has_a_column(name):
    assert (name in MonitorRow.__table__.columns) != (name in NO_COLUMN or name in KIND_OPTIONS)


@pytest.mark.parametrize("name", IN_FORM)
def test_a_field_of_the_form_is_interface_mds_or_among_our_own(name):
    assert (name in ADDED_FIELDS) != (name in BASE_API_FIELDS)


def test_every_field_of_the_form_has_a_place_on_the_page(app):
    with app.app_context():
        journal.place_id("oslo")  # where there is one place, there is no choice
    editor = Visitor(app).let_in(make_person(app, "editor"))
    form, _ = editor.open("/monitors/new").form_with("Save")
    shown = {name.partition("[")[0] for name in form.names()}
    assert set(IN_FORM) - shown == {"check_every"}, "it is one choice with the interval"


@pytest.fixture
def stored(app):
    """A monitor with all fields as unusual as can be, and its record as the store reads it."""
    assert set(SETTABLE) - UNUSUAL.keys() == set(), "no unusual value for these"
    with app.app_context():
        journal.place_id("oslo")
        current_store().monitors.create({"name": "Router", "url": "ping://r.test", "interval": 60})
        record = current_store().monitors.create(UNUSUAL | {"request_auth_password": "password"})
        yield record


def test_every_field_is_read_back_from_the_database(stored):
    assert {name: getattr(stored, name) for name in SETTABLE} == UNUSUAL
    assert stored.request_auth_password_set


def test_every_field_is_read_back_from_the_api(stored):
    again = monitors.read(through_json(stored), lambda: True)
    assert monitors.read(through_json(stored)).true_interval == UNUSUAL["interval"]
    assert {name: getattr(again, name) for name in SETTABLE} == UNUSUAL
    assert again.request_auth_password_set


OF_CHECKS = [field.name for field in fields(CheckSpec) if field.name in SETTABLE]


def test_a_check_knows_every_field_that_it_needs(stored):
    (spec,) = assignments.specs([stored.id])
    assert {name: getattr(spec, name) for name in OF_CHECKS} == {
        name: UNUSUAL[name] for name in OF_CHECKS
    }
    assert spec.auth == ("user", "password")


@pytest.mark.parametrize("name", OF_CHECKS)
def test_a_change_of_what_a_check_needs_has_the_monitor_checked_at_once(name):
    # When people are notified of a certificate changes no verdict.
    assert (name in FIELDS_THAT_FORCE_A_CHECK) != (name == "ssl_alert_days")
