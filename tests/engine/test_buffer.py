"""Results that an agent keeps: their order, a full disk, and a damaged file."""

import json
import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from app.engine.agent import buffer as buffers
from app.engine.agent.buffer import Buffer, MadeResult

NOW = datetime.now(UTC)


def made(*numbers):
    return [MadeResult(number, 1, NOW, number) for number in numbers]


def newest(buffer, count=100):
    """The newest results, as their numbers."""
    return read(buffer.newest(count, 10**6))


def read(batch):
    return [json.loads(body) for body in batch.bodies]


def write_protect(buffer, on):
    """The file as on a full disk: it can be read, and each write fails."""
    buffer._file.execute(f"PRAGMA query_only = {on}")


def damage(folder):
    """The part of the open file in memory is read again too."""
    for path in (folder / "agent.db", folder / "agent.db-wal"):
        if path.exists():
            with open(path, "r+b") as file:
                file.write(b"\xff" * path.stat().st_size)


def test_a_buffer_gives_the_newest_first_and_forgets_after_a_day(tmp_path):
    now = datetime.now(UTC)
    with closing(Buffer(tmp_path)) as buffer:
        hours = [now - timedelta(hours=25 - number) for number in range(25)]
        buffer.add([MadeResult(7, 1, at, number) for number, at in enumerate(hours)])
    with closing(Buffer(tmp_path)) as buffer:
        assert buffer.delete_old(now) == 1
        assert buffer.last_checks() == {7: (1, hours[-1])}
        assert newest(buffer, 3) == [24, 23, 22]
        assert buffer.newest(3, 1000).more
        assert buffer.newest(3, 1).bodies == ["24"]
        buffer.remove(buffer.newest(3, 1))
        assert newest(buffer, 3) == [23, 22, 21]
        every = buffer.newest(100, 1000)
        assert not every.more
        buffer.remove(every)
        assert newest(buffer) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"garbage " * 1000),
        lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 40_000),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: path.write_bytes(b""),
    ],
    ids=["garbage", "garbage behind its head", "cut", "empty"],
)
def test_a_damaged_buffer_is_set_aside(damage, tmp_path):
    now = datetime.now(UTC)
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add([MadeResult(number, 1, now, "x" * 100) for number in range(300)])
    damage(tmp_path / "agent.db")
    with closing(Buffer(tmp_path)) as buffer:
        buffer.last_checks()
        buffer.newest(1000, 10**6)
        buffer.remove(buffer.newest(1000, 10**6))
        buffer.add([MadeResult(7, 1, now, "new")])
        assert newest(buffer) == ["new"]
    with closing(Buffer(tmp_path)) as buffer:
        assert newest(buffer) == ["new"]


def test_damage_that_sqlite_names_by_a_longer_code_is_damage(tmp_path, monkeypatch):
    damaged = sqlite3.DatabaseError("malformed")
    damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT_INDEX
    faults, transaction = [damaged], buffers._transaction

    def run(file, work):
        if faults:
            raise faults.pop()
        return transaction(file, work)

    with closing(Buffer(tmp_path)) as buffer:
        buffer.add(made(1))
        monkeypatch.setattr(buffers, "_transaction", run)
        buffer.add(made(2))
        assert newest(buffer) == [2]
    assert (tmp_path / "agent.db.damaged").is_file()


@pytest.mark.parametrize("running", [False, True])
def test_a_damaged_buffer_that_cannot_be_set_aside_is_replaced_as_soon_as_it_can(
    running, tmp_path, caplog
):
    """Each call used a closed file until the agent was started again."""
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add(made(*range(300)))
    buffer = Buffer(tmp_path)
    if running:
        assert len(newest(buffer)) == 100
        buffer._file.execute("PRAGMA shrink_memory")
    damage(tmp_path)
    (tmp_path / "agent.db.damaged").mkdir()
    for number in range(300, 303):
        buffer.add(made(number))
        assert newest(buffer) == list(reversed(range(300, number + 1)))
        buffer.delete_old(NOW)
    assert len(caplog.messages) == 1
    (tmp_path / "agent.db.damaged").rmdir()
    buffer.remove(buffer.newest(1, 100))
    assert newest(buffer) == [301, 300]
    buffer.close()
    assert (tmp_path / "agent.db.damaged").is_file()
    assert caplog.messages[-1] == "The file of results works again."
    with closing(Buffer(tmp_path)) as buffer:
        assert newest(buffer) == [301, 300]


