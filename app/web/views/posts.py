"""The posts of a status page: write, draft from an incident, update, correct, delete. Also the
templates of posts, which all status pages share: list, new, edit, delete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from flask import redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import NotFound
from app.forms.browser import BrowserForm, browser
from app.forms.post import PostForm, PostTemplateForm, PostUpdateForm
from app.forms.queries import page_query
from app.i18n import N_, _
from app.records import (
    MAINTENANCE_STATES,
    PageQuery,
    Post,
    PostImpact,
    PostState,
    PostTemplate,
    PostUpdate,
    StatusPage,
)
from app.rules import posts
from app.rules.page_state import IMPACT, POST
from app.rules.text import record_id
from app.stores import current_store
from app.web.frame import choices, links, servers
from app.web.frame.editing import Editing
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.shown import times
from app.web.shown.page_lines import names_on
from app.web.views import status_pages

blueprint = guarded("posts", __name__, "/status-pages/<int:page_id>/posts")

MAINTENANCE = "maintenance"  # the ``kind`` of a post in the address
MAX_TEMPLATES = 100  # in the list of those that a post can start from
INCIDENT_STATES = tuple(state for state in PostState if state not in MAINTENANCE_STATES)
# The state that the next update of a post most likely has.
LIKELY_NEXT = {
    PostState.INVESTIGATING: PostState.IDENTIFIED,
    PostState.IDENTIFIED: PostState.MONITORING,
    PostState.MONITORING: PostState.RESOLVED,
    PostState.SCHEDULED: PostState.IN_PROGRESS,
    PostState.IN_PROGRESS: PostState.COMPLETED,
}


# --- One post -------------------------------------------------------------------------------------


@blueprint.get("/<int:id>")
def show(page_id: int, id: int) -> str:
    editing = UpdateEditing(None, page_id, id)
    editing.load()
    editing.form = editing.bind()
    return editing.with_post()


def _load_page(id: int) -> StatusPage:
    servers.refuse_bare()
    return current_store().status_pages.get(id)


def _is_state(state: str) -> bool:
    return state in set(PostState)


def _offer_states(form: BrowserForm, maintenance: bool) -> None:
    """Offer the states of maintenance, or those of an incident."""
    form.state.leave_out(*(INCIDENT_STATES if maintenance else MAINTENANCE_STATES))
    _use_public_words(form)


def _use_public_words(form: BrowserForm) -> None:
    """Show the states in the words that the public reads."""
    form.state.choices = [(state, POST[state].word) for state, _label in form.state.choices]


# --- Write and correct ----------------------------------------------------------------------------


class PostEditing(Editing[Post, BrowserForm]):
    """A new post, whose first values depend on ``kind``, ``template`` and ``incident_id`` in the
    address; or the correction of a post's title, monitors and times. ``UpdateEditing`` corrects
    its texts.
    """

    collection, template, subject = "posts", "posts/form.html", "post"
    delete_button = N_("Delete this post")
    deletion = N_(
        "The post and its updates disappear from the page, its history and its feeds. Messages that"
        " were sent cannot be recalled. This cannot be undone. To fix a mistake, correct the post"
        " instead."
    )

    def load(self) -> Post | None:
        """The post to edit. For a new one, this also sets its first values."""
        (page_id,) = self.owner_ids
        self.status_page = _page_stand_in(page_id)
        self.first: Mapping[str, Any] | None = None
        self.maintenance = request.args.get("kind") == MAINTENANCE or "starts_at" in request.form
        self.status_page = _load_page(page_id)
        post = super().load()
        if post is None:
            self.first = _first_values(self.status_page, self.maintenance, _template())
            self.maintenance = self.first["state"] in MAINTENANCE_STATES
        return post

    def stand_in(self, id: int) -> Post:
        return _post_stand_in(self.status_page.id, id)

    def bind(self) -> BrowserForm:
        form = browser(PostForm)(record=self.record, data=self.first, zone=times.zone())
        if self.record is None:
            _offer_states(form, self.maintenance)
        else:
            self.maintenance = self.record.state in MAINTENANCE_STATES
        return form

    def name_of(self, record: Post) -> str:
        return record.title

    def list_address(self) -> str:
        return url_for("status_pages.show", id=self.owner_ids[0])

    def notice(self, record: Post) -> str:
        if self.record is None:
            return _("%(name)s published.", name=record.title)
        return _("Saved. The page shows that this was edited.")

    def next_address(self, record: Post) -> str:
        (page_id,) = self.owner_ids
        if self.id is None:
            return url_for("status_pages.show", id=page_id)
        return url_for(".show", page_id=page_id, id=record.id)

    def context(self) -> dict[str, Any]:
        form = self.form
        form.monitors.choices = _choices(form, self.status_page)
        # A link to a template would lose the typed text, so there are none after a fault.
        templates = _templates() if self.record is None and not form.is_submitted() else ()
        if self.maintenance or "incident_id" in request.args:
            templates = [
                template
                for template in templates
                if (template.state in MAINTENANCE_STATES) == self.maintenance
            ]
        return {
            "status_page": self.status_page,
            "maintenance": self.maintenance,
            "templates": templates,
            "impact": {row.key: row.value for row in form.impact.rows},
            "impact_words": IMPACT,
            "maintenance_states": MAINTENANCE_STATES,
        }


PostEditing.register(blueprint)


def _templates() -> Sequence[PostTemplate]:
    """The posts to start from."""
    return posts.offered(
        current_store().post_templates.list(PageQuery(per_page=MAX_TEMPLATES)).items
    )


def _template() -> PostTemplate | None:
    """The template that the address names. None for a sent form, which has the template's texts."""
    name = request.args.get("template", "")
    if not name or request.method not in SAFE_METHODS:
        return None
    folded_name = posts.folded(name)
    return next(
        (template for template in _templates() if posts.folded(template.name) == folded_name), None
    )


