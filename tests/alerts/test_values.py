"""Valid and invalid values of channels, and the sentences about them (decision 5)."""

from __future__ import annotations

import pytest

from app.records import MAX_ALERT_VALUE, Channel
from app.rules.channel_values import CHANNELS, check_value, parse_telegram
from app.rules.masking import clean, secrets_in_url

TOKEN = "123456:AAF-secret_part"

GOOD = [
    ("email", "ops@example.com"),
    ("email", "first.last+tag@mail.example"),
    ("email", "root@localhost"),
    ("email", "ops@bücher.example"),
    ("webhook", "https://example.com/hook?x=1"),
    ("slack", "http://mattermost.internal:8065/hooks/abc"),
    ("teams", "https://x.powerplatform.com/workflows/1?sig=2"),
    ("discord", "https://discord.com/api/webhooks/1/a"),
    ("flock", "https://api.flock.com/hooks/sendMessage/a"),
    ("telegram", f"{TOKEN}/-1001234567890"),
    ("telegram", f"{TOKEN}/@ops_channel"),
    ("telegram", f"{TOKEN}/-100/7"),
    ("sms", "+447700900123"),
    ("apprise", "ntfy://topic"),
    ("ntfy", "https://ntfy.sh/my_topic-1"),
    ("ntfy", "http://tk_secret1@push.internal:8080/ops/"),
    ("gotify", "https://push.example/?token=Asecret.-_"),
    ("gotify", "https://push.example/gotify/message?token=Asecret"),
    ("pushover", f"{'u' * 30}/{'a' * 30}"),
    ("pagerduty", "R0" * 16),
    ("pagerduty", f"eu:{'R0' * 16}"),
    ("opsgenie", "01234567-89ab-cdef-0123-456789abcdef"),
    ("opsgenie", "eu:01234567-89ab-cdef-0123-456789abcdef"),
]
BAD = [
    ("email", "ops", "email address"),
    ("email", "ops@", "email address"),
    ("email", "a b@example.com", "email address"),
    ("email", "a@b@example.com", "email address"),
    ("email", "ops@example.com\r\nBcc: x@y.z", "email address"),
    ("email", "ops@-bad.example", "email address"),
    ("email", "a" * 65 + "@example.com", "email address"),
    ("webhook", "ftp://example.com/", "http"),
    ("webhook", "https://user:pass@example.com/", "user name or password"),
    ("slack", "hooks.slack.com/services/x", "http"),
    ("telegram", "-1001234567890", "bot token"),
    ("telegram", "12:/-100", "bot token"),
    ("telegram", f"{TOKEN}/not a chat", "CHAT_ID"),
    ("telegram", f"{TOKEN}/-100/x", "thread ID"),
    ("sms", "07700900123", "country code"),
    ("sms", "+44 7700 900123", "digits only"),
    ("apprise", "topic", "Apprise URL"),
    ("ntfy", "ntfy.sh/topic", "http"),
    ("ntfy", "https://ntfy.sh/", "https://HOST/TOPIC"),
    ("ntfy", "https://ntfy.sh/a/b", "https://HOST/TOPIC"),
    ("ntfy", "https://ntfy.sh/topic?auth=secret", "https://HOST/TOPIC"),
    ("ntfy", "https://user:secret@ntfy.sh/topic", "https://TOKEN@HOST/TOPIC"),
    ("ntfy", "https://@ntfy.sh/topic", "https://TOKEN@HOST/TOPIC"),
    ("gotify", "https://push.example/", "https://HOST/?token=TOKEN"),
    ("gotify", "https://push.example/?token=", "https://HOST/?token=TOKEN"),
    ("gotify", "https://push.example/?token=secret&a=b", "https://HOST/?token=TOKEN"),
    ("gotify", "https://user:secret@push.example/?token=a", "user name or password"),
    ("pushover", "u" * 30, "USER_KEY/APP_TOKEN"),
    ("pushover", f"{'u' * 29}/{'a' * 30}", "USER_KEY/APP_TOKEN"),
    ("pagerduty", "u+secret", "32 letters and digits"),
    ("pagerduty", f"us:{'R0' * 16}", "eu:KEY"),
    ("opsgenie", "https://api.opsgenie.com/v2/alerts", "API key"),
    ("email", " ", "missing"),
    ("webhook", "https://example.com/" + "a" * MAX_ALERT_VALUE, "too long"),
    ("pager", "x", "Choose one"),
]


@pytest.mark.parametrize(("channel", "value"), GOOD)
def test_a_good_value_has_no_fault(channel: str, value: str) -> None:
    assert check_value(channel, value, telegram_token_set=False) is None


@pytest.mark.parametrize(("channel", "value", "reason"), BAD)
def test_a_wrong_value_gets_a_sentence_that_says_what_to_do(
    channel: str, value: str, reason: str
) -> None:
    sentence = check_value(channel, value, telegram_token_set=False)
    assert sentence is not None
    assert reason in sentence
    assert "secret" not in sentence


def test_a_chat_id_alone_needs_the_instances_bot() -> None:
    assert check_value("telegram", "-100", telegram_token_set=True) is None
    assert parse_telegram("-100/7").thread == 7
    assert "secret" not in repr(parse_telegram(f"{TOKEN}/-100"))


def test_every_channel_has_a_label_and_help() -> None:
    assert set(CHANNELS) == set(Channel)
    assert all(text.label and text.help and text.placeholder for text in CHANNELS.values())


def test_secrets_are_taken_out_in_every_spelling() -> None:
    url = "https://hooks.example/services/T0SECRET1/B0%2FSECRET2?token=SECRET333"
    secrets = secrets_in_url(url)
    for text in (url, "POST /services/T0SECRET1/x", "B0/SECRET2", "token SECRET333"):
        assert "SECRET" not in clean(text, secrets)
    assert clean("a\r\nb\x00c", []) == "a b c"
    assert len(clean("x" * 1000, [])) == 300
