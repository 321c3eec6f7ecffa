"""Checkers of a place share its shards, on both databases, with clocks that the test sets."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from app.db import db, journal, shards, writing
from app.db.connections import IDLE_MS, LIMITED
from app.db.shards import LEASE
from app.db.tables import SignOfLifeRow
from app.engine.own_shards import (
    ALONE_SECONDS,
    LOOK_SECONDS,
    OwnShards,
    fair_share,
    is_gone,
    make_name,
)
from tests.support.command import resting_after

START = datetime(2026, 11, 21, 8, tzinfo=UTC)
PLACE = 1


class House:
    """Checkers that look every two seconds of a common clock."""

    def __init__(self):
        self.seconds = 0.0
        self.checkers = {}
        self.gone = set()

    def join(self, *names, location="default"):
        for name in names:
            self.checkers[name] = OwnShards(f"checker:elsewhere:{name}", location)

    def die(self, name):
        self.gone.add(name)

    @property
    def now(self):
        return START + timedelta(seconds=self.seconds)

    def look(self, name):
        return self.checkers[name].look(self.now, self.seconds)

    def go_on(self, seconds):
        until = self.seconds + seconds
        while self.seconds <= until:
            for name in self.checkers.keys() - self.gone:
                self.look(name)
            self.seconds += LOOK_SECONDS
        self.seconds = until

    def owned(self):
        """How many shards each live checker owns; each shard has one owner."""
        living = [self.checkers[name] for name in sorted(self.checkers.keys() - self.gone)]
        numbers = [number for checker in living for number in checker.tokens]
        assert len(numbers) == len(set(numbers)), "nothing is owned twice"
        return [len(checker.tokens) for checker in living]


def take_all(owner):
    """The tokens of all shards of the place, which ``owner`` takes."""
    with writing() as session:
        shards.make(PLACE)
        return shards.take(session, PLACE, shards.read(PLACE), owner, START + LEASE)


@pytest.fixture
def house(core):
    with core.app_context():
        yield House()


def parts(house, *of_postgresql):
    """The shards of the checkers: on SQLite there is one, and one checker has it."""
    owned = house.owned()
    if shards.count() == 1:
        return sorted(owned) == [0] * (len(owned) - 1) + [1]
    return sorted(owned) == sorted(of_postgresql)


@pytest.mark.both_databases
def test_the_first_checker_takes_all_shards_and_a_second_its_share_within_ten_seconds(house):
    house.join("a")
    gained = house.look("a").gained
    assert len(gained) == shards.count()
    house.go_on(60)
    house.join("b")
    house.go_on(8)
    assert parts(house, 32, 32)
    house.join("c")
    house.go_on(8)
    assert parts(house, 21, 21, 22)


@pytest.mark.both_databases
def test_no_shard_moves_without_need(house):
    house.join("a", "b", "c")
    house.go_on(20)
    before = {name: dict(checker.tokens) for name, checker in house.checkers.items()}
    house.go_on(60)
    assert {name: checker.tokens for name, checker in house.checkers.items()} == before


@pytest.mark.both_databases
def test_the_shards_of_a_dead_checker_are_taken_within_thirty_seconds(house):
    house.join("a", "b")
    house.go_on(20)
    house.die("b" if house.checkers["b"].tokens else "a")
    house.go_on(28)
    assert house.owned() == [shards.count()]


@pytest.mark.both_databases
def test_the_shards_of_a_stopped_checker_are_taken_at_once(house):
    house.join("a", "b")
    house.go_on(20)
    house.checkers["b"].release_all(house.now, None)
    house.die("b")
    house.go_on(0)
    assert house.owned() == [shards.count()]


@pytest.mark.both_databases
def test_the_shards_of_a_checker_that_died_on_the_same_machine_are_taken_at_once(house):
    running, name = resting_after(make_name)
    assert len(name) <= 96, "the column's length"
    killed = house.checkers["killed"] = OwnShards(name, "default")
    house.look("killed")
    house.join("a")
    house.look("a")
    assert not is_gone(name)
    assert house.checkers["a"].tokens == {}, "it lives"
    house.die("killed")
    running.kill()
    running.join(60)
    house.look("a")
    assert len(house.checkers["a"].tokens) == shards.count()
    assert house.checkers["a"].tokens[0] == killed.tokens[0] + 1


@pytest.mark.both_databases
def test_an_owner_that_was_suspended_for_long_loses_all_its_shards(house):
    house.join("a")
    house.look("a")
    house.seconds += 30
    assert house.checkers["a"].lapsed(house.seconds)
    house.join("b")
    house.look("b")
    moved = house.look("a")
    assert moved.lost == frozenset(range(shards.count()))
    house.go_on(8)
    assert parts(house, 32, 32)


@pytest.mark.both_databases
def test_a_suspended_owner_keeps_the_shards_that_nobody_took_and_reads_them_again(house):
    """Its checks in between count. But it missed changes."""
    house.join("a")
    first = house.look("a").gained
    house.seconds += 30
    moved = house.look("a")
    assert moved.lost == frozenset()
    assert moved.gained == house.checkers["a"].tokens == first


@pytest.mark.both_databases
def test_checks_go_on_for_a_time_without_the_database_if_no_other_checker_would_make_them(house):
    house.join("a")
    house.look("a")
    alone = house.checkers["a"]
    assert alone.may_start(house.seconds + ALONE_SECONDS)
    assert not alone.may_start(house.seconds + ALONE_SECONDS + 1)
    house.join("b")
    house.go_on(8)
    lease = LEASE.total_seconds()
    for checker in house.checkers.values():
        assert checker.may_start(house.seconds + lease - LOOK_SECONDS)
        assert not checker.may_start(house.seconds + lease + 1)


@pytest.mark.both_databases
@pytest.mark.parametrize("hours", [6, -6], ids=["forward", "back"])
def test_setting_the_clock_stops_no_checker(house, hours):
    house.join("a", "b")
    house.go_on(20)
    monotonic, step = OwnShards.look, timedelta(hours=hours)
    for _ in range(4):
        for name in ("a", "b"):
            checker = house.checkers[name]
            monotonic(checker, house.now + step, house.seconds)
        house.seconds += LOOK_SECONDS
    assert parts(house, 32, 32)
    assert all(shard.is_owned(house.now + step) for shard in shards.read(1))


@pytest.mark.both_databases
def test_a_valid_lease_is_respected_and_one_too_far_ahead_is_not(house):
    ahead = {0: LEASE + timedelta(seconds=5), 1: timedelta(hours=6)}
    with writing() as session:
        shards.make(1)
        for number, lead in ahead.items():
            if number < shards.count():
                [shard] = [shard for shard in shards.read(1) if shard.number == number]
                shards.take(session, 1, [shard], "checker:elsewhere:gone", START + lead)
    house.join("a")
    house.look("a")
    assert set(house.checkers["a"].tokens) == set(range(1, shards.count()))


@pytest.mark.both_databases
def test_each_place_has_its_own_shards(house):
    house.join("a")
    house.join("b", location="oslo")
    house.go_on(10)
    assert [len(checker.tokens) for checker in house.checkers.values()] == [shards.count()] * 2
    assert journal.place_id("oslo") != 1
    signs = db.session.query(SignOfLifeRow).all()
    assert {sign.location for sign in signs} == {"default", "oslo"}


@pytest.mark.both_databases
def test_two_checkers_that_take_shards_at_once_never_get_the_same(house):
    with writing():
        shards.make(PLACE)
    free = shards.read(PLACE)
    with writing() as session:
        first = shards.take(session, PLACE, free, "a", START + LEASE)
    with writing() as session:
        assert shards.take(session, PLACE, free, "b", START + LEASE) == {}
    assert len(first) == shards.count()


@pytest.mark.both_databases
def test_a_checker_that_ends_late_releases_no_shard_that_another_has_taken(house):
    tokens = take_all("a")
    with writing() as session:
        shards.release(session, PLACE, tokens.keys(), "b", START)
    assert {shard.owner for shard in shards.read(PLACE)} == {"a"}


@pytest.mark.both_databases
def test_no_shard_is_taken_while_a_result_of_its_owner_is_recorded(core, house):
    if db.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    take_all("a")

    def take():
        with core.app_context(), writing() as session:
            return shards.take(session, PLACE, shards.read(PLACE), "b", START + LEASE)

    with ThreadPoolExecutor(1) as pool, writing() as session:
        assert shards.locked(session, PLACE, [3]).keys() == {3}
        taken = pool.submit(take).result(10)
    assert taken.keys() == set(range(shards.count())) - {3}


@pytest.mark.both_databases
def test_postgresql_ends_the_transaction_of_a_process_that_stops_while_it_locks_shards(house):
    if db.engine.dialect.name != "postgresql":
        pytest.skip("a setting of PostgreSQL")
    take_all("a")
    with writing() as session:
        assert LIMITED not in session.connection().info, "as in a web server"
        shards.locked(session, PLACE, [3])
        limit = session.scalar(text("SHOW idle_in_transaction_session_timeout"))
    assert limit == f"{IDLE_MS // 1000}s"


@pytest.mark.parametrize("checkers", [1, 2, 3, 5, 7, 9, 40, 64, 65])
def test_shares_are_fair_and_add_up_to_all_shards(core, checkers):
    names = [f"c{number}" for number in range(checkers)]
    parts = [fair_share(name, names, {}, 64) for name in names]
    assert sum(parts) == 64
    assert max(parts) - min(parts) <= 1
