"""The same forms in a browser: zones, checkboxes, masks, rows without JavaScript."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import pytest
from flask import Flask

from app.errors import Invalid
from app.forms.browser import BrowserCheckForm, BrowserMonitorForm, browser
from app.forms.monitor import ADDED_FIELDS, MonitorForm
from app.forms.resources import WindowForm
from app.forms.schema import bind
from app.records import INTERVALS, MaintenanceWindow, Monitor, Pair

BERLIN = ZoneInfo("Europe/Berlin")
STORED = Monitor(
    7, "Shop", "https://shop.test/", 60,
    alerts=(Pair("email", "somebody@shop.example"), Pair("sms", "+447700900123")),
    request_body="line one\nline two",
    request_auth_password_set=True,
    tags=("prod", "api"),
    # Half past two occurred twice that night; this was the second.
    maintenance_start_at=datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
    maintenance_end_at=datetime(2026, 10, 25, 3, 0, 0, tzinfo=UTC),
)  # fmt: skip


class Inputs(HTMLParser):
    """The fields that a browser would send for a page: every input with its value."""

    def __init__(self, html):
        super().__init__()
        self.sent, self._open = {}, None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if tag == "input" and not (values["type"] == "checkbox" and "checked" not in values):
            self.sent[values["name"]] = values.get("value", "")
        elif tag in ("select", "textarea"):
            self._open = values["name"]
            self.sent[self._open] = ""
        elif tag == "option" and "selected" in values:
            self.sent[self._open] = values["value"]

    def handle_data(self, data):
        if self._open and self.lasttag == "textarea":
            # Browsers drop one line break at the start and send the others as CRLF.
            self.sent[self._open] = data.removeprefix("\r\n").replace("\n", "\r\n")

    def handle_endtag(self, tag):
        if tag in ("select", "textarea"):
            self._open = None


@pytest.fixture
def pages():
    app = Flask("pages")
    app.config.update(SECRET_KEY="tests", WTF_CSRF_ENABLED=False)
    return app


def shown(pages, form_class=BrowserMonitorForm, record=STORED, **more):
    """The fields that a browser would send for an unchanged page."""
    with pages.test_request_context("/"):
        form = form_class(record=record, zone=BERLIN, **more)
        lists = form.pair_lists()
        sent = Inputs("".join(str(field()) for field in form if field not in lists)).sent
        sent.update(
            (row.name_of(column), getattr(row, column) if column == "key" else row.value)
            for rows in lists
            for row in rows.rows
            for column in ("key", "value")
        )
        return sent


def post(pages, sent, form_class=BrowserMonitorForm, record=STORED, **more):
    with pages.test_request_context("/", method="POST", data=sent):
        form = form_class(record=record, zone=BERLIN, **more)
        return form, form.validate_on_submit()


def test_saving_a_page_untouched_changes_nothing(pages):
    sent = shown(pages)
    assert sent["alerts[0][value]"] == "••••mple"
    assert sent["request_body"] == "••••" + " two"
    assert sent["request_auth_password"] == ""
    assert sent["maintenance_start_at"] == "2026-10-25T02:30:00"
    form, valid = post(pages, sent)
    assert (valid, form.fields()) == (True, {})


@pytest.mark.parametrize(
    ("typed", "fields"),
    [
        ({"name": "New"}, {"name": "New"}),
        ({"follow_redirects": None}, {"follow_redirects": False}),
        ({"cache_buster": "1"}, {"cache_buster": 1}),
        ({"request_auth_password": "new"}, {"request_auth_password": "new"}),
        ({"remove_password": "1"}, {"request_auth_password": None}),
        ({"request_body": "a\r\nb"}, {"request_body": "a\nb"}),
        ({"alerts[0][key]": "", "alerts[0][value]": ""}, {"alerts": STORED.alerts[1:]}),
        # Half past two, typed by hand, is the first of the two.
        ({"maintenance_start_at": "2026-10-25T02:30"},
         {"maintenance_start_at": datetime(2026, 10, 25, 0, 30, tzinfo=UTC)}),
        ({"maintenance_end_at": "2026-12-24T18:00"},
         {"maintenance_end_at": datetime(2026, 12, 24, 17, tzinfo=UTC)}),
    ],
)  # fmt: skip
def test_typed_values_are_saved_and_the_others_stay(pages, typed, fields):
    sent = {k: v for k, v in (shown(pages) | typed).items() if v is not None}
    form, valid = post(pages, sent)
    assert (valid, form.fields()) == (True, fields)


EVERY_20 = replace(STORED, check_every=20)
EVERY_45 = replace(STORED, check_every=45)  # which no choice offers


@pytest.mark.parametrize(
    ("record", "chosen", "fields"),
    [
        (STORED, "60", {}),
        (STORED, "20", {"interval": 60, "check_every": 20}),
        (STORED, "86400", {"interval": 3600, "check_every": 86_400}),
        (EVERY_20, "20", {}),
        (EVERY_20, "300", {"interval": 300}),
        (EVERY_45, "45", {}),
        (EVERY_45, "30", {"interval": 60, "check_every": 30}),
    ],
)
def test_the_pause_between_checks_is_one_choice(pages, record, chosen, fields):
    sent = shown(pages, record=record)
    assert (sent["interval"], "check_every" in sent) == (str(record.true_interval), False)
    form, valid = post(pages, sent | {"interval": chosen}, record=record)
    assert (valid, form.fields()) == (True, fields)
    check, valid = post(pages, sent | {"interval": chosen}, BrowserCheckForm, record)
    assert (valid, "interval" in check.fields()) == (True, False)


def test_a_change_of_the_pause_by_others_is_not_undone(pages):
    opened = shown(pages, record=EVERY_20) | {"name": "New"}
    with pages.test_request_context("/"):
        opened["shown"] = BrowserMonitorForm(record=EVERY_20, zone=BERLIN).marks_at_opening()
    with pages.test_request_context("/", method="POST", data=opened):
        form = BrowserMonitorForm(record=EVERY_45, zone=BERLIN)
        assert (form.validate_on_submit(), form.fields()) == (True, {"name": "New"})


def test_a_server_of_the_base_api_offers_its_own_intervals_alone(pages):
    with pages.test_request_context("/"):
        form = BrowserMonitorForm(record=STORED, zone=BERLIN, bare=True)
    assert [int(value) for value, _label in form.interval.choices] == list(INTERVALS)


def test_a_time_that_the_clocks_skip_is_refused(pages):
    form, valid = post(pages, shown(pages) | {"maintenance_end_at": "2027-03-28T02:30"})
    assert not valid
    ((input_id, label, sentence),) = form.error_summary()
    assert (input_id, label) == ("maintenance_end_at", "Maintenance until")
    assert "Europe/Berlin" in sentence


def test_the_browser_and_the_api_give_the_same_sentences(pages):
    wrong = {
        "name": "", "url": "ftp://x/", "interval": "", "timeout": "99", "alert_condition": "no",
        "request_headers[4][key]": "a b", "request_headers[4][value]": "c",
        "alerts[9][key]": "email", "alerts[9][value]": "nobody",
        "maintenance_start_at": "",
    }  # fmt: skip
    form, valid = post(pages, shown(pages) | wrong)
    with pytest.raises(Invalid) as caught:
        bind(MonitorForm, list((wrong | {"maintenance_end_at": "2026-10-25T03:00:00"}).items()))
    assert not valid
    assert form.named_errors() == caught.value.errors
    assert ("alerts-9-value", "Alerts") in [entry[:2] for entry in form.error_summary()]


def test_rows_are_added_and_removed_by_buttons_without_javascript(pages):
    broken = shown(pages) | {"name": ""}
    with pages.test_request_context("/", method="POST", data=broken | {"add": "alerts"}):
        form = BrowserMonitorForm(record=STORED, zone=BERLIN)
        assert form.change_rows()
        assert [row.index for row in form.alerts.rows] == ["0", "1", "2"]
        assert form.error_summary() == []
    removal = broken | {"remove": "alerts[0]"}
    with pages.test_request_context("/", method="POST", data=removal):
        form = BrowserMonitorForm(record=STORED, zone=BERLIN)
        assert form.change_rows()
        # The remaining row keeps its index, and so the place of its masked value.
        assert [(row.index, row.value) for row in form.alerts.rows] == [("1", "••••0123")]
    with pages.test_request_context("/", method="POST", data=broken):
        assert not BrowserMonitorForm(record=STORED, zone=BERLIN).change_rows()


def test_a_clone_has_every_field_and_leaves_the_password_to_the_store(pages):
    sent = shown(pages, clone=True)
    form, valid = post(pages, sent, clone=True)
    fields = form.fields()
    assert valid
    assert "request_auth_password" not in fields
    assert (fields["alerts"], fields["request_body"]) == (STORED.alerts, STORED.request_body)
    form, _ = post(pages, sent | {"remove_password": "1"}, clone=True)
    assert form.fields()["request_auth_password"] is None


def test_fields_that_the_store_lacks_are_neither_shown_nor_changed(pages):
    """A checkbox that is not on the page must not turn certificate checks off."""
    sent = shown(pages, without=ADDED_FIELDS)
    assert not set(ADDED_FIELDS) & set(sent)
    form, valid = post(pages, sent, without=ADDED_FIELDS)
    assert (valid, form.fields()) == (True, {})


def test_a_check_before_saving_needs_no_name(pages):
    sent = shown(pages) | {"name": ""}
    form, valid = post(pages, sent, BrowserCheckForm)
    assert valid
    assert "request_auth_password" not in form.fields()


def test_the_monitors_of_a_window_are_sent_by_a_multiple_select(pages):
    window = MaintenanceWindow(
        1, "Release", STORED.maintenance_start_at, STORED.maintenance_end_at, monitors=(3, 4)
    )
    sent = {
        "name": "Release", "start_at": "2026-10-25T02:30:00", "end_at": "2026-10-25T04:00:00",
        "monitors": ["4", "5"], "repeat": "none",
    }  # fmt: skip
    form, valid = post(pages, sent, browser(WindowForm), window)
    assert (valid, form.fields()) == (True, {"monitors": (4, 5)})
    form, _ = post(
        pages, {k: v for k, v in sent.items() if k != "monitors"}, browser(WindowForm), window
    )
    assert form.fields() == {"monitors": ()}


def test_a_form_without_its_csrf_token_is_refused(pages):
    pages.config["WTF_CSRF_ENABLED"] = True
    form, valid = post(pages, shown(pages) | {"csrf_token": ""})
    assert not valid
    assert "too long" in form.error_summary()[0][2]
