"""Markers: list, add, delete."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Response

from app.forms.browser import BrowserForm
from app.forms.queries import MarkerQueryForm, list_query
from app.i18n import N_
from app.records import Marker
from app.stores import current_store
from app.web.frame import links
from app.web.frame.editing import Editing
from app.web.frame.session import guarded

blueprint = guarded("markers", __name__, "/markers")


class MarkerAdding(Editing[Marker, BrowserForm]):
    """The form, and the list below it."""

    by_tag = "tags"
    collection, template, subject = "markers", "markers/index.html", "marker"
    saved, delete_button = N_("%(name)s added."), N_("Delete this marker")
    deletion = N_("It disappears from charts and incidents. This cannot be undone.")

    def context(self) -> dict[str, Any]:
        if self.form.unanswered:
            return {"page": None}
        query = list_query(MarkerQueryForm, links.pairs())
        return {"page": current_store().markers.list(query)}


@blueprint.get("", endpoint="index")
@blueprint.post("", endpoint="add")
def index() -> Response:
    return MarkerAdding().answer()


MarkerAdding.register(blueprint, "delete")
