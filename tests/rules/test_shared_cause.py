"""Incidents that have one cause are one card on home."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.records import Incident, MonitorRef
from app.rules.causes import sentence_without, shared_cause

AT = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
REFUSED = "The connection was refused by {} port {}: nothing listens there."


def incident(url: str, cause: str | None, code: str | None = "x", **fields: str) -> Incident:
    return Incident(1, 1, AT, monitor=MonitorRef(1, "Shop", url), cause=cause, cause_code=code,
                    **fields)  # fmt: skip


SAME = [
    (("https://a.example/", REFUSED.format("10.0.0.1", 443)),
     ("https://b.example:8443/", REFUSED.format("2001:db8::7", 8443))),
    (("https://a.example/", "No TCP connection to 192.0.2.1, 192.0.2.2 port 443 within 10 s."),
     ("https://b.example/", "No TCP connection to 192.0.2.9 port 443 within 30 s.")),
    (("https://shop.example/", "The name shop.example does not exist."),
     ("dns:blog.example?type=A", "The name Blog.example does not exist.")),
    (("https://a.example/", "No answer came within 10 s (connected after 1,240 ms)."),
     ("https://b.example/", "No answer came within 10 s (connected after 7 ms).")),
    (("heartbeat:", "No ping came by 14:05."), ("heartbeat:", "No ping came by 03:00.")),
]  # fmt: skip
OTHERS = [
    (("https://a.example/", "The answer does not contain “Buy”."),
     ("https://b.example/", "The answer does not contain “Read”.")),
    (("https://a.example/", "The name a.example does not exist."),
     ("https://b.example/", "The name of-a.example does not exist.")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one_cause", "first", "second"),
    [*((True, *pair) for pair in SAME), *((False, *pair) for pair in OTHERS)],
)
def test_sentences_that_differ_by_what_is_the_monitors_own_are_one_cause(
    one_cause: bool, first: tuple[str, str], second: tuple[str, str]
) -> None:
    same = shared_cause(incident(*first)) == shared_cause(incident(*second))
    assert same is one_cause


def test_code_and_severity_make_another_cause_and_a_persons_words_share_none() -> None:
    down = shared_cause(incident("https://a.example/", "It fails."))
    assert down != shared_cause(incident("https://a.example/", "It fails.", "y"))
    assert down != shared_cause(incident("https://a.example/", "It fails.", severity="degraded"))
    assert shared_cause(incident("https://a.example/", "It fails.", None)) is None
    assert shared_cause(incident("https://a.example/", None)) is None


def test_the_shared_sentence_is_one_that_people_can_read() -> None:
    sentence = sentence_without(REFUSED.format("10.0.0.1", 443), "https://a.example/")
    assert sentence == "The connection was refused by … port …: nothing listens there."
    assert sentence_without("It begins with “a”.", "no URL [") == "It begins with “a”."
