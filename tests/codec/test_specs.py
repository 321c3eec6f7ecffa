"""A check from another machine must be one that a stored monitor may have."""

import pytest

from app.codec.specs import MAX_FAULT, read_spec
from app.codec.values import MalformedData
from app.records import CheckSpec, RequestMethod

URL = "https://example.com/"
SMUGGLED = "\r\nSET smuggled yes\r\n"
NO_TEXTS = [5, True, [], {}, "\0", "\ud800", "\x85", SMUGGLED]
NO_FLAGS = [None, 0, 1, "true", [], {}]
NO_NUMBERS = ["x", "5", True, False, [], {}, -1, 10**30, float("nan"), float("inf")]
WRONG = {
    "url": [None, *NO_TEXTS, f"{URL}{SMUGGLED}", "x" * 2_049],
    "monitor_id": [*NO_NUMBERS, 0, 2**63, 1.5],
    "request_method": [
        None, *NO_TEXTS, "get", "TRACE", "CONNECT", f"GET{SMUGGLED}", "GET ", "GET / HTTP/1.1",
    ],
    "request_headers": [
        None, 5, "x", {}, [5], [[]], [["A"]], [["A", "b", "c"]], [["A", None]], [[5, "b"]],
        [["A", f"b{SMUGGLED}"]], [["A", "b\0"]], [["A", "b\n c"]], [["A", "\ud800"]],
        [["", "b"]], [["A:", "b"]], [["A b", "c"]], [["A\r\nB", "c"]], [["Ä", "b"]],
        [["A", "b" * 4_096]], [["A", "b"]] * 21,
    ],
    "auth": [
        5, "x", "xyz", [], ["a"], ["a", 5], [None, "b"], ["a", f"b{SMUGGLED}"],
        [f"a{SMUGGLED}", "b"], ["a", "b\0"], ["a" * 256, "b"], ["a", "b" * 256], ["a", "b", "c"],
    ],
    "request_body": [5, True, [], {}, "\0", "\ud800", "ä" * 32_769],
    "alert_condition": [None, *NO_TEXTS, "nonsense"],
    "alert_text_lookup": [*NO_TEXTS, "x" * 256],
    "timeout": [None, *NO_NUMBERS, 0, 60.5, 61],
    "accepted_statuses": [None, *NO_TEXTS, "", "nonsense", "200,99", "200," * 100],
    "follow_redirects": NO_FLAGS,
    "verify_tls": NO_FLAGS,
    "cache_buster": NO_FLAGS,
    "slow_after": [*NO_NUMBERS, 0, 60_001, 1.5],
    "assertions": [
        *("x", 1, {"source": "status"}, [1], [{"source": "status", "op": "="}]),
        [{"source": "body", "op": "matches", "value": "("}],
        [{"source": "status", "op": "=", "value": "200"}] * 21,
    ],
    "ssl_alert_days": [*NO_NUMBERS, "never", 61, 1.5],
    "fault": [*NO_TEXTS, "x" * (MAX_FAULT + 1)],
    "starttls": [*NO_TEXTS, "gopher", "SMTP"],
    "ping_count": ["x", True, [], {}, 0, -1, 11, 10**30, float("nan"), float("inf")],
}  # fmt: skip


def test_every_field_of_a_check_has_wrong_values_here():
    assert WRONG.keys() == CheckSpec.__dataclass_fields__.keys()


@pytest.mark.parametrize("name", WRONG)
def test_a_check_that_no_stored_monitor_has_is_refused_with_the_name_of_the_field(name):
    for number, value in enumerate(WRONG[name]):
        assert refused({"url": URL, name: value}) == name, (number, repr(value)[:50])


def refused(data):
    """The field that is named; None if the check is taken."""
    try:
        read_spec(data)
    except MalformedData as field:
        return str(field)
    return None


@pytest.mark.parametrize("data", [None, 5, "x", [], {}])
def test_what_is_no_check_is_refused(data):
    with pytest.raises(MalformedData):
        read_spec(data)


@pytest.mark.parametrize("method", RequestMethod)
def test_the_largest_values_of_a_monitor_are_taken(method):
    largest = {
        "url": URL + "x" * (2_048 - len(URL)),
        "monitor_id": 2**63 - 1,
        "request_method": str(method),
        "request_headers": [["A", "b" * 4_095]] * 20,
        "auth": ["a" * 255, "ü" * 255],
        "request_body": "a\tb\r\n" + "ä" * 32_765,
        "alert_text_lookup": "x" * 255,
        "timeout": 60,
        "accepted_statuses": "200-599",
        "slow_after": 60_000,
        "assertions": [{"source": "status", "op": "=", "value": "200"}],
        "ssl_alert_days": 60,
        "starttls": "postgres",
        "ping_count": 10,
        "made_up": SMUGGLED,
    }
    assert read_spec(largest).request_method is method
