"""Texts of others in a mail's headers. ``=?utf-8?q?=0a?=`` is an encoded word: the header decoded
it, and the line break began a header of its own, or the body.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes, policy

import pytest

from app.alerts.channels import mail
from app.alerts.channels.base import Outgoing
from app.alerts.messages import account
from app.rules import addresses

AT = datetime(2026, 11, 22, tzinfo=UTC)
HEADER = "=?utf-8?q?a=0aBcc=3a_v@x.example?="
WORDS = [
    HEADER,
    f"é {HEADER} is down",
    "=?utf-8?q?a=0d=0aBcc=3a_v@x.example=0d=0a=0d=0abody?=",
    "=?utf-8?b?CkJjYzogeA==?= is down",
    "=?utf-8?q?a?= =?utf-8?q?=0aBcc=3a_x?=",
    "==?utf-8?q?a=0aBcc=3a_x?=",
]


def sent(title="Shop is down", to="ada@x.example", sender="Wakeful <alerts@x.example>"):
    message = replace(account.trial(AT, "http://x.example/"), title=title)
    data = mail.build(Outgoing("msg_1", to, message, AT), sender).message.as_bytes()
    return data, message_from_bytes(data, policy=policy.SMTP)


@pytest.mark.parametrize("word", WORDS)
def test_a_title_and_the_name_of_the_sender_are_one_header_each(word):
    data, read = sent(title=word, sender=f'"{word}" <alerts@x.example>')
    assert b"\nBcc" not in data.partition(b"\r\n\r\n")[0]
    assert read["Bcc"] is None
    assert read.is_multipart()
    assert read["From"].addresses[0].addr_spec == "alerts@x.example"


def test_an_address_with_an_encoded_word_is_refused():
    address = "=?utf-8?q?=0aBcc=3av?=@x.example"
    with pytest.raises(ValueError, match="not an email address"):
        addresses.check(address)
    for place in ("to", "sender"):  # one that was stored before
        with pytest.raises(ValueError, match="not an email address"):
            sent(**{place: address})


def test_other_titles_stay_as_they_are():
    _, read = sent(title="Zürich = Basel? https://x.example/?a=1 is down")
    assert read["Subject"] == "Zürich = Basel? https://x.example/?a=1 is down"
