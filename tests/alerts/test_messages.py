"""The content of messages, and the links in them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from flask import Flask

from app.access import tokens
from app.alerts import words
from app.alerts.channels import discord, flock, slack, sms, teams, telegram
from app.alerts.messages import compose
from app.alerts.messages.message import Item, Message, MessageContext, base_url
from app.errors import Denied
from app.records import Event
from app.rules.channel_values import TelegramTarget
from app.rules.time import iso
from app.web.shown import looks

MONITOR = {"id": 3, "name": "Shop", "url": "https://shop.example/"}
INCIDENT = {
    "id": 7, "started_at": "2026-11-21T08:00:00Z", "acknowledged_at": None, "ended_at": None,
    "acknowledged_by": None, "cause": "The server refused the connection.", "ending": None,
    "cause_code": "connection_refused", "unwatched": [], "seen_by": [],
}  # fmt: skip
AT = "2026-11-21T10:05:00Z"
OTHERS = {3: "Shop", 4: "Mail"}
CONTEXT = MessageContext("https://wakeful.example", lambda id: f"token-{id}", OTHERS)


def facts(event: Event, **changes: object) -> dict[str, object]:
    return {"event": str(event), "at": AT, "monitor": MONITOR, "incident": INCIDENT} | changes


def resolved(ending: str | None = "recovered", **changes: object) -> dict[str, object]:
    """The facts of an incident that has ended."""
    over = INCIDENT | {"ended_at": AT, "ending": ending} | changes
    return facts(Event.INCIDENT_RESOLVED, incident=over)


def several(event: Event, *members: object, **changes: object) -> Message:
    """A message about several incidents, after quiet hours or of a burst."""
    counts = {"count": len(members), "open": 0, "resolved": 0, "notice_count": 0, "notices": []}
    lists = {"incidents": [*members], "deliveries": [], "since": "2026-11-21T08:00:00Z"}
    return compose(facts(event, **counts, **lists) | changes, CONTEXT)


def test_an_opening_says_what_since_when_why_and_what_else() -> None:
    assert compose(facts(Event.INCIDENT_OPENED), CONTEXT).text.splitlines() == [
        "Down: Shop",
        "The server refused the connection.",
        "Down since: 2026-11-21 08:00 UTC",
        "Address: https://shop.example/",
        "Also down: Mail",
        "Acknowledge: https://wakeful.example/acknowledge/token-7",
        "Incident: https://wakeful.example/incidents/7",
    ]


def test_nobody_is_asked_to_acknowledge_what_is_acknowledged() -> None:
    """Decision 5: the link is for incidents that are open and not acknowledged."""
    incident = INCIDENT | {"acknowledged_at": "2026-11-21T08:10:00Z", "acknowledged_by": "Ada"}
    message = compose(facts(Event.INCIDENT_ACKNOWLEDGED, incident=incident), CONTEXT)
    assert [link.label for link in message.links] == ["Incident"]
    assert message.data["incident"]["acknowledge_link"] is None


def test_nothing_else_that_is_down_is_not_mentioned() -> None:
    alone = MessageContext("https://wakeful.example", str, {3: "Shop"})
    for event in (Event.INCIDENT_OPENED, Event.INCIDENT_REMINDER, Event.INCIDENT_RESOLVED):
        text = compose(facts(event), alone).text
        assert "Also down" not in text
        assert "Still down:" not in text.partition("\n")[2]


EPOCH = int(datetime(2026, 11, 21, 8, tzinfo=UTC).timestamp())


def test_slack_shows_times_in_the_readers_zone_and_its_imitators_in_utc() -> None:
    """Mattermost takes the text alone, and would show Slack's form of a time as it is."""
    sent = slack.payload(compose(facts(Event.INCIDENT_OPENED), CONTEXT))
    fields = [field["text"] for block in sent["blocks"] for field in block.get("fields", ())]
    date = f"<!date^{EPOCH}^{{date_short_pretty}} {{time}}|2026-11-21 08:00 UTC>"
    assert f"*Down since*\n{date}" in fields
    assert "Down since: 2026-11-21 08:00 UTC" in sent["text"]
    assert "<!date" not in sent["text"]


