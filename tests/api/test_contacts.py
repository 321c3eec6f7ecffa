"""/api/v1/contacts and the contacts of monitors (decision 13)."""

from __future__ import annotations

import pytest

from app.records import MAX_ALERTS, MAX_CONTACT_NAME
from tests.api.conftest import MONITOR
from tests.factories import make_key

pytestmark = pytest.mark.settings(rate_limit=0)

MAIL = {"channels[0][key]": "email", "channels[0][value]": "shop-team@example.com"}


KEYS = ("email", "contact")


def test_a_contact_is_stored_as_a_form_and_comes_back_whole(api):
    typed = MAIL | {"name": "Shop team", "default": "true", "quiet_start": "22:00"}
    contact = api.data("POST", "/contacts", data=typed | {"quiet_end": "07:00"})
    assert contact["channels"] == [{"key": "email", "value": "shop-team@example.com"}]
    assert (contact["default"], contact["min_severity"]) == (True, "all")
    assert (contact["acknowledgements"], contact["monitors"]) == (True, 0)
    assert api.get(f"/contacts/{contact['id']}")["data"] == contact
    changed = api.data("PATCH", f"/contacts/{contact['id']}", data={"min_severity": "down"})
    assert (changed["name"], changed["min_severity"]) == ("Shop team", "down")
    masked = {"channels[0][key]": "email", "channels[0][value]": "••••.com"}
    kept = api.data("PATCH", f"/contacts/{contact['id']}", data=masked)
    assert kept["channels"] == contact["channels"], "a mask keeps what is stored"
    assert api("DELETE", f"/contacts/{contact['id']}").json["deleted"] is True


def test_what_is_wrong_with_a_contact_is_named(api):
    api.data("POST", "/contacts", data=MAIL | {"name": "Shop team"})
    email, contact = ({"channels[7][key]": key, "channels[7][value]": "B"} for key in KEYS)
    for typed, field in (
        (MAIL, "name"),
        *((MAIL | {"name": name}, "name")
          for name in ("4711", "x" * (MAX_CONTACT_NAME + 1), "SHOP team", "••••abcd")),
        ({"name": "A"}, "channels"),
        ({"name": "A"} | contact, "channels.7.key"),
        ({"name": "A"} | email, "channels.7.value"),
        (MAIL | {"name": "A", "quiet_start": "22:00"}, "quiet_end"),
        (MAIL | {"name": "A", "quiet_zone": "Mars"}, "quiet_zone"),
        (MAIL | {"name": "A", "min_severity": "some"}, "min_severity"),
        (MAIL | {"name": "A", "monitors": "1"}, "monitors"),
        ({"name": "A"} | {f"channels[{n}][{part}]": "email" if part == "key" else f"a{n}@x.example"
                          for n in range(MAX_ALERTS + 1) for part in ("key", "value")}, "channels"),
    ):  # fmt: skip
        assert list(api.errors("POST", "/contacts", data=typed)) == [field]
    assert api.get("/contacts")["meta"]["total"] == 1


def test_a_monitor_names_contacts_and_an_unknown_one_is_named_with_its_index(api):
    id = api.data("POST", "/contacts", data=MAIL | {"name": "Shop team"})["id"]
    monitor = api.monitor(
        **{"alerts[3][key]": "contact", "alerts[3][value]": str(id),
           "alerts[1][key]": "email", "alerts[1][value]": "ops@example.com"}
    )  # fmt: skip
    assert monitor["alerts"] == [
        {"key": "email", "value": "ops@example.com"},
        {"key": "contact", "value": "Shop team"},
    ]
    wrong = {"alerts[7][key]": "contact", "alerts[7][value]": "Nobody"}
    faults = api.errors("PATCH", f"/monitors/{monitor['id']}", data=wrong)
    assert faults == {"alerts.7.value": ['There is no contact "Nobody".']}
    for name in ("\ud800", "a\x00b", "x" * (MAX_CONTACT_NAME + 1)):
        sent = MONITOR | {"alerts": [{"key": "contact", "value": name}]}
        assert list(api.errors("POST", "/monitors", json=sent)) == ["alerts.0.value"], name
    api.data("PATCH", f"/contacts/{id}", data={"name": "Store team"})
    assert api.get(f"/monitors/{monitor['id']}")["data"]["alerts"][1]["value"] == "Store team"


def test_a_key_that_may_only_read_sees_masks_but_the_names_of_contacts(app, api):
    api.data("POST", "/contacts", data=MAIL | {"name": "Shop team"})
    api.monitor(**{"alerts[0][key]": "contact", "alerts[0][value]": "Shop team"})
    api.secret = make_key(app, "read")
    [contact] = api.get("/contacts")["data"]
    assert contact["channels"] == [{"key": "email", "value": "••••.com"}]
    [monitor] = api.get("/monitors")["data"]
    assert monitor["alerts"] == [{"key": "contact", "value": "Shop team"}]
    assert api("POST", "/contacts", data=MAIL | {"name": "B"}).status_code == 403


def test_what_a_deletion_cannot_do_is_named(api):
    shop = api.data("POST", "/contacts", data=MAIL | {"name": "Shop team"})["id"]
    api.data("POST", "/contacts", data=MAIL | {"name": "Night shift"})
    for query, field in (
        ("?replace_with=Nobody", "replace_with"),
        ("?replace_with=Shop+team", "replace_with"),
        ("?replace_with=Night+shift&force=true", "force"),
        ("?forced=true", "forced"),
    ):
        assert list(api.errors("DELETE", f"/contacts/{shop}{query}")) == [field]


def test_a_delivery_that_waits_can_be_given_up(api):
    id = api.data("POST", "/contacts", data=MAIL | {"name": "Shop team"})["id"]
    [delivery] = api.data("POST", f"/contacts/{id}/test")["deliveries"]
    given_up = api.data("POST", f"/deliveries/{delivery}/give-up")
    assert (given_up["status"], given_up["reason"]) == ("failed", "given up by hand")
    assert given_up["contacts"] == ["Shop team"]
    assert api("POST", f"/deliveries/{delivery}/give-up").status_code == 409
    assert [record["id"] for record in api.get("/deliveries", contact_id=id)["data"]] == [delivery]
