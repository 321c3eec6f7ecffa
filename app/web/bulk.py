"""Many monitors at once: pause, resume, tag, change the interval, delete; and pasting many URLs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Invalid, NotFound
from app.forms import binding
from app.forms.monitor import MonitorForm, MonitorUpdateForm
from app.records import Monitor
from app.stores import Feature, current_store
from app.web.forms import BulkForm, ImportForm
from app.web.session import guarded, safe_next

blueprint = guarded(Blueprint("bulk", __name__, url_prefix="/monitors"))

Answer = str | Response | tuple[str, int]

DONE = {
    "pause": "paused",
    "resume": "watched again",
    "interval": "changed",
    "tag": "tagged",
    "untag": "changed",
    "delete": "deleted",
}
MOST_LINES = 500


@blueprint.post("/bulk")
def act() -> Answer:
    form = BulkForm()
    back = safe_next(request.form.get("back"))
    if not form.validate():
        for _id, _label, sentence in form.error_summary():
            flash(f"Nothing was changed. {sentence}", "error")
        return redirect(back)
    action = form.action.data
    chosen = [monitor for id in form.ids.data if (monitor := _still_there(id)) is not None]
    if action == "delete" and "sure" not in request.form:
        return render_template("monitors/bulk_delete.html", monitors=chosen, back=back)
    count = sum(_changed(action, monitor, form) for monitor in chosen)
    flash(f"{count} monitor{' is' if count == 1 else 's are'} {DONE[action]}.", "success")
    return redirect(back)


def _still_there(id: int) -> Monitor | None:
    try:
        return current_store().monitor(id)
    except NotFound:
        return None


def _changed(action: str, monitor: Monitor, form: BulkForm) -> bool:
    store = current_store()
    try:
        if action == "delete":
            store.delete_monitor(monitor.id)
        else:
            pairs = _CHANGES[action](monitor, form)
            store.update_monitor(monitor.id, binding.overlay(MonitorUpdateForm, monitor, pairs))
    except NotFound:  # somebody else deleted it meanwhile
        return False
    except Invalid as fault:
        sentences = [sentence for found in fault.errors.values() for sentence in found]
        flash(f"{monitor.name} stays as it is. {' '.join(sentences)}", "error")
        return False
    return True


_CHANGES: Mapping[str, Callable[[Monitor, BulkForm], list[tuple[str, str]]]] = {
    "pause": lambda monitor, form: [("pause", "true")],
    "resume": lambda monitor, form: [("pause", "false")],
    "interval": lambda monitor, form: [("interval", str(form.interval.data))],
    "tag": lambda monitor, form: [("tags", ",".join([*monitor.tags, form.tag.data]))],
    "untag": lambda monitor, form: [
        ("tags", ",".join(tag for tag in monitor.tags if tag != form.tag.data.strip()))
    ],
}


@blueprint.route("/import", methods=["GET", "POST"])
def paste() -> Answer:
    """A monitor for each pasted line; lines that cannot be one stay in the form, with why."""
    form = ImportForm(without=() if Feature.EXTRA_FIELDS in current_store().offers else ["tags"])
    if not form.validate_on_submit():
        page = render_template("monitors/import.html", form=form)
        return page, 422 if form.is_submitted() else 200
    made, refused = _import(form)
    if made:
        flash(f"{made} monitor{' is' if made == 1 else 's are'} made.", "success")
    if not refused:
        return redirect(url_for("monitors.index"))
    form.urls.shown = "\n".join(line for line, _ in refused)
    for line, sentence in refused:
        form.urls.fault(f"{line[:80]}: {sentence}")
    return render_template("monitors/import.html", form=form), 422


def _import(form: ImportForm) -> tuple[int, list[tuple[str, str]]]:
    lines = [line.strip() for line in form.urls.data.splitlines() if line.strip()]
    made, refused = 0, []
    for place, line in enumerate(lines):
        if place >= MOST_LINES:
            refused.append((line, f"At most {MOST_LINES} fit at once. Send the rest again."))
            continue
        url, _, name = line.partition(" ")
        pairs = [("url", url), ("name", name.strip() or _name(url)), *form.shared()]
        try:
            current_store().create_monitor(binding.bind(MonitorForm, pairs))
        except Invalid as fault:
            sentences: list[Any] = [one for found in fault.errors.values() for one in found]
            refused.append((line, " ".join(sentences)))
        else:
            made += 1
    return made, refused


def _name(url: str) -> str:
    return url.partition("://")[2].strip("/")[:255] or url[:255]
