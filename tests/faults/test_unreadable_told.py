"""Unreadable values are reported to the operator: at the start, by doctor and by /readyz."""

import logging
import os
import time
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from app import create_core
from app.access import Access
from app.access.people import SETUP_TOKEN
from app.commands.doctor import REPLACED_AUTOMATICALLY, examine
from app.commands.services import Finding
from app.config import SettingError
from app.db import db, schema, writing
from app.db.tables import (
    AuthenticatorAppRow,
    ContactRow,
    DeliveryRow,
    HeartbeatStateRow,
    IncidentRow,
    MonitorEvidenceRow,
    MonitorRow,
    PingRow,
    SettingRow,
    StatusPageRow,
    SubscriberRow,
)
from app.db.types import Encrypted, Why
from app.net.canary import MEMORY
from app.records import SECRET_FIELDS, Assertion, Notice
from app.stores import health
from tests.alerts.conftest import Outbox
from tests.factories import make_incident, make_monitor, make_person, now
from tests.faults.broken import KINDS, corrupt
from tests.web.visitor import Visitor

EMAIL = [["email", "ops@example.test"]]
SECRETS = {
    "request_headers": [["X-Token", "a secret header"]],
    "request_auth_password": "a secret password",
    "request_body": "a secret body",
    "alerts": EMAIL,
    "assertions": (Assertion("status", "", "=", "200"),),
}


FAR = 900_000_000_000_000_000
CHECK = {"checked_at": "2026-11-21T08:00:00Z", "verdict": "up"}


@pytest.fixture
def whole(app):
    """Something in every encrypted column, twice; by column the id of the second row."""
    box = Outbox(app)
    for _ in range(2):
        shop = make_monitor(app, name="Shop", **SECRETS)
        incident = make_incident(app, shop, evidence={"failing": CHECK})
        (delivery,) = box.tell("incident.opened", shop, incident)
        with app.app_context(), writing() as session:
            kept = {"last_good": CHECK, "failing": [CHECK], "asked": {"oslo": [1, []]}}
            session.add(MonitorEvidenceRow(monitor_id=shop.id, **kept))
            job = HeartbeatStateRow(
                monitor_id=shop.id, token=f"token-{shop.id}", token_hash=str(shop.id), runs=[]
            )
            ping = PingRow(
                monitor_id=shop.id, at=now(), kind="success", method="GET", body="a secret body"
            )
            session.add_all([job, ping])
            at = {"created_at": now(), "updated_at": now()}
            page = StatusPageRow(name="Status", slug=f"status-{shop.id}", **at)
            name = f"Team {shop.id}"
            team = ContactRow(name=name, name_folded=name.casefold(), channels=EMAIL, **at)
            session.add_all([page, team])
            session.flush()
            reader = SubscriberRow(
                status_page_id=page.id, channel="email", value="reader@example.test",
                digest="d" * 64, created_at=now(), confirmed_at=now(),
            )  # fmt: skip
            session.add(reader)
            session.flush()
            contact, subscriber, called = team.id, reader.id, ping.id
        owner = make_person(app, email=f"owner{shop.id}@example.test").id
        with app.app_context(), writing() as session:
            session.add(
                AuthenticatorAppRow(
                    person_id=owner, secret="a secret", used_step=0, created_at=now()
                )
            )
    with app.app_context():
        for name in ("one", "other"):
            Access().settings.set(name, "a secret setting")
    return {
        **{getattr(MonitorRow, name): shop.id for name in SECRETS},
        MonitorEvidenceRow.last_good: shop.id, MonitorEvidenceRow.failing: shop.id,
        MonitorEvidenceRow.asked: shop.id,
        IncidentRow.evidence: incident.id, DeliveryRow.value: delivery, DeliveryRow.facts: delivery,
        SubscriberRow.value: subscriber, ContactRow.channels: contact,
        AuthenticatorAppRow.secret: owner, SettingRow.value: "other",
        HeartbeatStateRow.token: shop.id, PingRow.body: called,
    }  # fmt: skip