def test_discord_shows_times_in_the_readers_zone() -> None:
    digest = several(Event.INCIDENTS_DIGEST, resolved(), resolved=2)
    (embed,) = discord.payload(digest)["embeds"]
    lines = embed["description"].splitlines()
    assert lines[0] == f"Held back since <t:{EPOCH}:f>."
    assert f"from <t:{EPOCH}:f>" in lines[1]
    (embed,) = discord.payload(compose(resolved(), CONTEXT))["embeds"]
    down = next(field["value"] for field in embed["fields"] if field["name"] == "Down")
    assert down == f"<t:{EPOCH}:f> to <t:{EPOCH + 7_500}:f>"


def test_a_time_that_does_not_exist_stays_as_it_was_written() -> None:
    odd = INCIDENT | {"cause": "Certificate ended 2026-13-41 08:00 UTC *"}
    opening = compose(facts(Event.INCIDENT_OPENED, incident=odd), CONTEXT)
    (embed,) = discord.payload(opening)["embeds"]
    assert embed["description"].startswith(discord.escape(odd["cause"]))


def test_an_opening_says_first_what_changed() -> None:
    changes = [{"what": "status", "text": f"Change {n}"} for n in range(4)]
    opened = facts(Event.INCIDENT_OPENED, incident=INCIDENT | {"changes": changes})
    message = compose(opened, CONTEXT)
    assert message.text.splitlines()[2] == "What changed: Change 0; Change 1; Change 2"
    assert message.data["incident"]["changes"] == changes
    good = "good check at 2026-11-21 07:51 UTC, 9 min earlier"
    opened["incident"] |= {"compared_with": good, "compared_with_last": False}
    assert f"Change 2 (since the {good})" in compose(opened, CONTEXT).text
    opened["incident"] |= {"compared_with_last": True}
    deployed = [{"name": "shop v2.1", "link": None, "time": "2026-11-21T07:57:00Z"}]
    opened["incident"] |= {"deployed": deployed}
    lines = compose(opened, CONTEXT).text.splitlines()
    assert lines[2:4] == [
        "Deployed: shop v2.1 at 2026-11-21 07:57 UTC, 3 minutes earlier",
        "What changed: Change 0; Change 1; Change 2",
    ]
    reminder = compose(opened | {"event": Event.INCIDENT_REMINDER}, CONTEXT)
    assert "What changed: Change 0" in reminder.text


def test_a_recovery_says_how_long_and_has_no_acknowledge_link() -> None:
    text = compose(resolved(), CONTEXT).text
    assert "It was down for 2 hours 5 minutes." in text
    assert "acknowledge" not in text.lower()


@pytest.mark.parametrize(
    ("days", "text"),
    [(-3, "expired 3 days ago"), (0, "expires today"), (1, "tomorrow"), (14, "in 14 days")],
)
def test_an_expiry_alert_says_how_many_days_are_left(days: int, text: str) -> None:
    day = datetime(2026, 11, 21, 23, tzinfo=UTC) + timedelta(days=days)
    extra = {"expires_at": iso(day), "days_left": days, "domain": "shop.example"}
    for event in (Event.CERTIFICATE_EXPIRING, Event.DOMAIN_EXPIRING):
        message = compose(facts(event, incident=None, extra=extra), CONTEXT)
        assert text in message.title
        assert f"{day:%Y-%m-%d}" in message.text
        assert message.data["days_left"] == days


def test_an_expiry_alert_without_a_stored_date_has_no_days() -> None:
    extra = {"days_left": 3}
    message = compose(facts(Event.CERTIFICATE_EXPIRING, incident=None, extra=extra), CONTEXT)
    assert message.title == "Certificate of Shop expires soon"


