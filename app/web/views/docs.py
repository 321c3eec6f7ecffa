"""The manuals, and the reference of the API with a form to try requests.

Only for people with an account: others find the manuals with the source, and their searches would
take CPU time here. People who must set up a second factor first may read them too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from flask import Response, abort, current_app, render_template, request, send_from_directory

from app.paths import DOCS
from app.records import MAX_SEARCH, Role
from app.web.forms import TryForm
from app.web.frame import servers
from app.web.frame.session import for_set_up, guarded, needs
from app.web.shown import manuals

blueprint = guarded("docs", __name__, "/docs")

ELSEWHERE = "https://wakeful.example.com"  # in examples, over a remote server


@blueprint.get("")
@for_set_up
def index() -> str:
    return _manual(manuals.INDEX)


@blueprint.get("/<name>")
@blueprint.get("/<name>/<chapter>")
@for_set_up
def show(name: str, chapter: str = "") -> str:
    if name not in manuals.names() or name == manuals.INDEX:
        abort(404)
    return _manual(name, chapter)


def _manual(name: str, chapter: str = "") -> str:
    chapters = list(manuals.chapters(name))
    if chapter not in chapters:
        abort(404)
    return render_template(
        "docs/manual.html",
        name=name,
        page=f"{name}/{chapter}" if chapter else name,
        is_long=len(chapters) > 1,
        html=manuals.rendered(name, chapter),
        sections=manuals.sections(name),
    )


@blueprint.get("/pictures/<name>")
@for_set_up
def picture(name: str) -> Response:
    return send_from_directory(DOCS / "pictures", name)


@blueprint.get("/search")
@for_set_up
def search() -> str:
    query = request.args.get("q", "")[:MAX_SEARCH].strip()
    hits = manuals.search(query, _operations()) if query else []
    return render_template("docs/search.html", query=query, hits=hits)


@blueprint.get("/api")
def api() -> str:
    reference = _reference()
    groups, first = reference.groups(), reference.references()["monitors_list_"]
    return render_template("docs/api.html", groups=groups, first=first, root=_root())


@blueprint.route("/api/<name>", methods=["GET", "POST"])
@needs(Role.VIEWER)
def operation(name: str) -> str:
    """One operation. POST sends a request to it, with the key that the person typed."""
    entry = _reference().references().get(name)
    if entry is None or (request.method == "POST" and servers.servers()):
        abort(404)
    body = json.dumps(entry.example, indent=2) if entry.example else ""
    form = TryForm(api_target=entry.target, api_body=body)
    answer = None
    if form.validate_on_submit():
        target, key, body = form.api_target.data, form.api_secret.data, form.api_body.data
        answer = _reference().send(current_app, entry, target, key, body)
    context = {"entry": entry, "form": form, "answer": answer, "root": _root()}
    return render_template("docs/operation.html", inline=manuals.inline, **context)


def _reference() -> Any:
    """``app.api.reference``, which the dashboard does not import."""
    return current_app.extensions["wakeful.reference"]


def _root() -> str:
    return ELSEWHERE if servers.servers() else request.url_root.rstrip("/")


def _operations() -> Iterator[manuals.ManualSection]:
    for entry in _reference().references().values():
        fields = " ".join(field.name for field in (*entry.parameters, *entry.body))
        text = f"{' '.join(entry.methods)} {entry.path}. {entry.description} {fields}"
        yield manuals.ManualSection(f"api/{entry.name}", "API", entry.summary, "", 2, text)
