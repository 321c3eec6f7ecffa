"""The public sentence of a cause, and the start of a post (decision 12)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.records import MAX_NAME, MAX_POST_BODY, Cause, PostState
from app.rules.causes import SENTENCES, UNKNOWN_CAUSE, draft, public_cause

AT = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_a_sentence_for_the_public(cause: Cause) -> None:
    code = "http_status:503" if cause is Cause.HTTP_STATUS else cause.value
    sentence = public_cause(code)
    assert sentence == SENTENCES[cause] != UNKNOWN_CAUSE
    assert sentence.endswith(".")
    assert "_" not in sentence
    assert not any(letter.isdigit() for letter in sentence)  # no status, address or port


@pytest.mark.parametrize("code", [None, "", "from_another_version", "http_statuses", "timeout"])
def test_an_unknown_cause_says_nothing_that_is_not_known(code: str | None) -> None:
    assert public_cause(code) == UNKNOWN_CAUSE


def test_an_error_of_the_service_does_not_tell_its_status() -> None:
    assert public_cause("http_status:503") == public_cause("http_status:401")


def test_a_draft_names_the_monitors_and_the_cause() -> None:
    post = draft(["Shop", "Blog"], "tls_expired", AT, zone="Europe/Berlin")
    assert post == {
        "title": "Problems with Shop and Blog",
        "state": PostState.INVESTIGATING,
        "body": "The connection is not secure: its certificate has expired. It began at"
        " 21 Nov 2026, 09:00 CET. We are looking into it.",
    }


def test_a_draft_about_many_monitors_fits_a_title() -> None:
    post = draft(["x" * MAX_NAME] * 40, None, AT, zone=None)
    assert len(post["title"]) <= MAX_NAME
    assert post["title"].endswith("and 37 more")
    assert len(post["body"]) <= MAX_POST_BODY


def test_a_draft_about_no_monitor_has_a_title() -> None:
    assert draft([], None, AT, zone=None)["title"]