def test_a_digest_counts_the_days_from_when_it_is_sent() -> None:
    """Otherwise a notice that waits from Friday to Monday says "in 3 days" on the day of expiry."""
    extra = {"expires_at": "2026-11-21T12:00:00Z", "days_left": 3}
    expiry = facts(Event.CERTIFICATE_EXPIRING, incident=None, extra=extra)
    expiry["at"] = "2026-11-18T08:00:00Z"
    message = several(Event.INCIDENTS_DIGEST, notice_count=1, notices=[expiry])
    assert str(message.items[0]) == "Certificate of Shop expires today"
    assert message.data["notices"][0]["days_left"] == 0


def test_a_certificate_alert_names_the_host_that_sent_it() -> None:
    """Not that of the URL where that only redirects: people would renew the wrong one."""
    extra = {"expires_at": "2026-12-05T00:00:00Z", "days_left": 3, "host": "old.shop.example"}
    message = compose(facts(Event.CERTIFICATE_EXPIRING, incident=None, extra=extra), CONTEXT)
    assert "Host: old.shop.example" in message.text
    assert message.data["host"] == "old.shop.example"


def test_every_event_has_a_label() -> None:
    for event in Event:
        changes: dict[str, object] = {}
        if event.startswith("incidents.") and event is not Event.INCIDENTS_DIGEST:
            member = facts(Event.INCIDENT_OPENED)
            changes = {"count": 24, "incidents": [member] * 10, "deliveries": list(range(24))}
        if event is Event.INCIDENTS_DIGEST:
            changes = {"open": 1, "resolved": 0, "notice_count": 0, "notices": [], "deliveries": [],
                       "since": "2026-11-20T22:00:00Z", "incidents": [facts(event)]}  # fmt: skip
        if event is Event.REPORT_MONTHLY:
            figures = {"uptime": 99.9, "watched": 2_600_000, "downtime": 60, "incidents": 1,
                       "mttr": 60, "avg": 120, "p95": 200}  # fmt: skip
            changes = {"extra": {"title": "Availability", "month": "2026-10", "tag": None,
                                 "count": 1, "all": figures, "incidents": [],
                                 "monitors": [{"name": "Shop", **figures}]}}  # fmt: skip
        if event in (Event.LOCATION_SILENT, Event.LOCATION_ONLINE):
            place = {"id": 2, "name": "oslo", "label": "Oslo"}
            changes = {"monitor": None, "extra": {"location": place, "monitors": 3, "unknown": 1,
                                                  "since": "2026-11-21T07:55:00Z"}}  # fmt: skip
        message = compose(facts(event, **changes), CONTEXT)
        assert message.title
        assert message.summary
        assert looks.EVENTS[event]


def test_a_long_name_and_a_long_list_are_shortened() -> None:
    long = MONITOR | {"name": "x" * 255}
    context = MessageContext("https://w", str, {n: f"M{n}" for n in range(20)})
    message = compose(facts(Event.INCIDENT_OPENED, monitor=long), context)
    assert len(message.title) <= 90
    assert "and 14 more" in message.text


def test_an_sms_says_since_when_why_how_long_and_what_else() -> None:
    assert sms.text(compose(facts(Event.INCIDENT_OPENED), CONTEXT)).splitlines() == [
        "Down: Shop",
        "The server refused the connection.",
        "Down since: 2026-11-21 08:00 UTC",
        "Also down: Mail",
        "Acknowledge: https://wakeful.example/acknowledge/token-7",
        "Incident: https://wakeful.example/incidents/7",
    ]
    assert sms.text(compose(resolved(), CONTEXT)).splitlines() == [
        "Up again: Shop",
        "It was down for 2 hours 5 minutes.",
        "Cause: The server refused the connection.",
        "Down: 2026-11-21 08:00 UTC to 2026-11-21 10:05 UTC",
        "Still down: Mail",
        "Incident: https://wakeful.example/incidents/7",
    ]


