"""Post templates: list, new, edit, delete. They are for every status page."""

from __future__ import annotations

from flask import render_template, request

from app.forms.browser import BrowserForm, browser
from app.forms.post import PostTemplateForm
from app.forms.queries import page_query
from app.i18n import N_, _
from app.records import PostState, PostTemplate
from app.rules.page_state import POST
from app.rules.posts import built_in
from app.stores import current_store
from app.web.frame import links, servers
from app.web.frame.editing import Editing
from app.web.frame.session import guarded

blueprint = guarded("post_templates", __name__, "/status-pages/templates")


@blueprint.get("")
def index() -> str:
    servers.refuse_bare()
    listed = current_store().post_templates.list(page_query(links.pairs()))
    return render_template("post_templates/index.html", page=listed, built_in=built_in())


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
        form.state.choices = [
            (state, POST[PostState(state)].word) for state, _label in form.state.choices
        ]
        return form


PostTemplateEditing.register(blueprint)
