"""The values that a monitor's fields accept and refuse (API 3, decisions 1, 2, 3, 7)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.errors import Invalid
from app.forms.fields import with_scheme
from app.forms.monitor import CheckForm, MonitorForm, MonitorUpdateForm
from app.forms.schema import FormContext, bind, overlay
from app.records import ALERT_DAYS, INTERVALS, AlertCondition, Channel, Monitor, Pair, RequestMethod
from app.rules.brackets import JsonMembers, Typed, flatten, write

MIN = {"name": "Shop", "url": "https://shop.test/", "interval": "60"}


def read(sent, form=MonitorForm, **context):
    """The fields of a new monitor: the required ones with ``sent`` over them."""
    pairs = MIN | sent if isinstance(sent, dict) else {}
    listed = list(pairs.items()) if isinstance(sent, dict) else [*MIN.items(), *sent]
    return bind(form, listed, FormContext(**context))


def faults(sent, **context):
    with pytest.raises(Invalid) as caught:
        read(sent, **context)
    return caught.value.errors


def test_a_monitor_with_only_required_fields_gets_the_defaults():
    assert read({}) == {
        "name": "Shop", "url": "https://shop.test/", "interval": 60, "check_every": None,
        "alert_condition": AlertCondition.URL_UNAVAILABLE, "alert_text_lookup": None,
        "request_method": RequestMethod.GET, "request_headers": (), "request_auth_username": None,
        "request_auth_password": None, "request_body": None, "cache_buster": 0, "timeout": 30,
        "accepted_statuses": "200-399", "follow_redirects": True, "verify_tls": True,
        "slow_after": None, "slow_alert_after": None, "confirmations": 2, "ssl_alert_days": None,
        "domain_alert_days": None, "maintenance_start_at": None, "maintenance_end_at": None,
        "alerts": (), "tags": (), "notes": "", "remind_after": None, "quiet_start": None,
        "quiet_end": None, "quiet_zone": "UTC", "locations": ("default",),
        "location_rule": "majority", "depends_on": (), "starttls": None, "ping_count": 3,
        "assertions": (), "period": None, "schedule": (), "zone": "UTC", "grace": 300,
        "max_run": None, "slug": None,
    }  # fmt: skip


GOOD = [
    *[("interval", str(seconds), seconds) for seconds in INTERVALS],
    ("check_every", "10", 10),
    ("check_every", "86400", 86_400),
    ("check_every", "", None),
    *[("request_method", method.value, method) for method in RequestMethod],
    *[("ssl_alert_days", str(days), days) for days in ALERT_DAYS],
    ("ssl_alert_days", "auto", "auto"),
    ("domain_alert_days", "0", 0),
    ("cache_buster", "1", 1),
    ("cache_buster", "", 0),  # a field with a default is reset to it
    ("location_rule", "any", "any"),
    ("location_rule", "", "majority"),
    ("depends_on[3]", "7", (7,)),
    ("depends_on", "", ()),
    ("timeout", "", 30),
    ("timeout", "007", 7),
    ("confirmations", "0", 0),
    ("slow_after", "60000", 60_000),
    ("slow_after", "", None),
    ("slow_alert_after", "0", 0),
    ("slow_alert_after", "", None),
    ("follow_redirects", "0", False),
    ("follow_redirects", "", True),
    ("verify_tls", "false", False),
    ("verify_tls", "true", True),
    ("name", "  ünï  ", "  ünï  "),  # text is kept as sent
    ("name", "n" * 255, "n" * 255),
    ("name", "😀" * 255, "😀" * 255),  # counted in code points
    ("request_body", "a\tb\r\nc\n", "a\tb\r\nc\n"),
    ("request_body", "é" * 32_768, "é" * 32_768),  # 64 KiB as UTF-8
    ("accepted_statuses", "200-299,401", "200-299,401"),
    ("accepted_statuses", "", "200-399"),
    ("remind_after", "5", 5),
    ("remind_after", "1440", 1440),
    ("remind_after", "", None),
    ("quiet_zone", "America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
    ("quiet_zone", "", "UTC"),
    ("tags", "prod, api,,prod", ("prod", "api")),
    ("tags", "", ()),
    ("notes", "Runbook:\r\n\thttps://wiki.example", "Runbook:\n\thttps://wiki.example"),
    ("notes", "n" * 10_000, "n" * 10_000),
    ("notes", "", ""),
    ("url", "https://example.com/" + "a" * 2028, "https://example.com/" + "a" * 2028),
]


@pytest.mark.parametrize(("name", "sent", "value"), GOOD)
def test_a_field_reads(name, sent, value):
    assert read({name: sent})[name.partition("[")[0]] == value


BAD = [
    ("name", "", "required"),
    ("name", "   ", "required"),
    ("name", "n" * 256, "256 characters. Use 255 at most"),
    ("name", "a\x00b", "U+0000"),
    ("name", "a\tb", "U+0009"),
    ("name", "a\x85b", "U+0085"),
    ("name", "\ud800", "unpaired surrogate"),
    ("url", "", "required"),
    ("url", "ftp://x.test/", "http://"),
    ("url", "https://me:pw@x.test/", "user name"),
    ("url", "https://x.test/a b", "white space"),
    ("url", "https://x.test/" + "a" * 2034, "2,049 characters. Use 2,048 at most"),
    ("interval", "", "required"),
    ("interval", "61", "60, 180, 300"),
    ("interval", "60.0", "whole number"),
    ("interval", " 60", "whole number"),
    ("interval", "+60", "whole number"),
    ("interval", "６０", "whole number"),  # noqa: RUF001 - full-width digits on purpose
    ("interval", "9" * 5000, "60, 180, 300"),
    ("check_every", "9", "from 10 to 86400"),
    ("check_every", "86401", "from 10 to 86400"),
    ("check_every", "10.5", "whole number"),
    ("alert_condition", "URL_TEXT", "url_unavailable, url_text, url_no_text"),
    ("request_method", "get", "GET, POST"),
    ("request_method", "TRACE", "GET, POST"),
    ("cache_buster", "2", "0, 1"),
    ("cache_buster", "true", "whole number"),
    ("timeout", "0", "from 1 to 60"),
    ("timeout", "61", "from 1 to 60"),
    ("slow_after", "60001", "from 1 to 60000"),
    ("slow_alert_after", "61", "from 0 to 60"),
    ("slow_alert_after", "5", "Nothing counts as slow yet"),
    ("confirmations", "-1", "from 0 to 5"),
    ("confirmations", "6", "from 0 to 5"),
    ("remind_after", "4", "from 5 to 1440"),
    ("remind_after", "1441", "from 5 to 1440"),
    ("remind_after", "0", "from 5 to 1440"),
    ("quiet_start", "24:00", "HH:MM"),
    ("quiet_start", "7:00", "HH:MM"),
    ("quiet_end", "07:60", "HH:MM"),
    ("quiet_end", "07:00:00", "HH:MM"),
    ("quiet_end", "٠٧:00", "HH:MM"),  # noqa: RUF001 - digits of another script
    ("quiet_zone", "Europe/Atlantis", "not known"),
    ("quiet_zone", "../../etc/passwd", "not known"),
    ("quiet_zone", "Europe", "not known"),
    ("ssl_alert_days", "4", "auto, 0, 1, 2, 3, 7, 14, 30, 60"),
    ("domain_alert_days", "auto", "Enter a whole number"),
    ("domain_alert_days", "-0x1", "whole number"),
    ("follow_redirects", "yes", "true or false"),
    ("follow_redirects", "TRUE", "true or false"),
    ("accepted_statuses", "20", "status code"),
    ("accepted_statuses", "300-200", "ends before"),
    ("accepted_statuses", "200," * 64, "Use 255 at most"),
    ("request_body", "é" * 32_769, "65,538 bytes"),
    ("request_body", "a\x07", "U+0007"),
    ("request_auth_username", "u" * 256, "Use 255 at most"),
    ("request_auth_password", "p\n", "U+000A"),
    ("alert_text_lookup", "t" * 256, "Use 255 at most"),
    ("tags", ",".join(str(n) for n in range(21)), "20 at most"),
    ("tags", "t" * 51, "longer than 50"),
    ("tags", "a\x00", "U+0000"),
    ("notes", "n" * 10_001, "10,000 at most"),
    ("notes", "a\x00", "U+0000"),
    ("pause", "true", "does not take"),  # update only
    ("id", "1", "does not take"),  # returned fields sent back
    ("nmae", "x", "does not take"),  # a misspelt field must not be silently dropped
    ("name[0]", "x", "one value, not a list"),
]


@pytest.mark.parametrize(("name", "sent", "fault"), BAD)
def test_a_field_refuses_and_says_why(name, sent, fault):
    (sentence,) = faults({name: sent})[name.partition("[")[0]]
    assert fault in sentence


MOMENTS = [
    ("2026-11-21T08:00:00", (8, 0)),
    ("2026-11-21T08:00:00Z", (8, 0)),
    ("2026-11-21T08:00:00+02:00", (6, 0)),
    ("2026-11-21T08:00:00-05:30", (13, 30)),
    ("2026-11-21T08:00:00.000Z", (8, 0)),
    ("2026-11-21T08:00:00.999999999", (8, 0)),
    ("2026-11-21T08:00:00.5+02:00", (6, 0)),
    ("2026-11-21T08:00:00 02:00", "%2B"),
    *[
        (wrong, "")
        for wrong in (
            "2026-11-21", "2026-11-21 08:00:00", "2026-11-21T08:00",
            "2026-11-21T08:00:00z", "2026-11-21t08:00:00", "2026-11-21T08:00:00+2:00",
            "2026-11-21T08:00:00+02:60", "2026-11-21T08:00:00+24:00", "2026-02-30T08:00:00",
            "2026-11-21T08:00:00.", "2026-11-21T08:00:00,5", "2026-11-21T08:00:00Z.000",
            "2026-11-21T08:00.5", "2026-11-21T08:00:00.5 Z", "2026-11-21T08:00:00.5z",
            "2026-11-21T24:00:00", "2026-11-21T08:00:60", "0000-01-01T00:00:00",
            "0001-01-01T00:00:00", "1969-12-31T23:59:59Z", "9001-01-01T00:00:00",
            "9999-12-31T23:59:59",
            "0001-01-01T00:00:00+02:00", "٢٠٢٦-11-21T08:00:00", "now", "1", "2026-11-21T08:00:00\n",
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize(("sent", "expected"), MOMENTS)
def test_section_1_a_time_is_read_as_utc_unless_it_says_otherwise(sent, expected):
    window = {"maintenance_start_at": sent, "maintenance_end_at": "2027-01-01T00:00:00"}
    if isinstance(expected, tuple):
        assert read(window)["maintenance_start_at"] == datetime(2026, 11, 21, *expected, tzinfo=UTC)
    else:
        (sentence,) = faults(window)["maintenance_start_at"]
        assert expected in sentence


TOGETHER = [
    # decision 3: the error names alert_text_lookup, or request_method
    ({"alert_condition": "url_text"}, ["alert_text_lookup"]),
    ({"alert_condition": "url_no_text", "alert_text_lookup": ""}, ["alert_text_lookup"]),
    ({"alert_condition": "url_text", "alert_text_lookup": "x", "request_method": "HEAD"},
     ["request_method"]),
    ({"alert_condition": "url_no_text", "request_method": "OPTIONS"},
     ["alert_text_lookup", "request_method"]),
    # decision 3: both or neither, end after start; the error names the missing or wrong end
    ({"maintenance_start_at": "2026-01-01T00:00:00"}, ["maintenance_end_at"]),
    ({"maintenance_end_at": "2026-01-01T00:00:00"}, ["maintenance_start_at"]),
    (dict.fromkeys(("maintenance_start_at", "maintenance_end_at"), "2026-01-01T00:00:00"),
     ["maintenance_end_at"]),
    # both or neither, and not the same; the error names the missing or wrong one
    ({"quiet_start": "22:00"}, ["quiet_end"]),
    ({"quiet_end": "07:00", "quiet_start": ""}, ["quiet_start"]),
    ({"quiet_start": "22:00", "quiet_end": "22:00"}, ["quiet_end"]),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "names"), TOGETHER)
def test_section_3_fields_that_depend_on_each_other_are_validated_together(sent, names):
    assert sorted(faults(sent)) == names


LISTS = [
    # decision 2: indices order the list as numbers and may have gaps
    ({"alerts[10][key]": "sms", "alerts[10][value]": "+447700900123",
      "alerts[9][value]": "a@b.example", "alerts[9][key]": "email"},
     "alerts", (Pair("email", "a@b.example"), Pair("sms", "+447700900123"))),
    ({f"request_headers[{'9' * 400}][key]": "B", f"request_headers[{'9' * 400}][value]": "2",
      "request_headers[0003][key]": "A", "request_headers[0003][value]": ""},
     "request_headers", (Pair("A", ""), Pair("B", "2"))),
    ({"alerts": ""}, "alerts", ()),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "name", "value"), LISTS)
def test_section_2_rows_are_ordered_by_their_indices(sent, name, value):
    assert read(sent)[name] == value


ROWS = [
    ({"alerts[7][key]": "email"}, "alerts.7.value", "incomplete"),
    ({"alerts[7][value]": "a@b.example"}, "alerts.7.key", "incomplete"),
    ({"alerts[7][key]": "email", "alerts[7][value]": ""}, "alerts.7.value", "missing"),
    ({"alerts[7][key]": "email", "alerts[7][value]": "x"}, "alerts.7.value", "email address"),
    ({"alerts[7][key]": "fax", "alerts[7][value]": "x"}, "alerts.7.key", "email, webhook"),
    ({"alerts[7][key]": "sms", "alerts[7][value]": "0770"}, "alerts.7.value", "country code"),
    ({"alerts[7][key]": "telegram", "alerts[7][value]": "-1"}, "alerts.7.value", "bot token"),
    ({"alerts[7][key]": "webhook", "alerts[7][value]": "\x00"}, "alerts.7.value", "U+0000"),
    ({"alerts[7][key]": "webhook", "alerts[7][value]": "https://x.test/" + "a" * 2034},
     "alerts.7.value", "2,048"),
    ({"alerts[7]": "email"}, "alerts.7", "[key]"),
    ({"alerts[7][name]": "email"}, "alerts.7.name", "[key]"),
    ({"alerts[x][key]": "email"}, "alerts[x][key]", "Send alerts[0][key] and alerts[0][value]"),
    ({"alerts[-1][key]": "email"}, "alerts[-1][key]", "Send alerts[0][key] and alerts[0][value]"),
    ({"alerts[][key]": "email"}, "alerts[][key]", "Send alerts[0][key] and alerts[0][value]"),
    ({"alerts": "email"}, "alerts", "to clear the list"),
    ({"alerts": "", "alerts[0][key]": "email"}, "alerts", "not both"),
    ({"request_headers[0][key]": "a b", "request_headers[0][value]": "1"},
     "request_headers.0.key", "letters, digits"),
    ({"request_headers[0][key]": "", "request_headers[0][value]": "1"},
     "request_headers.0.key", "incomplete"),
    ({"request_headers[0][key]": "a:", "request_headers[0][value]": "1"},
     "request_headers.0.key", "colon"),
    ({"request_headers[0][key]": "A", "request_headers[0][value]": "1\r\nB: 2"},
     "request_headers.0.value", "U+000D"),
    ({"request_headers[0][key]": "A", "request_headers[0][value]": "é" * 2048},
     "request_headers.0.value", "4,097 bytes"),
    ({"assertions[3][source]": "json", "assertions[3][op]": "="}, "assertions.3.property", "requi"),
    ({"assertions[3][source]": "body", "assertions[3][op]": "="}, "assertions.3.value", "needs"),
    ({"assertions[3][source]": "body", "assertions[3][op]": "is"}, "assertions.3.op", "contains"),
    ({"assertions[3][op]": "exists"}, "assertions.3.source", "status, header"),
    ({"assertions[3][name]": "x"}, "assertions.3.name", "[source]"),
    ({"assertions[3]": "x"}, "assertions.3", "[source]"),
    ({"assertions": "x"}, "assertions", "to clear the list"),
    ({"url": "tcp://x.test:25", "assertions[3][source]": "body", "assertions[3][op]": "exists"},
     "assertions.3.source", "response_time, banner"),
    ({"request_method": "HEAD", "assertions[3][source]": "body", "assertions[3][op]": "exists"},
     "request_method", "no body"),
    ({"assertions[3][source]": "body", "assertions[3][op]": "=", "assertions[3][value]": "••••"},
     "assertions.3.value", "masked"),
    ({f"assertions[{n}][{column}]": value for n in range(21)
      for column, value in (("source", "body"), ("op", "exists"))}, "assertions", "20 at most"),
    ({f"alerts[{n}][{column}]": value for n in range(21)
      for column, value in (("key", "email"), ("value", "a@b.example"))}, "alerts", "20 at most"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "name", "fault"), ROWS)
def test_sections_1_and_2_a_rows_error_is_named_with_its_index_as_sent(sent, name, fault):
    assert fault in faults(sent)[name][0]


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ([("name", "a"), ("name", "b")], "name"),
        ([("tags[0]", "a"), ("tags[0]", "a")], "tags.0"),
        ([("locations[0]", "default")] * 2, "locations.0"),
        ([("alerts[0][key]", "email")] * 2 + [("alerts[0][value]", "a@b.example")], "alerts.0.key"),
        ([(f"alerts[{index}][{column}]", value) for index in ("1", "01")
          for column, value in (("key", "email"), ("value", "a@b.example"))], "alerts.1.key"),
    ],
)  # fmt: skip
def test_section_1_a_name_sent_twice_is_refused(sent, name):
    assert "more than once" in faults(sent)[name][0]


@pytest.mark.parametrize(
    ("sent", "name", "right"),
    [
        ([("locations", "a"), ("locations", "b")], "locations", "Send locations[0]=default"),
        ([("locations[]", "a"), ("locations[]", "b")], "locations[]", "Send locations[0]=default"),
        ([("locations[first]", "a")], "locations[first]", "Send locations[0]=default"),
        ([("locations[0][key][0]", "a")], "locations[0][key][0]", "Send locations[0]=default"),
        ([("alerts", "a"), ("alerts", "b")], "alerts", "Send alerts[0][key] and alerts[0][value]"),
        ([("alerts[][key]", "email")], "alerts[][key]", "Send alerts[0][key] and alerts[0][value]"),
        ([("tags", "a"), ("tags", "b")], "tags", "Send comma-separated words, such as tags=web"),
        ([("tags[]", "a")], "tags[]", "Send comma-separated words, such as tags=web"),
        ([("url[]", "https://a.test/")], "url[]", "This field takes one value, not a list."),
    ],
)
def test_a_list_in_the_notation_of_other_programs_is_answered_with_the_right_one(sent, name, right):
    assert right in faults(sent)[name][0]


def test_section_5_a_chat_id_alone_is_valid_if_the_instance_has_a_bot_token():
    sent = {"alerts[0][key]": "telegram", "alerts[0][value]": "-100123"}
    assert read(sent, telegram_token_set=True)["alerts"] == (Pair(Channel.TELEGRAM, "-100123"),)


def number(text):
    return Typed(text, "number")


JSON = [
    ({"interval": number("180")}, {"interval": 180}),
    ({"interval": "180"}, {"interval": 180}),
    ({"interval": number("60.0")}, "interval"),
    ({"interval": number("6e1")}, "interval"),
    ({"interval": True}, "interval"),
    ({"interval": None}, "interval"),
    ({"follow_redirects": False}, {"follow_redirects": False}),
    ({"follow_redirects": number("0")}, {"follow_redirects": False}),
    ({"follow_redirects": "0"}, {"follow_redirects": False}),
    ({"follow_redirects": None}, {"follow_redirects": True}),
    ({"follow_redirects": number("2")}, "follow_redirects"),
    ({"slow_after": None}, {"slow_after": None}),
    ({"name": number("5")}, "name"),
    ({"name": True}, "name"),
    ({"name": ["Shop"]}, "name"),
    ({"name": JsonMembers([("a", "b")])}, "name"),
    ({"name": JsonMembers()}, "name"),
    ({"tags": ["a", "b"]}, {"tags": ("a", "b")}),
    ({"tags": ["a,b"]}, "tags"),
    ({"tags": [number("1")]}, "tags"),
    ({"alerts": [JsonMembers([("key", "email"), ("value", "a@b.example")])]},
     {"alerts": (Pair("email", "a@b.example"),)}),
    ({"alerts": []}, {"alerts": ()}),
    ({"alerts": None}, {"alerts": ()}),
    ({"alerts": JsonMembers([("0", JsonMembers())])}, "alerts"),
    ({"alerts": "email"}, "alerts"),
    ({"alerts": ["email"]}, "alerts.0"),
    ({"alerts": [None]}, "alerts.0"),
    ({"alerts": [JsonMembers()]}, "alerts.0"),
    ({"alerts": [[["deep"]]]}, "alerts.0"),
    ({"alerts": [JsonMembers([("key", "email"), ("value", number("5"))])]}, "alerts.0.value"),
    ({"alerts": [JsonMembers([("key", "email"), ("value", ["a@b.example"])])]}, "alerts.0.value"),
    ({"alerts": [JsonMembers([("key", "email"), ("value", None)])]}, "alerts.0.value"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), JSON)
def test_section_1_json_types_give_the_same_values(document, expected):
    pairs = flatten((MIN | document).items())
    if isinstance(expected, dict):
        assert bind(MonitorForm, pairs).items() >= expected.items()
    else:
        with pytest.raises(Invalid) as caught:
            bind(MonitorForm, pairs)
        assert expected in caught.value.errors


STORED = Monitor(
    7, "Shop", "https://shop.test/", 60,
    alert_condition="url_text", alert_text_lookup="Sold out",
    request_method="POST", request_body="the whole secret body",
    alerts=(
        Pair("email", "a@b.example"), Pair("slack", "https://hooks.test/one/abcd"),
        Pair("email", "c@d.example"), Pair("slack", "https://hooks.test/two/abcd"),
    ),
)  # fmt: skip
A, FIRST, C, SECOND = STORED.alerts


def changed(sent):
    return overlay(MonitorUpdateForm, STORED, list(sent.items()))


def rows(*pairs, start=0):
    return {
        f"alerts[{start + n}][{column}]": getattr(pair, column)
        for n, pair in enumerate(pairs)
        for column in ("key", "value")
    }


OVERLAYS = [
    ({}, {}),
    ({"name": "New"}, {"name": "New"}),  # alert_condition and request_method stay as they are
    ({"alert_condition": ""}, {"alert_condition": AlertCondition.URL_UNAVAILABLE}),
    ({"pause": "1"}, {"pause": True}),
    ({"pause": "false"}, {"pause": False}),
    ({"alerts": ""}, {"alerts": ()}),
    ({"request_auth_password": ""}, {"request_auth_password": None}),
]


@pytest.mark.parametrize(("sent", "fields"), OVERLAYS)
def test_section_2_an_update_returns_only_the_sent_fields(sent, fields):
    assert changed(sent) == fields


@pytest.mark.parametrize(
    ("sent", "names"),
    [
        ({"alert_text_lookup": ""}, ["alert_text_lookup"]),
        ({"request_method": "HEAD"}, ["request_method"]),
        ({"maintenance_end_at": "2026-01-01T00:00:00"}, ["maintenance_start_at"]),
        ({"name": "", "interval": ""}, ["interval", "name"]),
        ({"pause": ""}, ["pause"]),
        ({"status": "up"}, ["status"]),
    ],
)
def test_section_2_an_update_is_validated_as_a_whole(sent, names):
    with pytest.raises(Invalid) as caught:
        changed(sent)
    assert sorted(caught.value.errors) == names


MASKED = [
    (rows(*(pair.masked() for pair in STORED.alerts)), STORED.alerts),
    # the row in the same place first: both slack values look alike
    (rows(A.masked(), SECOND.masked(), C.masked(), FIRST.masked()), STORED.alerts),
    # a removed row leaves the others in their places
    (rows(SECOND.masked(), start=3), (SECOND,)),
    (rows(C.masked(), SECOND.masked(), start=2), (C, SECOND)),
    # otherwise the first unused row with that key
    (rows(FIRST.masked(), A.masked()), (FIRST, A)),
    (rows(FIRST.masked(), FIRST.masked()), (SECOND, FIRST)),
    (rows(Pair("email", "new@x.example"), FIRST.masked()), (Pair("email", "new@x.example"), FIRST)),
]


@pytest.mark.parametrize(("sent", "alerts"), MASKED)
def test_section_3_a_masked_value_sent_back_keeps_the_stored_one(sent, alerts):
    assert changed(sent)["alerts"] == alerts


@pytest.mark.parametrize(
    "sent",
    [
        rows(Pair("slack", "••••efgh")),
        rows(Pair("sms", "••••abcd")),  # another key
        rows(*[FIRST.masked()] * 3),  # more than are stored
        {"request_body": "••••xxxx"},
    ],
)
def test_section_3_a_mask_without_a_stored_value_is_refused(sent):
    with pytest.raises(Invalid) as caught:
        changed(sent)
    assert all("masked" in sentence for (sentence,) in caught.value.errors.values())


def test_section_3_a_masked_body_keeps_the_stored_one_and_a_new_monitor_takes_no_masks():
    assert changed({"request_body": "••••body"}) == {"request_body": STORED.request_body}
    assert "masked" in faults({"request_body": "••••body"})["request_body"][0]


def test_section_11_a_check_of_unsaved_fields_needs_the_url_alone():
    fields = bind(CheckForm, [("url", "https://shop.test/")])
    assert fields["url"] == "https://shop.test/"
    assert fields["name"] is None
    with pytest.raises(Invalid) as caught:
        bind(CheckForm, [("alert_condition", "url_text")])
    assert sorted(caught.value.errors) == ["alert_text_lookup", "url"]


def test_a_forms_fields_can_be_written_and_read_back():
    fields = read({
        "alerts[3][key]": "email", "alerts[3][value]": "a@b.example", "tags": "a,b",
        "maintenance_start_at": "2026-01-01T00:00:00",
        "maintenance_end_at": "2026-01-02T00:00:00+02:00", "verify_tls": "0", "ssl_alert_days": "0",
    })  # fmt: skip
    written = write(fields)
    assert ("maintenance_end_at", "2026-01-01T22:00:00") in written
    assert bind(MonitorForm, written) == fields


def test_ten_thousand_unknown_fields_get_a_short_answer():
    errors = faults([(f"field{n}", "x") for n in range(10_000)])
    assert len(errors) <= 50


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("example.com", "https://example.com"),
        (" example.com/a?b=c:d ", "https://example.com/a?b=c:d"),
        ("example.com:8443", "https://example.com:8443"),
        ("localhost", "https://localhost"),
        ("intranet:8080/x", "https://intranet:8080/x"),
        ("192.0.2.1", "https://192.0.2.1"),
        ("[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443/x"),
        ("http://example.com", "http://example.com"),
        ("tcp://example.com:25", "tcp://example.com:25"),
        ("mailto:ops@example.com", "mailto:ops@example.com"),
        ("http:/example.com", "http:/example.com"),
        ("word", "word"),
        ("", ""),
    ],
)
def test_a_bare_host_that_a_person_types_gets_https(typed, url):
    assert with_scheme(typed) == url


def test_the_api_takes_urls_as_they_are_sent():
    assert list(faults({"url": "example.com"})) == ["url"]
    assert read({"url": "example.com"}, browser=True)["url"] == "https://example.com"
