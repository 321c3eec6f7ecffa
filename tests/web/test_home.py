"""Home: its heading agrees with what is listed below it."""

import re
from datetime import timedelta

import pytest
from sqlalchemy import select

from app.access.settings import SMTP_URL
from app.db import writing
from app.db.tables import AuthenticatorAppRow, PersonRow
from app.records import LAST_BACKUP, IncidentQuery, Pair
from tests.factories import make_delivery, make_incident, make_monitor, now
from tests.support.queries import queries
from tests.support.store import access_of, store_of

HOUR = timedelta(hours=1)


def test_what_people_reported_is_not_called_down(app, viewer):
    make_incident(app, make_monitor(app, state={"verdict": "down"}))
    assert "Down now" in viewer.open("/").text
    make_incident(app, make_monitor(app, name="Fine", state={"verdict": "up"}), by_hand=True)
    assert "Down now" not in viewer.open("/").text
    assert "Open incidents" in viewer.text


def test_each_button_to_acknowledge_says_of_what(app, editor):
    for name in ("Alpha", "Beta"):
        make_incident(app, make_monitor(app, name=name), cause=f"It fails by {name}")
    page = editor.open("/").page.text
    for name in ("Alpha", "Beta"):
        assert re.search(rf'Acknowledge<span class="visually-hidden"> {name}</span></button>', page)


def test_a_failure_that_is_not_confirmed_is_not_counted_as_down(app, viewer):
    make_monitor(app, name="Shaky", state={"verdict": "down", "cause": "No answer came"})
    make_monitor(app, name="Fine", state={"verdict": "up"})
    viewer.open("/").shows("1 monitor is failing, checking again", "2 monitors, 1 up")
    viewer.hides("is down", "Down").shows("Shaky Failing, checking again No answer came")
    make_incident(app, make_monitor(app, name="Shop", state={"verdict": "down"}))
    viewer.open("/").shows("1 monitor is down", "1 Failing, checking again")


def test_every_page_says_the_same_of_a_failure_that_is_repeated(app, viewer):
    """In one sentence and one colour, which is not that of an outage."""
    shaky = make_monitor(app, name="Shaky", state={"verdict": "down", "status_since": now()})
    for path in ("/", "/monitors", "/monitors?state=failing", "/wall", f"/monitors/{shaky.id}"):
        viewer.open(path).shows("Shaky", "Failing, checking again")
        assert "tone-degraded" in viewer.page.text, path
        assert "tone-down" not in viewer.page.text, path
    viewer.open("/monitors?state=down").shows("Nothing found")


def test_when_all_is_well_home_shows_every_monitor_and_what_comes_next(app, viewer):
    soon, later = now() + timedelta(days=5), now() + timedelta(days=200)
    shop = make_monitor(app, name="Shop", state={"verdict": "up", "ssl_expires_at": later})
    make_monitor(app, name="Blog", state={"verdict": "up", "ssl_expires_at": soon})
    make_monitor(app, name="Mail", paused=True)
    start = now() + timedelta(days=6)
    fields = {"name": "Patch day", "start_at": start, "end_at": start + timedelta(hours=2)}
    ended = {"started_at": now() - timedelta(hours=9), "ended_at": now() - timedelta(hours=8)}
    make_incident(app, shop, **ended)
    store_of(app).windows.create(fields)
    text = viewer.open("/").text
    assert "Everything is up" in text
    assert f"Next maintenance Patch day {start:%a} {start.day} {start:%b %Y}" in text
    expires = text.index("Next expiry")
    assert text.index("Blog certificate", expires) < text.index("Shop certificate", expires)
    assert "Last incident Shop 9 hours ago , lasted 1 h" in text
    page = viewer.page.text
    for name in ("Shop", "Blog", "Mail"):
        assert f'<span class="strip-name">{name}</span>' in page
    make_incident(app, shop)
    assert "strip-name" not in viewer.open("/").page.text


