"""Below /api/v1/status-pages/{id}: posts that people write, and subscribers (decision 12)."""

from __future__ import annotations

from flask import Response

from app.api.envelope import created, deleted, record_answer
from app.api.operations import Call, operation
from app.codec import json_of, plain
from app.errors import NotFound
from app.forms.post import PostForm, PostUpdateForm
from app.forms.queries import DraftQueryForm, PostQueryForm, SubscriberQueryForm
from app.i18n import N_
from app.records import Post, PostUpdate, Scope

POSTS = "/status-pages/{id}/posts"
POST = POSTS + "/{post}"
UPDATES = POST + "/updates"
UPDATE = UPDATES + "/{update}"


def _post(call: Call) -> Post:
    return call.store.posts.get(call.id, call.ids["post"])


def _update(call: Call) -> PostUpdate:
    id = call.ids["update"]
    for update in _post(call).updates:
        if update.id == id:
            return update
    raise NotFound(N_("update"), id)


@operation("GET", POSTS, "List a page's posts", "Post", paged=True, query=PostQueryForm)
def list_(call: Call) -> Response:
    """The newest first, each with its updates."""
    return call.page(PostQueryForm, call.store.posts.list, status_page_id=call.id)


@operation("POST", POSTS, "Create a post", "Post", status=201, form=PostForm, name="posts_store")
def create(call: Call) -> Response:
    """Publishes the post, and notifies the subscribers of the page."""
    return created(json_of(call.store.posts.create(call.id, call.new(PostForm))))


@operation("GET", POST, "Show a post", "Post")
def show(call: Call) -> Response:
    """With all of its updates, the newest last."""
    record = _post(call)
    call.refuse_input()
    return record_answer(json_of(record))


@operation("PUT PATCH", POST, "Edit a post", "Post", form=PostForm, update=True)
def update(call: Call) -> Response:
    """Changes what is sent, and notifies nobody. A new state belongs into an update."""
    fields = call.changes(PostForm, _post(call))
    return record_answer(json_of(call.store.posts.update(call.id, call.ids["post"], fields)))


@operation("DELETE", POST, "Delete a post", "Deleted")
def delete(call: Call) -> Response:
    """Takes the post and its updates off the page."""
    id = _post(call).id
    call.refuse_input()
    call.store.posts.delete(call.id, id)
    return deleted("post", id)


@operation("POST", UPDATES, "Add an update", "PostUpdate", status=201, form=PostUpdateForm)
def add_update(call: Call) -> Response:
    """Publishes an update with a new state, and notifies the subscribers of the page."""
    id = _post(call).id
    post = call.store.posts.add_update(call.id, id, call.new(PostUpdateForm))
    return created(json_of(post.updates[-1]))


@operation("GET", UPDATE, "Show an update", "PostUpdate")
def show_update(call: Call) -> Response:
    """Returns one update of a post."""
    record = _update(call)
    call.refuse_input()
    return record_answer(json_of(record))


@operation("PUT PATCH", UPDATE, "Edit an update", "PostUpdate", form=PostUpdateForm, update=True)
def correct_update(call: Call) -> Response:
    """Corrects the text or the state; the page says when. Nobody is notified."""
    fields = call.changes(PostUpdateForm, _update(call))
    ids = call.id, call.ids["post"], call.ids["update"]
    post = call.store.posts.correct_update(*ids, fields)
    return record_answer(json_of(next(entry for entry in post.updates if entry.id == ids[2])))


@operation(
    "GET", "/status-pages/{id}/draft", "Draft a post about an incident", "PostDraft",
    query=DraftQueryForm,
)  # fmt: skip
def draft(call: Call) -> Response:
    """A title, a state and a body about an incident, to start a post from. Nothing is stored."""
    parameters = call.parameters(DraftQueryForm)
    return record_answer(plain(call.store.posts.draft(call.id, parameters["incident_id"])))


# --- Subscribers: people confirm themselves, so nothing adds one ----------------------------------

SUBSCRIBERS = "/status-pages/{id}/subscribers"


@operation(
    "GET", SUBSCRIBERS, "List a page's subscribers", "Subscriber",
    paged=True, query=SubscriberQueryForm, scope=Scope.WRITE, name="subscribers_list_",
)  # fmt: skip
def subscribers(call: Call) -> Response:
    """People who confirmed their address. Needs a key of scope `write`."""
    return call.page(SubscriberQueryForm, call.store.subscribers.list, status_page_id=call.id)


@operation(
    "DELETE", SUBSCRIBERS, "Delete all subscribers of a page", "Cleared", name="subscribers_clear"
)
def clear_subscribers(call: Call) -> Response:
    """Deletes also those who have not confirmed yet. Nobody is notified."""
    return deleted("subscribers", call.id, count=call.store.subscribers.clear(call.id))
