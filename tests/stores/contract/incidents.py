"""The contract of every store for incidents."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.errors import Conflict, Invalid, NotFound
from app.records import Incident, IncidentQuery
from app.stores.base import Store
from tests.stores.contract.making import (
    HUGE,
    add_incident,
    add_monitor,
    moment,
    not_found,
    over_bare,
)


class IncidentsContract:
    @over_bare
    def test_an_incident_goes_from_open_to_acknowledged_to_resolved(self, store: Store) -> None:
        monitor = add_monitor(store)
        incident = add_incident(store, monitor, cause="It burns", comment="line 1\nline 2")
        shown = store.incidents.get(incident.id)
        assert (shown.cause, shown.comment) == ("It burns", "line 1\nline 2")
        assert (shown.status, shown.started_at) == ("unresolved", incident.started_at)
        assert shown.monitor is not None
        assert (shown.monitor.id, shown.monitor.name) == (monitor.id, monitor.name)
        assert shown.duration is not None
        assert 7190 <= shown.duration <= 7260
        at = incident.started_at + timedelta(hours=1)
        acknowledged = store.incidents.update(incident.id, {"acknowledged_at": at}, by="Ada")
        assert (acknowledged.status, acknowledged.acknowledged_at) == ("acknowledged", at)
        ended = store.incidents.update(incident.id, {"ended_at": at, "comment": "Put out"})
        assert (ended.status, ended.ended_at, ended.duration) == ("resolved", at, 3600)
        assert (ended.comment, ended.cause) == ("Put out", "It burns")
        reopened = store.incidents.update(incident.id, {"ended_at": None, "acknowledged_at": None})
        assert reopened.status == "unresolved"
        store.incidents.delete(incident.id)
        assert not store.incidents.list(IncidentQuery()).items

    @over_bare
    def test_incidents_are_acknowledged_together_with_an_answer_for_each(
        self, store: Store
    ) -> None:
        first, second, ended = (
            add_incident(store, add_monitor(store, name=name)).id for name in ("a", "b", "c")
        )
        store.incidents.update(ended, {"ended_at": store.now()})
        answers = store.incidents.acknowledge([second, ended, 999_999, first], by="Ada")
        assert [type(answer) for answer in answers] == [Incident, Conflict, NotFound, Incident]
        for id, answer in ((second, answers[0]), (first, answers[3])):
            stored = store.incidents.get(id)
            assert (stored.status, stored.acknowledged_at is None) == ("acknowledged", False)
            assert answer == replace(stored, duration=answer.duration)
        again = store.incidents.acknowledge([first])
        assert again[0].acknowledged_at == stored.acknowledged_at

    @over_bare
    def test_incidents_are_filtered_by_status_and_monitor(self, store: Store) -> None:
        first, second = add_monitor(store), add_monitor(store, name="Other")
        at = moment(store, hours=1)
        opened = add_incident(store, first).id
        acknowledged = add_incident(store, second, acknowledged_at=at).id
        resolved = add_incident(store, second, ended_at=at).id
        both = add_incident(store, second, acknowledged_at=at, ended_at=at).id

        def listed(**query: Any) -> set[int]:
            return {incident.id for incident in store.incidents.list(IncidentQuery(**query)).items}

        assert listed(status="unresolved") == {opened}
        assert listed(status="acknowledged") == {acknowledged}
        assert listed(status="resolved") == {resolved, both}
        assert listed(monitor_id=first.id) == {opened}
        assert listed(monitor_id=second.id, status="resolved") == {resolved, both}
        assert listed() == {opened, acknowledged, resolved, both}

    @over_bare
    def test_incidents_are_searched_by_monitor_cause_or_address(self, store: Store) -> None:
        shop = add_monitor(store, name="Shöp", url="http://one.example/")
        blog = add_monitor(store, name="Blog", url="http://two.example/")
        a = add_incident(store, shop, cause="50% lost").id
        b = add_incident(store, blog, cause="Timeout of shöp").id

        def listed(**query: Any) -> set[int]:
            return {incident.id for incident in store.incidents.list(IncidentQuery(**query)).items}

        assert listed(search="SHÖP") == {a}
        assert listed(search="TWO.example") == {b}
        assert listed(search="two.example", search_by="url") == {b}
        assert listed(search="two.example", search_by="monitor") == set()
        assert listed(search="shöP", search_by="cause") == {b}
        assert listed(search="%", search_by="cause") == {a}
        assert listed(search_by="cause") == {a, b}

    @over_bare
    def test_open_incidents_come_first_in_the_order_of_ends_and_last_the_other_way(
        self, store: Store
    ) -> None:
        monitor, other = add_monitor(store), add_monitor(store)
        early, late = moment(store, minutes=90), moment(store, minutes=30)
        a = add_incident(store, monitor, ended_at=late, started_at=moment(store, hours=5)).id
        b = add_incident(store, monitor, started_at=moment(store, hours=4)).id
        c = add_incident(store, other, ended_at=early, started_at=moment(store, hours=3)).id
        d = add_incident(store, other, started_at=moment(store, hours=2)).id
        e = add_incident(store, other, ended_at=early, started_at=moment(store, hours=3)).id

        def order(**query: Any) -> list[int]:
            return [incident.id for incident in store.incidents.list(IncidentQuery(**query)).items]

        assert order() == [d, b, a, e, c]
        assert order(sort="asc") == [c, e, a, b, d]
        assert order(sort_by="started_at") == [d, e, c, b, a]
        assert order(sort_by="started_at", sort="asc") == [a, b, c, e, d]

    def test_a_monitor_has_one_open_incident(self, store: Store) -> None:
        monitor = add_monitor(store)
        ended = add_incident(store, monitor, ended_at=moment(store, hours=1))
        incident = add_incident(store, monitor)
        assert store.monitors.get(monitor.id).open_incident_id == incident.id
        with pytest.raises(Conflict) as stored:
            add_incident(store, monitor)
        with pytest.raises(Conflict) as reopened:
            store.incidents.update(ended.id, {"ended_at": None})
        for caught in (stored, reopened):
            assert caught.value.details == {"open_incident_id": incident.id}
        assert store.incidents.get(ended.id).status == "resolved"
        store.incidents.update(incident.id, {"ended_at": moment(store)})
        assert store.monitors.get(monitor.id).open_incident_id is None
        assert store.incidents.update(ended.id, {"ended_at": None}).status == "unresolved"

    @over_bare
    def test_an_incident_of_no_monitor_is_refused(self, store: Store) -> None:
        for id in (999_999, HUGE):
            with pytest.raises(Invalid) as caught:
                store.incidents.create({"monitor_id": id, "started_at": moment(store)})
            assert list(caught.value.errors) == ["monitor_id"]

    # Each case: what is stored, what is then sent, and the field that is at fault. Hours ago.
    @pytest.mark.parametrize(
        ("stored", "sent", "fault"),
        [
            (None, {"started_at": -1}, "started_at"),
            ({"started_at": 3, "acknowledged_at": 1}, {"ended_at": 2}, "ended_at"),
        ],
    )
    def test_times_that_cannot_be_are_refused_and_change_nothing(
        self, store: Store, stored: dict[str, float] | None, sent: dict[str, float], fault: str
    ) -> None:
        monitor = add_monitor(store)

        def times(hours: dict[str, float]) -> dict[str, datetime]:
            return {name: moment(store, hours=ago) for name, ago in hours.items()}

        if stored is None:
            with pytest.raises(Invalid) as caught:
                store.incidents.create({"monitor_id": monitor.id, **times(sent)})
            assert not store.incidents.list(IncidentQuery()).items
        else:
            incident = store.incidents.create({"monitor_id": monitor.id, **times(stored)})
            with pytest.raises(Invalid) as caught:
                store.incidents.update(incident.id, times(sent))
            shown = store.incidents.get(incident.id)
            assert (shown.acknowledged_at, shown.ended_at) == (
                incident.acknowledged_at,
                incident.ended_at,
            )
        assert list(caught.value.errors) == [fault]

    def test_a_clock_that_is_half_a_minute_ahead_is_forgiven(self, store: Store) -> None:
        ahead = moment(store, seconds=-30)
        incident = add_incident(store, add_monitor(store), started_at=ahead)
        assert incident.started_at == ahead
        assert incident.duration == 0

    def test_pausing_ends_the_open_incident_and_says_so(self, store: Store) -> None:
        monitor = add_monitor(store)
        incident = add_incident(store, monitor, comment="Looking")
        store.monitors.update(monitor.id, {"pause": True})
        shown = store.incidents.get(incident.id)
        assert shown.status == "resolved"
        assert shown.comment == "Looking\nWatching stopped: the monitor was paused."
        assert store.monitors.get(monitor.id).open_incident_id is None
        assert add_incident(store, monitor).status == "unresolved"  # by hand also while paused

    def test_an_incident_says_who_acknowledged_it(self, store: Store) -> None:
        incident = add_incident(store, add_monitor(store))
        now = store.now().replace(microsecond=0)
        acknowledged = store.incidents.update(incident.id, {"acknowledged_at": now}, by="Ada")
        assert acknowledged.acknowledged_by in ("Ada", "API key test")
        assert store.incidents.get(incident.id).acknowledged_by == acknowledged.acknowledged_by

    @over_bare
    @pytest.mark.parametrize("id", [999_999, HUGE])
    def test_an_unknown_incident_is_not_found(self, store: Store, id: int) -> None:
        not_found(
            lambda: store.incidents.get(id),
            lambda: store.incidents.update(id, {"cause": "x"}),
            lambda: store.incidents.delete(id),
        )

    @over_bare
    def test_a_monitor_that_does_not_exist_has_no_incidents(self, store: Store) -> None:
        add_incident(store, add_monitor(store))
        for id in (999_999, HUGE):
            assert not store.incidents.list(IncidentQuery(monitor_id=id)).items

    @over_bare
    def test_a_brief_list_of_incidents_has_the_same_records_without_details(
        self, store: Store
    ) -> None:
        for name in ("Alpha", "Beta"):
            add_incident(store, add_monitor(store, name=name), cause=name)
        query = IncidentQuery(status="unresolved")
        pages = [store.incidents.list(item) for item in (query, replace(query, brief=True))]
        details: dict[str, Any] = dict.fromkeys(("evidence", "comment", "created_at", "updated_at"))
        # The duration goes on counting.
        whole, brief = (
            [replace(record, duration=0, **details) for record in page.items] for page in pages
        )
        assert brief == whole
        assert [page.total for page in pages] == [2, 2]
        uncounted = store.incidents.list(replace(query, counted=False)).items
        assert [item.id for item in uncounted] == [item.id for item in whole]

    @over_bare
    def test_open_incidents_begin_with_those_that_nobody_has_acknowledged(
        self, store: Store
    ) -> None:
        first, acknowledged, last = (
            add_incident(store, add_monitor(store, name=name)) for name in ("A", "B", "C")
        )
        ended = add_incident(store, add_monitor(store, name="D"))
        store.incidents.update(ended.id, {"ended_at": ended.started_at})
        store.incidents.acknowledge([acknowledged.id])
        page = store.incidents.open(25)
        assert {incident.id for incident in page.items[:2]} == {first.id, last.id}
        assert [incident.id for incident in page.items[2:]] == [acknowledged.id]
        assert page.total == 3