@pytest.mark.parametrize(
    ("ending", "by", "summary"),
    [
        ("person", "Ada", "Resolved by Ada after 2 hours 5 minutes."),
        ("person", None, "Resolved manually after 2 hours 5 minutes."),
        ("changed", None, "The monitor was changed during the incident. As it is judged now, it is"
         " not down, but the failure may still last. The incident lasted 2 hours 5 minutes."),
        (None, None, "The incident lasted 2 hours 5 minutes."),
    ],
)  # fmt: skip
def test_a_monitor_that_no_good_check_has_seen_is_not_said_to_be_up(ending, by, summary) -> None:
    over = resolved(ending) | {"extra": {"resolved_by": by}}
    message = compose(over, CONTEXT)
    assert (message.title, message.summary) == ("Resolved: Shop", summary)
    assert "resolved_by" not in message.data  # receivers of webhooks rely on the fields they get
    burst = several(Event.INCIDENTS_RESOLVED, over)
    assert burst.title == "1 incident is over"
    if ending is None:
        assert burst.items[0].text.startswith("Shop: Over after 2 hours 5 minutes. ")


def test_an_incident_that_ends_because_places_fell_silent_is_no_recovery() -> None:
    gap = {"from": "2026-11-21T08:10:00Z", "to": AT}
    silent = resolved("silence", seen_by=["Oslo", "Sydney"], unwatched=[gap])
    message = compose(silent, CONTEXT)
    assert message.title == "Resolved: Shop"
    assert message.summary == (
        "Oslo, Sydney saw the failure, then fell silent. The other places do not confirm it."
        " The incident lasted at most 2 hours 5 minutes."
        " Nothing was heard from Oslo, Sydney"
        " from 2026-11-21 08:10 UTC to 2026-11-21 10:05 UTC."
    )
    sentence = "Ended after at most 2 hours 5 minutes: Oslo, Sydney fell silent."
    many = several(Event.INCIDENTS_RESOLVED, silent, resolved(unwatched=[gap]))
    assert many.title == "2 incidents are over"
    assert many.items[0].text.startswith(f"Shop: {sentence}")
    assert many.items[1].text.startswith("Shop: was down for ")
    digest = several(Event.INCIDENTS_DIGEST, silent, resolved=1)
    assert digest.items[0].text.startswith(f"Shop: {sentence}")


@pytest.mark.parametrize("name", ["Shop", "x" * 255])
def test_an_sms_of_a_burst_names_the_first_ten_and_stays_within_what_twilio_takes(
    name: str,
) -> None:
    member = facts(Event.INCIDENT_OPENED, monitor=MONITOR | {"name": name})
    text = sms.text(several(Event.INCIDENTS_OPENED, *[member] * 10, count=24))
    assert text.count(name[:50]) == 10
    assert text.splitlines()[0] == "24 monitors are down"
    assert text.splitlines()[-1] == "All incidents: https://wakeful.example/incidents"
    assert len(text) <= 1600


def test_an_sms_that_is_too_long_loses_its_last_facts_and_keeps_its_links() -> None:
    context = MessageContext(f"https://{'w' * 715}.example", str, {4: "Mail"})
    text = sms.text(compose(facts(Event.INCIDENT_OPENED), context))
    assert len(text) <= 1600
    assert "Down since: 2026-11-21 08:00 UTC" in text
    assert "Also down" not in text
    assert "/acknowledge/7\nIncident: " in text


def test_a_telegram_text_that_is_too_long_keeps_its_links() -> None:
    message = compose(facts(Event.INCIDENT_OPENED), CONTEXT)
    huge = replace(message, items=tuple(Item("\U0001f600" * 300) for _ in range(20)))
    text = telegram.payload(huge, TelegramTarget("1"))["text"]
    assert telegram.units(text) <= 4096
    assert "Acknowledge: https://wakeful.example/acknowledge/token-7\nIncident: " in text