def test_a_monitor_that_flaps_has_one_line(app, viewer):
    shop = make_monitor(app, name="Shop", state={"verdict": "up"})
    blog = make_monitor(app, name="Blog", state={"verdict": "up"})
    for hours in (2, 4, 6, 8):
        begun = now() - timedelta(hours=hours)
        make_incident(app, shop, started_at=begun, ended_at=begun + timedelta(minutes=5))
    begun = now() - timedelta(hours=5)
    make_incident(app, blog, started_at=begun, ended_at=begun + timedelta(minutes=5))
    text = viewer.open("/").text.split("Recent changes")[1]
    assert text.count("Shop") == 1
    assert "Down 4 times since" in text
    assert "up now" in text
    assert text.count("Blog") == 2


def test_a_broken_channel_is_named_with_its_contact_and_its_monitor(app, viewer):
    channel = Pair("webhook", "https://hooks.example.com/abcdef")
    contact = store_of(app).contacts.create({"name": "Shop team", "channels": (channel,)})
    alerts = (Pair("contact", "Shop team"),)
    fields = {"name": "Shop", "url": "http://127.0.0.1:9/", "interval": 60, "alerts": alerts}
    monitor = store_of(app).monitors.create(fields)
    make_delivery(app, monitor_id=monitor.id, status="failed", reason="410 Gone",
                  value=channel.value, sources=f",{contact.id},")  # fmt: skip
    viewer.open("/").shows("of the contact Shop team , last tried for Shop")


NAME = "The name hooks.example does not exist in DNS: NXDOMAIN."
TRIED = [{"at": "2026-11-21T08:00:00Z", "ok": False, "answer": NAME}] * 6
SAYS = f"Nobody has been reached yet about Auth. Slack failed 6 times: {NAME}"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"status": "pending", "attempts": TRIED}], SAYS),
        ([{"status": "failed", "attempts": TRIED, "reason": NAME}], SAYS),
        ([{"status": "pending", "attempts": TRIED}, {}], ""),
        ([{"status": "pending"}], ""),
        ([{"status": "pending", "at": now() - HOUR}], "Auth. Slack has not been tried yet."),
        ([{"status": "pending", "at": now() - HOUR, "reason": "flapping"}], ""),
        ([{"status": "held", "at": now() - HOUR, "reason": "quiet hours"}], ""),
        ([{"status": "held", "reason": "burst", "covered_by": 2}, {"incident_id": None}], ""),
        (
            [
                {"status": "held", "reason": "burst", "covered_by": 2},
                {"incident_id": None, "status": "pending", "attempts": TRIED},
            ],
            SAYS,
        ),
    ],
)
def test_an_alert_that_has_reached_nobody_is_named_before_it_is_given_up(app, viewer, rows, says):
    auth = make_monitor(app, name="Auth", state={"verdict": "down"})
    incident = make_incident(app, auth)
    for number, row in enumerate(rows):
        fields = {"monitor_id": auth.id, "incident_id": incident.id, "channel": "slack"}
        make_delivery(app, **fields | {"lane": f"lane {number}"} | row)
    text = viewer.open("/").text
    assert says in text
    assert ("Nobody has been reached" in text) == bool(says)
    store_of(app).incidents.update(incident.id, {"acknowledged_at": now()}, by="Ada")
    viewer.open("/").hides("Nobody has been reached")


def test_a_channel_that_failed_is_named_in_one_notice(app, viewer):
    url = "https://hooks.example.com/abcdef"
    auth = make_monitor(app, name="Auth", state={"verdict": "down"}, alerts=[["slack", url]])
    incident = make_incident(app, auth)
    make_delivery(
        app, monitor_id=auth.id, incident_id=incident.id, channel="slack", value=url,
        status="failed", attempts=TRIED, reason=NAME,
    )  # fmt: skip
    viewer.open("/").shows(SAYS, "Fix the channel in the contact or the monitor")
    viewer.hides("An alert channel does not work")
    store_of(app).incidents.update(incident.id, {"acknowledged_at": now()}, by="Ada")
    viewer.open("/").shows("An alert channel does not work").hides("Nobody has been reached")


