"""The incident's rules (decision 4), the lists' parameters (API 1) and windows."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest

from app.errors import Invalid
from app.forms.incident import AcknowledgeAllForm, IncidentStoreForm, IncidentUpdateForm
from app.forms.queries import (
    DeliveryQueryForm,
    IncidentQueryForm,
    MonitorQueryForm,
    ResultQueryForm,
    list_query,
    page_query,
)
from app.forms.resources import WindowForm
from app.forms.schema import FormContext, bind, overlay
from app.records import DeliveryQuery, Incident, IncidentQuery, MonitorQuery, PageQuery, ResultQuery

NOW = FormContext(now=datetime(2026, 6, 15, 12, tzinfo=UTC))


def at(day, hour=0, minute=0, second=0):
    return datetime(2026, 6, day, hour, minute, second, tzinfo=UTC)


def day(number):
    return f"2026-06-{number:02}T00:00:00"


def store(sent):
    return bind(
        IncidentStoreForm, list(({"monitor_id": "1", "started_at": day(10)} | sent).items()), NOW
    )


def faulty(function, *args):
    with pytest.raises(Invalid) as caught:
        function(*args)
    return caught.value.errors


def test_an_incident_with_only_required_fields_is_open():
    absent = dict.fromkeys(("acknowledged_at", "ended_at", "cause", "comment"))
    assert store({}) == {"monitor_id": 1, "started_at": at(10)} | absent


def test_section_1_a_comments_line_breaks_come_back_as_line_feeds():
    assert store({"comment": "a\r\nb\rc\n\td"})["comment"] == "a\nb\nc\n\td"
    assert len(store({"comment": "x\r\n" * 5000})["comment"]) == 10_000


@pytest.mark.parametrize(
    ("sent", "names"),
    [
        ({"monitor_id": ""}, ["monitor_id"]),
        ({"monitor_id": "one"}, ["monitor_id"]),
        ({"started_at": ""}, ["started_at"]),
        ({"started_at": "2026-06-15T12:01:01"}, ["started_at"]),
        ({"acknowledged_at": day(9)}, ["acknowledged_at"]),
        ({"ended_at": day(9)}, ["ended_at"]),
        ({"ended_at": day(16)}, ["ended_at"]),
        ({"acknowledged_at": day(12), "ended_at": day(11)}, ["acknowledged_at"]),
        ({"cause": "c" * 256}, ["cause"]),
        ({"cause": "a\nb"}, ["cause"]),
        ({"comment": "c" * 10_001}, ["comment"]),
        ({"comment": "c\x0b"}, ["comment"]),
        ({"status": "resolved"}, ["status"]),
    ],
)
def test_section_4_an_invalid_incident_names_its_faulty_fields(sent, names):
    assert sorted(faulty(store, sent)) == names


def test_section_4_a_time_may_be_sixty_seconds_in_the_future():
    assert store({"started_at": "2026-06-15T12:01:00"})["started_at"] == at(15, 12, 1)


STORED = Incident(3, 1, at(10), acknowledged_at=at(12), comment="old")


def update(sent):
    return overlay(IncidentUpdateForm, STORED, list(sent.items()), NOW)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"ended_at": day(13)}, {"ended_at": at(13)}),
        ({"ended_at": ""}, {"ended_at": None}),
        ({"comment": ""}, {"comment": None}),
        ({"ended_at": day(11)}, ["ended_at"]),
        ({"ended_at": day(9)}, ["ended_at"]),
        ({"acknowledged_at": day(9)}, ["acknowledged_at"]),
        (
            {"acknowledged_at": "", "ended_at": day(11)},
            {"acknowledged_at": None, "ended_at": at(11)},
        ),
        ({"monitor_id": "1"}, ["monitor_id"]),
        ({"started_at": day(10)}, ["started_at"]),
    ],
)
def test_an_update_of_an_incident_is_validated_with_its_stored_fields(sent, expected):
    if isinstance(expected, dict):
        assert update(sent) == expected
    else:
        assert sorted(faulty(update, sent)) == expected


monitor_query, incident_query, delivery_query = (
    partial(list_query, form) for form in (MonitorQueryForm, IncidentQueryForm, DeliveryQueryForm)
)
HUGE = "9" * 40
QUERIES = [
    (monitor_query, {}, MonitorQuery()),
    (monitor_query, {"search": "", "page": "", "unknown": ""}, MonitorQuery()),
    (
        monitor_query,
        {"search": "a%b_", "search_by": "url", "sort_by": "name", "sort": "asc", "per_page": "25",
         "page": "3", "status_page_id": "4"},
        MonitorQuery("a%b_", "url", 4, "name", "asc", 25, 3),
    ),
    (monitor_query, {"status_page_id": HUGE}, MonitorQuery(status_page_id=0)),
    (monitor_query, {"status_page_id": "-1"}, MonitorQuery(status_page_id=0)),
    (incident_query, {}, IncidentQuery(search_by="url")),
    (
        incident_query,
        {"search_by": "cause", "monitor_id": "5", "status": "resolved", "sort_by": "started_at"},
        IncidentQuery(None, "cause", 5, "resolved", "started_at"),
    ),
    (
        delivery_query,
        {"channel": "sms", "status": "held", "incident_id": "2"},
        DeliveryQuery(None, 2, "sms", "held"),
    ),
    (page_query, {"page": "2", "per_page": "50"}, PageQuery(page=2, per_page=50)),
    (
        partial(list_query, ResultQueryForm, monitor_id=8),
        {"from": day(1), "to": day(2), "verdict": "down"},
        ResultQuery(8, at(1), at(2), "down"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("read", "sent", "query"), QUERIES)
def test_a_lists_parameters_are_read(read, sent, query):
    assert read(list(sent.items())) == query


@pytest.mark.parametrize(
    ("read", "sent", "name"),
    [
        (monitor_query, {"serach": "x"}, "serach"),  # a misspelt filter must not list everything
        (monitor_query, {"per_page": "20"}, "per_page"),
        (monitor_query, {"page": "0"}, "page"),
        (monitor_query, {"page": "-1"}, "page"),
        (monitor_query, {"page": "two"}, "page"),
        (monitor_query, {"sort": "DESC"}, "sort"),
        (monitor_query, {"sort_by": "interval"}, "sort_by"),
        (monitor_query, {"search": "s" * 256}, "search"),
        (monitor_query, {"search": "\x00"}, "search"),
        (monitor_query, {"status_page_id": "x"}, "status_page_id"),
        (monitor_query, {"search[]": "x"}, "search[]"),
        (monitor_query, {"search[0]": "x"}, "search"),
        (incident_query, {"search_by": "name"}, "search_by"),
        (incident_query, {"status": "open"}, "status"),
        (incident_query, {"monitor_id": "1.0"}, "monitor_id"),
        (delivery_query, {"channel": "fax"}, "channel"),
        (partial(list_query, ResultQueryForm, monitor_id=8), {"from": day(2), "to": day(1)}, "to"),
        (partial(list_query, ResultQueryForm, monitor_id=8), {"from": "yesterday"}, "from"),
    ],
)
def test_section_1_an_invalid_parameter_is_refused(read, sent, name):
    assert list(faulty(read, list(sent.items()))) == [name]


def test_a_page_number_beyond_the_databases_integers_is_past_the_end():
    query = monitor_query([("page", HUGE), ("per_page", "100")])
    assert (query.page - 1) * query.per_page < 2**63


@pytest.mark.parametrize("id", ["0", str(2**63), HUGE])
def test_an_id_that_no_record_has_finds_nothing_and_does_not_reach_the_database(id):
    assert incident_query([("monitor_id", id)]).monitor_id == 0
    assert monitor_query([("status_page_id", id)]).status_page_id == 0
    assert incident_query([("monitor_id", str(2**63 - 1))]).monitor_id == 2**63 - 1


WINDOW = {"name": "Release", "start_at": day(1), "end_at": day(2)}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, {"monitors": (), "repeat": "none", "repeat_until": None}),
        ({"monitors[5]": "2", "monitors[4]": "3", "monitors[9]": "3"}, {"monitors": (3, 2)}),
        ({"monitors": ""}, {"monitors": ()}),
        ({"repeat": "weekly"}, {"repeat": "weekly"}),
        ({"repeat": "0 3 * * 1"}, {"repeat": "0 3 * * 1"}),
        ({"repeat": ""}, {"repeat": "none"}),
        ({"repeat": "sometimes"}, ["repeat"]),
        ({"repeat": "0 0 31 2 *"}, ["repeat"]),
        ({"monitors": "1"}, ["monitors"]),
        ({"monitors[2]": "x"}, ["monitors.2"]),
        ({"monitors[2]": HUGE}, ["monitors.2"]),
        ({"monitors[2][key]": "1"}, ["monitors.2.key"]),
        ({"end_at": day(1)}, ["end_at"]),
        ({"start_at": ""}, ["start_at"]),
        ({"repeat_until": "2026-05-01T00:00:00"}, ["repeat_until"]),
    ],
)
def test_section_11_a_maintenance_windows_fields(sent, expected):
    pairs = list((WINDOW | sent).items())
    if isinstance(expected, dict):
        assert bind(WindowForm, pairs).items() >= expected.items()
    else:
        assert sorted(faulty(bind, WindowForm, pairs)) == expected


def test_an_id_that_no_incident_can_have_is_refused_as_that_of_an_incident():
    with pytest.raises(Invalid) as refused:
        bind(AcknowledgeAllForm, [("ids[0]", "0")], NOW)
    assert refused.value.errors == {"ids.0": ["There is no incident with the id 0."]}
