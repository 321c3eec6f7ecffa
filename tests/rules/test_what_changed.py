"""The differences between a failing check and the last good one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db.contents import is_evidence
from app.rules.what_changed import PHASES, changes_of, compared_with, phase_words

OLD = {"sha256": "ab" * 32, "issuer": "R3", "not_after": "2026-12-30T00:00:00Z"}
NEW = {"sha256": "cd" * 32, "issuer": "Self", "not_after": "2036-11-20T00:00:00Z"}
GOOD: dict[str, Any] = {
    "checked_at": "2026-11-21T07:59:00Z",
    "url": "https://shop.example/",
    "status_code": 200,
    "response_time": 380,
    "timings": {"dns": 10, "connect": 20, "tls": 40, "ttfb": 300, "download": 10},
    "ip": "192.0.2.1",
    "resolved": ["192.0.2.1", "192.0.2.2"],
    "redirects": [],
    "headers": [["Content-Type", "text/html"], ["Server", "nginx"], ["Date", "then"]],
    "body_bytes": 40_000,
    "tls": [OLD],
}
FAILING = GOOD | {"checked_at": "2026-11-21T08:00:00Z"}
USUAL = {
    "checked_at": "2026-11-21T07:59:00Z",
    "response_time": 380,
    "timings": GOOD["timings"],
    "addresses": ["192.0.2.1"],
}


def texts(usual: Any = USUAL, good: Any = None, **failing: Any) -> list[str]:
    evidence = {"failing": FAILING | failing, "last_good": GOOD | (good or {}), "usual": usual}
    return [change.text for change in changes_of(evidence)]


def hop(url: str) -> dict[str, str]:
    return {"status_line": "HTTP/2 301 Moved", "url": url, "ip": "192.0.2.1"}


def test_equal_values_are_not_reported_as_changes():
    assert texts() == []


@pytest.mark.parametrize(
    ("failing", "sentence"),
    [
        ({"ip": "198.51.100.7"}, "Address 198.51.100.7, was 192.0.2.1"),
        ({"ip": None, "resolved": ["198.51.100.7"]}, "Address 198.51.100.7, was 192.0.2.1"),
        ({"tls": [NEW]},
            "Certificate from Self, valid until 20 Nov 2036, was from R3, valid until 30 Dec 2026"),
        ({"status_code": 503}, "Status 503, was 200"),
        ({"headers": [["content-type", "text/html"], ["server", "cloudflare"]]},
            "Header server: cloudflare, was nginx"),
        ({"headers": [["content-type", "text/html"]]}, "Header server removed, was nginx"),
        ({"headers": [*GOOD["headers"], ["Retry-After", "120"]]}, "New header retry-after: 120"),
        ({"body_bytes": 96}, "Body 96 bytes, was 40,000 bytes"),
        ({"response_time": 902, "timings": {"dns": 1, "connect": 1, "ttfb": 900}},
            "902 ms, 900 ms of it first byte; usually 380 ms"),
        ({"response_time": 902, "timings": {"ttfb": 900}},  # a ping
            "902 ms, 900 ms of it answer; usually 380 ms"),
        ({"response_time": None, "timings": {"dns": 10, "connect": 20, "ttfb": 29_970}},
            "30 s, of which it waited 30 s for the first byte; usually 0.38 s"),
        ({"response_time": None,
          "timings": {"dns": 10, "connect": 20, "ttfb": 19_970, "download": 10_000}},
            "30 s, 20 s of it first byte; usually 0.38 s"),
    ],
)  # fmt: skip
def test_each_part_that_differs_is_named(failing, sentence):
    assert texts(**failing) == [sentence]


def test_the_phase_in_which_a_check_ended_is_not_called_by_what_never_came():
    assert phase_words(PHASES, {"ttfb": 200, "download": 10})["ttfb"] == "first byte"
    assert phase_words(PHASES, {"ttfb": 19_405})["ttfb"] == "wait for the first byte"


def test_checks_of_two_places_are_not_compared():
    other = {"ip": "198.51.100.9", "headers": [["Server", "oslo-edge"]]}
    assert texts(good=other | {"location": "oslo"}, location="default") == []
    assert len(texts(good=other | {"location": "oslo"}, location="oslo")) == 2


def test_a_certificate_that_ran_out_between_the_two_is_named():
    ends = {"tls": [OLD | {"not_after": "2026-11-21T07:59:30Z"}]}
    assert texts(good=ends, **ends) == ["The certificate expired 30 s earlier"]


@pytest.mark.parametrize(
    ("before", "now", "sentence"),
    [
        ([], ["https://other.example/x?t=1"], "New redirect to https://other.example/x"),
        (["https://shop.example/home"], [], "Redirect removed, was to https://shop"),
        (["https://shop.example/a"], ["https://shop.example/b"],
            "Redirect to https://shop.example/b, was https://shop.example/a"),
    ],
)  # fmt: skip
def test_another_redirect_is_named(before, now, sentence):
    (text,) = texts(good={"redirects": [*map(hop, before)]}, redirects=[*map(hop, now)])
    assert text.startswith(sentence)


def test_a_check_that_ended_before_the_redirect_did_not_lose_it():
    assert texts(good={"redirects": [hop("https://shop.example/home")]}, status_code=None) == []


def test_a_token_in_a_redirect_is_no_change():
    hops = ([hop(f"https://shop.example/home?session={n}")] for n in (1, 2))
    assert texts(good={"redirects": next(hops)}, redirects=next(hops)) == []


def test_a_token_in_a_header_is_no_change():
    headers = [[*GOOD["headers"], ["Location", f"/login?state={n}"]] for n in (1, 2)]
    assert texts(good={"headers": headers[0]}, headers=headers[1]) == []
    nonces = [[*GOOD["headers"], ["WWW-Authenticate", f"Digest nonce={n}"]] for n in (1, 2)]
    assert texts(good={"headers": nonces[0]}, headers=nonces[1]) == []
    assert texts(headers=nonces[1]) == ["New header www-authenticate: Digest nonce=2"]


def test_another_host_behind_a_redirect_is_one_change_and_not_six():
    """Its address, certificate, headers and size differ because it is another host."""
    failing = {"ip": "198.51.100.7", "tls": [NEW], "body_bytes": 96, "headers": []}
    (text,) = texts(redirects=[hop("https://parked.example/")], **failing)
    assert text == "New redirect to https://parked.example/"


@pytest.mark.parametrize(
    ("usual", "good"),
    [
        ({"addresses": ["198.51.100.7", "192.0.2.1"]}, {}),
        ({"addresses": [f"203.0.113.{n}" for n in range(5)]}, {}),
        ({"addresses": []}, {"resolved": ["192.0.2.1", "198.51.100.7"]}),
    ],
    ids=["seen before", "changes all the time", "another of the same name"],
)
def test_an_address_that_comes_and_goes_is_no_change(usual, good):
    assert texts(USUAL | usual, good, ip="198.51.100.7") == []


def test_a_little_slower_is_no_change():
    assert texts(response_time=479, timings={"ttfb": 400}) == []
    assert texts(USUAL | {"response_time": 10}, response_time=90) == []


def test_without_usual_figures_the_last_good_check_is_the_measure():
    slow = {"response_time": 902, "timings": {"connect": 1, "ttfb": 900}}
    assert texts(None, **slow) == ["902 ms, 900 ms of it first byte, up from 380 ms"]
    few = USUAL | {"response_time": None, "timings": {}}
    assert texts(few, **slow) == ["902 ms, 900 ms of it first byte, up from 380 ms"]


def test_the_most_telling_comes_first():
    sentences = texts(ip="198.51.100.7", status_code=503, body_bytes=1, response_time=2_000)
    assert [text.split()[0] for text in sentences] == ["Address", "Status", "Body", "2"]


def test_the_label_says_whether_it_is_the_last_good_check_or_how_old_it_is():
    evidence = {"failing": FAILING, "last_good": GOOD, "usual": USUAL}
    old, slow = GOOD | {"checked_at": "2026-11-21T07:51:00Z"}, GOOD | {"verdict": "degraded"}
    for changed, words in (
        ({}, "last good check at 07:59:00, 1 min earlier"),
        ({"last_good": old}, "good check at 07:51:00, 9 min earlier"),
        ({"usual": None}, "good check at 07:59:00, 1 min earlier"),
        ({"last_good": slow}, "slow check at 07:59:00, 1 min earlier"),
        ({"last_good": GOOD | {"checked_at": None}}, "good check before it"),
    ):
        good = compared_with(evidence | changed)
        assert good is not None
        assert good.words(lambda at: f"{at:%H:%M:%S}") == words
    assert compared_with(evidence | {"last_good": None}) is None


@pytest.mark.parametrize(
    "damaged",
    [
        {"headers": [[1, 2]]}, {"headers": 5}, {"resolved": 7}, {"resolved": [7]}, {"url": 5},
        {"ip": 5}, {"location": []}, {"status_code": "200"}, {"body_bytes": "many"},
        {"response_time": []}, {"timings": {"dns": "x"}}, {"redirects": 5}, {"redirects": [5]},
        {"redirects": [{"url": 5}]}, {"tls": [5]}, {"checked_at": "now"}, {"elsewhere": {"a": 5}},
    ],
)  # fmt: skip
def test_stored_evidence_with_a_part_of_another_type_is_damaged(damaged):
    for name in ("failing", "last_good"):
        assert not is_evidence({name: GOOD | damaged}), name
    assert not is_evidence({"confirming": [GOOD | damaged]})


def test_usual_figures_and_places_of_another_type_are_damaged():
    for part in ({"usual": {"addresses": 5}}, {"usual": {"response_time": "x"}}, {"places": [5]}):
        assert not is_evidence(part), part
    assert is_evidence({"failing": FAILING, "confirming": [], "last_good": GOOD, "usual": USUAL})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)


def with_an_odd_part(check):
    return st.sampled_from(sorted(check)).flatmap(
        lambda name: JSON.map(lambda odd: check | {name: odd})
    )


@given(with_an_odd_part(FAILING), with_an_odd_part(GOOD), with_an_odd_part(USUAL))
def test_odd_evidence_that_is_read_does_not_break_the_comparison(failing, good, usual):
    """Rows may be damaged."""
    for evidence in (
        {"failing": failing, "last_good": GOOD, "usual": USUAL},
        {"failing": FAILING, "last_good": good, "usual": USUAL},
        {"failing": FAILING, "last_good": GOOD, "usual": usual},
    ):
        if is_evidence(evidence):
            assert all(change.text for change in changes_of(evidence))
            compared = compared_with(evidence)
            assert compared is None or compared.words(str)
