"""What every store promises about monthly reports by email."""

from __future__ import annotations

from typing import Any

import pytest

from app.errors import Invalid
from app.records import PageQuery, Pair, ReportMail
from app.stores.base import Store
from tests.stores.contract.making import not_found

MAIL = (Pair("email", "boss@shop.example"),)


def add_report(store: Store, name: str = "Boss", **fields: Any) -> ReportMail:
    if store.contacts.id_of(name) is None:
        store.contacts.create({"name": name, "channels": MAIL})
    return store.report_mails.create({"contact": name} | fields)


class ReportMailsContract:
    def test_monthly_reports_are_stored_changed_and_deleted(self, store: Store) -> None:
        mail = add_report(store, tag="shop")
        assert (mail.contact, mail.tag) == ("Boss", "shop")
        assert mail.created_at is not None
        assert store.report_mails.get(mail.id) == mail
        changed = store.report_mails.update(mail.id, {"tag": None})
        assert (changed.contact, changed.tag) == ("Boss", None)
        assert store.report_mails.list(PageQuery()).items == [changed]
        store.report_mails.delete(mail.id)
        assert not store.report_mails.list(PageQuery()).items

    def test_a_monthly_report_needs_a_contact_that_mail_reaches(self, store: Store) -> None:
        mail = add_report(store)
        slack = (Pair("slack", "https://hooks.slack.com/services/T0/B0/x1"),)
        store.contacts.create({"name": "Chat", "channels": slack})
        for name in ("Nobody", "Chat"):
            for attempt in (
                lambda name=name: store.report_mails.create({"contact": name}),
                lambda name=name: store.report_mails.update(mail.id, {"contact": name}),
            ):
                with pytest.raises(Invalid) as caught:
                    attempt()
                assert list(caught.value.errors) == ["contact"]

    def test_a_contact_gets_each_monthly_report_once(self, store: Store) -> None:
        whole, shop = add_report(store), add_report(store, tag="shop")
        for attempt in (
            lambda: add_report(store),
            lambda: add_report(store, tag="shop"),
            lambda: store.report_mails.update(shop.id, {"tag": None}),
        ):
            with pytest.raises(Invalid) as caught:
                attempt()
            assert list(caught.value.errors) == ["contact"]
        assert store.report_mails.update(whole.id, {"contact": "Boss"}).tag is None
        next_ = add_report(store, "Next")
        boss = store.contacts.id_of("Boss")
        assert boss is not None
        store.contacts.remove(boss, replace_with="Next")
        rows = {
            (mail.id, mail.contact, mail.tag) for mail in store.report_mails.list(PageQuery()).items
        }
        assert rows == {(next_.id, "Next", None), (shop.id, "Next", "shop")}

    def test_a_monthly_report_follows_its_contact(self, store: Store) -> None:
        mail = add_report(store)
        id = store.contacts.id_of("Boss")
        assert id is not None
        store.contacts.update(id, {"name": "Chief"})
        assert store.report_mails.get(mail.id).contact == "Chief"
        store.contacts.create({"name": "Next", "channels": MAIL})
        store.contacts.remove(id, replace_with="Next")
        assert store.report_mails.get(mail.id).contact == "Next"
        next_ = store.contacts.id_of("Next")
        assert next_ is not None
        store.contacts.remove(next_)
        not_found(lambda: store.report_mails.get(mail.id))
