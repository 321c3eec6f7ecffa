"""The scheme of a monitor's URL decides its kind, and the kind decides its fields (decision 3
and 9)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.checks.kinds import FIELDS, KINDS, kind_of
from app.db.tables import MonitorRow
from app.errors import Invalid
from app.forms.monitor import CheckForm, MonitorForm, MonitorUpdateForm
from app.forms.schema import bind, overlay
from app.records import KIND_OPTIONS, Monitor, Pair

HOME = Path(__file__).parents[2]
MIN = {"name": "Mail", "url": "tcp://mail.test:25", "interval": "60"}
MAIL = Monitor(1, "Mail", "tcp://mail.test:25", 60)

# Every field that tcp does not know, with a value other than its default.
NOT_OF_KIND = {
    "request_method": {"request_method": "POST"},
    "request_headers": {"request_headers[0][key]": "X", "request_headers[0][value]": "1"},
    "request_auth_username": {"request_auth_username": "ada"},
    "request_auth_password": {"request_auth_password": "secret"},
    "request_body": {"request_body": "x"}, "cache_buster": {"cache_buster": "1"},
    "accepted_statuses": {"accepted_statuses": "200"},
    "follow_redirects": {"follow_redirects": "false"}, "verify_tls": {"verify_tls": "false"},
    "ssl_alert_days": {"ssl_alert_days": "0"}, "starttls": {"starttls": "smtp"},
    "ping_count": {"ping_count": "4"}, "period": {"period": "120"},
    "schedule": {"schedule[0]": "0 3 * * *"}, "zone": {"zone": "Europe/Berlin"},
    "grace": {"grace": "600"}, "max_run": {"max_run": "60"}, "slug": {"slug": "nightly"},
}  # fmt: skip


def faults(form, sent):
    with pytest.raises(Invalid) as caught:
        bind(form, list(sent.items()))
    return caught.value.errors


def test_the_table_here_has_every_field_that_tcp_does_not_know():
    tcp = kind_of("tcp://mail.test:25")
    assert tcp is not None
    assert set(NOT_OF_KIND) == set(FIELDS) - tcp.fields


def test_every_field_of_a_kind_is_in_the_table_and_the_form():
    assert set(FIELDS) <= {*MonitorRow.__table__.columns.keys(), *KIND_OPTIONS, "locations"}
    assert set(FIELDS) <= {field.short_name for field in MonitorForm().schema_fields()}


def test_no_two_kinds_have_a_name_or_a_scheme_in_common():
    names = [kind.name for kind in KINDS]
    schemes = [scheme for kind in KINDS for scheme in kind.schemes]
    assert len(set(names)) == len(names)
    assert len(set(schemes)) == len(schemes)
    assert [kind_of(kind.address) for kind in KINDS] == list(KINDS)


@pytest.mark.parametrize("name", NOT_OF_KIND)
def test_section_3_a_field_that_tcp_does_not_know_is_refused_by_name(name):
    for form in (MonitorForm, CheckForm):
        assert list(faults(form, MIN | NOT_OF_KIND[name])) == [name]
    with pytest.raises(Invalid) as caught:
        overlay(MonitorUpdateForm, MAIL, list(NOT_OF_KIND[name].items()))
    assert list(caught.value.errors) == [name]
    assert "kind tcp" in caught.value.errors[name][0]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_section_17_each_kind_refuses_the_fields_of_others(kind):
    text = {"alert_condition": "url_text", "alert_text_lookup": "x"}
    sent = {**NOT_OF_KIND, "alert_condition": text}
    for name in sent.keys() - kind.fields:
        errors = faults(MonitorForm, MIN | {"url": kind.address} | sent[name])
        assert name in errors
        assert f"kind {kind.name}" in errors[name][0]


@pytest.mark.parametrize("name", NOT_OF_KIND)
def test_section_3_empty_and_default_values_of_other_kinds_are_accepted(name):
    default = getattr(Monitor(1, "", "", 60), name, None)
    sent = [{name: ""}]
    if default not in (None, ()):
        sent.append({name: str(default).lower() if default in (True, False) else str(default)})
    if name == "cache_buster":
        sent[1:] = [{name: "0"}]
    for fields in sent:
        bind(MonitorForm, list((MIN | fields).items()))
        overlay(MonitorUpdateForm, MAIL, list(fields.items()))


def test_section_3_a_url_of_another_kind_is_refused_while_its_fields_do_not_fit():
    shop = Monitor(1, "Shop", "https://shop.test", 60, request_headers=(Pair("X", "1"),))
    with pytest.raises(Invalid) as caught:
        overlay(MonitorUpdateForm, shop, [("url", "tcp://shop.test:443")])
    assert list(caught.value.errors) == ["request_headers"]
    both = [("url", "tcp://shop.test:443"), ("request_headers", "")]
    assert overlay(MonitorUpdateForm, shop, both) == {
        "url": "tcp://shop.test:443",
        "request_headers": (),
    }


def test_a_tcp_monitor_accepts_a_text_condition():
    sent = {"alert_condition": "url_no_text", "alert_text_lookup": "ESMTP"}
    assert bind(MonitorForm, list((MIN | sent).items()))["alert_text_lookup"] == "ESMTP"
    assert list(faults(MonitorForm, MIN | {"alert_condition": "url_text"})) == ["alert_text_lookup"]


@pytest.mark.parametrize(
    "url",
    ["tcp://mail.test:25", "TCP://Mail.Test:65535", "tcp://[2001:db8::1]:25", "tcp://127.1:25/",
     "tcp://bücher.test:25", "tls://mail.test:993", "ping://mail.test", "PING://[2001:db8::1]",
     "ping://127.1/", "dns:shop.test", "DNS:shop.test.?Type=mx", "dns:///shop.test",
     "dns://9.9.9.9/shop.test?type=CAA", "dns://[2001:db8::1]:5353/_dmarc.shop.test?class=IN;type=TXT",
     "dns:bücher.test", "dns:.?type=NS", "dns:0%2F25.2.0.192.in-addr.arpa?type=ptr"],
)  # fmt: skip
def test_section_9_and_17_addresses_of_each_kind_are_accepted(url):
    assert bind(MonitorForm, list((MIN | {"url": url}).items()))["url"] == url


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("tcp://mail.test", "needs a port"),
        ("tcp://mail.test:", "needs a port"),
        ("tcp://mail.test:0", "from 1 to 65535"),
        ("tcp://mail.test:65536", "from 1 to 65535"),
        ("tcp://mail.test:25/path", "ends with its port"),
        ("tcp://mail.test:25?x", "ends with its port"),
        ("tcp://mail.test:25#x", "ends with its port"),
        ("tls://mail.test", "needs a port"),
        ("tls://mail.test:993/path", "A tls:// URL ends with its port"),
        ("ping://mail.test:7", "a host alone"),
        ("ping://mail.test/path", "a host alone"),
        ("ping://mail.test?count=3", "a host alone"),
        ("ping://mail.test#x", "a host alone"),
        ("ping://", "needs a host"),
        ("dns:", "a name that DNS can have"),
        ("dns://9.9.9.9", "a name that DNS can have"),
        ("dns:shop..test", "a name that DNS can have"),
        ("dns:shop.test/path", "a name and its type"),
        ("dns:shop.test#x", "a name and its type"),
        ("dns:shop.test?type=ANY", "A, AAAA, CNAME, MX"),
        ("dns:shop.test?type=A;type=MX", "a type alone"),
        ("dns:shop.test?timeout=3", "a type alone"),
        ("dns:shop.test?class=CH", "class IN"),
        ("dns://me@9.9.9.9/shop.test", "user name"),
        ("dns://9.9.9.9:0/shop.test", "from 1 to 65535"),
        ("ping:mail.test", "two slashes"),
        ("tcp://me:pw@mail.test:25", "user name"),
        ("tcp://:25", "needs a host"),
        ("tcp:mail.test:25", "two slashes"),
        ("tcp://mail.test:25 ", "white space"),
        ("udp://mail.test:25", "http://, https://, tcp://"),
        ("mail.test", "http://, https://, tcp://"),
    ],
)
def test_section_9_and_17_other_addresses_are_refused_with_a_sentence(url, sentence):
    errors = faults(MonitorForm, MIN | {"url": url})
    assert list(errors) == ["url"]
    assert sentence in errors["url"][0]


def test_the_kinds_load_no_library_that_makes_checks():
    """Web servers and commands read the kinds; pycurl would cost each of them 6 MB."""
    asks = "import sys, app.checks.kinds; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", asks], cwd=HOME, text=True).split()
    assert "app.checks.kinds" in loaded
    assert not {"pycurl", "OpenSSL"} & set(loaded)