def test_each_of_a_group_has_its_cause_and_its_links() -> None:
    over, lasting = resolved(id=8), facts(Event.INCIDENT_OPENED)
    assert several(Event.INCIDENTS_RESOLVED, over).text.splitlines()[2:] == [
        "- Shop: was down for 2 hours 5 minutes. The server refused the connection.",
        "  Incident: https://wakeful.example/incidents/8",
        "All incidents: https://wakeful.example/incidents",
    ]
    extra = {"expires_at": "2026-12-05T00:00:00Z", "days_left": 14}
    digest = {"notice_count": 1, "notices": [facts(Event.CERTIFICATE_EXPIRING, extra=extra)]}
    both = several(Event.INCIDENTS_DIGEST, lasting, over, open=1, resolved=1, **digest)
    assert both.text.splitlines()[2:] == [
        "- Shop: still down since 2026-11-21 08:00 UTC. The server refused the connection.",
        "  Acknowledge: https://wakeful.example/acknowledge/token-7",
        "  Incident: https://wakeful.example/incidents/7",
        "- Shop: was down for 2 hours 5 minutes from 2026-11-21 08:00 UTC. "
        "The server refused the connection.",
        "  Incident: https://wakeful.example/incidents/8",
        "- Certificate of Shop expires in 14 days",
        "  Monitor: https://wakeful.example/monitors/3",
        "Acknowledge: https://wakeful.example/acknowledge/token-7",
        "All incidents: https://wakeful.example/incidents",
    ]
    alone = several(Event.INCIDENTS_DIGEST, lasting, open=1, **digest)
    assert alone.items[0].links == ()
    assert [link.label for link in alone.links] == ["Acknowledge", "Incident"]


@pytest.mark.parametrize("name", ["Shop", "*" * 255])
def test_a_burst_fits_each_service_and_no_link_of_it_is_cut(name: str) -> None:
    member = facts(Event.INCIDENT_OPENED, monitor=MONITOR | {"name": name})
    burst = {"count": 24, "incidents": [member] * 10, "deliveries": []}
    context = MessageContext("https://wakeful.example", lambda id: f"{'t' * 100}-{id}")
    message = compose(facts(Event.INCIDENTS_OPENED, **burst), context)
    link, last = "/acknowledge/" + "t" * 100 + "-7", "https://wakeful.example/incidents"

    blocks = [block["text"]["text"] for block in slack.payload(message)["blocks"]]
    assert sum(f"{link}|Acknowledge>" in block for block in blocks) == 11  # that of all comes last
    assert max(len(block) for block in blocks) <= 3000
    assert sum(f"{link})" in block["text"] for block in teams.card(message)["body"]) == 10
    assert flock.payload(message)["flockml"].count(f'{link}">Acknowledge</a>') == 11

    description = discord.payload(message)["embeds"][0]["description"]
    assert len(description) <= 4096
    assert description.endswith(f"({last})")
    text = telegram.payload(message, TelegramTarget("1"))["text"]
    assert telegram.units(text) <= 4096
    assert text.endswith(f"All incidents: {last}")
    if name == "Shop":
        assert (description.count(f"{link})"), text.count(link)) == (11, 11)


@pytest.mark.parametrize(
    ("public", "bind", "base"),
    [
        ("https://w.example", "127.0.0.1:8000", "https://w.example"),
        (None, "127.0.0.1:8000", "http://127.0.0.1:8000"),
        (None, "0.0.0.0:9000", "http://127.0.0.1:9000"),
        (None, "[::]:80", "http://[::1]"),
    ],
)
def test_links_lead_to_the_public_url_or_to_where_we_listen(
    public: str | None, bind: str, base: str
) -> None:
    assert base_url(public, bind) == base


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "less than a second"), (1, "1 second"), (61, "1 minute 1 second"), (3600, "1 hour"),
     (3605, "1 hour"), (90061, "1 day 1 hour")],
)  # fmt: skip
def test_durations_are_written_in_two_units(seconds: int, text: str) -> None:
    assert words.duration(seconds) == text


