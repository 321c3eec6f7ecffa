"""Many monitors at once: pause, resume, tag, change the interval, delete; and pasting many URLs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, session, url_for
from markupsafe import Markup
from werkzeug.wrappers import Response

from app.errors import Invalid, NotFound
from app.forms import binding
from app.forms.fields import with_scheme
from app.forms.monitor import MonitorForm, MonitorUpdateForm, name_of, warns_by_default
from app.records import (
    CONTACT,
    DEFAULT_SSL_ALERT_DAYS,
    MAX_TAG,
    PAGE_SIZES,
    Monitor,
    MonitorRef,
    Pair,
)
from app.rules.brackets import write
from app.stores import Feature, current_store
from app.web.forms import CONTACT_ACTIONS, BulkForm, ImportForm
from app.web.frame import choices, links, progress, servers
from app.web.frame.session import SAFE_METHODS, guarded, safe_next
from app.web.shown import channel_setup
from app.web.views import monitors

blueprint = guarded(Blueprint("bulk", __name__, url_prefix="/monitors"))

Answer = str | Response | tuple[str, int]
Twins = tuple[Monitor, MonitorRef]  # a new monitor, and an older one of the same URL

DONE = {
    "pause": "paused",
    "resume": "resumed",
    "interval": "changed",
    "tag": "tagged",
    "untag": "changed",
    "contact": "changed",
    "uncontact": "changed",
    "recontact": "changed",
    "delete": "deleted",
}
DOING = {
    "pause": "Pausing monitors",
    "resume": "Resuming monitors",
    "interval": "Changing the interval",
    "tag": "Adding the tag",
    "untag": "Removing the tag",
    "contact": "Adding the contact",
    "uncontact": "Removing the contact",
    "recontact": "Replacing the alerts",
    "delete": "Deleting monitors",
}
ALERTS_UNREADABLE = "Its stored alerts cannot be read. Edit it and enter them again."
CHOOSE = "Choose what to do."
TICKS = "tick-all"  # the id of what stands above the boxes
MOST_LINES = 500
MOST_FAULTS = 100  # of pasted lines, on one page
NAMED = 50  # of those to be deleted
TOLD = 3  # of those that could not be changed
# A name may come first, as in a spreadsheet; a comma within a URL alone separates nothing.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+://")
_URL_BEHIND_A_NAME = re.compile(rf',\s*+"?+(?={_URL.pattern})')


@blueprint.post("/bulk")
def act() -> Answer:
    form = monitors.bulk_form()
    back = safe_next(request.form.get("back"))
    if not form.validate():
        _keep(form, form.ids.data, everything=form.everything.data, faults=_faults(form))
        return redirect(back)
    action, ids = form.action.data, _chosen(form, back)
    if action == "delete" and "sure" not in request.form:
        named = current_store().monitors.refs(ids=ids[:NAMED])
        return render_template("monitors/bulk_delete.html", monitors=named, ids=ids, back=back)
    refused: dict[int, str] = {}
    done, left, trouble = progress.work(ids, lambda id: _changed(action, id, form, refused))
    done, failed = done + progress.said("done"), progress.said("failed")
    # A session remembers little: of many such sentences only the first are told.
    for sentence in list(refused.values())[: max(0, TOLD - failed)]:
        flash(sentence, "error")
    failed += len(refused)
    if left:
        fields = [("action", action), ("sure", "1"), ("back", back), ("done", str(done)),
                  ("failed", str(failed)), ("rest", ",".join(map(str, left))),
                  ("tag", form.tag.data or ""), ("contact", form.contact.data or ""),
                  ("interval", str(form.interval.data or ""))]  # fmt: skip
        return progress.page(DOING[action], done + failed, len(left), fields, trouble, back)
    if refused:
        _keep(form, list(refused))
    if failed > TOLD:
        flash(f"{failed - TOLD} more were not changed.", "error")
    if done:
        flash(f"{done} monitor{'' if done == 1 else 's'} {DONE[action]}.", "success")
    elif not failed:
        flash("Nothing was changed: none of these monitors exists any more.", "info")
    return redirect(back)


def _keep(form: BulkForm, ids: Sequence[int], **more: Any) -> None:
    """Let the list show once more what was ticked and typed, for those that stay as they are."""
    session[monitors.BULK_TYPED] = {
        # A session remembers little: the ticks of one page, not a list of any length.
        "ids": list(ids)[: PAGE_SIZES[-1]],
        "action": form.action.data,
        "tag": (form.tag.data or "")[:MAX_TAG],
        "contact": form.contact.data,
        "interval": form.interval.data,
        **more,
    }


def _faults(form: BulkForm) -> list[tuple[str, str, str]]:
    """The summary of faults in the words of the bar, each with the id of what puts it right."""
    return [
        (TICKS, label, sentence)
        if id == form.ids.id
        else (id, label, CHOOSE if id == form.action.id and not form.action.data else sentence)
        for id, label, sentence in form.error_summary()
    ]


def _chosen(form: BulkForm, back: str) -> Sequence[int]:
    """The ids to act on: what an earlier step left, all that the list found, or the ticked ones."""
    if form.rest.data:
        texts = form.rest.data.split(",")
        return [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19]
    if not form.everything.data:
        return list(form.ids.data)
    query = replace(monitors.list_query(links.query_of(back)), per_page=PAGE_SIZES[-1])
    found: dict[int, None] = {}
    for number in count(1):
        page = current_store().monitors.list(replace(query, page=number))
        fresh = [monitor.id for monitor in page.items if monitor.id not in found]
        found |= dict.fromkeys(fresh)
        # Another server's count may be anything; one that only repeats itself has no more.
        if number >= page.last_number or not fresh:
            break
    return list(found)


def _changed(action: str, id: int, form: BulkForm, refused: dict[int, str]) -> bool:
    store = current_store()
    try:
        if action == "delete":
            store.monitors.delete(id)
            return True
        monitor = store.monitors.get(id)
    except NotFound:  # somebody else deleted it meanwhile
        return False
    if action in CONTACT_ACTIONS and "alerts" in monitor.unreadable:
        refused[id] = f"{monitor.name} was not changed. {ALERTS_UNREADABLE}"
        return False
    try:
        pairs = _CHANGES[action](monitor, form)
        store.monitors.update(id, binding.overlay(MonitorUpdateForm, monitor, pairs))
    except NotFound:
        return False
    except Invalid as fault:
        refused[id] = f"{monitor.name} was not changed. {_sentences(fault)}"
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
    "contact": lambda monitor, form: write(
        {"alerts": (*monitor.alerts, *_unless_there(monitor, form.contact.data))}
    ),
    "uncontact": lambda monitor, form: write(
        {"alerts": tuple(one for one in monitor.alerts if not _names(one, form.contact.data))}
    ),
    "recontact": lambda monitor, form: write({"alerts": (Pair(CONTACT, form.contact.data),)}),
}


def _names(pair: Pair, contact: str) -> bool:
    return pair.key == CONTACT and pair.value.casefold() == contact.casefold()


def _unless_there(monitor: Monitor, contact: str) -> list[Pair]:
    there = any(_names(pair, contact) for pair in monitor.alerts)
    return [] if there else [Pair(CONTACT, contact)]


@dataclass(frozen=True, slots=True)
class Line:
    """One pasted line, its number from 1, and what a store takes or what is wrong with it."""

    number: int
    text: str
    fields: Mapping[str, Any] | None = None
    fault: str = ""


@blueprint.route("/import", methods=["GET", "POST"])
def paste() -> Answer:
    """A monitor for each pasted line: all of them, or none until every line is right. Who ticks
    ``skip`` gets those that are right, and keeps the others in the form with why.
    """
    needed = {"tags": Feature.EXTRA_FIELDS, "contacts": Feature.CONTACTS}
    without = [name for name, feature in needed.items() if not servers.offers(feature)]
    first = current_store().contacts.defaults() if request.method in SAFE_METHODS else ()
    form = ImportForm(without=without, data={"contacts": tuple(first)})
    if not form.validate_on_submit():
        return _import_page(form, 422 if form.is_submitted() else 200)
    lines = read_lines(form.urls.data, form.shared())
    wrong = [line for line in lines if line.fields is None]
    if wrong and not form.skip.data:
        return _wrong(form, wrong, 422)
    good = [line for line in lines if line.fields is not None]
    refused: list[Line] = []
    again: list[Twins] = []
    made, left, trouble = progress.work(good, lambda line: _made(line, refused, again))
    made += progress.said("made")
    repeated = _tell_twins(again, progress.said("again"))
    wrong += refused
    texts = [line.text for line in (*left, *wrong)]
    if trouble:
        # Back in their field: who has looked may have to take out a line that did arrive.
        form.urls.shown = "\n".join(texts)
        form.trouble = f"{_count_made(made)} {trouble}"
        return _import_page(form, 503, made)
    if left:
        fields = [("urls", "\n".join(texts)), ("made", str(made)),
                  ("again", str(repeated)), *form.repeated(),
                  *([("skip", "1")] if form.skip.data else [])]  # fmt: skip
        back = url_for("monitors.index")
        return progress.page("Creating monitors", made, len(left), fields, "", back)
    flash(_count_made(made), "success" if made else "info")
    if repeated > TOLD:
        flash(f"{repeated - TOLD} more check a URL that another monitor checks.", "warning")
    if not wrong:
        return redirect(url_for("monitors.index"))
    form.urls.shown = "\n".join(texts)
    return _wrong(form, [replace(line, number=n) for n, line in enumerate(wrong, 1)], 200)


def read_lines(text: str, shared: Sequence[tuple[str, str]]) -> list[Line]:
    """The lines that are not empty. ``shared``: pairs that every monitor gets."""
    numbered = ((place, line.strip()) for place, line in enumerate(text.splitlines(), 1))
    found: list[Line] = []
    for number, line in numbered:
        if not line:
            continue
        if len(found) >= MOST_LINES:
            sentence = f"At most {MOST_LINES:,} lines fit at a time. Paste the rest afterwards."
            found.append(Line(number, line, fault=sentence))
            continue
        name, url = split(line)
        url = with_scheme(url)
        pairs = [("url", url), ("name", name or name_of(url)), *_warning(url), *shared]
        try:
            found.append(Line(number, line, binding.bind(MonitorForm, pairs)))
        except Invalid as fault:
            found.append(Line(number, line, fault=_sentences(fault)))
    return found


def _warning(url: str) -> list[tuple[str, str]]:
    days = ("ssl_alert_days", str(DEFAULT_SSL_ALERT_DAYS))
    return [days] if warns_by_default(url) else []


def split(line: str) -> tuple[str, str]:
    """Name and URL of ``name,URL``, of ``URL name`` or of a URL alone."""
    comma = None if _URL.match(line) else _URL_BEHIND_A_NAME.search(line)
    if comma:
        name, url = line[: comma.start()], line[comma.end() :]
        return name.strip().strip('"').strip(), url.rstrip().removesuffix('"').strip()
    url, _, name = line.partition(" ")
    return name.strip(), url


def _made(line: Line, refused: list[Line], again: list[Twins]) -> bool:
    if line.fields is None:
        return False
    monitors = current_store().monitors
    try:
        twins = monitors.watching(line.fields["url"])
        made = monitors.create(line.fields)
    except Invalid as fault:
        refused.append(replace(line, fault=_sentences(fault)))
        return False
    if twins:
        again.append((made, twins[0]))
    return True


def _tell_twins(again: Sequence[Twins], told: int) -> int:
    """Say which new monitors check a URL that another one checks already; how many they are with
    those that earlier steps ``told``. A session remembers little: only the first are named.
    """
    for made, twin in again[: max(0, TOLD - told)]:
        said = Markup("{} checks the same URL as {}.").format(_link(made), _link(twin))
        flash(said, "warning")
    return told + len(again)


def _link(one: Monitor | MonitorRef) -> Markup:
    address = url_for("monitors.show", id=one.id)
    return Markup('<a href="{}">{}</a>').format(address, one.name[:60])


def _count_made(made: int) -> str:
    return f"{made} monitor{'' if made == 1 else 's'} created."


def _sentences(fault: Invalid) -> str:
    """All of them; another server may say no without one for any field."""
    return " ".join(one for several in fault.errors.values() for one in several) or str(fault)


def _wrong(form: ImportForm, wrong: Sequence[Line], status: int) -> Answer:
    for line in wrong[:MOST_FAULTS]:
        form.urls.fault(f"Line {line.number}, {line.text[:80]}: {line.fault}")
    if len(wrong) > MOST_FAULTS:  # a pasted log has a hundred thousand
        form.urls.fault(f"{len(wrong) - MOST_FAULTS:,} more lines are not valid.")
    return _import_page(form, status)


def _import_page(form: ImportForm, status: int, made: int = 0) -> Answer:
    if "contacts" in form:
        names = choices.contacts(form, form.ticked())
        form.contacts.choices = channel_setup.contact_choices(names, form)
    return render_template("monitors/import.html", form=form, made=made), status