EDIT = "Edit the monitor and enter it again, or remove it."
NEXT_INCIDENT = (
    "It is replaced when the next incident of that monitor opens, or its check is asked for."
)
NEW_TOKEN = "Make a new token on the page of the heartbeat, and give it to the job."
BY_AGE = "Nothing to do: it is deleted when it is old enough."
# For each column: doctor's name for the value, and its advice.
NAMED = {
    MonitorRow.request_headers: ('request headers of "Shop" (monitor {})', EDIT),
    MonitorRow.request_auth_password: ('password of "Shop" (monitor {})', EDIT),
    MonitorRow.request_body: ('request body of "Shop" (monitor {})', EDIT),
    MonitorRow.alerts: ('alerts of "Shop" (monitor {})', EDIT),
    MonitorRow.assertions: ('assertions of "Shop" (monitor {})', EDIT),
    HeartbeatStateRow.token: ("token of heartbeat {}", NEW_TOKEN),
    PingRow.body: ("body of ping {}", BY_AGE),
    MonitorEvidenceRow.last_good: ('last good check kept of "Shop" (monitor {})', NEXT_INCIDENT),
    MonitorEvidenceRow.failing: ('failing checks kept of "Shop" (monitor {})', NEXT_INCIDENT),
    MonitorEvidenceRow.asked: (
        'assertions of the last check asked for of "Shop" (monitor {})',
        NEXT_INCIDENT,
    ),
    IncidentRow.evidence: (
        "evidence of incident {}",
        "The incident is kept without its evidence. To remove this warning, delete the incident.",
    ),
    DeliveryRow.value: ("target of delivery {}", BY_AGE),
    DeliveryRow.facts: ("message of delivery {}", BY_AGE),
    SubscriberRow.value: (
        "target of subscriber {}",
        "Nothing is sent to this subscriber. Subscribing again fixes it.",
    ),
    ContactRow.channels: (
        'channels of "Team 2" (contact {})',
        "Nobody is alerted through it. Edit the contact and enter its channels again.",
    ),
    AuthenticatorAppRow.secret: (
        "secret of authenticator app of person {}",
        "They log in with a passkey or a recovery code. If they have none, an admin resets their "
        "second factor on the People page, or run: wakeful user reset EMAIL",
    ),
    SettingRow.value: ("setting {}", "Set it again on the Settings page."),
}


def findings(app):
    return list(examine(app, app.extensions["wakeful.settings"]))


def faults(app):
    return [finding.sentence for finding in findings(app) if finding.is_problem]


def test_doctor_sends_people_to_the_settings_page_for_what_they_set_there(app):
    access = Access()
    with app.app_context():
        for name in ("allow_networks", "canaries"):
            access.settings.set(name, "private")
    for name in ("allow_networks", "canaries"):
        corrupt(app, SettingRow.value, name, "truncated")
    unreadable = [finding for finding in findings(app) if "cannot be read" in finding.sentence]
    assert [finding.is_problem for finding in unreadable] == [True, False]
    assert unreadable[0].sentence.endswith("Set it again on the Settings page.")
    assert unreadable[1].sentence.endswith(REPLACED_AUTOMATICALLY[MEMORY])


@pytest.mark.both_databases
def test_doctor_reads_every_row_of_every_encrypted_column(app, whole):
    encrypted = {
        column
        for table in db.metadata.sorted_tables
        for column in table.c
        if isinstance(column.type, Encrypted)
    }
    assert {column.class_.__table__.c[column.key] for column in whole} == encrypted
    before = [finding.sentence for finding in findings(app)]
    for column, id in whole.items():
        corrupt(app, column, id)
    fresh = [finding for finding in findings(app) if finding.sentence not in before]
    unreadable = [finding for finding in fresh if finding.label == "stored values"]
    assert len(unreadable) == len(whole) == len(NAMED)
    for column, id in whole.items():
        name, advice = NAMED[column]
        sentence = f"The {name.format(id)} cannot be read, because {Why.OTHER_KEY}. {advice}"
        (finding,) = [finding for finding in unreadable if finding.sentence == sentence]
        nothing_to_do = column.class_ in (DeliveryRow, PingRow)
        assert finding.is_problem is not nothing_to_do


def test_doctor_says_what_it_has_read_where_all_of_it_can_be(app, whole):
    (row,) = [finding for finding in findings(app) if finding.label == "stored values"]
    assert row == Finding(
        "stored values",
        "All stored secrets, texts and times can be read. (Check results are not examined.)",
    )


@pytest.mark.parametrize(
    ("table", "row", "damage", "name"),
    [
        ("monitors", 2, f"created_at = -{FAR}", 'created at of "Shop" (monitor 2)'),
        ("monitor_states", 2, f"checked_at = -{FAR}", 'checked at of "Shop" (monitor 2)'),
        ("people", 1, "role = 'owner'", 'role of "owner1@example.test" (person 1)'),
    ],
)
def test_doctor_names_a_row_as_people_know_it(app, whole, table, row, damage, name):
    key = "monitor_id" if table == "monitor_states" else "id"
    with app.app_context(), writing() as session:
        session.execute(text(f"UPDATE {table} SET {damage} WHERE {key} = {row}"))
    [sentence] = [finding for finding in faults(app) if " cannot be read, because " in finding]
    assert sentence.startswith(f"The {name} cannot be read, because {Why.UNEXPECTED}. ")


def test_every_secret_of_a_monitor_has_a_name_for_people():
    columns = MonitorRow.__table__.columns
    assert set(SECRET_FIELDS) == {
        column.key for column in columns if isinstance(column.type, Encrypted)
    }


def test_doctor_says_in_which_way_it_cannot_be_read(app, whole):
    odd = "the value is not what Wakeful writes there"
    whys = {
        "another key": "the value was written with another WAKEFUL_SECRET_KEY, or changed since",
        "truncated": "the value is damaged",
        "garbled": "the value is damaged",
        "missing keys": None,  # the worker sees that, when it composes the message
    }
    for kind in KINDS:
        corrupt(app, DeliveryRow.facts, whole[DeliveryRow.facts], kind)
        why = whys.get(kind, odd)
        sentences = [finding.sentence for finding in findings(app)]
        sentences = [sentence for sentence in sentences if "message of delivery" in sentence]
        assert len(sentences) == (why is not None), kind
        assert all(why in sentence for sentence in sentences), (kind, sentences)