def _first_values(
    page: StatusPage, maintenance: bool, template: PostTemplate | None
) -> Mapping[str, Any]:
    """The first values of a new post."""
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
    if template and _is_state(template.state):
        maintenance = template.state in MAINTENANCE_STATES
    if maintenance:
        start = times.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        end = start + timedelta(hours=1)
        text = {"state": PostState.SCHEDULED, "starts_at": start, "ends_at": end}
    return text | _text_of(template)


def _text_of(template: PostTemplate | None) -> dict[str, Any]:
    """The fields that a post takes from a template."""
    if template is None:
        return {}
    text = {"title": template.title, "body": template.body}
    return text | {"state": template.state} if _is_state(template.state) else text


def _page_stand_in(id: int) -> StatusPage:
    return StatusPage(id, _("Status page %(id)s", id=id), "")


def _post_stand_in(page_id: int, id: int) -> Post:
    """A stand-in for the post, made of the form that was sent."""
    title = request.form.get("title") or _("Post %(id)s", id=id)
    announced = "starts_at" in request.form
    state = PostState.SCHEDULED if announced else PostState.INVESTIGATING
    return Post(id, page_id, title, state, "")


def _choices(form: BrowserForm, page: StatusPage) -> list[tuple[str, str]]:
    """The monitors of the page, the ticked ones first; only these if the store did not answer."""
    ticked = {id: _("Monitor %(id)s", id=id) for id in form.monitors.data if id is not None}
    names = choices.unless_unanswered(form, lambda: names_on(page), ticked)
    chosen_first = sorted(names.items(), key=lambda choice: choice[0] not in ticked)
    return [(str(id), name) for id, name in chosen_first]


# --- Updates --------------------------------------------------------------------------------------


