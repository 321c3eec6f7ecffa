"""Lines and CSV."""

from __future__ import annotations

import pytest

from app.forms.imported import ImportDefaults, validate
from app.forms.schema import FormContext
from app.imports import files, table
from app.imports.candidates import NotReadable
from app.imports.values import seconds
from app.records import Pair

CONTEXT = FormContext(contact_exists=lambda name: name in ("Ops", "Shop team"))


def rows(text):
    return [
        validate(candidate, ImportDefaults(), CONTEXT)
        for candidate in files.read(text.encode()).candidates
    ]


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("https://one.example.com/", ["", "https://one.example.com/"]),
        ("one.example.com", ["", "one.example.com"]),
        ("localhost:8080", ["", "localhost:8080"]),
        ("two.example.com:8443/health Two", ["Two", "two.example.com:8443/health"]),
        ("https://x.example/a,b  Fourth", ["Fourth", "https://x.example/a,b"]),
        ("Shop, shop.example.com/ten", ["Shop", "shop.example.com/ten"]),
        ("shop.example.com, Shop", ["Shop", "shop.example.com"]),
        ("Two, https://two.example.com/p?a=1,2", ["Two", "https://two.example.com/p?a=1,2"]),
        ("Shop,https://x.example/a,prod,Ops", ["Shop", "https://x.example/a", "prod", "Ops"]),
        ('"Three, the 3rd",https://x.example/', ["Three, the 3rd", "https://x.example/"]),
        ("Shop, main, https://x.example/", ["Shop, main", "https://x.example/"]),
        ('Say ""hi"", https://x.example', ['Say ""hi""', "https://x.example"]),
        ("Shop\thttps://x.example\ta;b\tOps", ["Shop", "https://x.example", "a;b", "Ops"]),
        ("Shop: https://x.example/a,b", ["Shop", "https://x.example/a,b"]),
        ("Shop;https://x.example;prod", ["Shop", "https://x.example", "prod"]),
    ],
)
def test_a_line_is_name_url_tags_and_contact(line, cells):
    assert table.cells(line) == cells


def test_tags_and_contacts_of_a_line_become_those_of_the_monitor():
    (row,) = rows('Shop, shop.example.com/ten, "prod, eu", "Shop team; Ops"')
    assert (row.name, row.url) == ("Shop", "https://shop.example.com/ten")
    assert row.fields["tags"] == ("prod", "eu")
    assert row.fields["alerts"] == (Pair("contact", "Shop team"), Pair("contact", "Ops"))


def test_what_does_not_fit_is_named_with_line_field_and_value():
    good, odd, unknown, long = rows(
        "https://good.example.com\n\nftp://bad.example.com\n"
        "Shop, shop.example.com, prod, Nobody\na, b.example.com, c, Ops, more"
    )
    assert good.fits
    assert odd.candidate.position == "Line 3"
    assert odd.faults[0].startswith('URL "ftp://bad.example.com": The URL must start with ')
    assert unknown.faults == ('Alerts: There is no contact "Nobody".',)
    assert long.faults[0].startswith("The line has more than name, URL, tags and contact.")


def test_a_header_row_names_columns_in_any_order():
    text = (
        "Contact;Friendly Name;Check every;URL/IP;Colour;Timeout\n"
        "Ops;Shop;5 min;shop.example.com;red;20\n"
        ";;;;;\n"
        ";Blog;2m;https://blog.example.com;blue;soon\n"
    )
    reading = files.read(text.encode())
    assert reading.remarks == ("Ignored columns: Colour.",)
    shop, blog = (
        validate(candidate, ImportDefaults(), CONTEXT) for candidate in reading.candidates
    )
    assert (shop.fields["interval"], shop.fields["timeout"]) == (300, 20)
    assert shop.fields["alerts"] == (Pair("contact", "Ops"),)
    assert blog.candidate.position == "Line 4"
    assert blog.faults == ('Time limit in seconds "soon": Enter a whole number, in digits alone.',)
    assert blog.candidate.fields["check_every"] == "120"


def test_a_file_saved_by_a_spreadsheet_is_read():
    text = "Name,URL\r\nMüller,https://a.example\r\n"
    for data in (text.encode("utf-8-sig"), text.encode("utf-16")):
        (candidate,) = files.read(data).candidates
        assert (candidate.name, candidate.url) == ("Müller", "https://a.example")


def test_a_row_with_too_many_cells_is_refused_not_shifted():
    (row,) = rows("name,url\nShop, main,https://a.example")
    assert "Put quotes around a value with commas." in row.faults[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("60", 60), ("5m", 300), ("1h30m", 5400), ("5 min", 300), ("20s", 20), ("300ms", 0.3),
     ("2 hours", 7200), ("soon", None), ("m", None), ("5x", None), ("", None), ("1" * 50, None)],
)  # fmt: skip
def test_spans_are_read(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("column", "value", "paused"),
    [("paused", "yes", True), ("active", "0", True), ("enabled", "true", False),
     ("enabled", "", False), ("status", "Paused", True), ("status", "up", False),
     ("paused_at", "2026-01-01", True), ("paused_at", "", False)],
)  # fmt: skip
def test_a_column_says_what_starts_paused(column, value, paused):
    (candidate,) = files.read(f"url,{column}\na.example,{value}\n".encode()).candidates
    assert candidate.paused is paused


def test_a_header_alone_is_no_list():
    with pytest.raises(NotReadable, match="but no data"):
        files.read(b"name,url\n")
