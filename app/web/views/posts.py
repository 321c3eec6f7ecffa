"""What people write on a status page: write, draft from an incident, update, correct, delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid, NotFound, WakefulError
from app.forms.browser import BrowserPostForm, BrowserPostUpdateForm
from app.i18n import N_, _
from app.records import (
    MAINTENANCE_STATES,
    PageQuery,
    Post,
    PostState,
    PostTemplate,
    PostUpdate,
    StatusPage,
)
from app.rules import posts
from app.rules.page_state import POST
from app.rules.text import record_id
from app.stores import current_store
from app.web.forms import DeleteForm, not_read, not_saved, saved, show_errors
from app.web.frame import servers
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.frame.store_errors import NOT_TAKEN
from app.web.shown import times
from app.web.shown.page_monitors import names_on

blueprint = guarded(Blueprint("posts", __name__, url_prefix="/status-pages/<int:page_id>/posts"))

Answer = str | Response | tuple[str, int]

MAINTENANCE = "maintenance"  # in the address: what kind of post is written
OWN_TEMPLATES = 100  # that are offered, by name
INCIDENT_STATES = tuple(state for state in PostState if state not in MAINTENANCE_STATES)
# What an update of a post most likely says.
NEXT = {
    PostState.INVESTIGATING: PostState.IDENTIFIED,
    PostState.IDENTIFIED: PostState.MONITORING,
    PostState.MONITORING: PostState.RESOLVED,
    PostState.SCHEDULED: PostState.IN_PROGRESS,
    PostState.IN_PROGRESS: PostState.COMPLETED,
}


# --- One post -------------------------------------------------------------------------------------


@blueprint.get("/<int:id>")
def show(page_id: int, id: int) -> str:
    page, post = _page(page_id), current_store().posts.get(page_id, id)
    return _shown(page, post, _update_form(post))


def _shown(page: StatusPage, post: Post, form: BrowserPostUpdateForm) -> str:
    names = names_on(page)
    return render_template("posts/show.html", shown=page, post=post, names=names, form=form)


def _page(id: int) -> StatusPage:
    servers.refuse_bare()
    return current_store().status_pages.get(id)


def _update_form(post: Post, **kwargs: Any) -> BrowserPostUpdateForm:
    state = NEXT.get(PostState(post.state), PostState(post.state)) if _known(post.state) else None
    form = BrowserPostUpdateForm(data={"state": state}, **kwargs)
    _offer(form, post.state in MAINTENANCE_STATES)
    return form


def _known(state: str) -> bool:
    return state in set(PostState)


def _offer(form: BrowserPostForm | BrowserPostUpdateForm, maintenance: bool) -> None:
    """Offer the states of maintenance, or those of an incident, in the words that the public
    reads.
    """
    form.state.leave_out(*(INCIDENT_STATES if maintenance else MAINTENANCE_STATES))
    form.state.choices = [
        (state, POST[PostState(state)].word) for state, _label in form.state.choices
    ]


# --- Write and correct ----------------------------------------------------------------------------


@blueprint.route("/new", methods=["GET", "POST"])
def new(page_id: int) -> Answer:
    """``kind``, ``template`` and ``incident_id`` in the address say what the post starts with."""
    maintenance = request.args.get("kind") == MAINTENANCE or "starts_at" in request.form
    try:
        page = _page(page_id)
        first = _first(page, maintenance, _template())
    except NOT_TAKEN as fault:
        return _unread_new(fault, page_id, maintenance)
    maintenance = first["state"] in MAINTENANCE_STATES
    form = BrowserPostForm(data=first, zone=times.zone())
    _offer(form, maintenance)
    if form.validate_on_submit():
        try:
            post = current_store().posts.create(page_id, form.fields())
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            return _form_page(form, page, None, maintenance, not_saved(form, fault))
        else:
            flash(_("%(name)s published.", name=post.title), "success")
            return redirect(url_for("status_pages.show", id=page_id))
    status = 422 if form.is_submitted() else 200
    return _form_page(form, page, None, maintenance, status)


def _templates() -> Sequence[PostTemplate]:
    """The posts to start from."""
    own = current_store().post_templates.list(PageQuery(per_page=OWN_TEMPLATES)).items
    return posts.offered(own)


def _template() -> PostTemplate | None:
    """The one that the address names. Where a post is sent, the form has all that it gave."""
    name = request.args.get("template", "")
    if not name or request.method not in SAFE_METHODS:
        return None
    wanted = posts.folded(name)
    return next((one for one in _templates() if posts.folded(one.name) == wanted), None)


def _first(page: StatusPage, maintenance: bool, template: PostTemplate | None) -> Mapping[str, Any]:
    """What a new post starts with."""
    incident_id = request.args.get("incident_id", "")
    if incident_id and request.method in SAFE_METHODS:
        try:
            id = record_id(incident_id)
        except ValueError:
            raise NotFound("incident", incident_id) from None
        draft = {**current_store().posts.draft(page.id, id), "incident_id": id}
        of_incident = template and template.state not in MAINTENANCE_STATES
        return draft | _text_of(template if of_incident else None)
    text: dict[str, Any] = {"state": PostState.INVESTIGATING}
    if template and _known(template.state):
        maintenance = template.state in MAINTENANCE_STATES
    if maintenance:
        start = times.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        end = start + timedelta(hours=1)
        text = {"state": PostState.SCHEDULED, "starts_at": start, "ends_at": end}
    return text | _text_of(template)


def _text_of(template: PostTemplate | None) -> dict[str, Any]:
    """What a post takes from a template."""
    if template is None:
        return {}
    text = {"title": template.title, "body": template.body}
    return text | {"state": template.state} if _known(template.state) else text


def _unread_new(fault: WakefulError, page_id: int, maintenance: bool) -> Answer:
    """What was typed into a new post whose page cannot be read now."""
    if request.method in SAFE_METHODS:
        raise fault
    form = BrowserPostForm(zone=times.zone())
    _offer(form, maintenance)
    status = not_read(form, fault)
    return _form_page(form, _unknown_page(page_id), None, maintenance, status)


def _unknown_page(id: int) -> StatusPage:
    return StatusPage(id, _("Status page %(id)s", id=id), "")


def _unknown_post(page_id: int, id: int) -> Post:
    """As far as the form that was sent tells."""
    title = request.form.get("title") or _("Post %(id)s", id=id)
    announced = "starts_at" in request.form
    state = PostState.SCHEDULED if announced else PostState.INVESTIGATING
    return Post(id, page_id, title, state, "")


@blueprint.route("/<int:id>/edit", methods=["GET", "POST"])
def edit(page_id: int, id: int) -> Answer:
    """Correct title, monitors and times; each text is corrected by itself."""
    unread: WakefulError | None = None
    try:
        page, post = _page(page_id), current_store().posts.get(page_id, id)
    except NOT_TAKEN as fault:
        if request.method in SAFE_METHODS:
            raise
        unread, page, post = fault, _unknown_page(page_id), _unknown_post(page_id, id)
    form = BrowserPostForm(record=post, zone=times.zone())
    maintenance = post.state in MAINTENANCE_STATES
    status = 422 if form.is_submitted() else 200
    if unread:
        status = not_read(form, unread)
    elif form.validate_on_submit():
        try:
            current_store().posts.update(page_id, id, form.fields())
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            status = not_saved(form, fault)
        else:
            saved(form, _("Post edited. The page shows that it was edited."))
            return redirect(url_for(".show", page_id=page_id, id=id))
    return _form_page(form, page, post, maintenance, status)


def _form_page(
    form: BrowserPostForm, page: StatusPage, post: Post | None, maintenance: bool, status: int
) -> Answer:
    form.monitors.choices = [(str(id), name) for id, name in _choices(form, page)]
    # Nothing to start from where a link would lose what was sent.
    fresh = post is None and not form.is_submitted()
    templates = _templates() if fresh else ()
    if "incident_id" in request.args:
        templates = [one for one in templates if one.state not in MAINTENANCE_STATES]
    rendered = render_template(
        "posts/form.html",
        form=form,
        shown=page,
        post=post,
        maintenance=maintenance,
        templates=templates,
        maintenance_states=MAINTENANCE_STATES,
    )
    return rendered, status


def _choices(form: BrowserPostForm, page: StatusPage) -> Iterable[tuple[int, str]]:
    """The monitors of the page; if the store did not answer, those that were ticked."""
    if not form.unanswered:
        try:
            return names_on(page).items()
        except NOT_TAKEN:
            if request.method in SAFE_METHODS:
                raise
    return [(id, _("Monitor %(id)s", id=id)) for id in form.monitors.data if id is not None]


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(page_id: int, id: int) -> Answer:
    page, post = _page(page_id), current_store().posts.get(page_id, id)
    form = DeleteForm()
    if form.validate_on_submit():
        current_store().posts.delete(page_id, id)
        flash(_("%(name)s deleted.", name=post.title), "success")
        return redirect(url_for("status_pages.show", id=page_id))
    return render_template("posts/delete.html", shown=page, post=post)


# --- Updates --------------------------------------------------------------------------------------


@blueprint.route("/<int:id>/updates", methods=["GET", "POST"])
def add_update(page_id: int, id: int) -> Answer:
    if request.method in SAFE_METHODS:  # reloaded, or opened after a login
        return redirect(url_for(".show", page_id=page_id, id=id))
    try:
        page, post = _page(page_id), current_store().posts.get(page_id, id)
    except NOT_TAKEN as fault:
        form = BrowserPostUpdateForm()
        page, post = _unknown_page(page_id), _unknown_post(page_id, id)
        return _update_page(form, page, post, None, not_read(form, fault))
    form = _update_form(post)
    if form.validate_on_submit():
        try:
            current_store().posts.add_update(page_id, id, form.fields())
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            return _update_page(form, page, post, None, not_saved(form, fault))
        else:
            flash(_("Update published."), "success")
            return redirect(url_for(".show", page_id=page_id, id=id))
    return _shown(page, post, form), 422


@blueprint.route("/<int:id>/updates/<int:update_id>", methods=["GET", "POST"])
def correct_update(page_id: int, id: int, update_id: int) -> Answer:
    unread: WakefulError | None = None
    try:
        page, post = _page(page_id), current_store().posts.get(page_id, id)
        update = _update(post, update_id)
    except NOT_TAKEN as fault:
        if request.method in SAFE_METHODS:
            raise
        unread, page, post = fault, _unknown_page(page_id), _unknown_post(page_id, id)
        update = PostUpdate(update_id, request.form.get("state", ""), "")
    form = BrowserPostUpdateForm(record=update)
    if _known(update.state):
        _offer(form, update.state in MAINTENANCE_STATES)
    status = 422 if form.is_submitted() else 200
    if unread:
        status = not_read(form, unread)
    elif form.validate_on_submit():
        try:
            current_store().posts.correct_update(page_id, id, update_id, form.fields())
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            status = not_saved(form, fault)
        else:
            saved(form, _("Update edited. The page shows that it was edited."))
            return redirect(url_for(".show", page_id=page_id, id=id))
    return _update_page(form, page, post, update, status)


def _update(post: Post, id: int) -> PostUpdate:
    found = next((one for one in post.updates if one.id == id), None)
    if found is None:
        raise NotFound(N_("update"), id)
    return found


def _update_page(
    form: BrowserPostUpdateForm,
    page: StatusPage,
    post: Post,
    update: PostUpdate | None,
    status: int,
) -> Answer:
    """The form alone: of an update that is corrected, or of a new one whose post cannot be read."""
    rendered = render_template("posts/update.html", form=form, shown=page, post=post, update=update)
    return rendered, status