def test_one_broken_row_stops_no_start_and_is_logged(app, whole, caplog):
    for column, id in whole.items():
        corrupt(app, column, id)
    with app.app_context(), caplog.at_level(logging.ERROR):
        schema.read_secrets()
    id = whole[MonitorRow.alerts]
    assert f'The alerts of "Shop" (monitor {id}) cannot be read' in caplog.text
    assert "The setting other cannot be read" in caplog.text


@pytest.mark.parametrize(("pause", "times"), [(0, 1), (schema.SCAN_VALID_SECONDS + 1, 2)])
def test_the_parts_of_a_service_do_not_log_again_what_it_has_just_logged(
    app, whole, pause, times, capfd, monkeypatch
):
    """A part is forked by the supervisor. One that is started again later says it again."""
    corrupt(app, MonitorRow.alerts, whole[MonitorRow.alerts])
    clock = time.monotonic()
    monkeypatch.setattr(schema, "time", SimpleNamespace(monotonic=lambda: clock))
    monkeypatch.setattr(
        schema.log, "error", lambda line, *values: os.write(2, f"{line % values}\n".encode())
    )

    def starts():
        with app.app_context():
            schema.read_secrets()
            db.engine.dispose()

    starts()
    clock += pause
    if not (part := os.fork()):
        with suppress(BaseException):
            starts()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(part, 0)[1] == 0
    beginning = 'The alerts of "Shop"'
    assert capfd.readouterr().err.count(beginning) == times
    starts()
    assert capfd.readouterr().err.count(beginning) == 1, (
        "another start of the same process looks again"
    )


@pytest.mark.parametrize("kind", ["truncated", "broken JSON"])
def test_a_damaged_value_that_is_the_only_secret_does_not_put_the_key_in_doubt(app, kind):
    shop = make_monitor(app, alerts=SECRETS["alerts"])
    corrupt(app, MonitorRow.alerts, shop.id, kind)
    with app.app_context():
        schema.read_secrets()


def test_another_key_stops_the_start_and_doctor_says_so_once(settings, app, whole):
    other = create_core(replace(settings, secret_key="another key than before"))
    with other.app_context():
        with pytest.raises(SettingError, match="WAKEFUL_SECRET_KEY is not the one"):
            schema.read_secrets()
        db.session.remove()
    sentences = [sentence for sentence in faults(other) if "SECRET" in sentence]
    assert len(sentences) == 1
    with other.app_context():
        db.engine.dispose()


def test_readyz_counts_what_cannot_be_read_and_finds_no_fault_in_it(app, whole, monkeypatch):
    monkeypatch.setattr(health, "COUNTED_EVERY", 0.0)
    client = app.test_client()
    ready = client.get("/readyz")
    assert (ready.json["unreadable"], ready.json["warnings"]) == (0, [])
    no_checker = ready.json["faults"]
    for column, id in whole.items():
        corrupt(app, column, id)
    ready = client.get("/readyz")
    rest = "all the rest works: another instance would do no better"
    assert ready.json["faults"] == no_checker, rest
    assert ready.json["unreadable"] == 7
    assert ready.json["warnings"] == [
        "7 stored values cannot be read. wakeful doctor names each and says what to do."
    ]
    assert "wakeful_unreadable_values 7.0" in client.get("/metrics").text
    with app.app_context(), writing() as session:
        row = session.get_one(MonitorRow, whole[MonitorRow.alerts])
        row.alerts = row.request_headers = row.request_body = row.request_auth_password = None
        row.assertions = ()
        session.delete(session.get_one(ContactRow, whole[ContactRow.channels]))
    assert client.get("/readyz").json["unreadable"] == 1
    with app.app_context():
        Access().settings.set("other", None)
    assert client.get("/readyz").json["unreadable"] == 0, (
        "no message is counted: none can be mended"
    )


def test_readyz_does_not_read_all_secrets_for_each_request(app, monkeypatch):
    asked = []
    monkeypatch.setattr(health.unreadable, "scan", lambda only: asked.append(only) or iter(()))
    for _ in range(3):
        app.test_client().get("/readyz")
    assert len(asked) == 1


def test_a_set_up_link_and_the_time_of_a_notice_may_be_unreadable(app):
    access = app.extensions["wakeful.access"]
    with app.app_context():
        first = access.setup.token()
    corrupt(app, SettingRow.value, SETUP_TOKEN)
    with app.app_context():
        again = access.setup.token()
        assert again != first
        assert not access.setup.is_token(first)
        assert access.setup.is_token(again)
        assert access.setup.token() == again
        access.settings.set(Notice.NETWORK_DOWN, "2026-11-21T08:00:00Z")
    visitor = Visitor(app).let_in(make_person(app))
    corrupt(app, SettingRow.value, str(Notice.NETWORK_DOWN))
    assert "Wakeful's own network does not work." in visitor.open("/").text
