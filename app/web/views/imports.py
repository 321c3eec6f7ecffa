"""Add many monitors: lines, a CSV file or another tool's export. First a preview, which stores
nothing; then the chosen ones are created step by step; then a page says what became of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flask import current_app, render_template, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from app.access import tokens
from app.errors import Denied
from app.forms.imported import ImportDefaults, candidate_of, record_of
from app.i18n import N_, _
from app.imports.candidates import Candidate, NotReadable, Reading
from app.records import PAGE_SIZES, MonitorQuery, Pair, masked_alert
from app.stores import current_store
from app.stores.importing import Importer, ImportRow, alert_nobody, counts, notes
from app.web.frame import choices, progress, servers
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.many_forms import ImportForm

blueprint = guarded("imports", __name__, "/monitors/import")

Answer = str | Response | tuple[str, int]

MAX_ROWS = 500  # on one preview
MAX_SEALED = 3_000_000  # characters: the next request must fit into a form
PLAN, REFUSED = "import", "import refused"  # the purposes of the two sealed texts
TOO_LARGE = N_(
    "This is too much for one preview. Split it, or import it on the server with the command:"
    " wakeful import FILE"
)


@blueprint.route("", methods=["GET", "POST"])
def start() -> Answer:
    form = _form()
    if not form.validate_on_submit():
        return _start_page(form, 422 if form.is_submitted() else 200)
    from app.imports import files  # all readers, at their first use

    try:
        reading = files.read(form.content(), form.format.data or "")
        return _preview(form, reading)
    except NotReadable as fault:
        form.source().add_fault(str(fault))
        return _start_page(form, 422)


def _form() -> ImportForm:
    missing = {"tags": servers.is_bare(), "contacts": not servers.is_whole()}
    without = [name for name, is_missing in missing.items() if is_missing]
    first = current_store().contacts.defaults() if request.method in SAFE_METHODS else ()
    form = ImportForm(bare=servers.is_bare(), without=without, data={"contacts": tuple(first)})
    if "contacts" in form:
        names = choices.contacts(form, form.ticked())
        form.contacts.choices = choices.contact_choices(names)
    return form


def _start_page(form: ImportForm, status: int) -> Answer:
    return render_template("imports/start.html", form=form), status


def _preview(form: ImportForm, reading: Reading) -> Answer:
    candidates = reading.candidates[:MAX_ROWS]
    plan = ImportPlan(candidates, form.shared(), reading.contacts)
    importer = _importer(plan)
    rows = importer.dry_run(candidates)
    sealed_plan = plan.sealed()
    if len(sealed_plan) > MAX_SEALED:
        raise NotReadable(_(TOO_LARGE))
    return render_template(
        "imports/preview.html",
        form=form,
        reading=reading,
        rows=rows,
        counts=counts(rows),
        notes=notes(rows),
        ticked=_ticked(rows),
        more=len(reading.candidates) - len(candidates),
        sealed=sealed_plan,
        contacts={
            name: [masked_alert(row) for row in rows_]
            for name, rows_ in importer.new_contacts.items()
        },
        alert_nobody=partial(alert_nobody, contacts=servers.is_whole()),
        looked_at=_compared(importer) if servers.servers() else 0,
    ), 200


def _compared(importer: Importer) -> int:
    """How many of a remote server's monitors were compared, if it has others: its store reads some
    names alone.
    """
    size = PAGE_SIZES[-1]
    page = importer.compared // size + 1
    there = current_store().monitors.list(MonitorQuery(page=page, per_page=size, uptime=()))
    return importer.compared if there.more or there.total > importer.compared else 0


def _ticked(rows: Sequence[ImportRow]) -> frozenset[int]:
    return frozenset(index for index, row in enumerate(rows) if row.is_new)


def _importer(plan: ImportPlan) -> Importer:
    settings = current_app.extensions["wakeful.settings"]
    return Importer(
        current_store(),
        plan.shared,
        plan.contacts,
        telegram_token_set=bool(settings.telegram_token),
    )


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What the preview hands on to the next request: sealed, because it may hold passwords."""

    candidates: Sequence[Candidate]
    shared: ImportDefaults
    contacts: Mapping[str, Sequence[Pair]]

    def sealed(self) -> str:
        return tokens.seal(
            {
                "who": _who(),
                "candidates": [record_of(candidate) for candidate in self.candidates],
                "interval": self.shared.interval,
                "tags": list(self.shared.tags),
                "contacts": list(self.shared.contacts),
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
        if content["who"] != _who():
            raise Denied(tokens.LOST)
        shared = ImportDefaults(
            content["interval"], tuple(content["tags"]), tuple(content["contacts"])
        )
        contacts = {
            name: tuple(Pair(*row) for row in rows)
            for name, rows in content["new_contacts"].items()
        }
        return ImportPlan(
            [candidate_of(record) for record in content["candidates"]], shared, contacts
        )


def _who() -> list[Any]:
    """The person, and the server: a preview of one is not created on another."""
    return [current_user.person.id, getattr(current_store(), "name", None)]


@blueprint.post("/create")
def create() -> tuple[str, int, dict[str, str]]:
    """Create monitors for a while. The answer says where it leads: a reload starts nothing."""
    text = request.form.get("sealed", "")
    plan = ImportPlan.opened(text)
    importer = _importer(plan)
    problems = _problems_before(len(plan.candidates))
    chosen = _chosen(len(plan.candidates))
    unsure, back = request.form.get("unsure", ""), url_for("monitors.index")

    def act(index: int) -> bool:
        judged = importer.judge(plan.candidates[index])
        created = importer.create(judged, unsure=str(index) == unsure)
        if created.problem:
            problems[index] = created.problem
        return created.stored

    made, left, trouble = progress.work(chosen, act)
    made += progress.count_in("made")
    worked = progress.count_in("worked") + len(chosen) - len(left)
    if left:
        fields = [("sealed", text), ("rest", ",".join(map(str, left))), ("made", str(made)),
                  ("worked", str(worked)), ("unsure", str(left[0]) if trouble else ""),
                  ("refused", tokens.seal(list(problems.items()), REFUSED))]  # fmt: skip
        title = _("Creating monitors")
        return *progress.page(title, worked, len(left), fields, trouble, back), {"Location": back}
    page = render_template(
        "imports/result.html",
        bare=servers.is_bare(),
        made=made,
        problems=[(importer.judge(plan.candidates[index]), why) for index, why in problems.items()],
    )
    return page, 200, {"Location": back}


def _chosen(count: int) -> list[int]:
    """The indexes of the ticked candidates, or of those that an earlier step left."""
    rest = request.form.get("rest")
    texts = request.form.getlist("pick") if rest is None else rest.split(",")
    indexes = {int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 7}
    return sorted(index for index in indexes if index < count)


def _problems_before(count: int) -> dict[int, str]:
    text = request.form.get("refused")
    problems = tokens.unseal(text, REFUSED) if text else []
    return {index: why for index, why in problems if index < count}