def test_a_disk_that_damages_each_new_file_leaves_the_first_one_aside(
    tmp_path, caplog, monkeypatch
):
    """Each second, an empty file replaced the one that had results, and the log had a line."""
    path, opened = tmp_path / "agent.db", buffers._open

    def damaged(path):
        if not path.exists():
            path.write_bytes(b"garbage " * 1000)
        return opened(path)

    path.write_bytes(b"results " * 1000)
    with closing(Buffer(tmp_path)) as buffer:
        with monkeypatch.context() as patched:
            patched.setattr(buffers, "_open", damaged)
            for number in range(3):
                buffer.add(made(number))
        assert len(caplog.messages) == 1
        buffer.add(made(3))
        assert newest(buffer) == [3, 2, 1, 0]
    assert (tmp_path / "agent.db.damaged").read_bytes().startswith(b"results")
    assert ["set aside" in message for message in caplog.messages] == [False, True, False]


def test_a_result_that_comes_while_the_file_is_replaced_is_not_removed_for_another(tmp_path):
    """The new file gave it the id of a result that was being sent."""
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add(made(0))
        sent = buffer.newest(10, 100)
        buffer._file.execute("PRAGMA shrink_memory")
        damage(tmp_path)
        buffer.add(made(1))
        assert (tmp_path / "agent.db.damaged").exists()
        buffer.remove(sent)
        assert newest(buffer) == [1]


def test_a_result_that_comes_while_old_ones_are_forgotten_is_not_removed_for_another(tmp_path):
    """The file gave it the id of a result that was being sent, and was forgotten meanwhile."""
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add([MadeResult(0, 1, NOW - timedelta(hours=25), 0)])
        sent = buffer.newest(10, 100)
        assert buffer.delete_old(NOW) == 1
        buffer.add(made(1))
        buffer.remove(sent)
        assert newest(buffer) == [1]


def test_results_in_memory_are_forgotten_after_a_day_too(tmp_path):
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add(made(0))
        write_protect(buffer, on=True)
        buffer.add(made(1))
        assert buffer.delete_old(NOW + timedelta(hours=25)) == 1
        assert newest(buffer) == [0]


@pytest.mark.parametrize("seed", range(20))
def test_each_result_is_sent_once_whatever_the_disk_does(seed, tmp_path):
    """Until the agent ends: what could not be written down comes again after that."""
    chosen, results = random.Random(seed), 0
    for _start in range(3):
        buffer, taken, on_way = Buffer(tmp_path), [], None
        before = newest(buffer, 1000)
        added, full = [], False
        for _step in range(60):
            step = chosen.choice(["add", "add", "send", "answer", "answer", "cut", "disk"])
            if step == "add":
                more = range(results, results + chosen.randint(1, 8))
                results = more.stop
                buffer.add(made(*more))
                added += more
            elif step == "send" and on_way is None:
                on_way = buffer.newest(chosen.randint(1, 10), chosen.choice([1, 5, 10**6]))
                waiting = sorted({*before, *added}.difference(taken), reverse=True)
                assert read(on_way) == waiting[: len(on_way.bodies)]
                assert on_way.more == (len(on_way.bodies) < len(waiting))
            elif step == "answer" and on_way is not None:
                taken += read(on_way)
                buffer.remove(on_way)
                on_way = None
            elif step == "cut":
                on_way = None
            elif step == "disk":
                full = not full
                write_protect(buffer, on=full)
            assert len(buffer._sent) <= 2
        write_protect(buffer, on=False)
        waiting = sorted({*before, *added}.difference(taken), reverse=True)
        assert newest(buffer, 1000) == waiting
        buffer.close()
        with closing(Buffer(tmp_path)) as buffer:
            assert newest(buffer, 1000) == waiting


class Disk:
    """Fails once: at call number ``at`` of the file, before it or after it was carried out."""

    def __init__(self, at, after):
        self.at, self.after, self.calls = at, after, 0

    def connect(self, *arguments, **options):
        return Connection(self, self.call(sqlite3.connect, *arguments, **options))

    def call(self, work, *arguments, **options):
        self.calls += 1
        if self.calls == self.at and not self.after:
            raise sqlite3.OperationalError("disk I/O error")
        result = work(*arguments, **options)
        if self.calls == self.at:
            raise sqlite3.OperationalError("disk I/O error")
        return result


