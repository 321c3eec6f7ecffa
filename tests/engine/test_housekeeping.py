"""Periodic chores: domains, retention, old counters, monitors without a state or place."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, func, select

from app.access.settings import Policies
from app.checks.expiry.domain import DomainExpiry
from app.db import db, journal, writing
from app.db.tables import (
    AssignmentRow,
    CancelledEventRow,
    CounterRow,
    DeliveryRow,
    DomainRow,
    MarkerRow,
    MonitorRow,
    MonitorStateRow,
    PingRow,
    ResultRow,
    SignOfLifeRow,
    StatusPageRow,
)
from app.db.types import to_ms
from app.engine import domains
from app.engine.housekeeping import Housekeeper, repair_unassigned
from app.engine.recorder import apply_changes
from tests.factories import make_monitor, make_outcome

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
DAY = timedelta(days=1)


class Registry:
    """A look-up with fixed expiry dates that records the domains it was asked for."""

    def __init__(self):
        self.asked = []
        self.expiries = {}

    def __call__(self, domain):
        self.asked.append(domain)
        expires = self.expiries.get(domain)
        note = None if expires else "The registry does not say."
        return DomainExpiry(domain, expires, "rdap" if expires else None, note)


@pytest.fixture
def house(core, settings):
    with core.app_context():
        yield House(core, settings)


class House:
    def __init__(self, core, settings):
        self.core = core
        self.registry = Registry()
        self.now = NOW
        self.keeper = Housekeeper(core, settings, Policies(settings), look_up=self.registry)

    def monitor(self, url, **fields):
        fields = {"alerts": [["email", "a@example.test"]]} | fields
        return make_monitor(self.core, url=url, **fields).id

    def move(self, id, url):
        with writing() as session:
            monitor = session.get(MonitorRow, id)
            monitor.url = url
            apply_changes(session, monitor, {"url"}, self.now)

    def check_domains(self, days=0):
        self.now = NOW + days * DAY
        self.keeper.check_domains(self.now)
        db.session.expire_all()

    def notices(self):
        rows = db.session.scalars(select(DeliveryRow).order_by(DeliveryRow.id)).all()
        return [(row.monitor_id, row.event, row.facts["extra"]["days_left"]) for row in rows]


def test_a_registry_is_asked_once_a_day_for_each_domain(house):
    for url in ("https://www.example.com/a", "https://api.example.com/b", "http://example.org"):
        house.monitor(url)
    house.monitor("http://127.0.0.1/")
    house.monitor("http://nas.local/")
    house.monitor("http://paused.example.net/", paused=True)
    house.check_domains()
    house.check_domains(0.9)
    assert sorted(house.registry.asked) == ["example.com", "example.org"]
    house.check_domains(1.01)
    assert sorted(house.registry.asked) == 2 * ["example.com"] + 2 * ["example.org"]


@pytest.mark.both_databases
def test_two_checkers_ask_a_registry_once(house):
    for place in range(10):
        house.monitor(f"https://www.example{place}.com/")
    domains.name_domains(private=False)
    start = threading.Barrier(2)
    claimed, faults = [], []

    def run():
        with house.core.app_context():
            start.wait()
            try:
                while domain := domains.claim_domain(NOW):
                    claimed.append(domain)
            except Exception as fault:
                faults.append(fault)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while domain := domains.claim_domain(NOW):
        claimed.append(domain)
    assert faults == []
    assert len(claimed) == len(set(claimed)) == 10


def test_a_failed_answer_does_not_delete_an_expiry_date(house):
    house.monitor("https://example.com/")
    house.registry.expiries["example.com"] = NOW + 100 * DAY
    house.check_domains()
    house.registry.expiries.clear()
    house.check_domains(2)
    row = db.session.get(DomainRow, "example.com")
    assert row.expires_at == NOW + 100 * DAY
    assert row.note == "The registry does not say."


def test_a_domain_is_alerted_once_and_again_after_a_renewal(house):
    near = house.monitor("https://example.com/", domain_alert_days=7)
    house.monitor("https://example.com/", domain_alert_days=1)
    house.monitor("https://example.com/", domain_alert_days=None)
    house.registry.expiries["example.com"] = NOW + 8 * DAY
    house.check_domains()
    assert house.notices() == []
    house.check_domains(1)
    house.check_domains(2)
    assert house.notices() == [(near, "domain.expiring", 7)]
    house.registry.expiries["example.com"] = NOW + 370 * DAY
    house.check_domains(4)
    assert len(house.notices()) == 1
    house.check_domains(364)
    assert house.notices()[1:] == [(near, "domain.expiring", 6)]


def test_dates_that_registries_give_in_turn_are_alerted_once_each(house):
    house.monitor("https://example.com/", domain_alert_days=60)
    for day in range(12):
        house.registry.expiries["example.com"] = NOW + (20 + 10 * (day % 3)) * DAY
        house.check_domains(day)
    assert [days for _id, _event, days in house.notices()] == [20, 29, 38]


def test_a_name_below_a_private_suffix_is_asked_for_itself(house):
    for host in ("shop.co.ua", "www.a.uk.com", "someone.github.io"):
        house.monitor(f"https://{host}/", domain_alert_days=60)
    house.registry.expiries |= dict.fromkeys(("co.ua", "uk.com", "github.io"), NOW + DAY)
    house.check_domains()
    assert sorted(house.registry.asked) == ["a.uk.com", "shop.co.ua", "someone.github.io"]
    assert house.notices() == []


def test_another_domain_that_expires_on_the_same_day_is_alerted_too(house):
    id = house.monitor("https://example.com/", domain_alert_days=7)
    for domain in ("example.com", "example.org"):
        house.registry.expiries[domain] = NOW + 5 * DAY
    house.check_domains()
    assert len(house.notices()) == 1
    house.move(id, "https://www.example.com/other")
    house.check_domains(0.1)
    assert len(house.notices()) == 1, "the same domain, behind another URL"
    house.move(id, "https://example.org/")
    house.check_domains(0.2)
    assert len(house.notices()) == 2


@pytest.mark.parametrize("first", ["rdap", "whois"])
def test_a_date_with_and_without_a_time_is_alerted_once(house, first):
    house.monitor("https://example.com/", domain_alert_days=7)
    hour = (NOW + 5 * DAY).replace(hour=22, minute=59)
    midnight = hour.replace(hour=0, minute=0)
    answers = [hour, midnight, hour, midnight + DAY]  # the last: that date in a zone ahead of UTC
    if first == "whois":
        answers[:2] = [midnight, hour]
    for day, answer in enumerate(answers):
        house.registry.expiries["example.com"] = answer
        house.check_domains(1.01 * day)
        assert len(house.notices()) == 1


def test_maintenance_keeps_a_domain_alert_for_later(house):
    quiet = {"maintenance_start_at": NOW, "maintenance_end_at": NOW + DAY}
    house.monitor("https://example.com/", domain_alert_days=60, **quiet)
    house.registry.expiries["example.com"] = NOW + 8 * DAY
    house.check_domains()
    assert house.notices() == []
    house.check_domains(1)
    assert len(house.notices()) == 1


def test_a_new_url_is_another_domain(house):
    id = house.monitor("https://example.com/")
    house.check_domains()
    with writing() as session:
        session.get(MonitorStateRow, id).domain = None
        session.get(MonitorRow, id).url = "https://example.org/"
    house.check_domains()
    assert house.registry.asked == ["example.com", "example.org"]
    assert db.session.get(MonitorStateRow, id).domain == "example.org"


@pytest.mark.both_databases
@pytest.mark.settings(retention_days=30)
def test_old_rows_are_deleted(house):
    ids = [house.monitor("http://127.0.0.1/") for _ in range(3)]
    with writing() as session:
        for id in ids:
            for days in (31, 29, 0):
                result = make_outcome("up", NOW - days * DAY, monitor_id=id).result
                # What repeats needs no number here.
                row = dict.fromkeys(("context_id", "cause_code_id", "cause"))
                row |= {
                    "monitor_id": id, "at": to_ms(result.checked_at), "location_id": 1,
                    "verdict": 0, "maintenance": False, "status_code": 200, "response_time": 1,
                    "dns": None, "connect": 0, "tls": None, "ttfb": 1, "download": 0,
                }  # fmt: skip
                journal.insert_results([row])
                ping = {"monitor_id": id, "at": NOW - days * DAY, "kind": "success"}
                session.add(PingRow(method="GET", **ping))
        session.add(SignOfLifeRow(name="checker:dead:1", at=NOW - 2 * DAY))
        session.add(SignOfLifeRow(name="checker:alive:1", at=NOW))
        session.add(CounterRow(name="key", window=0, count=1))
        for days in (399, 401):
            session.add(
                MarkerRow(name=str(days), time=NOW - days * DAY, created_at=NOW, updated_at=NOW)
            )
    house.keeper.delete_old(house.now)
    assert list(db.session.scalars(select(MarkerRow.name))) == ["399"]
    assert db.session.scalar(select(func.count()).select_from(ResultRow)) == 6
    assert db.session.scalar(select(func.min(ResultRow.at))) == to_ms(NOW - 29 * DAY)
    assert db.session.scalar(select(func.count()).select_from(PingRow)) == 6
    assert db.session.scalar(select(func.min(PingRow.at))) == NOW - 29 * DAY
    assert db.session.scalars(select(SignOfLifeRow.name)).all() == ["checker:alive:1"]
    assert db.session.scalar(select(CounterRow.name)) is None


@pytest.mark.both_databases
def test_a_monitor_without_a_state_or_a_place_gets_them(house):
    id = house.monitor("http://127.0.0.1/")
    with writing() as session:
        session.execute(delete(MonitorStateRow))
        session.execute(delete(AssignmentRow))
    repair_unassigned(house.now)
    assert db.session.get(MonitorStateRow, id) is not None
    assert db.session.get(AssignmentRow, (id, 1)).scheduled_at is None, "due at once"


def test_a_failing_chore_does_not_stop_the_others(house, monkeypatch):
    done = threading.Event()
    monkeypatch.setattr("app.engine.housekeeping.MIN_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("app.engine.housekeeping.rollups.roll", lambda _now: 1 / 0)
    monkeypatch.setattr("app.engine.housekeeping.repair_unassigned", lambda _now: done.set())
    stop = threading.Event()
    threads = house.keeper.start(stop)
    assert done.wait(60)
    house.keeper.end(stop)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.both_databases
def test_cancelled_calendar_entries_are_kept_for_90_days_after_their_end(house):
    with writing() as session:
        page = StatusPageRow(name="p", slug="p", created_at=NOW, updated_at=NOW)
        session.add(page)
        session.flush()
        for days in (89, 91):
            end = NOW - days * DAY
            session.add(
                CancelledEventRow(
                    status_page_id=page.id,
                    uid=f"ended-{days}",
                    sequence=1,
                    name="x",
                    start_at=end - DAY,
                    end_at=end,
                    cancelled_at=end - DAY,
                )
            )
    house.keeper.delete_old(house.now)
    assert db.session.scalars(select(CancelledEventRow.uid)).all() == ["ended-89"]
