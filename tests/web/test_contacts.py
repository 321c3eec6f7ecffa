"""Contacts on the dashboard: one edit for all the monitors of a team (decision 13)."""

from typing import Any

from flask import Flask

from app.db.tables import ContactRow, MonitorRow
from app.records import CONTACT, Contact, Monitor, MonitorQuery, PageQuery, Pair
from tests.factories import make_monitor
from tests.faults.broken import corrupt
from tests.support.store import store_of

MAIL = Pair("email", "shop@example.com")
HOOK = Pair("slack", "https://hooks.slack.example/T1/B1/secret-of-shop")


def add(app: Flask, name: str = "Shop team", *channels: Pair, **fields: Any) -> Contact:
    return store_of(app).contacts.create(
        {"name": name, "channels": channels or (MAIL, HOOK), **fields}
    )


def contacts(app: Flask) -> list[Contact]:
    return list(store_of(app).contacts.list(PageQuery()).items)


def monitors(app: Flask) -> list[Monitor]:
    query = MonitorQuery(sort_by="id", sort="asc", per_page=100)
    return list(store_of(app).monitors.list(query).items)


def names(monitor: Monitor) -> list[str]:
    return [pair.value for pair in monitor.alerts if pair.key == CONTACT]


def test_a_contact_is_added_changed_and_deleted(app, editor):
    assert "No contacts yet" in editor.open("/contacts").text
    editor.open("/contacts/new").press("Save", name="Shop team")
    editor.shows("Add at least one channel.", status=422)
    editor.press("Save", **{"channels[0][key]": "email", "channels[0][value]": "shop@example.com"})
    assert "Shop team saved." in editor.text
    [contact] = contacts(app)
    assert (contact.channels, contact.acknowledgements, contact.default) == ((MAIL,), True, False)
    editor.open(f"/contacts/{contact.id}/edit").press("Save", name="Store team", default="1")
    [contact] = contacts(app)
    assert (contact.name, contact.channels, contact.default) == ("Store team", (MAIL,), True)
    editor.open(f"/contacts/{contact.id}/delete").press("Delete contact")
    assert "Store team deleted." in editor.text
    assert contacts(app) == []


def test_values_are_shown_masked_and_stay_when_the_mask_is_sent_back(app, editor):
    contact = add(app)
    assert HOOK.value not in editor.open(f"/contacts/{contact.id}").text
    editor.open(f"/contacts/{contact.id}/edit").press("Save", name="Store team").hides(HOOK.value)
    assert contacts(app)[0].channels == (MAIL, HOOK)
    alerts = (MAIL, Pair(CONTACT, "Store team"), HOOK)
    fields = {"name": "Shop", "url": "https://shop.example", "interval": 60, "alerts": alerts}
    id = store_of(app).monitors.create(fields).id
    editor.open(f"/monitors/{id}/edit").press("Save", name="Store")
    assert monitors(app)[0].alerts == alerts, "in this order"


def test_what_is_wrong_is_said_and_nothing_is_stored(app, editor):
    add(app, "Night shift")
    contact = add(app, "Shop team", MAIL)
    for typed, fault in (
        ({"name": "Night SHIFT"}, "This is already in use. Choose another one."),
        ({"channels[0][value]": "nobody"}, "This is not an email address."),
    ):
        editor.open(f"/contacts/{contact.id}/edit").press("Save", **typed)
        assert (editor.status, fault in editor.text) == (422, True), typed
        assert contacts(app)[1] == contact, typed


def test_a_monitor_picks_contacts_by_ticking_them(app, editor):
    shop, _night = add(app), add(app, "Night shift")
    editor.open("/monitors/new").press(
        "Save", url="https://shop.example", name="Shop", contacts=["Shop team"]
    )
    [monitor] = monitors(app)
    assert monitor.alerts == (Pair(CONTACT, "Shop team"),)
    assert (
        'href="/contacts/named?name=Shop+team"' in editor.open(f"/monitors/{monitor.id}").page.text
    )
    assert "Shop team" in editor.open("/contacts/named?name=Shop+team").text
    own = {"alerts[0][key]": "email", "alerts[0][value]": "ops@example.com"}
    editor.open(f"/monitors/{monitor.id}/edit").press(
        "Save", contacts=["Shop team", "Night shift"], **own
    )
    [monitor] = monitors(app)
    assert names(monitor) == ["Shop team", "Night shift"]
    assert monitor.alerts[-1] == Pair("email", "ops@example.com")
    editor.open(f"/monitors/{monitor.id}/edit").press("Save", contacts=[])
    [monitor] = monitors(app)
    assert monitor.alerts == (Pair("email", "ops@example.com"),)
    assert "No monitor uses this contact yet." in editor.open(f"/contacts/{shop.id}").text


