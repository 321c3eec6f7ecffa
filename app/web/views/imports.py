"""Add many monitors, from lines, a CSV file or another tool's export. First comes a preview, which
stores nothing. The chosen monitors are then created in steps, and a page lists those that could not
be created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from flask import make_response, render_template, request, url_for
from flask_login import current_user

from app.access import tokens
from app.errors import Denied, Invalid
from app.forms.alert_lists import CHANNEL_CHOICES
from app.forms.contact import ContactForm, check_name
from app.forms.imported import ImportDefaults, candidate_of, record_of
from app.forms.schema import bind
from app.i18n import N_, _
from app.imports.candidates import FORMATS, Candidate, NotReadable, Reading
from app.records import CONTACT, MAX_CONTACT_NAME, PAGE_SIZES, MonitorQuery, Pair, masked_alert
from app.rules.text import digits, fault_of
from app.rules.url import IpNetwork
from app.stores import current_settings, current_store
from app.stores.importing import Importer, ImportRow, alert_nobody, counts, notes, sentences
from app.web.frame import allowing, choices, progress, remembered, servers
from app.web.frame.editing import form_page
from app.web.frame.session import SAFE_METHODS, Answer, guarded
from app.web.many_forms import ImportForm

blueprint = guarded("imports", __name__, "/monitors/import")

MAX_ROWS = 500  # on one preview
MAX_SEALED = 3_000_000  # characters: the next request must fit into a form
PLAN, REFUSED = "import", "import refused"  # the purposes of the two sealed texts
REMEMBERED = "import"
LEFT_OUT = "none"  # the choice in place of a channel with which the contact is not created
TOO_LARGE = N_(
    "This is too much for one preview. Split it, or import it on the server with the command:"
    " wakeful import FILE"
)


@blueprint.route("", methods=["GET", "POST"])
def start() -> Answer:
    form = _form()
    if not form.validate_on_submit():
        return form_page("imports/start.html", form)
    from app.imports import files  # all readers, at their first use

    try:
        if form.uses_sealed_file():
            plan = replace(ImportPlan.opened(form.sealed), shared=form.shared())
        else:
            plan = _plan(form, files.read(form.content(), form.format.data or ""))
        response = make_response(_preview(form, plan))
    except NotReadable as fault:
        form.source().add_fault(str(fault))
        return form_page("imports/start.html", form)
    remembered.keep(response, REMEMBERED, _choices_of(form))
    return response


def _form(lines: str | None = None) -> ImportForm:
    """The form. ``lines``: the typed lines, if the request is from the preview and has no field of
    this form.
    """
    missing = {"tags": servers.is_bare(), "contacts": not servers.is_whole()}
    without = [name for name, is_missing in missing.items() if is_missing]
    is_empty = request.method in SAFE_METHODS or lines is not None
    data: dict[str, Any] = _remembered() if is_empty else {}
    if is_empty and "contacts" not in data:
        data["contacts"] = tuple(current_store().contacts.defaults())
    more: dict[str, Any] = {} if lines is None else {"formdata": None}
    form = ImportForm(bare=servers.is_bare(), without=without, data=data | {"urls": lines}, **more)
    form.sealed = request.form.get("sealed", "")
    if "contacts" in form:
        names = choices.contacts(form, form.chosen_contacts())
        form.contacts.choices = choices.contact_choices(names)
    return form


def _choices_of(form: ImportForm) -> dict[str, str]:
    """The choices that the next import starts with."""
    shared = form.shared()
    return {
        "interval": str(shared.interval),
        "tags": ",".join(shared.tags),
        "contacts": "\n".join(shared.contacts),
        "format": form.format.data or "",
    }


def _remembered() -> dict[str, Any]:
    """The choices of the last import, without contacts that are gone."""
    last = remembered.choices_of(REMEMBERED)
    names = set(current_store().contacts.names())
    data: dict[str, Any] = {}
    if (interval := digits(last.get("interval", ""))) is not None:
        data["interval"] = interval
    if "contacts" in last:
        data["contacts"] = tuple(n for n in last["contacts"].split("\n") if n in names)
    if last.get("tags"):
        data["tags"] = tuple(last["tags"].split(","))
    if last.get("format") in FORMATS:
        data["format"] = last["format"]
    return data


def _plan(form: ImportForm, reading: Reading) -> ImportPlan:
    candidates = reading.candidates[:MAX_ROWS]
    missing = _missing_contacts(candidates, reading.contacts)
    spelt = {name.casefold(): name for name in missing}
    return ImportPlan(
        [_respelt(candidate, spelt) for candidate in candidates],
        form.shared(),
        {**reading.contacts, **dict.fromkeys(missing, ())},
        reading.source,
        tuple(reading.remarks),
        len(reading.candidates) - len(candidates),
        "" if form.sends_file() else form.urls.data,
    )


def _missing_contacts(
    candidates: Sequence[Candidate], of_file: Mapping[str, Sequence[Pair]]
) -> Sequence[str]:
    """The contacts that entries name and that do not exist yet, each once, as it is spelt first.
    They are created with the monitors if the person chooses channels for them.
    """
    if not servers.is_whole():
        return ()
    existing = {name.casefold() for name in (*current_store().contacts.names(), *of_file)}
    missing: dict[str, str] = {}
    for candidate in candidates:
        for pair in candidate.fields.get("alerts", ()):
            name = pair.value.strip()
            if pair.key == CONTACT and name.casefold() not in existing and _is_name(name):
                missing.setdefault(name.casefold(), name)
    return list(missing.values())


def _is_name(name: str) -> bool:
    return len(name) <= MAX_CONTACT_NAME and fault_of(lambda: check_name(name)) is None


def _respelt(candidate: Candidate, spelt: Mapping[str, str | None]) -> Candidate:
    """The candidate with its contacts spelt as in ``spelt``, whose keys are folded names; a contact
    with the value None is removed.
    """
    alerts = [
        pair if pair.key != CONTACT else Pair(CONTACT, name)
        for pair in candidate.fields.get("alerts", ())
        if (name := spelt.get(pair.value.strip().casefold(), pair.value)) is not None
        or pair.key != CONTACT
    ]
    fields = {name: value for name, value in candidate.fields.items() if name != "alerts"}
    return replace(candidate, fields=fields | ({"alerts": tuple(alerts)} if alerts else {}))


def _preview(form: ImportForm, plan: ImportPlan, **more: Any) -> str:
    """The page with the preview. ``more``: the choices that were sent from it, and their faults."""
    importer = _importer(plan)
    rows = importer.dry_run(plan.candidates)
    sealed_plan = plan.sealed()
    if len(sealed_plan) > MAX_SEALED:
        raise NotReadable(_(TOO_LARGE))
    form.sealed = "" if plan.lines else sealed_plan
    new = {name: pairs for name, pairs in importer.new_contacts.items() if pairs}
    context: dict[str, Any] = {
        "form": form,
        "plan": plan,
        "rows": sorted(enumerate(rows), key=lambda entry: entry[1].validated.fits),
        "counts": counts(rows),
        "notes": notes(rows),
        "ticked": {index for index, row in enumerate(rows) if row.is_new},
        "sealed": sealed_plan,
        "contacts": {name: list(map(masked_alert, pairs)) for name, pairs in new.items()},
        "to_reach": plan.to_reach,
        "typed": {},
        "faults": {},
        "channels": CHANNEL_CHOICES,
        "LEFT_OUT": LEFT_OUT,
        "refused": _refused(rows),
        "alert_nobody": partial(alert_nobody, contacts=servers.is_whole()),
        "compared": _partly_compared(importer) if servers.servers() else 0,
    }
    return render_template("imports/preview.html", **context | more)


def _preview_again(plan: ImportPlan, faults: Mapping[str, str]) -> tuple[str, int]:
    ticked = _indexes_to_create(len(plan.candidates))
    page = _preview(_form(plan.lines), plan, ticked=ticked, typed=request.form, faults=faults)
    return page, 422 if faults else 200


def _refused(rows: Sequence[ImportRow]) -> Mapping[str, int]:
    """A refusal for each network that the URLs of new monitors are in and that checks may not
    reach, and how many entries it concerns.
    """
    refusals: dict[IpNetwork, tuple[str, int]] = {}
    for row in rows:
        refusal = allowing.refusal_of(row.validated.url) if row.is_new else None
        if refusal is not None:
            sentence, count = refusals.get(refusal.network, (str(refusal), 0))
            refusals[refusal.network] = sentence, count + 1
    return dict(refusals.values())


def _partly_compared(importer: Importer) -> int:
    """The number of monitors that were compared with the entries, if the remote server has more
    than these; otherwise 0.
    """
    size = PAGE_SIZES[-1]
    page = importer.compared // size + 1
    monitors = current_store().monitors.list(MonitorQuery(page=page, per_page=size, uptime=()))
    return importer.compared if monitors.more or monitors.total > importer.compared else 0


def _importer(plan: ImportPlan) -> Importer:
    has_token = bool(current_settings().telegram_token)
    return Importer(current_store(), plan.shared, plan.contacts, telegram_token_set=has_token)


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The plan of an import, which the preview passes to the next request. It is sealed, because it
    may hold passwords.
    """

    candidates: Sequence[Candidate]
    shared: ImportDefaults
    contacts: Mapping[str, Sequence[Pair]]  # new ones with their channels, if these are known yet
    source: str = ""
    remarks: Sequence[str] = ()
    more: int = 0  # entries that do not fit on the page
    lines: str = ""  # as typed

    @property
    def to_reach(self) -> Sequence[str]:
        """The new contacts that have no channel yet."""
        return [name for name, rows in self.contacts.items() if not rows]

    def sealed(self) -> str:
        return tokens.seal(
            {
                "who": _person_and_server(),
                "candidates": [record_of(candidate) for candidate in self.candidates],
                "interval": self.shared.interval,
                "tags": list(self.shared.tags),
                "contacts": list(self.shared.contacts),
                "page": [self.source, list(self.remarks), self.more, self.lines],
                "new_contacts": {
                    name: [[row.key, row.value] for row in rows]
                    for name, rows in self.contacts.items()
                },
            },
            PLAN,
        )

    @staticmethod
    def opened(text: str) -> ImportPlan:
        content = tokens.unseal(text, PLAN)
        if content["who"] != _person_and_server():
            raise Denied(tokens.PAGE_TOO_OLD)
        tags, names = tuple(content["tags"]), tuple(content["contacts"])
        shared = ImportDefaults(content["interval"], tags, names)
        new = content["new_contacts"].items()
        contacts = {name: tuple(Pair(*row) for row in rows) for name, rows in new}
        candidates = [candidate_of(record) for record in content["candidates"]]
        return ImportPlan(candidates, shared, contacts, *content["page"])


