"""Several who write status pages at the same moment, on both databases (decisions 2 and 12)."""

from __future__ import annotations

from typing import Any

import pytest

from app.db import db
from app.db.tables import StatusPageRow
from app.records import Group, PageQuery
from app.stores.local import LocalStore
from tests.stores.conftest import AtOnce
from tests.stores.contract.making import add_monitor
from tests.stores.contract.post_templates import add_template
from tests.stores.contract.status_pages import add_page

pytestmark = pytest.mark.both_databases


def test_a_slug_or_a_domain_goes_to_one_of_many(at_once: AtOnce, store: LocalStore) -> None:
    for name, value in (("slug", "ours"), ("domain", "a.example")):
        acts = [lambda s, n=name, v=value: add_page(s, **{n: v}).id for _ in range(5)]
        answers = at_once(acts)
        assert sorted(isinstance(answer, int) for answer in answers) == [False] * 4 + [True]
        assert [answer for answer in answers if not isinstance(answer, int)] == [[name]] * 4


def test_the_name_of_a_post_template_goes_to_one_of_many(
    at_once: AtOnce, store: LocalStore
) -> None:
    names = ("Slow", "SLOW", "slow", "sLOW")
    answers = at_once([lambda s, n=name: add_template(s, name=n).id for name in names])
    assert sorted(isinstance(answer, int) for answer in answers) == [False] * 3 + [True]
    assert [answer for answer in answers if not isinstance(answer, int)] == [["name"]] * 3


def test_pages_of_one_name_made_at_once_get_a_number_each(
    at_once: AtOnce, store: LocalStore
) -> None:
    answers = at_once([lambda s: add_page(s).slug for _ in range(6)])
    assert sorted(answers) == ["our-shop", *(f"our-shop-{n}" for n in range(2, 7))]


def test_of_two_updates_for_one_slug_the_later_is_refused(
    at_once: AtOnce, store: LocalStore
) -> None:
    ids = [add_page(store).id for _ in range(2)]
    acts = [lambda s, id=id: s.status_pages.update(id, {"slug": "x"}).slug for id in ids]
    assert sorted(map(str, at_once(acts))) == ["['slug']", "x"]


def test_updates_of_different_fields_at_once_both_hold(at_once: AtOnce, store: LocalStore) -> None:
    a, b = add_monitor(store).id, add_monitor(store).id
    page = add_page(store, monitors=(a, b))
    changes: list[dict[str, Any]] = [
        {"name": "New"},
        {"theme": "dark"},
        {"monitors": (b, a)},
        {"groups": (Group("G", (a,)),)},
        {"password": "one"},
        {"password": "two"},
    ]
    at_once([lambda s, c=change: s.status_pages.update(page.id, c) for change in changes])
    stored_page = store.status_pages.get(page.id)
    assert (stored_page.name, stored_page.theme, stored_page.monitors) == ("New", "dark", (b, a))
    assert (stored_page.groups, stored_page.password_set) == ((Group("G", (a,)),), True)
    row = db.session.get(StatusPageRow, page.id)
    assert row is not None
    assert row.password_turn == 2


def test_of_two_updates_that_do_not_fit_together_the_later_is_refused(
    at_once: AtOnce, store: LocalStore
) -> None:
    """Each was judged over the same stored page, before either was kept."""
    page = add_page(store, password="open sesame")
    changes: list[dict[str, Any]] = [{"visibility": "password"}, {"password": None}]
    acts = [lambda s, c=change: s.status_pages.update(page.id, c).id for change in changes]
    answers = at_once(acts)
    assert ["password"] in answers
    assert page.id in answers


def test_a_monitor_that_is_deleted_while_pages_take_it_is_on_none(
    at_once: AtOnce, store: LocalStore
) -> None:
    kept = add_monitor(store).id
    for _ in range(3):
        gone = add_monitor(store).id
        on, off = add_page(store, monitors=(gone, kept)), add_page(store)
        answers = at_once(
            [
                lambda s, id=gone: s.monitors.delete(id),
                lambda s, p=on.id, id=gone: s.status_pages.update(p, {"monitors": (kept, id)}).id,
                lambda s, p=off.id, id=gone: s.status_pages.update(p, {"monitors": (id, kept)}).id,
            ]
        )
        assert answers[0] is None
        assert answers[1] in (on.id, ["monitors"])
        assert answers[2] in (off.id, ["monitors"])
        for page in (on, off):
            assert gone not in store.status_pages.get(page.id).monitors


def test_a_monitor_that_is_deleted_while_posts_name_it_is_in_none(
    at_once: AtOnce, store: LocalStore
) -> None:
    for _ in range(3):
        gone = add_monitor(store).id
        page = add_page(store, monitors=(gone,))
        fields = {"title": "t", "state": "identified", "body": "b", "monitors": (gone,)}
        post = store.posts.create(page.id, fields)
        answers = at_once(
            [
                lambda s, id=gone: s.monitors.delete(id),
                lambda s, p=page.id, t=fields: s.posts.create(p, t).state,
                lambda s, p=page.id, o=post.id, t=fields: (
                    s.posts.update(p, o, t | {"title": "x"}).state
                ),
            ]
        )
        assert answers[0] is None
        assert {str(answer) for answer in answers[1:]} <= {"identified", "['monitors']"}
        assert store.posts.get(page.id, post.id).monitors == ()


def test_updates_of_a_post_at_once_are_all_kept(at_once: AtOnce, store: LocalStore) -> None:
    page = add_page(store)
    post_fields = {"title": "t", "state": "investigating", "body": "0"}
    post = store.posts.create(page.id, post_fields)
    texts = [str(n) for n in range(1, 6)]
    answers = at_once(
        [
            lambda s, t=text: s.posts.add_update(
                page.id, post.id, {"state": "identified", "body": t}
            )
            for text in texts
        ]
    )
    assert sorted(answer.updates[-1].body for answer in answers) == texts  # each its own
    kept = store.posts.get(page.id, post.id)
    assert sorted(update.body for update in kept.updates) == ["0", *texts]
    assert kept.body == "0"


def test_a_page_deleted_while_somebody_writes_on_it_takes_all_with_it(
    at_once: AtOnce, store: LocalStore
) -> None:
    page = add_page(store)
    post_fields = {"title": "t", "state": "investigating", "body": "b"}
    at_once(
        [
            lambda s: s.status_pages.delete(page.id),
            *([lambda s: s.posts.create(page.id, post_fields)] * 3),
        ]
    )
    assert not store.status_pages.list(PageQuery()).items
