"""Many monitors that fail and recover together: what is written for a batch, and by how much."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from app.db import db, journal, writing
from app.db.tables import (
    ContactRow,
    DeliveryRow,
    IncidentRow,
    MarkerRow,
    MonitorContactRow,
    MonitorEvidenceRow,
    MonitorStateRow,
)
from app.engine import recorder
from tests.factories import make_monitor, make_outcome
from tests.support.queries import queries

START = datetime(2026, 11, 21, 8, 0, 0, 250_000, UTC)
NOW = START + timedelta(seconds=90)
KINDS = (
    {"alerts": [["email", "a@example.test"], ["webhook", "http://127.0.0.1/hook"]]},
    {"alerts": None},
    {"alerts": [["sms", "+4712345678"]], "tags": "\nprod\n", "confirmations": 0},
    {"alerts": [["email", "b@example.test"]], "quiet_start": "07:00", "quiet_end": "09:00"},
)
# The results of each monitor's checks, second by second: it fails, recovers, and fails again.
VERDICTS = ("up", "down", "down", "up", "up", "down", "down", "down")

# The results of each place, in steps of ten seconds: a blip, an outage that the places see one
# after another, an end that they see one after another, and an outage that all see at once.
PLACES = {"oslo": "+-+---+++--", "rome": "++++---++--", "bern": "++++--+++--"}


@pytest.fixture
def shops(core):
    with core.app_context():
        yield Shops(core)


class Shops:
    def __init__(self, core):
        self.core = core
        person = {"name_folded": "", "created_at": START, "updated_at": START}
        night = {"quiet_start": "07:30", "quiet_end": "08:30"}
        with writing() as session:
            for name, more in (("Ops", {}), ("Night", night)):
                channels = [["slack", f"http://127.0.0.1/{name}"], ["email", "a@example.test"]]
                columns = person | {"name_folded": name.casefold()} | more
                session.add(ContactRow(name=name, channels=channels, **columns))
            for tags in ("", "\nprod\n", "\nother\n"):
                moments = {"time": START, "created_at": START, "updated_at": START}
                session.add(MarkerRow(name=f"Deploy {tags}", tags=tags, **moments))

    def make(self, count, step=1, **more):
        """Monitors of every kind, in turn, or of each ``step``-th."""
        return [self._make(number * step, more) for number in range(count)]

    def _make(self, number, more):
        fields = {"confirmations": 1, "interval": 60, **KINDS[number % len(KINDS)], **more}
        before = START - timedelta(days=1)
        id = make_monitor(self.core, **fields, created_at=before, updated_at=before).id
        with writing() as session:
            for contact in range(number % 3):
                session.add(MonitorContactRow(monitor_id=id, contact_id=contact + 1, position=0))
        return id

    def outcomes(self, ids, verdicts=VERDICTS):
        """The order is by second, then by monitor."""
        return [
            (id, make_outcome(verdict, START + timedelta(seconds=second), monitor_id=id))
            for second, verdict in enumerate(verdicts)
            for id in ids
        ]

    def story(self, ids):
        """All that is stored of these monitors that is not a number of theirs."""
        return [
            {
                "state": self._rows(MonitorStateRow, id, "status_since", "verdict", "cause"),
                "kept": self._rows(MonitorEvidenceRow, id, "last_good", "failing"),
                "incidents": self._rows(
                    IncidentRow, id, "started_at", "ended_at", "cause", "cause_code", "evidence",
                    "comment", "created_at",
                ),
                "messages": [
                    (*row[:-1], _without_ids(row[-1]))
                    for row in self._rows(
                        DeliveryRow, id, "event", "channel", "value", "lane", "sources", "status",
                        "reason", "created_at", "next_attempt_at", "facts",
                    )
                ],
            }
            for id in ids
        ]  # fmt: skip

    def _rows(self, table, id, *names):
        columns = [getattr(table, name) for name in names]
        key = table.__table__.primary_key.columns
        rows = db.session.execute(select(*columns).where(table.monitor_id == id).order_by(*key))
        return [tuple(row) for row in rows]


def _without_ids(facts):
    return {
        name: {key: inner for key, inner in value.items() if key != "id"}
        if isinstance(value, dict)
        else value
        for name, value in facts.items()
    }


def test_a_batch_leaves_what_its_checks_would_leave_one_by_one(shops):
    together, apart = shops.make(5), shops.make(5)
    recorder.record(shops.outcomes(together), NOW)
    for outcome in shops.outcomes(apart):
        recorder.record([outcome], NOW)
    story = shops.story(together)
    assert story == shops.story(apart)
    for monitor in story:
        assert [ended is None for _began, ended, *_rest in monitor["incidents"]] == [False, True]
    events = {message[0] for monitor in story for message in monitor["messages"]}
    assert events == {"incident.opened", "incident.resolved"}


def test_batches_of_three_places_leave_what_their_checks_would_leave_one_by_one(shops):
    places = [journal.place_id(name) for name in PLACES]
    fields = {"places": places, "interval": 10}
    together, apart = shops.make(2, step=2, **fields), shops.make(2, step=2, **fields)
    for slot, signs in enumerate(zip(*PLACES.values(), strict=True)):
        began = START + timedelta(seconds=10 * slot)
        for name, sign in zip(PLACES, signs, strict=True):
            verdict = "up" if sign == "+" else "down"

            def outcomes(ids, verdict=verdict, began=began):
                return [(id, make_outcome(verdict, began, monitor_id=id)) for id in ids]

            recorded = began + timedelta(milliseconds=2)
            recorder.record(outcomes(together), recorded, location=name)
            for claim in outcomes(apart):
                recorder.record([claim], recorded, location=name)
    story = shops.story(together)
    assert story == shops.story(apart)
    ends = [
        [ended is not None for _began, ended, *_rest in monitor["incidents"]] for monitor in story
    ]
    assert all(end[-2:] == [True, False] for end in ends)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("before", "verdicts", "most"),
    # To open an incident, what was usual is read by itself, and SQLite gives each its id.
    [((), ("down", "down"), 2), (("down", "down"), ("up", "up"), 0)],
    ids=["opening", "ending"],
)
def test_an_incident_more_in_a_batch_takes_few_statements_more(shops, before, verdicts, most):
    ids = shops.make(16)
    counts = []
    for some in (ids[:4], ids[4:]):
        if before:
            recorder.record(shops.outcomes(some, before), NOW)
        later = [
            (id, make_outcome(verdict, NOW + timedelta(seconds=second), monitor_id=id))
            for second, verdict in enumerate(verdicts)
            for id in some
        ]
        with queries() as statements:
            recorder.record(later[: len(some)], NOW)
            recorder.record(later[len(some) :], NOW)
        counts.append(len(statements))
    assert counts[1] - counts[0] <= most * (12 - 4)
