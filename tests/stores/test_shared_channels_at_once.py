"""Several who make a contact of one channel, or change its monitors, at the same moment."""

from __future__ import annotations

import pytest

from app.records import Pair
from app.stores.local import LocalStore
from tests.stores.conftest import Act, AtOnce
from tests.stores.contract.making import add_monitor

pytestmark = pytest.mark.both_databases


HOOK, MAIL = Pair("slack", "https://hooks.example/abcd1234"), Pair("email", "a@b.example")
OPS = Pair("contact", "Ops")


def alerts_of(store: LocalStore, ids: list[int]) -> list[tuple[Pair, ...]]:
    return [store.monitors.get(id).alerts for id in ids]


def test_of_concurrent_requests_one_creates_the_contact(at_once: AtOnce, store: LocalStore) -> None:
    ids = [add_monitor(store, alerts=(HOOK, MAIL)).id for _ in range(6)]
    [mark, _] = [channel.mark for channel in store.contacts.shared(ids[0])]
    names = ("Shop", "Ops", "Night", "Web")
    answers = at_once([making(ids[0], mark, name) for name in names])
    made = [answer for answer in answers if isinstance(answer, str)]
    assert len(made) == 1
    assert [answer for answer in answers if not isinstance(answer, str)] == [["mark"]] * 3
    assert list(store.contacts.names()) == made
    assert alerts_of(store, ids) == [(Pair("contact", made[0]), MAIL)] * 6


def test_who_changes_a_monitor_meanwhile_waits_and_neither_change_is_lost(
    at_once: AtOnce, store: LocalStore
) -> None:
    for _ in range(2):
        store.contacts.create({"name": "Ops", "channels": (MAIL,)})
        ids = [add_monitor(store, alerts=(HOOK,)).id for _ in range(6)]
        [shared] = store.contacts.shared(ids[0])
        answers = at_once([making(ids[0], shared.mark), *map(changing, reversed(ids[1:]))])
        assert answers == ["Shop"] * 6
        changed = [(OPS, MAIL)] * 5
        assert alerts_of(store, ids) == [(Pair("contact", "Shop"),), *changed]
        for id in ids:
            store.monitors.delete(id)
        for name in ("Shop", "Ops"):
            store.contacts.remove(store.contacts.id_of(name) or 0, force=True)


def making(monitor_id: int, mark: str, name: str = "Shop") -> Act:
    return lambda store: store.contacts.from_channel(name, monitor_id, mark).name


def changing(id: int) -> Act:
    return lambda store: store.monitors.update(id, {"alerts": (OPS, MAIL)}).name