def test_an_acknowledge_link_is_signed_and_expires(core: Flask) -> None:
    start = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
    with core.app_context(), time_machine.travel(start, tick=False) as clock:
        token = tokens.acknowledgement_token(7, "email to ops@example.com")
        assert re.fullmatch(r"[A-Za-z0-9_.-]+", token)
        read = tokens.read_acknowledgement(token)
        assert (read.incident_id, read.via) == (7, "email to ops@example.com")
        forged = token[:-2] + ("AA" if token[-2:] != "AA" else "BB")
        for bad in (forged, "", "x.y.z"):
            with pytest.raises(Denied, match="not valid"):
                tokens.read_acknowledgement(bad)
        clock.move_to(start + timedelta(days=7, seconds=2))
        with pytest.raises(Denied, match="expired"):
            tokens.read_acknowledgement(token)


SLOW = INCIDENT | {"severity": "degraded", "cause": "The first byte takes 1.9 s."}
ESCALATED = INCIDENT | {"severity": "down", "down_since": "2026-11-21T09:00:00Z"}
OVER = {"ended_at": "2026-11-21T10:00:00Z", "ending": "recovered"}


@pytest.mark.parametrize(
    ("event", "incident", "tone", "words"),
    [
        (Event.INCIDENT_OPENED, SLOW, "warning", ["Degraded: Shop", "Slow since: 2026-11-21 08"]),
        (Event.INCIDENT_REMINDER, SLOW, "warning", ["Still degraded: Shop", "Slow for 2 hours"]),
        (Event.INCIDENT_OPENED, ESCALATED, "bad",
         ["Down: Shop", "Slow since: 2026-11-21 08:00", "Down since: 2026-11-21 09:00"]),
        (Event.INCIDENT_RESOLVED, SLOW | OVER, "good", ["Fast again: Shop", "slow for 2 hour"]),
        (Event.INCIDENT_RESOLVED, ESCALATED | OVER, "good", ["Up again: Shop", "down for 1 hour."]),
        (Event.INCIDENT_RESOLVED, SLOW | OVER | {"ending": "changed"}, "good",
         ["Resolved: Shop", "As it is judged now, it is not slow."]),
    ],
)  # fmt: skip
def test_a_message_about_a_slow_monitor_does_not_say_that_it_is_down(event, incident, tone, words):
    message = compose(facts(event, incident=incident), CONTEXT)
    assert message.tone == tone
    for text in words:
        assert text in message.text
    if incident["severity"] == "degraded":
        own = message.text.replace("Also down: Mail", "").replace("Still down: Mail", "")
        assert not re.search(r"\b[Dd]own\b", own)


@pytest.mark.parametrize(
    ("slow", "title"),
    [
        (0, "3 monitors are down"),
        (3, "3 monitors are slow"),
        (1, "2 monitors are down, and 1 slow"),
    ],
)
def test_a_burst_counts_what_is_slow_apart(slow, title):
    assert several(Event.INCIDENTS_OPENED, count=3, degraded=slow).title == title


RUNBOOK = "https://wiki.example/shop"
NOTES = [
    ("", None),
    (f"Ask Ben.\n\n{RUNBOOK}\n", f"Ask Ben. · {RUNBOOK}"),
    (f"{'word ' * 70}\n{RUNBOOK}.", f"{('word ' * 59).strip()} … {RUNBOOK}"),
    (f"{RUNBOOK} {'word ' * 70}", f"{RUNBOOK} {('word ' * 54).strip()} …"),
    (f"{'word ' * 57}{RUNBOOK} and more", f"{('word ' * 57).strip()} … {RUNBOOK}"),
]


@pytest.mark.parametrize(("notes", "shown"), NOTES)
def test_a_message_has_the_first_lines_of_the_notes_and_the_first_link(notes, shown) -> None:
    context = MessageContext("https://w.example", str, notes={3: notes, 4: "Of another"})
    for event in (Event.INCIDENT_OPENED, Event.INCIDENT_REMINDER):
        assert dict(compose(facts(event), context).details).get("Notes") == shown
    assert "Notes" not in compose(facts(Event.INCIDENT_ACKNOWLEDGED), context).text