def test_new_monitors_start_with_the_default_contacts(app, editor):
    add(app, default=True)
    add(app, "Night shift")
    editor.open("/monitors/new").press("Save", url="https://shop.example", name="Shop")
    editor.open("/monitors/import").press("Preview", urls="https://two.example")
    editor.press("Create 1 monitor")
    assert [names(monitor) for monitor in monitors(app)] == [["Shop team"], ["Shop team"]]


def test_many_monitors_get_lose_and_replace_a_contact_at_once(app, editor):
    add(app)
    add(app, "Night shift")
    ids = [str(make_monitor(app, alerts=[["email", "ops@example.com"]]).id) for _ in range(3)]

    def apply(action: str, contact: str) -> list[list[str]]:
        editor.open("/monitors").press("Apply", ids=ids, action=action, contact=contact)
        return [[pair.value for pair in monitor.alerts] for monitor in monitors(app)]

    for _ in range(2):
        assert apply("contact", "Shop team") == [["ops@example.com", "Shop team"]] * 3
    assert apply("uncontact", "Shop team") == [["ops@example.com"]] * 3
    assert apply("recontact", "Night shift") == [["ops@example.com"]] * 3
    assert "Replace all alerts of 3 monitors?" in editor.text
    editor.press("Replace all alerts")
    assert apply("uncontact", "Shop team") == [["Night shift"]] * 3
    editor.open("/monitors").press("Apply", ids=ids, action="contact", contact="")
    assert "This field is required." in editor.text


def test_deleting_a_contact_in_use_asks_who_takes_its_place(app, editor):
    shop, night = add(app), add(app, "Night shift")
    for number in range(2):
        editor.open("/monitors/new").press(
            "Save", url=f"https://shop.example/{number}", name="Shop", contacts=["Shop team"]
        )
    editor.open(f"/contacts/{shop.id}/delete").shows("2 monitors use this contact.")
    editor.press("Delete contact", replace_with="Night shift")
    assert [names(monitor) for monitor in monitors(app)] == [["Night shift"]] * 2
    editor.open(f"/contacts/{night.id}/delete").press("Delete contact")
    assert "Monitors use this contact." in editor.text
    editor.press("Delete contact", force=True)
    assert [monitor.alerts for monitor in monitors(app)] == [(), ()]


def test_a_viewer_sees_contacts_and_changes_none(app, viewer):
    make_monitor(app)
    assert "Add a contact" not in viewer.open("/monitors").text, "there is none"
    contact = add(app)
    assert "Shop team" in viewer.open("/contacts").text
    assert "New contact" not in viewer.text
    assert "Send test alert" not in viewer.open(f"/contacts/{contact.id}").text


def test_a_page_that_was_open_while_others_changed_the_contacts_undoes_nothing(app, editor):
    shop = add(app)
    add(app, "Night shift")
    id = make_monitor(app, name="Shop", alerts=[["email", "ops@example.com"]]).id
    editor.open("/monitors").press("Apply", ids=[str(id)], action="contact", contact="Shop team")
    editor.open(f"/monitors/{id}/edit")
    store = store_of(app)
    alerts = (*store.monitors.get(id).alerts, Pair(CONTACT, "Night shift"))
    store.monitors.update(id, {"alerts": alerts})
    store.contacts.update(shop.id, {"name": "Store team"})
    editor.press("Save", name="Web shop").shows("Web shop saved.")
    [monitor] = monitors(app)
    assert (monitor.name, names(monitor)) == ("Web shop", ["Store team", "Night shift"])


def test_contacts_are_not_changed_over_channels_that_cannot_be_read(app, editor):
    add(app)
    id = make_monitor(app, name="Shop", alerts=[["email", "ops@example.com"]]).id
    corrupt(app, MonitorRow.alerts, id)
    editor.open("/monitors").press("Apply", ids=[str(id)], action="contact", contact="Shop team")
    assert "Its stored alerts cannot be read." in editor.text
    editor.open(f"/monitors/{id}/edit").press("Save", contacts=["Shop team"])
    editor.shows("this would delete them", status=422)
    assert monitors(app)[0].unreadable == ("alerts",)
    editor.press("Save", contacts=["Shop team"], remove_unreadable=True)
    assert monitors(app)[0].alerts == (Pair(CONTACT, "Shop team"),)


def test_a_monitor_whose_only_contact_cannot_be_read_is_named_on_the_home_page(app, editor):
    contact = add(app)
    editor.open("/monitors/new").press(
        "Save", url="https://shop.example", name="Shop", contacts=["Shop team"]
    )
    corrupt(app, ContactRow.channels, contact.id)
    assert "Nobody would be alerted about Shop" in editor.open("/").text
    editor.open(f"/contacts/{contact.id}/edit").press("Save", name="Store team")
    assert "Store team saved." in editor.text
    assert contacts(app)[0].unreadable == ("channels",)
    typed = {"channels[0][key]": "email", "channels[0][value]": "ops@example.com"}
    editor.open(f"/contacts/{contact.id}/edit").press("Save", **typed)
    assert "Nobody would be alerted" not in editor.open("/").text
