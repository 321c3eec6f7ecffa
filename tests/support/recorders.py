"""The recorder, driven check by check: of one place, of three, and with what the figures show."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import bindparam, select

from app.db import db, journal, rollups, shards, writing
from app.db.tables import (
    AssignmentRow,
    DeliveryRow,
    IncidentRow,
    MonitorRow,
    MonitorStateRow,
    ShardRow,
)
from app.db.types import to_ms
from app.engine import recorder
from app.engine.schedule import Claim, due
from app.records import MonitorQuery
from app.stats.tally import DAY_MS
from app.stores.local import LocalStore
from tests.factories import make_monitor, make_outcome

START = datetime(2026, 11, 21, 8, 0, 0, 250_000, UTC)
WHOLE = START.replace(microsecond=0)
ALERTS = [["email", "a@example.test"], ["webhook", "http://127.0.0.1/hook"]]
NAMES = ("berlin", "oslo", "sydney")
STATES = ("up", "down", "unknown", "maintenance")
HOUR = 3600
# The end of the hour in which at(0) is, and when it is summed.
ROLLED = 2 * HOUR

CLAIMED = select(ShardRow.token, AssignmentRow.generation).where(
    ShardRow.location_id == bindparam("place"),
    ShardRow.number == bindparam("shard"),
    AssignmentRow.location_id == ShardRow.location_id,
    AssignmentRow.monitor_id == bindparam("id"),
)


def at(seconds):
    return START + timedelta(seconds=seconds)


class Engine:
    """The recorder, driven check by check; times are seconds after START."""

    def __init__(self, core):
        self.core = core
        self._sharded = set()  # the places whose shards were made

    def monitor(self, **fields):
        fields = {"alerts": ALERTS, "created_at": START} | fields
        return make_monitor(self.core, **fields).id

    def check(self, id, verdict, seconds, **fields):
        """A person's check."""
        outcome = make_outcome(verdict, at(seconds), **fields)
        return recorder.record([(id, outcome)], at(seconds))[0]

    def claim(self, id, place=1):
        """The claim of a check by the owner of the monitor's shard."""
        db.session.rollback()
        shard = shards.of(id)
        if place not in self._sharded:
            with writing():
                shards.make(place)
            self._sharded.add(place)
        token, generation = db.session.execute(
            CLAIMED, {"place": place, "shard": shard, "id": id}
        ).one()
        db.session.rollback()
        return Claim(id, shard, token, generation)

    def scheduled(self, claim, verdict, seconds, location="default", took=0.0):
        """Record a check of the schedule; returns the new standing, None if it was dropped."""
        outcome = make_outcome(verdict, at(seconds))
        return recorder.record_claimed([(claim, outcome)], at(seconds + took), location=location)[0]

    def due(self, id, standing, seconds):
        monitor = db.session.get(MonitorRow, id)
        return due(id, monitor.interval, standing, at(seconds), timedelta(seconds=7))

    def checks(self, id, script):
        for verdict, seconds in script:
            self.check(id, verdict, seconds)

    def incidents(self, id):
        db.session.expire_all()
        return db.session.scalars(
            select(IncidentRow).where(IncidentRow.monitor_id == id).order_by(IncidentRow.id)
        ).all()

    def events(self):
        return list(db.session.scalars(select(DeliveryRow.event).order_by(DeliveryRow.id)))

    def state(self, id):
        db.session.rollback()
        return db.session.get(MonitorStateRow, id)

    def assignment(self, id, place=1):
        db.session.rollback()
        return db.session.get(AssignmentRow, (id, place))


class Places(Engine):
    """``id``: a monitor that is checked from three places."""

    def start(self, **fields):
        self.places = {name: journal.place_id(name) for name in NAMES}
        self.id = self.monitor(places=[*self.places.values()], **fields)
        return self

    def see(self, name, verdict, seconds, recorded=0.5, **fields):
        """The place's check of the schedule, which is recorded so many seconds later."""
        claim = self.claim(self.id, self.places[name])
        fields = ({} if verdict == "down" else {"status_code": 200}) | fields
        outcome = make_outcome(verdict, at(seconds), **fields)
        # Its location is not set: agents and probers do not know their place.
        outcome = replace(outcome, evidence={"from": name} if outcome.evidence else None)
        moment = at(seconds + recorded)
        return recorder.record_claimed([(claim, outcome)], moment, location=name)[0]

    def round(self, seconds, recorded=0.5, **verdicts):
        """All places check at the same time, and are recorded one after another."""
        for number, name in enumerate(NAMES):
            self.see(name, verdicts.get(name, "up"), seconds + number / 100, recorded)

    @property
    def shown(self):
        return self.state(self.id)

    @property
    def opened(self):
        return self.incidents(self.id)


def change(settings, id, fields, moment):
    """The action of a person on the page of a monitor."""
    store = LocalStore(settings)
    store.now = lambda: moment
    store.monitors.update(id, fields)


class Figures(Places):
    def __init__(self, core, store):
        super().__init__(core)
        self.store = store

    def each_minute(self, first, last, *, late=(), **verdicts):
        """Checks of all places from minute ``first`` to ``last``; those of ``late`` are recorded
        after the others, although they began first.
        """
        names = sorted(NAMES, key=lambda name: name in late)
        for minute in range(first, last):
            for number, name in enumerate(names):
                begun = 60 * minute - (number if name in late else -number) / 10
                self.see(name, verdicts.get(name, "up"), begun)

    def degraded(self, until):
        self.store.now = lambda: at(until)
        (listed,) = self.store.monitors.list(MonitorQuery(hours=True)).items
        return sum(hour["degraded"] for hour in listed.hours)

    def seconds(self, until):
        """Seconds in each state in all figures that people are shown, which must agree."""
        now = at(until)
        self.store.now = lambda: now
        figures = [self._of_statistics(range_) for range_ in ("24h", "90d")]
        (listed,) = self.store.monitors.list(MonitorQuery(hours=True)).items
        figures.append(self._sum(listed.hours))
        midnight = to_ms(now) // DAY_MS * DAY_MS
        day = [midnight, midnight + DAY_MS]
        (days,) = rollups.CachedDays().read([self.id], [now.date()], day, now).values()
        since = days.unsummed.get(0, (0, 0, 0, 0))
        figures.append([sum(two) for two in zip(days.seconds[0], since, strict=True)])
        whole = figures[0]
        for other in figures[1:]:  # hours are rounded
            assert all(abs(a - b) <= 2 for a, b in zip(whole, other, strict=True)), figures
        return dict(zip(STATES, whole, strict=True))

    def _of_statistics(self, range_):
        return self._sum(self.store.results.statistics(self.id, range_)["buckets"])

    @staticmethod
    def _sum(buckets):
        return [sum(bucket[state] for bucket in buckets) for state in STATES]
