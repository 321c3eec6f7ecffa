"""Actions on many monitors: pause, resume, tag, interval, contacts, places, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from flask import flash, redirect, render_template, request, session

from app.errors import Accepted, Invalid, NotFound
from app.forms.monitor import MonitorUpdateForm
from app.forms.schema import FormContext, overlay
from app.i18n import N_, _, _n
from app.records import CONTACT, MAX_NAME, PAGE_SIZES, Monitor, MonitorSortBy, Pair, interval_fields
from app.rules.brackets import write
from app.rules.text import digits
from app.stores import current_store
from app.stores.importing import sentences
from app.web.frame import links, progress, servers
from app.web.frame.editing import is_kept
from app.web.frame.session import Answer, guarded, safe_next
from app.web.frame.store_errors import CHANGED_NOTHING
from app.web.many_forms import CONTACT_ACTIONS, PARENT_ACTIONS, BulkForm
from app.web.views import monitors, windows

blueprint = guarded("bulk", __name__, "/monitors")


DONE_SENTENCES: Mapping[str, Callable[[int], str]] = {
    "pause": lambda num: _n("%(num)s monitor paused.", "%(num)s monitors paused.", num),
    "resume": lambda num: _n("%(num)s monitor resumed.", "%(num)s monitors resumed.", num),
    "tag": lambda num: _n("%(num)s monitor tagged.", "%(num)s monitors tagged.", num),
    "delete": lambda num: _n("%(num)s monitor deleted.", "%(num)s monitors deleted.", num),
}
PROGRESS_TITLES = {
    "pause": N_("Pausing monitors"),
    "resume": N_("Resuming monitors"),
    "interval": N_("Changing the interval"),
    "tag": N_("Adding the tag"),
    "untag": N_("Removing the tag"),
    "note": N_("Adding to the notes"),
    "contact": N_("Adding the contact"),
    "uncontact": N_("Removing the contact"),
    "recontact": N_("Replacing the alerts"),
    "place": N_("Adding the place"),
    "unplace": N_("Removing the place"),
    "parent": N_("Changing what monitors are reached through"),
    "unparent": N_("Changing what monitors are reached through"),
    "rule": N_("Changing the rule of places"),
    "delete": N_("Deleting monitors"),
}
# The pages that ask before an action that cannot be undone.
QUESTIONS = {"delete": "monitors/bulk_delete.html", "recontact": "monitors/bulk_recontact.html"}
ALERTS_UNREADABLE = N_("Its stored alerts cannot be read. Edit it and enter them again.")
CHOOSE = N_("Choose what to do.")
VALUES = ("tag", "note", "contact", "parent", "place", "rule", "interval")  # the actions' fields
TICKS = "tick-all"  # the id of the element above the boxes
MAX_NAMED = 50  # on the page that asks first
MAX_REASONS = 3  # why monitors could not be changed


@blueprint.post("/bulk")
def act() -> Answer:
    form = monitors.bulk_form()
    back = safe_next(request.form.get("back"))
    if not form.validate():
        everything, faults = form.everything.data, _faults(form)
        _remember_refused(form, form.ids.data, everything=everything, faults=faults)
        return redirect(back)
    if form.action.data in PARENT_ACTIONS and (fault := _find_parent(form)):
        flash(fault, "error")
        _remember_refused(form, form.ids.data, everything=form.everything.data)
        return redirect(back)
    if form.action.data == "maintenance":
        return _plan_maintenance(form, back)
    action, ids = form.action.data, _chosen_ids(form, back)
    if action in QUESTIONS and "sure" not in request.form:
        named = current_store().monitors.refs(ids=ids[:MAX_NAMED])
        return render_template(QUESTIONS[action], monitors=named, ids=ids, back=back, form=form)
    refused: dict[int, str] = {}
    changed, remaining, fault = progress.work(ids, lambda id: _act_on(action, id, form, refused))
    changed += progress.count_in("done")
    failed = progress.count_in("failed")
    # A session cookie is small, so only the first of many sentences are shown.
    for sentence in list(refused.values())[: max(0, MAX_REASONS - failed)]:
        flash(sentence, "error")
    failed += len(refused)
    if remaining:
        fields = [("action", action), ("sure", "1"), ("back", back), ("done", str(changed)),
                  ("failed", str(failed)), ("rest", ",".join(map(str, remaining))),
                  *((name, str(form[name].data or "")) for name in VALUES)]  # fmt: skip
        title, worked = _(PROGRESS_TITLES[action]), changed + failed
        return progress.page(title, worked, len(remaining), fields, fault, back)
    if refused:
        _remember_refused(form, list(refused))
    if failed > MAX_REASONS:
        more = failed - MAX_REASONS
        flash(_n("%(num)s more was not changed.", "%(num)s more were not changed.", more), "error")
    if changed:
        flash(DONE_SENTENCES.get(action, _changed_sentence)(changed), "success")
    elif not failed:
        gone = _("Nothing was changed: none of these monitors exists any more.")
        untagged = _("Nothing was changed: none of them has the tag %(tag)s.", tag=form.tag.data)
        flash(untagged if action == "untag" else gone, "info")
    return redirect(back)


def _find_parent(form: BulkForm) -> str | None:
    """Set ``parent_id`` to the id of the monitor that the form names. Return a fault, or None."""
    name = (form.parent.data or "").strip()
    refs = current_store().monitors.refs(search=name)
    ids = [ref.id for ref in refs if ref.name.casefold() == name.casefold()]
    if len(ids) != 1:
        return _("%(num)s monitors have the name %(name)s. Enter one's.", num=len(ids), name=name)
    form.parent_id = ids[0]
    return None


def _changed_sentence(num: int) -> str:
    return _n("%(num)s monitor changed.", "%(num)s monitors changed.", num)


def _plan_maintenance(form: BulkForm, back: str) -> Answer:
    """Open the form of a maintenance window for the chosen monitors. If the list is filtered by a
    tag alone and all monitors are chosen, the window is for the tag.
    """
    query = monitors.list_query(links.query_of(back))
    filters = (query.search, query.state, query.status_page_id, query.contact_id, query.location)
    if query.tag and form.everything.data and not any(filters):
        return windows.plan_for((), [query.tag])
    return windows.plan_for(_chosen_ids(form, back))


def _remember_refused(form: BulkForm, ids: Sequence[int], **more: Any) -> None:
    """Store the selection and the input in the session, for the list to show again."""
    # A session cookie is small: it holds the selection of one page, no long list or text.
    input_values = {"ids": list(ids)[: PAGE_SIZES[-1]], "action": form.action.data, **more}
    for name in VALUES:
        value = form[name].data
        input_values[name] = value[:MAX_NAME] if isinstance(value, str) else value
    session[monitors.REFUSED_BULK] = input_values


def _faults(form: BulkForm) -> list[tuple[str, str, str]]:
    """The summary of faults: the id of the input to correct, its label, and the sentence."""
    return [
        (TICKS, label, sentence)
        if id == form.ids.id
        else (id, label, _(CHOOSE) if id == form.action.id and not form.action.data else sentence)
        for id, label, sentence in form.error_summary()
    ]


def _chosen_ids(form: BulkForm, back: str) -> Sequence[int]:
    """The ids that an earlier step left over, all ids that the list finds, or the ticked ones."""
    if form.rest.data:
        return [id for id in map(digits, form.rest.data.split(",")) if id is not None]
    if not form.everything.data:
        return list(form.ids.data)
    # The order is by id: between two pages, a monitor may change its state.
    query = replace(
        monitors.list_query(links.query_of(back)), per_page=PAGE_SIZES[-1], sort_by=MonitorSortBy.ID
    )
    ids: dict[int, None] = {}
    for number in count(1):
        page = current_store().monitors.list(replace(query, page=number))
        new_ids = [monitor.id for monitor in page.items if monitor.id not in ids]
        ids |= dict.fromkeys(new_ids)
        # Another server's count may be wrong. A page without new monitors is the last one.
        if number >= page.last_number or not new_ids:
            break
    return list(ids)


def _act_on(action: str, id: int, form: BulkForm, refused: dict[int, str]) -> bool:
    """Act on a monitor and return whether it was changed. If not, add the reason to ``refused``."""
    store = current_store()
    try:
        if action == "delete":
            store.monitors.delete(id)
            return True
        monitor = store.monitors.get(id)
    except NotFound:  # somebody else deleted it meanwhile
        return False
    if action in CONTACT_ACTIONS and "alerts" in monitor.unreadable:
        refused[id] = _not_changed(monitor, _(ALERTS_UNREADABLE))
        return False
    if action == "untag" and form.tag.data.strip() not in monitor.tags:
        return False
    if action == "unplace" and set(monitor.locations) == {form.place.data}:
        refused[id] = _not_changed(monitor, _("It is checked from no other place."))
        return False
    try:
        pairs = write(_CHANGES[action](monitor, form))
        context = FormContext(bare=servers.is_bare())
        fields = overlay(MonitorUpdateForm, monitor, pairs, context)
        updated = store.monitors.update(id, fields)
    except Accepted:  # it does not show the monitor now
        return True
    except NotFound:
        return False
    except Invalid as fault:
        refused[id] = _not_changed(monitor, sentences(fault))
        return False
    if not all(is_kept(name, value, updated) for name, value in fields.items()):
        refused[id] = _not_changed(monitor, _(CHANGED_NOTHING))
        return False
    return True


def _not_changed(monitor: Monitor, reason: str) -> str:
    sentence = _("%(name)s was not changed.", name=monitor.name)
    return f"{sentence} {reason}"


T = TypeVar("T")


def _with(values: Sequence[T], value: T) -> tuple[T, ...]:
    return tuple(dict.fromkeys([*values, value]))


def _without(values: Sequence[T], value: T) -> tuple[T, ...]:
    return tuple(each for each in values if each != value)


# The fields that each action sets.
_CHANGES: Mapping[str, Callable[[Monitor, BulkForm], Mapping[str, Any]]] = {
    "pause": lambda monitor, form: {"pause": True},
    "resume": lambda monitor, form: {"pause": False},
    "interval": lambda monitor, form: interval_fields(form.interval.data),
    "tag": lambda monitor, form: {"tags": _with(monitor.tags, form.tag.data)},
    "untag": lambda monitor, form: {"tags": _without(monitor.tags, form.tag.data.strip())},
    "note": lambda monitor, form: {"notes": f"{monitor.notes or ''}\n{form.note.data}".strip("\n")},
    "contact": lambda monitor, form: {
        "alerts": (*monitor.alerts, *_unless_named(monitor, form.contact.data))
    },
    "uncontact": lambda monitor, form: {
        "alerts": tuple(pair for pair in monitor.alerts if not _matches(pair, form.contact.data))
    },
    "recontact": lambda monitor, form: {"alerts": (Pair(CONTACT, form.contact.data),)},
    "place": lambda monitor, form: {"locations": _with(monitor.locations, form.place.data)},
    "unplace": lambda monitor, form: {"locations": _without(monitor.locations, form.place.data)},
    "parent": lambda monitor, form: {"depends_on": _with(monitor.depends_on, form.parent_id)},
    "unparent": lambda monitor, form: {"depends_on": _without(monitor.depends_on, form.parent_id)},
    "rule": lambda monitor, form: {"location_rule": form.rule.data},
}


def _matches(pair: Pair, contact: str) -> bool:
    return pair.key == CONTACT and pair.value.casefold() == contact.casefold()


def _unless_named(monitor: Monitor, contact: str) -> list[Pair]:
    is_named = any(_matches(pair, contact) for pair in monitor.alerts)
    return [] if is_named else [Pair(CONTACT, contact)]