def test_card_and_timeline_say_that_nobody_is_alerted(app, viewer):
    for alerts, says in (("", True), ("ops@example.com", False)):
        monitor = make_monitor(app, state={"verdict": "down"})
        if alerts:
            store_of(app).monitors.update(monitor.id, {"alerts": (Pair("email", alerts),)})
        incident = make_incident(app, monitor)
        for path in ("/", f"/incidents/{incident.id}"):
            assert ("Nobody is alerted" in viewer.open(path).text) == says, (alerts, path)
        store_of(app).incidents.delete(incident.id)


def test_home_asks_the_same_few_questions_of_few_and_of_many(app, viewer):
    def trouble(times: int) -> None:
        for _ in range(times):
            down = make_monitor(app, state={"verdict": "down"})
            make_incident(app, down)
            make_incident(app, down, started_at=now() - HOUR * 9, ended_at=now() - HOUR * 8)
            for verdict in ("up", "down", "degraded", "unknown"):
                make_monitor(app, state={"verdict": verdict})

    def asked() -> int:
        viewer.open("/")  # after the start, and after some seconds, settings are read again
        with app.app_context(), queries() as sent:
            viewer.open("/")
        return len(sent)

    trouble(1)
    few = asked()
    trouble(19)
    assert asked() <= few + 4  # what does not fit into one list is three
    assert few <= 20


def test_monitors_that_fail_with_one_cause_are_one_card_with_one_button(app, editor):
    names = [f"Shop {number}" for number in range(9)]
    for number, name in enumerate(names):
        cause = f"No TCP connection to 10.0.0.{number} port 443 within the limit of 10 s."
        monitor = make_monitor(app, name=name, state={"verdict": "down"})
        make_incident(app, monitor, cause=cause, cause_code="timeout:connect")
    other = make_monitor(app, name="Blog", state={"verdict": "down"})
    make_incident(app, other, cause="The server answered 503.", cause_code="http_status:503")
    page = editor.open("/")
    assert page.page.text.count('<li class="down-card') == 2
    page.shows("No TCP connection to … port … within the limit of … s.", *names)
    page.press("Acknowledge all 9")
    page.shows("9 incidents acknowledged. Others can see that you are on it.")
    page.hides("Acknowledge all").shows("Acknowledged by editor@wakeful.test")
    stored = store_of(app).incidents.list(IncidentQuery(status="unresolved"))
    assert [incident.monitor.name for incident in stored.items] == ["Blog"]


def test_a_card_of_which_some_are_over_says_so(app, editor):
    incidents = [make_incident(app, make_monitor(app, name=name)) for name in "abc"]
    page = editor.open("/")
    store_of(app).incidents.update(incidents[0].id, {"ended_at": now()})
    page.press("Acknowledge all 3")
    page.shows("2 incidents acknowledged.", "1 was over already.")


def test_first_steps_are_ticked_by_what_is_stored_until_they_are_done_or_put_away(
    app, admin, editor, viewer
):
    steps = ("Create a contact", "Set up the mail server", "Add a second factor", "Make a backup",
             "Publish a status page")  # fmt: skip
    admin.open("/").shows("First steps", *steps).hides("Done")
    editor.open("/").shows(*steps[::2]).hides(steps[1], steps[3])
    viewer.open("/").hides("First steps")
    contact = {"name": "Ops", "channels": (Pair("webhook", "http://127.0.0.1:9/"),)}
    store_of(app).contacts.create(contact)
    store_of(app).status_pages.create({"name": "Shop", "slug": "shop"})
    with app.app_context():
        settings = access_of(app).settings
        settings.set(SMTP_URL, "smtp://mail.example")
        settings.set(LAST_BACKUP, "2026-11-21T08:00:00Z")
    text = admin.open("/").text
    assert [step for step in steps if f"{step} Done" in text] == [*steps[:2], *steps[3:]]
    admin.press("Do not show this again").hides("First steps")
    editor.open("/").shows("First steps")
    with app.app_context(), writing() as session:
        person = session.scalars(select(PersonRow).where(PersonRow.role == "editor")).one()
        session.add(
            AuthenticatorAppRow(person_id=person.id, secret="x", used_step=0, created_at=now())
        )
    editor.open("/").hides("First steps")
    for visitor in (admin, editor):  # put away, and done
        with app.app_context(), queries() as sent:
            visitor.open("/")
        assert not [statement for statement in sent if "status_pages" in statement]
