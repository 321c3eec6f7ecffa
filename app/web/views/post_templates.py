"""Post templates: list, new, edit, delete. They are for every status page."""

from __future__ import annotations

from flask import Blueprint, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid, WakefulError
from app.forms import binding
from app.forms.browser import BrowserPostTemplateForm
from app.i18n import _
from app.records import PostState, PostTemplate
from app.rules.page_state import POST
from app.rules.posts import built_in
from app.stores import current_store
from app.web.forms import DeleteForm, not_read, not_saved, saved, show_errors
from app.web.frame import links, servers
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.frame.store_errors import NOT_TAKEN

blueprint = guarded(Blueprint("post_templates", __name__, url_prefix="/status-pages/templates"))

Answer = str | Response | tuple[str, int]


@blueprint.get("")
def index() -> str:
    servers.refuse_bare()
    found = current_store().post_templates.list(binding.page_query(links.pairs()))
    return render_template(
        "post_templates/index.html", page=found, built_in=built_in(), link=links.page_link
    )


@blueprint.route("/new", methods=["GET", "POST"])
def new() -> Answer:
    if request.method in SAFE_METHODS:
        servers.refuse_bare()
    return _edited(BrowserPostTemplateForm(data={"state": PostState.INVESTIGATING}), None)


@blueprint.route("/<int:id>/edit", methods=["GET", "POST"])
def edit(id: int) -> Answer:
    try:
        template = current_store().post_templates.get(id)
    except NOT_TAKEN as fault:
        return _unread(fault, id)
    return _edited(BrowserPostTemplateForm(record=template), template)


def _unread(fault: WakefulError, id: int) -> Answer:
    """What was typed into the form of a template that cannot be read now."""
    if request.method in SAFE_METHODS:
        raise fault
    name = request.form.get("name") or _("Template %(id)s", id=id)
    template = PostTemplate(id, name, "", PostState.INVESTIGATING, "")
    form = BrowserPostTemplateForm(record=template)
    return _form_page(form, template, not_read(form, fault))


def _edited(form: BrowserPostTemplateForm, template: PostTemplate | None) -> Answer:
    if form.validate_on_submit():
        try:
            record = _save(form, template)
        except Invalid as fault:
            show_errors(form, fault)
        except NOT_TAKEN as fault:
            return _form_page(form, template, not_saved(form, fault))
        else:
            saved(form, _("%(name)s saved.", name=record.name))
            return redirect(url_for(".index"))
    return _form_page(form, template, 422 if form.is_submitted() else 200)


def _save(form: BrowserPostTemplateForm, template: PostTemplate | None) -> PostTemplate:
    store = current_store()
    if template is None:
        return store.post_templates.create(form.fields())
    return store.post_templates.update(template.id, form.fields())


def _form_page(form: BrowserPostTemplateForm, template: PostTemplate | None, status: int) -> Answer:
    form.state.choices = [
        (state, POST[PostState(state)].word) for state, _label in form.state.choices
    ]
    return render_template("post_templates/form.html", form=form, template=template), status


@blueprint.route("/<int:id>/delete", methods=["GET", "POST"])
def delete(id: int) -> Answer:
    template = current_store().post_templates.get(id)
    form = DeleteForm()
    if form.validate_on_submit():
        current_store().post_templates.delete(id)
        saved(form, _("%(name)s deleted.", name=template.name))
        return redirect(url_for(".index"))
    return render_template("post_templates/delete.html", template=template)
