"""The contract of every store for contacts (decision 13)."""

from __future__ import annotations

import pytest

from app.errors import Conflict, Invalid
from app.records import Contact, DeliveryQuery, DeliveryStatus, MonitorQuery, PageQuery, Pair
from app.stores.base import Store
from tests.stores.contract.making import add_monitor, not_found

MAIL = Pair("email", "shop@example.com")
HOOK = Pair("webhook", "https://hooks.example.com/shop-team-4711")


def add_contact(store: Store, name: str = "Shop team", *channels: Pair, **more: object) -> Contact:
    return store.contacts.create({"name": name, "channels": channels or (MAIL,), **more})


class ContactsContract:
    def test_contacts_are_stored_changed_and_deleted(self, store: Store) -> None:
        contact = add_contact(store, "Shop team", MAIL, HOOK, default=True)
        assert store.contacts.get(contact.id) == contact
        assert contact.channels == (MAIL, HOOK)
        assert (contact.default, contact.acknowledgements) == (True, True)
        assert (contact.min_severity, contact.monitors) == ("all", 0)
        changed = store.contacts.update(
            contact.id,
            {
                "channels": (HOOK,),
                "min_severity": "down",
                "quiet_start": "22:00",
                "quiet_end": "07:00",
                "quiet_zone": "Europe/Berlin",
            },
        )
        assert (changed.name, changed.channels) == ("Shop team", (HOOK,))
        assert (changed.quiet_start, changed.quiet_zone) == ("22:00", "Europe/Berlin")
        assert [contact.id for contact in store.contacts.list(PageQuery()).items] == [contact.id]
        store.contacts.delete(contact.id)
        assert not store.contacts.list(PageQuery()).items

    def test_contacts_come_by_name_ignoring_case(self, store: Store) -> None:
        for name in ("beta", "Alpha", "gamma"):
            add_contact(store, name)
        page = store.contacts.list(PageQuery())
        assert [record.name for record in page.items] == ["Alpha", "beta", "gamma"]
        assert list(store.contacts.names()) == ["Alpha", "beta", "gamma"]

    def test_a_name_is_taken_in_every_case(self, store: Store) -> None:
        add_contact(store, "Straße")
        other = add_contact(store, "Other")
        for write in (
            lambda: add_contact(store, "STRASSE"),
            lambda: store.contacts.update(other.id, {"name": "strasse"}),
        ):
            with pytest.raises(Invalid) as caught:
                write()
            assert list(caught.value.errors) == ["name"]
        assert store.contacts.update(other.id, {"name": "OTHER"}).name == "OTHER"

    def test_a_monitor_names_contacts_in_any_case_or_by_id_and_follows_a_rename(
        self, store: Store
    ) -> None:
        shop, night = add_contact(store), add_contact(store, "Night shift")
        monitor = add_monitor(
            store, alerts=(Pair("contact", "SHOP TEAM"), MAIL, Pair("contact", str(night.id)))
        )
        named = (Pair("contact", "Shop team"), MAIL, Pair("contact", "Night shift"))
        assert store.monitors.get(monitor.id).alerts == named
        assert store.contacts.get(shop.id).monitors == 1
        store.contacts.update(shop.id, {"name": "Store team"})
        assert store.monitors.get(monitor.id).alerts[0] == Pair("contact", "Store team")
        changed = store.monitors.update(monitor.id, {"alerts": (MAIL,)})
        assert changed.alerts == (MAIL,)
        assert store.contacts.get(shop.id).monitors == 0

    def test_a_name_comes_before_an_id(self, store: Store) -> None:
        first = add_contact(store, "First")
        second = add_contact(store, f"{first.id} at night")
        monitor = add_monitor(store, alerts=(Pair("contact", f"{first.id} AT night"),))
        assert monitor.alerts == (Pair("contact", second.name),)

    def test_a_contact_that_is_named_twice_counts_once(self, store: Store) -> None:
        shop = add_contact(store)
        twice = (Pair("contact", "Shop team"), MAIL, Pair("contact", str(shop.id)))
        monitor = add_monitor(store, alerts=twice)
        assert monitor.alerts == (Pair("contact", "Shop team"), MAIL)

    def test_an_unknown_contact_of_a_monitor_is_refused(self, store: Store) -> None:
        monitor = add_monitor(store, alerts=(MAIL,))
        for write in (
            lambda: add_monitor(store, alerts=(MAIL, Pair("contact", "Nobody"))),
            lambda: store.monitors.update(monitor.id, {"alerts": (Pair("contact", "Nobody"),)}),
        ):
            with pytest.raises(Invalid) as caught:
                write()
            [name] = caught.value.errors
            assert name.startswith("alerts")
            assert 'There is no contact "Nobody".' in caught.value.errors[name]
        assert store.monitors.get(monitor.id).alerts == (MAIL,)

    def test_the_monitors_of_a_contact_are_found(self, store: Store) -> None:
        shop = add_contact(store)
        using = add_monitor(store, alerts=(Pair("contact", "Shop team"),))
        add_monitor(store)
        monitors = store.monitors.list(MonitorQuery(contact_id=shop.id)).items
        assert [monitor.id for monitor in monitors] == [using.id]
        assert not store.monitors.list(MonitorQuery(contact_id=999_999)).items

    def test_a_contact_in_use_is_deleted_only_when_asked_for(self, store: Store) -> None:
        shop, night = add_contact(store), add_contact(store, "Night shift")
        monitor = add_monitor(store, alerts=(MAIL, Pair("contact", "Shop team")))
        both = add_monitor(
            store, alerts=(Pair("contact", "Shop team"), Pair("contact", "Night shift"))
        )
        with pytest.raises(Conflict) as caught:
            store.contacts.delete(shop.id)
        assert caught.value.details["monitors"] == [monitor.id, both.id]
        for value in ("Nobody", "Shop team", str(shop.id)):
            with pytest.raises(Invalid) as refused:
                store.contacts.remove(shop.id, replace_with=value)
            assert list(refused.value.errors) == ["replace_with"]
        store.contacts.remove(shop.id, replace_with="NIGHT shift")
        assert store.monitors.get(monitor.id).alerts == (MAIL, Pair("contact", "Night shift"))
        assert store.monitors.get(both.id).alerts == (Pair("contact", "Night shift"),)
        store.contacts.remove(night.id, force=True)
        assert store.monitors.get(monitor.id).alerts == (MAIL,)
        assert store.monitors.get(both.id).alerts == ()

    def test_a_test_goes_to_every_channel_of_a_contact(self, store: Store) -> None:
        shop = add_contact(store, "Shop team", MAIL, HOOK)
        ids = store.contacts.test(shop.id)
        deliveries = [store.deliveries.get(id) for id in ids]
        assert [(delivery.channel, delivery.event) for delivery in deliveries] == [
            ("email", "test"),
            ("webhook", "test"),
        ]
        assert {delivery.contacts for delivery in deliveries} == {("Shop team",)}
        assert {delivery.status for delivery in deliveries} == {DeliveryStatus.PENDING}
        listed = store.deliveries.list(DeliveryQuery(contact_id=shop.id)).items
        assert {record.id for record in listed} == set(ids)
        assert not store.deliveries.list(DeliveryQuery(contact_id=shop.id + 1)).items

    def test_a_channel_of_several_monitors_becomes_a_contact(self, store: Store) -> None:
        hook, mail = Pair("slack", "https://hooks.example/abcd1234"), Pair("email", "a@b.example")
        ids = [add_monitor(store, alerts=alerts).id for alerts in ((hook, mail), (hook,))]
        assert list(store.contacts.shared(ids[0])) == []
        ids.append(add_monitor(store, alerts=(mail, hook)).id)
        [shared] = store.contacts.shared(ids[2])
        assert (shared.place, shared.key, shared.monitors) == (1, "slack", 3)
        assert shared.value == hook.masked().value
        with pytest.raises(Invalid):
            store.contacts.from_channel("Shop team", ids[0], "another")
        made = store.contacts.from_channel("Shop team", ids[0], shared.mark)
        assert (made.name, made.channels, made.monitors) == ("Shop team", (hook,), 3)
        contact = Pair("contact", "Shop team")
        alerts = [store.monitors.get(id).alerts for id in ids]
        assert alerts == [(contact, mail), (contact,), (mail, contact)]
        with pytest.raises(Invalid):  # nobody has it any more
            store.contacts.from_channel("Again", ids[0], shared.mark)
        not_found(lambda: store.contacts.get(made.id + 1))