class UpdateEditing(Editing[PostUpdate, BrowserForm]):
    """A new update, whose form is on the page of its post; or the correction of an update, on a
    page with the form alone. A new update has such a page too if its post cannot be read.
    """

    template, subject = "posts/update.html", "update"

    def load(self) -> PostUpdate | None:
        page_id, post_id = self.owner_ids
        self.status_page, self.post = _page_stand_in(page_id), _post_stand_in(page_id, post_id)
        self.is_read = False
        self.status_page = _load_page(page_id)
        self.post = current_store().posts.get(page_id, post_id)
        self.is_read = True
        if self.id is None:
            return None
        update = next((update for update in self.post.updates if update.id == self.id), None)
        if update is None:
            raise NotFound(N_("update"), self.id)
        return update

    def stand_in(self, id: int) -> PostUpdate:
        return PostUpdate(id, request.form.get("state", ""), "")

    def bind(self) -> BrowserForm:
        state = self.record.state if self.record else self.post.state if self.is_read else ""
        current = PostState(state) if state in set(PostState) else None
        next_state = LIKELY_NEXT.get(current, current) if current else None
        form = browser(PostUpdateForm)(
            record=self.record, data=None if self.record else {"state": next_state}
        )
        if current or (self.is_read and self.record is None):
            _offer_states(form, state in MAINTENANCE_STATES)
        return form

    def save(self) -> Any:
        (page_id, post_id), fields = self.owner_ids, self.form.fields()
        if self.id is None:
            return current_store().posts.add_update(page_id, post_id, fields)
        return current_store().posts.correct_update(page_id, post_id, self.id, fields)

    def notice(self, record: PostUpdate) -> str:
        if self.id is None:
            return _("Update published.")
        return _("Saved. The page shows that this was edited.")

    def next_address(self, record: PostUpdate) -> str:
        return url_for(".show", page_id=self.status_page.id, id=self.post.id)

    def context(self) -> dict[str, Any]:
        return {"status_page": self.status_page, "post": self.post}

    def page(self, status: int, **more: Any) -> Response:
        if self.id is None and self.is_read and status == 422:
            return Response(self.with_post(), status, mimetype="text/html")
        return super().page(status, **more)

    def with_post(self) -> str:
        names = names_on(self.status_page)
        impact = {
            entry.key: _(IMPACT[entry.value]).lower()
            for entry in self.post.impact
            if entry.value != PostImpact.NONE
        }
        author = status_pages.authors_of([self.post]).get(self.post.id)
        context = {"names": names, "impact": impact, "author": author, **self.context()}
        return render_template("posts/show.html", form=self.form, **context)


@blueprint.route("/<int:id>/updates", methods=["GET", "POST"])
def add_update(page_id: int, id: int) -> Response:
    if request.method in SAFE_METHODS:  # reloaded, or opened after a login
        return redirect(url_for(".show", page_id=page_id, id=id))
    return UpdateEditing(None, page_id, id).answer()


UpdateEditing.register(blueprint, correct_update="/<int:id>/updates/<int:update_id>")


# --- Templates ------------------------------------------------------------------------------------

templates_blueprint = guarded("post_templates", __name__, "/status-pages/templates")


@templates_blueprint.get("")
def index() -> str:
    servers.refuse_bare()
    page = current_store().post_templates.list(page_query(links.pairs()))
    return render_template("post_templates/index.html", page=page, built_in=posts.built_in())


class PostTemplateEditing(Editing[PostTemplate, BrowserForm]):
    collection, template, subject = "post_templates", "post_templates/form.html", "template"
    delete_button = N_("Delete this template")
    deletion = N_("Posts that were started from it do not change. This cannot be undone.")

    def stand_in(self, id: int) -> PostTemplate:
        name = request.form.get("name") or _("Template %(id)s", id=id)
        return PostTemplate(id, name, "", PostState.INVESTIGATING, "")

    def bind(self) -> BrowserForm:
        first = None if self.record else {"state": PostState.INVESTIGATING}
        form = browser(PostTemplateForm)(record=self.record, data=first)
        _use_public_words(form)
        return form


PostTemplateEditing.register(templates_blueprint)