def _person_and_server() -> list[Any]:
    """The person and the server that a preview is for. It is refused for another of them."""
    return [current_user.person.id, getattr(current_store(), "name", None)]


def _with_typed_channels(plan: ImportPlan) -> tuple[ImportPlan, Mapping[str, str]]:
    """The plan with the channels that were typed for its new contacts, without the new contacts
    that no chosen entry names; and the faults of the channels, by contact.
    """
    used_names = {
        pair.value
        for index in _indexes_to_create(len(plan.candidates))
        for pair in plan.candidates[index].fields.get("alerts", ())
    }
    contacts, faults = dict(plan.contacts), {}
    left_out: dict[str, str | None] = {}
    for index, name in enumerate(plan.to_reach):
        channel = request.form.get(f"channel_{index}", "")
        value = request.form.get(f"value_{index}", "").strip()
        if channel == LEFT_OUT or name not in used_names:
            left_out[name.casefold()] = None
            continue
        if not channel:
            faults[name] = _("Choose how it is reached, or that it is not created.")
            continue
        try:
            contacts[name] = _channels(plan, name, channel, value)
        except Invalid as fault:
            faults[name] = sentences(fault)
    if faults:
        return plan, faults
    contacts = {name: rows for name, rows in contacts.items() if rows}
    candidates = [_respelt(candidate, left_out) for candidate in plan.candidates]
    return replace(plan, candidates=candidates, contacts=contacts), {}


