"""What every store promises about status pages (decision 12)."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from app.errors import Invalid, NotFound
from app.records import (
    ComponentName,
    Group,
    MonitorQuery,
    PageQuery,
    PageState,
    PageTheme,
    StatusPage,
    Visibility,
)
from app.stores.base import Store
from tests.stores.contract.making import HUGE, add_monitor, over_bare

PNG = b64encode(b"\x89PNG\r\n\x1a\n").decode()
PNG_2 = b64encode(b"\x89PNG\r\n\x1a\n2").decode()


def add_page(store: Store, **fields: Any) -> StatusPage:
    return store.status_pages.create({"name": "Our shop"} | fields)


def page_fault(store: Store, id: int | None, **fields: Any) -> list[str]:
    """The fields that a refused write names."""
    with pytest.raises(Invalid) as caught:
        add_page(store, **fields) if id is None else store.status_pages.update(id, fields)
    return sorted(caught.value.errors)


class StatusPagesContract:
    def test_a_page_is_stored_shown_changed_and_deleted(self, store: Store) -> None:
        a, b, c = (add_monitor(store).id for _ in range(3))
        page = add_page(
            store,
            slug="shop",
            description="What we sell",
            visibility=Visibility.CLOSED,
            domain="status.shop.example",
            monitors=(c, a, b),
            names=(ComponentName(a, "Till"),),
            groups=(Group("Front", (b, c)), Group("Empty")),
            show_urls=True,
            show_response_times=True,
            auto_post_after=5,
            zone="Europe/Berlin",
            theme=PageTheme.DARK,
            accent="#0b746f",
            language="de",
            home_url="https://shop.example/",
            footer="Imprint: https://shop.example/imprint",
        )
        assert store.status_pages.get(page.id) == page
        assert (page.slug, page.monitors, page.zone) == ("shop", (c, a, b), "Europe/Berlin")
        assert page.names == (ComponentName(a, "Till"),)
        assert page.groups == (Group("Front", (b, c)), Group("Empty"))
        assert (page.link, page.subscribers) == ("http://status.shop.example/", 0)
        assert (page.state, page.password_set) == (PageState.UNKNOWN, False)
        changed = store.status_pages.update(page.id, {"name": "Ours", "show_urls": False})
        assert (changed.name, changed.show_urls, changed.slug) == ("Ours", False, "shop")
        assert changed.monitors == (c, a, b)
        assert [page.id for page in store.status_pages.list(PageQuery()).items] == [page.id]
        store.status_pages.delete(page.id)
        assert not store.status_pages.list(PageQuery()).items

    def test_a_logo_has_an_address_of_its_own_until_it_is_removed(self, store: Store) -> None:
        page = add_page(store, logo=PNG, accent="#0b746f")
        assert page.logo_link is not None
        assert page.logo_link.startswith("http://wakeful.test/status/our-shop/logo?v=")
        assert page.favicon_link is None
        assert store.status_pages.get(page.id) == page
        other = store.status_pages.update(page.id, {"logo": PNG_2, "favicon": PNG})
        assert other.logo_link not in (None, page.logo_link)
        assert other.favicon_link is not None
        without = store.status_pages.update(page.id, {"logo": None})
        assert (without.logo_link, without.accent) == (None, "#0b746f")
        assert without.favicon_link == other.favicon_link

    def test_a_page_with_a_name_alone_has_the_defaults_of_section_12(self, store: Store) -> None:
        page = add_page(store)
        assert (page.slug, page.link) == ("our-shop", "http://wakeful.test/status/our-shop")
        assert (page.visibility, page.zone, page.theme) == ("public", "UTC", "system")
        assert (page.monitors, page.names, page.groups) == ((), (), ())
        assert (page.domain, page.description, page.auto_post_after) == (None, None, None)

    def test_a_default_slug_is_made_unique_by_a_number(self, store: Store) -> None:
        assert [add_page(store).slug for _ in range(3)] == ["our-shop", "our-shop-2", "our-shop-3"]
        assert add_page(store, name="日本").slug == "status"
        page = add_page(store, slug="x")
        assert store.status_pages.update(page.id, {"slug": None}).slug == "our-shop-4"

    def test_a_page_keeps_the_default_slug_that_is_its_own(self, store: Store) -> None:
        page = add_page(store)
        assert store.status_pages.update(page.id, {"slug": None}).slug == "our-shop"

    def test_an_unlisted_page_has_a_slug_that_nobody_guesses(self, store: Store) -> None:
        slugs = [add_page(store, visibility=Visibility.UNLISTED).slug for _ in range(2)]
        assert slugs[0] != slugs[1]
        for slug in slugs:
            assert len(bytes.fromhex(slug)) * 8 >= 64
        assert add_page(store, visibility=Visibility.UNLISTED, slug="sent").slug == "sent"

    def test_a_taken_slug_or_domain_is_refused(self, store: Store) -> None:
        page = add_page(store, slug="a", domain="a.example")
        other = add_page(store, slug="b")
        assert page_fault(store, None, slug="a", domain="a.example") == ["domain", "slug"]
        assert page_fault(store, other.id, slug="a") == ["slug"]
        assert page_fault(store, other.id, domain="a.example") == ["domain"]
        same = store.status_pages.update(page.id, {"slug": "a", "domain": "a.example"})
        assert (same.slug, same.domain) == ("a", "a.example")
        assert store.status_pages.update(page.id, {"domain": None}).domain is None
        assert store.status_pages.update(other.id, {"domain": "a.example"}).domain == "a.example"

    def test_a_page_behind_a_password_needs_one_and_never_shows_it(self, store: Store) -> None:
        assert page_fault(store, None, visibility=Visibility.PASSWORD) == ["password"]
        page = add_page(store)
        assert page_fault(store, page.id, visibility=Visibility.PASSWORD) == ["password"]
        closed = {"visibility": Visibility.PASSWORD, "password": "open sesame"}
        page = store.status_pages.update(page.id, closed)
        assert (page.visibility, page.password_set) == ("password", True)
        assert "sesame" not in repr(page)
        assert store.status_pages.update(page.id, {"name": "n"}).password_set
        assert page_fault(store, page.id, password=None) == ["password"]
        public = {"visibility": Visibility.PUBLIC, "password": None}
        assert not store.status_pages.update(page.id, public).password_set

    def test_names_and_groups_are_of_monitors_on_the_page(self, store: Store) -> None:
        a, b = add_monitor(store).id, add_monitor(store).id
        page = add_page(store, monitors=(a,))
        for fields in ({"names": (ComponentName(b, "x"),)}, {"groups": (Group("x", (b,)),)}):
            (name,) = page_fault(store, page.id, **fields)
            assert name.startswith(next(iter(fields)))
        (name,) = page_fault(store, page.id, groups=(Group("x", (a,)), Group("y", (a,))))
        assert name.startswith("groups")

    def test_a_monitor_off_the_page_leaves_names_groups_and_posts(self, store: Store) -> None:
        a, b = add_monitor(store).id, add_monitor(store).id
        page = add_page(
            store,
            monitors=(a, b),
            names=(ComponentName(a, "A"), ComponentName(b, "B")),
            groups=(Group("Both", (b, a)),),
        )
        fields = {"title": "t", "state": "identified", "body": "b", "monitors": (a, b)}
        post = store.posts.create(page.id, fields)
        page = store.status_pages.update(page.id, {"monitors": (b,)})
        assert (page.monitors, page.names) == ((b,), (ComponentName(b, "B"),))
        assert page.groups == (Group("Both", (b,)),)
        assert store.posts.get(page.id, post.id).monitors == (b,)
        page = store.status_pages.update(page.id, {"monitors": (a, b)})
        assert page.names == (ComponentName(b, "B"),)

    def test_a_deleted_monitor_leaves_page_and_posts_sound(self, store: Store) -> None:
        a, b = add_monitor(store).id, add_monitor(store).id
        page = add_page(
            store, monitors=(a, b), names=(ComponentName(a, "A"),), groups=(Group("G", (a, b)),)
        )
        fields = {"title": "t", "state": "identified", "body": "b", "monitors": (a, b)}
        post = store.posts.create(page.id, fields)
        store.monitors.delete(a)
        left = store.status_pages.get(page.id)
        assert (left.monitors, left.names, left.groups) == ((b,), (), (Group("G", (b,)),))
        assert store.posts.get(page.id, post.id).monitors == (b,)

    def test_the_monitor_list_is_filtered_by_page(self, store: Store) -> None:
        a, b = add_monitor(store).id, add_monitor(store).id
        page = add_page(store, monitors=(b,))
        monitors = store.monitors.list(MonitorQuery(status_page_id=page.id)).items
        assert [monitor.id for monitor in monitors] == [b]
        add_page(store, name="zebra", monitors=(b, a))
        assert [page.name for page in store.status_pages.of_monitor(b)] == ["Our shop", "zebra"]
        assert [page.name for page in store.status_pages.of_monitor(a)] == ["zebra"]
        assert not store.status_pages.of_monitor(HUGE)

    @over_bare
    def test_a_store_without_pages_says_that_a_monitor_is_on_none(self, store: Store) -> None:
        assert not store.status_pages.of_monitor(add_monitor(store).id)

    def test_pages_come_in_pages_the_newest_first(self, store: Store) -> None:
        ids = [add_page(store).id for _ in range(12)][::-1]
        pages = [store.status_pages.list(PageQuery(page=page)) for page in (1, 2, 3)]
        assert [[record.id for record in page.items] for page in pages] == [ids[:10], ids[10:], []]
        assert [page.total for page in pages] == [12, 12, 12]

    def test_an_id_of_a_page_is_never_given_out_twice(self, store: Store) -> None:
        page = add_page(store)
        store.status_pages.delete(page.id)
        assert add_page(store).id > page.id
        with pytest.raises(NotFound):
            store.status_pages.get(page.id)
