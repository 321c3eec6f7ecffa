"""A channel that several monitors have as their own becomes a contact."""

from flask import Flask
from sqlalchemy import event

from app.db.tables import MonitorRow
from app.records import Pair
from app.stores import current_store
from tests.support.store import store_of
from tests.web.visitor import Visitor

HOOK = "https://hooks.slack.com/services/T0/B0/abcd1234"
ROW = {"alerts[0][key]": "slack", "alerts[0][value]": HOOK}
OFFER = "3 monitors use this Slack webhook. Create a contact from it"


def add(app: Flask, *alerts: tuple[str, str], **fields: object) -> int:
    pairs = tuple(Pair(key, value) for key, value in alerts)
    values = {"name": "Shop", "url": "http://127.0.0.1:9/", "interval": 60}
    return store_of(app).monitors.create(values | {"alerts": pairs} | fields).id


def alerts_of(app: Flask, id: int) -> tuple[Pair, ...]:
    return store_of(app).monitors.get(id).alerts


def save_a_third(editor: Visitor, **fields: str) -> Visitor:
    return editor.open("/monitors/new").press("Save", url="127.0.0.1:9/new", **ROW | fields)


def test_the_third_monitor_with_a_hook_offers_a_contact_that_replaces_it_in_all(app, editor):
    mail = ("email", "ops@example.com")
    first, second = add(app, mail, ("slack", HOOK)), add(app, ("slack", HOOK), mail)
    other = add(app, ("slack", f"{HOOK}5"))
    save_a_third(editor)
    assert OFFER in editor.text
    link = next(part for part in editor.page.text.split('"') if "/from-channel?" in part)
    editor.open(link.replace("&amp;", "&")).shows("3 monitors use the Slack webhook ••••1234 .")
    assert HOOK not in editor.page.text
    editor.press("Create a contact", name="Shop team")
    assert "Shop team created. 3 monitors use it in place of the channel." in editor.text
    contact = Pair("contact", "Shop team")
    assert alerts_of(app, first) == (Pair(*mail), contact)
    assert alerts_of(app, second) == (contact, Pair(*mail))
    assert alerts_of(app, other + 1) == (contact,)
    assert alerts_of(app, other) == (Pair("slack", f"{HOOK}5"),)
    assert store_of(app).contacts.get(1).channels == (Pair("slack", HOOK),)


def test_two_monitors_are_no_reason_for_a_contact_and_an_old_channel_is_not_named_again(
    app, editor
):
    add(app, ("slack", HOOK))
    assert "Create a contact from it" not in save_a_third(editor).text
    assert OFFER in editor.open("/monitors/1/clone").press("Save").text
    editor.open("/monitors/1/edit").press("Save", name="X").hides("Create a contact from it")


def test_a_taken_name_and_a_channel_that_has_changed_are_said_on_the_page(app, editor):
    for _ in range(3):
        add(app, ("slack", HOOK))
    [shared] = store_of(app).contacts.shared(1)
    store_of(app).contacts.create({"name": "Shop team", "channels": (Pair("slack", HOOK),)})
    editor.open(f"/contacts/from-channel?monitor=1&mark={shared.mark}")
    editor.press("Create a contact", name="shop TEAM")
    editor.shows("This is already in use. Choose another one.", status=422)
    store_of(app).monitors.update(1, {"alerts": ()})
    editor.press("Create a contact", name="Night shift")
    assert "This channel was changed or removed meanwhile." in editor.text
    assert list(store_of(app).contacts.names()) == ["Shop team"]
    assert alerts_of(app, 2) == (Pair("slack", HOOK),)
    editor.open(f"/contacts/from-channel?monitor=1&mark={shared.mark}")
    assert "Fewer than three monitors use this channel now." in editor.text


def test_equal_channels_are_found_without_decrypting_those_of_other_monitors(app):
    for number in range(30):
        add(app, ("slack", HOOK if number < 3 else f"{HOOK}{number}"))
    decrypted = []

    def loaded(row: MonitorRow, _context: object) -> None:
        decrypted.append(row.id)

    with app.app_context():
        event.listen(MonitorRow, "load", loaded)
        try:
            [shared] = current_store().contacts.shared(1)
        finally:
            event.remove(MonitorRow, "load", loaded)
    assert (shared.monitors, decrypted) == (3, [1])


def test_an_equal_value_of_another_channel_is_another_one(app):
    for key in ("slack", "slack", "webhook"):
        add(app, (key, HOOK))
    with app.app_context():
        assert current_store().contacts.shared(1) == []