def _channels(plan: ImportPlan, name: str, channel: str, value: str) -> Sequence[Pair]:
    """The channels of a new contact that has one. Raises Invalid."""
    pairs = [("name", name), ("channels[0][key]", channel), ("channels[0][value]", value)]
    channels: Sequence[Pair] = bind(ContactForm, pairs, _importer(plan).context)["channels"]
    return channels


def _with_chosen_contact(plan: ImportPlan) -> tuple[ImportPlan, Mapping[str, str]]:
    """The plan with the contact that was chosen or typed for all entries that alert nobody; and the
    fault of this contact, under the name "".
    """
    name, address = (request.form.get(f"silent_{end}", "").strip() for end in ("contact", "email"))
    contacts = dict(plan.contacts)
    if address:
        name = address
        try:
            contacts[name] = _channels(plan, name, "email", address)
        except Invalid as fault:
            return plan, {"": sentences(fault)}
    if not name:
        return plan, {}
    alerts = {"alerts": (Pair(CONTACT, name),)}
    candidates = [
        entry if entry.fields.get("alerts") else replace(entry, fields={**entry.fields, **alerts})
        for entry in plan.candidates
    ]
    return replace(plan, candidates=candidates, contacts=contacts), {}


@blueprint.post("/create")
def create() -> tuple[str, int, dict[str, str]]:
    """Create monitors for a second. The answer has a ``Location``, so that a reload creates nothing
    (``frame/repeated``).
    """
    text = request.form.get("sealed", "")
    plan = ImportPlan.opened(text)
    if "preview" in request.form:  # a network was allowed on the preview
        return *_preview_again(plan, {}), {}
    if "rest" not in request.form:
        plan, faults = _with_typed_channels(plan)
        if not faults:
            plan, faults = _with_chosen_contact(plan)
        if faults:
            return *_preview_again(plan, faults), {}
        text = plan.sealed()
    importer = _importer(plan)
    problems = _earlier_problems(len(plan.candidates))
    to_create = _indexes_to_create(len(plan.candidates))
    unsure, back = request.form.get("unsure", ""), url_for("monitors.index")

    def act(index: int) -> bool:
        validated = importer.validate(plan.candidates[index])
        created = importer.create(validated, unsure=str(index) == unsure)
        if created.problem:
            problems[index] = created.problem
        return created.stored

    created, remaining, fault = progress.work(to_create, act)
    created += progress.count_in("made")
    worked = progress.count_in("worked") + len(to_create) - len(remaining)
    if remaining:
        fields = [("sealed", text), ("rest", ",".join(map(str, remaining))), ("made", str(created)),
                  ("worked", str(worked)), ("unsure", str(remaining[0]) if fault else ""),
                  ("refused", tokens.seal(list(problems.items()), REFUSED))]  # fmt: skip
        title = _("Creating monitors")
        page, status = progress.page(title, worked, len(remaining), fields, fault, back)
        return page, status, {"Location": back}
    tag = next(iter(plan.shared.tags), None)
    page = render_template(
        "imports/result.html",
        bare=servers.is_bare(),
        made=created,
        # The newest first, if no tag tells them from the others.
        created={"tag": tag} if tag else {"sort_by": "id", "sort": "desc"},
        problems=[
            (importer.validate(plan.candidates[index]), why) for index, why in problems.items()
        ],
    )
    return page, 200, {"Location": back}


def _indexes_to_create(count: int) -> list[int]:
    """The indexes of the ticked candidates, or of those that the earlier steps did not create."""
    remaining = request.form.get("rest")
    texts = request.form.getlist("pick") if remaining is None else remaining.split(",")
    indexes = {index for text in texts if (index := digits(text)) is not None and index < count}
    return sorted(indexes)


def _earlier_problems(count: int) -> dict[int, str]:
    text = request.form.get("refused")
    problems = tokens.unseal(text, REFUSED) if text else []
    return {index: why for index, why in problems if index < count}