class Sqlite:
    """The module, with files on such a disk."""

    def __init__(self, disk):
        self.connect = disk.connect

    def __getattr__(self, name):
        return getattr(sqlite3, name)


class Connection:
    def __init__(self, disk, file):
        self.disk, self.file = disk, file

    def execute(self, *arguments):
        return self.disk.call(self.file.execute, *arguments)

    def executemany(self, *arguments):
        return self.disk.call(self.file.executemany, *arguments)

    def close(self):
        self.file.close()


def life(folder):
    """The results of an agent that starts with 0, 1 and 2 in its file."""
    sent = []

    def send(count):
        batch = buffer.newest(count, 100)
        sent.extend(read(batch))
        buffer.remove(batch)

    with closing(Buffer(folder)) as buffer:
        buffer.last_checks()
        buffer.add(made(3))
        send(2)
        buffer.add(made(4, 5))
        buffer.delete_old(NOW)
        on_way = buffer.newest(1, 100)
        sent += read(on_way)
        buffer.add(made(6))
        buffer.remove(on_way)
        send(2)
        buffer.add(made(7))
    return sent


@pytest.mark.parametrize("after", [False, True])
def test_no_single_fault_of_a_disk_loses_a_result_or_sends_it_twice(after, tmp_path, monkeypatch):
    for at in count(1):
        folder = tmp_path / str(at)
        folder.mkdir()
        with closing(Buffer(folder)) as buffer:
            buffer.add(made(0, 1, 2))
        disk = Disk(at, after)
        with monkeypatch.context() as patched:
            patched.setattr("app.engine.agent.buffer.sqlite3", Sqlite(disk))
            sent = life(folder)
        with closing(Buffer(folder)) as buffer:
            kept = newest(buffer)
        assert len(sent) == len(set(sent)), (at, sent)
        assert {*sent, *kept} == set(range(8)), (at, sent, kept)
        # Results of a transaction that seemed to fail may come again after a restart.
        assert after or not {*sent} & {*kept}, (at, sent, kept)
        if disk.calls < at:
            break
    assert at > 30


ODD = [
    "UPDATE results SET body = NULL WHERE id = 2",
    "UPDATE results SET body = x'00ff' WHERE id = 2",
    "UPDATE results SET body = '{' WHERE id = 2",
    "UPDATE results SET body = CAST(x'22c3' AS TEXT) WHERE id = 2",
    "UPDATE results SET body = '' WHERE id = 2",
]


@pytest.mark.parametrize("odd", ODD)
def test_a_damaged_result_does_not_keep_the_others_from_being_sent(odd, tmp_path):
    """Otherwise no request was JSON, and the server refused each for a day."""
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add(made(0, 1, 2))
    with closing(sqlite3.connect(tmp_path / "agent.db")) as file, file:
        file.execute(odd)
    with closing(Buffer(tmp_path)) as buffer:
        batch = buffer.newest(10, 100)
        assert read(batch) == [2, 0]
        buffer.remove(batch)
    with closing(Buffer(tmp_path)) as buffer:
        assert buffer.newest(10, 100).bodies == []


def test_damaged_times_of_checks_are_left_out(tmp_path):
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add(made(0, 1, 2, 3, 4))
    with closing(sqlite3.connect(tmp_path / "agent.db")) as file, file:
        for id, odd in enumerate(("NULL", "'x'", "1e300", "x'00'")):
            file.execute(f"UPDATE done SET at = {odd} WHERE monitor_id = {id}")
    with closing(Buffer(tmp_path)) as buffer:
        assert list(buffer.last_checks()) == [4]


def test_a_file_with_an_id_that_no_agent_gives_is_set_aside(tmp_path):
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add(made(0))
    with closing(sqlite3.connect(tmp_path / "agent.db")) as file, file:
        file.execute(f"UPDATE results SET id = {2**63 - 1}")
    with closing(Buffer(tmp_path)) as buffer:
        buffer.add(made(1))
        assert newest(buffer) == [1]
    with closing(Buffer(tmp_path)) as buffer:
        assert newest(buffer) == [1]
