"""What every store promises about the posts of status pages (decision 12)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.errors import Invalid, NotFound
from app.records import MonitorImpact, Post, PostQuery
from app.stores.base import Store
from tests.stores.contract.making import HUGE, add_incident, add_monitor, moment, not_found
from tests.stores.contract.status_pages import add_page

POST = {"title": "Slow answers", "state": "investigating", "body": "We look into it."}


def add_post(store: Store, page_id: int, **fields: Any) -> Post:
    return store.posts.create(page_id, POST | fields)


def fault(attempt: Any) -> list[str]:
    with pytest.raises(Invalid) as caught:
        attempt()
    return sorted(caught.value.errors)


class PostsContract:
    def test_a_post_is_stored_shown_and_deleted(self, store: Store) -> None:
        a, b = add_monitor(store), add_monitor(store)
        incident = add_incident(store, a)
        page = add_page(store, monitors=(b.id, a.id))
        post = add_post(store, page.id, monitors=(a.id, b.id), incident_id=incident.id)
        assert store.posts.get(page.id, post.id) == post
        assert (post.title, post.state, post.body) == tuple(POST.values())
        assert (post.status_page_id, post.incident_id) == (page.id, incident.id)
        assert set(post.monitors) == {a.id, b.id}
        assert [(update.state, update.body) for update in post.updates] == [(post.state, post.body)]
        assert (post.automatic, post.corrected_at, post.starts_at) == (False, None, None)
        store.posts.delete(page.id, post.id)
        not_found(
            lambda: store.posts.get(page.id, post.id), lambda: store.posts.delete(page.id, post.id)
        )

    def test_a_post_says_its_impact_on_each_monitor_by_its_state_unless_it_is_sent(
        self, store: Store
    ) -> None:
        a, b, other = (add_monitor(store) for _ in range(3))
        page = add_page(store, monitors=(a.id, b.id, other.id))
        down = (MonitorImpact(a.id, "outage"),)
        post = add_post(store, page.id, monitors=(a.id, b.id), impact=down)
        assert post.impact == (*down, MonitorImpact(b.id, "degraded"))
        post = store.posts.update(page.id, post.id, {"impact": (MonitorImpact(b.id, "none"),)})
        assert post.impact == (MonitorImpact(a.id, "degraded"), MonitorImpact(b.id, "none"))
        assert post.corrected_at is None, "no text was edited"
        assert store.posts.get(page.id, post.id) == post
        wrong = {"impact": (MonitorImpact(other.id, "none"),)}
        assert fault(lambda: store.posts.update(page.id, post.id, wrong))[0].startswith("impact")
        post = store.posts.update(page.id, post.id, {"impact": ()})
        ended = store.posts.add_update(page.id, post.id, {"state": "resolved", "body": "b"})
        assert {entry.value for entry in ended.impact} == {"none"}

    def test_a_post_has_the_text_of_its_first_update_and_the_state_of_its_last(
        self, store: Store
    ) -> None:
        page = add_page(store)
        post = add_post(store, page.id)
        post = store.posts.add_update(page.id, post.id, {"state": "identified", "body": "A disk."})
        assert (post.body, post.state) == ("We look into it.", "identified")
        assert [update.body for update in post.updates] == ["We look into it.", "A disk."]
        assert all(update.corrected_at is None for update in post.updates)
        assert post.corrected_at is None
        assert store.posts.get(page.id, post.id) == post

    def test_a_corrected_post_says_when(self, store: Store) -> None:
        page = add_page(store)
        id = add_post(store, page.id).id
        store.posts.add_update(page.id, id, {"state": "identified", "body": "A disk."})
        before = store.now() - timedelta(seconds=2)
        post = store.posts.update(page.id, id, {"body": "We look."})
        first, last = post.updates
        assert (post.body, post.state, first.body) == ("We look.", "identified", "We look.")
        assert first.corrected_at is not None
        assert first.corrected_at >= before
        assert post.corrected_at == first.corrected_at
        assert last.corrected_at is None
        post = store.posts.update(page.id, id, {"state": "resolved"})
        assert (post.state, post.updates[1].state) == ("resolved", "resolved")
        assert post.updates[0].state == "investigating"
        assert post.updates[1].corrected_at is not None
        assert store.posts.update(page.id, id, {"title": "Fast"}).title == "Fast"

    def test_what_is_sent_again_unchanged_is_no_correction(self, store: Store) -> None:
        page = add_page(store)
        post = add_post(store, page.id)
        same = {"title": post.title, "body": post.body, "state": post.state, "monitors": ()}
        assert store.posts.update(page.id, post.id, same) == post
        first = post.updates[0]
        again = {"body": first.body}
        assert store.posts.correct_update(page.id, post.id, first.id, again) == post

    def test_an_update_is_corrected_and_says_when(self, store: Store) -> None:
        page = add_page(store)
        post = add_post(store, page.id)
        post = store.posts.add_update(page.id, post.id, {"state": "identified", "body": "A disk."})
        first, last = post.updates
        post = store.posts.correct_update(page.id, post.id, first.id, {"state": "monitoring"})
        assert post.state == "identified"
        assert [update.state for update in post.updates] == ["monitoring", "identified"]
        assert post.updates[0].corrected_at is not None
        post = store.posts.correct_update(page.id, post.id, last.id, {"state": "resolved"})
        assert (post.state, post.body) == ("resolved", POST["body"])

    def test_a_post_stays_in_its_family_of_states(self, store: Store) -> None:
        page = add_page(store)
        times = {"starts_at": moment(store), "ends_at": moment(store, hours=-1)}
        incident = add_post(store, page.id)
        planned = add_post(store, page.id, state="scheduled", **times)
        for post, other in ((incident, "completed"), (planned, "resolved")):
            update = {"state": other, "body": "b"}
            ids = page.id, post.id
            assert fault(lambda ids=ids, s=other: store.posts.update(*ids, {"state": s})) == [
                "state"
            ]
            assert fault(lambda ids=ids, u=update: store.posts.add_update(*ids, u)) == ["state"]
            last = post.updates[-1].id
            assert fault(
                lambda ids=ids, u=update, last=last: store.posts.correct_update(*ids, last, u)
            ) == ["state"]
        done = store.posts.add_update(page.id, planned.id, {"state": "completed", "body": "b"})
        assert done.state == "completed"

    def test_a_scheduled_post_needs_both_times_in_order(self, store: Store) -> None:
        page = add_page(store)
        start, end = moment(store), moment(store, hours=-1)

        def stored(**fields: Any) -> list[str]:
            return fault(lambda: add_post(store, page.id, state="scheduled", **fields))

        assert stored() == ["ends_at", "starts_at"]
        assert stored(starts_at=start) == ["ends_at"]
        assert stored(starts_at=end, ends_at=start) == ["ends_at"]
        assert stored(starts_at=start, ends_at=start) == ["ends_at"]
        post = add_post(store, page.id, state="scheduled", starts_at=start, ends_at=end)
        assert (post.starts_at, post.ends_at) == (start, end)
        ids = page.id, post.id
        assert fault(lambda: store.posts.update(*ids, {"starts_at": None})) == ["starts_at"]
        assert fault(lambda: store.posts.update(*ids, {"ends_at": start})) == ["ends_at"]
        unplanned = add_post(store, page.id, state="in_progress")
        ids = page.id, unplanned.id
        again = {"state": "scheduled", "body": "b"}
        assert fault(lambda: store.posts.add_update(*ids, again)) == ["state"]

    def test_monitors_and_incident_of_a_post_are_on_its_page(self, store: Store) -> None:
        on, off = add_monitor(store), add_monitor(store)
        page = add_page(store, monitors=(on.id,))
        of_other = add_incident(store, off)
        post = add_post(store, page.id, monitors=(on.id,))
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("monitors", {"monitors": (off.id,)}),
            ("monitors", {"monitors": (on.id, 999_999)}),
            ("incident_id", {"incident_id": of_other.id}),
            ("incident_id", {"incident_id": 999_999}),
            ("incident_id", {"incident_id": HUGE}),
        ]
        for name, fields in wrong:
            assert fault(lambda f=fields: add_post(store, page.id, **f)) == [name]
            assert fault(lambda f=fields: store.posts.update(page.id, post.id, f)) == [name]
        assert store.posts.update(page.id, post.id, {"monitors": ()}).monitors == ()

    def test_a_deleted_incident_leaves_its_post(self, store: Store) -> None:
        monitor = add_monitor(store)
        incident = add_incident(store, monitor)
        page = add_page(store, monitors=(monitor.id,))
        post = add_post(store, page.id, incident_id=incident.id)
        store.incidents.delete(incident.id)
        assert store.posts.get(page.id, post.id).incident_id is None

    def test_a_posts_page_takes_it_with_it(self, store: Store) -> None:
        page = add_page(store)
        post = add_post(store, page.id)
        store.status_pages.delete(page.id)
        not_found(lambda: store.posts.get(page.id, post.id))

    def test_posts_come_in_pages_the_newest_first(self, store: Store) -> None:
        page, other = add_page(store), add_page(store)
        add_post(store, other.id)
        ids = [add_post(store, page.id).id for _ in range(12)][::-1]
        pages = [store.posts.list(PostQuery(page.id, page=number)) for number in (1, 2, 3)]
        assert [[record.id for record in part.items] for part in pages] == [ids[:10], ids[10:], []]
        assert [part.total for part in pages] == [12, 12, 12]

    def test_ended_posts_are_left_out_where_open_ones_are_asked_for(self, store: Store) -> None:
        page = add_page(store)
        times = {"starts_at": moment(store), "ends_at": moment(store, hours=-1)}
        states = ["investigating", "resolved", "scheduled", "completed", "in_progress"]
        for state in states:
            add_post(store, page.id, state=state, **times)
        posts = store.posts.list(PostQuery(page.id, open=True)).items
        assert {post.state for post in posts} == {"investigating", "scheduled", "in_progress"}

    @pytest.mark.parametrize("id", [999_999, HUGE])
    def test_an_unknown_post_is_not_found(self, store: Store, id: int) -> None:
        page, other = add_page(store), add_page(store)
        post = add_post(store, other.id)
        update = {"state": "identified", "body": "b"}
        for where in (id, post.id):  # also a post of another page
            not_found(
                lambda w=where: store.posts.get(page.id, w),
                lambda w=where: store.posts.update(page.id, w, {"title": "x"}),
                lambda w=where: store.posts.add_update(page.id, w, update),
                lambda w=where: store.posts.correct_update(page.id, w, 1, update),
                lambda w=where: store.posts.delete(page.id, w),
            )
        mine = add_post(store, page.id)
        not_found(
            lambda: store.posts.correct_update(page.id, mine.id, id, update),
            lambda: store.posts.correct_update(page.id, mine.id, post.updates[0].id, update),
            lambda: store.posts.create(id, dict(POST)),
            lambda: store.posts.get(id, mine.id),
        )
        assert store.posts.get(other.id, post.id) == post

    def test_a_post_is_drafted_from_an_incident(self, store: Store) -> None:
        monitor, other = add_monitor(store, name="Till"), add_monitor(store)
        page = add_page(store, monitors=(monitor.id,))
        incident = add_incident(store, monitor, cause="secret.internal refused the connection")
        draft = store.posts.draft(page.id, incident.id)
        assert set(draft) == {"title", "state", "body", "monitors"}
        assert (draft["state"], draft["monitors"]) == ("investigating", (monitor.id,))
        assert "Till" in draft["title"]
        assert "internal" not in repr(draft)
        assert store.posts.create(page.id, draft).state == "investigating"
        elsewhere = add_incident(store, other)
        for id in (elsewhere.id, 999_999, HUGE):
            with pytest.raises(NotFound):
                store.posts.draft(page.id, id)
