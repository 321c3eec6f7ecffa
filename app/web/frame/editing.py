"""The base of pages that edit a record. A view is a subclass of ``Editing``, whose ``answer``
handles a request in these steps:

- ``load`` reads the record.
- ``bind`` makes the form. Only the fields that the person changed are sent to the store.
- ``answer_unread``: if the record of a sent form cannot be read, because it was deleted or the
  server does not answer, show the form as it was sent, with a stand-in for the record.
- ``answer_button`` answers a button that does not save the record, such as one that adds a row.
- ``question`` asks the person before the form is saved, if that is needed.
- ``save`` stores the fields. If others have saved the record meanwhile, their changes of other
  fields are kept.
- ``refuse`` shows the errors of the store beside the fields, or above them.
- ``finish`` shows a notice and redirects to the record or its list.

``frame/repeated`` makes sure that a form that was sent twice is saved once. ``confirmed`` is the
page that asks before a deletion. Forms that change no record, such as that of a password, use
``faults_shown`` and ``form_page``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Generic, TypeVar

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.errors import Conflict, Invalid, Unavailable, WakefulError
from app.forms.browser import BrowserForm, browser
from app.forms.resources import form_of_collection
from app.i18n import N_, _
from app.stores import current_store, same_url
from app.web.frame import servers, tags
from app.web.frame.session import SAFE_METHODS, Answer
from app.web.frame.store_errors import CHANGED_NOTHING, STORE_REFUSALS, outlook
from app.web.shown import times

PATHS = {"new": "/new", "edit": "/<int:id>/edit", "delete": "/<int:id>/delete"}
HIDDEN = ("credential", "mark")  # fields of passkeys and channels that pages do not show
R = TypeVar("R")
F = TypeVar("F", bound=BrowserForm)

OVERWRITTEN = N_(
    "This was changed after you opened the page. Your values replaced these: %(fields)s."
)
NOT_KEPT = N_("The server answered that it saved this, and did not keep: %(fields)s.")


class Editing(Generic[R, F]):
    """A request for the form of a record; of a new one, if ``id`` is None. ``owner_ids``: those
    of the records that it belongs to, in the order of its address.
    """

    collection = ""  # in the store; empty for records of this installation, such as people and keys
    template = ""
    subject = "record"  # the name of the record in the template
    on_bare_servers = False  # whether servers with the base API alone have it
    leads_to = ".index"  # the endpoint after saving: a list, or the page of the record
    deletion = ""  # the sentence on the page before a deletion; empty if there is none
    delete_title, delete_button = N_("Delete %(name)s?"), N_("Delete")
    saved, deleted = N_("%(name)s saved."), N_("%(name)s deleted.")
    by_tag = ""  # the field whose tags choose monitors
    conflict_field = ""  # the field beside which a conflict is shown; empty: above the fields

    form: F
    record: R | None = None

    def __init__(self, id: Any = None, *owner_ids: int) -> None:
        self.id, self.owner_ids = id, owner_ids

    def answer(self) -> Response:
        reading = request.method in SAFE_METHODS
        if reading and self.id is None and self.collection and not self.on_bare_servers:
            servers.refuse_bare()
        try:
            self.record = self.load()
        except STORE_REFUSALS as fault:
            if reading:
                raise
            self.record = None if self.id is None else self.stand_in(self.id)
            if self.record is None and self.id is not None:
                raise
            self.form = self.bind()
            return self.answer_unread(fault)
        form = self.form = self.bind()
        if form.is_submitted() and (response := self.answer_button()):
            return response
        if form.validate_on_submit():
            try:
                return self.question() or self.finish(self.save())
            except (Invalid, *STORE_REFUSALS) as fault:
                return self.refuse(fault)
        return self.page(422 if form.is_submitted() else 200)

    @property
    def records(self) -> Any:
        return getattr(current_store(), self.collection)

    def load(self) -> R | None:
        record: R | None = None if self.id is None else self.records.get(*self.owner_ids, self.id)
        return record

    def stand_in(self, id: Any) -> R | None:
        """A record made from the sent form; None if an error page is to show what was typed."""
        return None

    def answer_unread(self, fault: WakefulError) -> Response:
        """Show the form as it was sent, because the record cannot be read. Errors of rows are
        removed: without the record, a mask matches no stored value, but the person did nothing
        wrong.
        """
        for rows in self.form.pair_lists():
            rows.forget_errors()
        return self.page(show_failure(self.form, fault))

    def bind(self) -> F:
        form: Any = browser(form_of_collection(self.collection))
        bound: F = form(record=self.record, zone=times.zone())
        return bound

    def answer_button(self) -> Response | None:
        """The answer to a button that does not save the record; None for any other button."""
        return None

    def question(self) -> Response | None:
        """The page that asks the person before a valid form is saved, if its tags match no monitor;
        otherwise None.
        """
        field: Any = self.form[self.by_tag] if self.by_tag else None
        if field is None or not field.data or "anyway" in request.form:
            return None
        names = [field.data] if isinstance(field.data, str) else list(field.data)
        ids = self.form["monitors"].data if "monitors" in self.form else ()
        if tags.reached(names, ids):
            return None
        field.warning = tags.sentence(names)
        return self.page(200)

    def save(self) -> R:
        fields = self.form.fields()
        record: R = (
            self.records.create(*self.owner_ids, fields)
            if self.id is None
            else self.records.update(*self.owner_ids, self.id, fields)
        )
        return record

    def refuse(self, fault: WakefulError) -> Response:
        if isinstance(fault, Invalid):
            show_errors(self.form, fault)
            return self.page(422)
        if isinstance(fault, Conflict) and self.conflict_field:
            field: Any = self.form[self.conflict_field]
            field.add_fault(str(fault))
            return self.page(422)
        return self.page(show_failure(self.form, fault))

    def finish(self, record: R) -> Response:
        show_success(self.form, self.notice(record), record if self.collection else None)
        return redirect(self.next_address(record))

    def name_of(self, record: R) -> str:
        return str(getattr(record, "name", ""))

    def notice(self, record: R) -> str:
        return _(self.saved, name=self.name_of(record))

    def next_address(self, record: R) -> str:
        is_list = self.leads_to.endswith("index")
        ids = {} if is_list else {"id": getattr(record, "id", None)}
        return url_for(self.leads_to, **ids)

    def context(self) -> dict[str, Any]:
        """The variables of the template besides the form and the record."""
        return {}

    def page(self, status: int, **more: Any) -> Response:
        context = {"form": self.form, self.subject: self.record, **self.context(), **more}
        return Response(render_template(self.template, **context), status, mimetype="text/html")

    def delete(self) -> Answer:
        record: R = self.records.get(*self.owner_ids, self.id)
        name = self.name_of(record)
        return confirmed(
            "delete.html",
            lambda: self.records.delete(*self.owner_ids, self.id),
            _(self.deleted, name=name),
            self.list_address(),
            title=_(self.delete_title, name=name),
            sentence=self.consequence(record),
            button=_(self.delete_button),
            back=self.next_address(record),
        )

    def consequence(self, record: R) -> str:
        return _(self.deletion)

    def list_address(self) -> str:
        return url_for(".index")

    @classmethod
    def register(cls, blueprint: Blueprint, *pages: str, **paths: str) -> None:
        """Add pages to ``blueprint``: by default those that create, edit and (with ``deletion``)
        delete a record. ``pages``: only these. ``paths``: other paths, by endpoint; the last
        variable of a path is the record's id.
        """
        if not paths:
            pages = pages or ("new", "edit", *(["delete"] if cls.deletion else []))
            paths = {page: PATHS[page] for page in pages}
        for page, path in paths.items():
            view = cls._view("<" in path, deletes=page == "delete")
            blueprint.add_url_rule(path, page, view, methods=["GET", "POST"])

    @classmethod
    def _view(cls, has_id: bool, deletes: bool) -> Callable[..., Answer]:
        def view(**ids: Any) -> Answer:
            *owner_ids, id = ids.values() if has_id else (*ids.values(), None)
            editing = cls(id, *owner_ids)
            return editing.delete() if deletes else editing.answer()

        return view


class DeleteForm(BrowserForm):
    """A form with only a button."""


def confirmed(
    template: str, act: Callable[[], object], notice: str, back: str, /, **context: Any
) -> str | Response:
    """The page that asks before ``act``, which cannot be undone."""
    form = DeleteForm()
    if form.validate_on_submit():
        act()
        flash(notice, "success")
        return redirect(back)
    return render_template(template, form=form, **context)


@contextmanager
def faults_shown(form: BrowserForm) -> Iterator[None]:
    """Show the errors of a store in the form. The view then answers with ``form_page``."""
    try:
        yield
    except Invalid as fault:
        show_errors(form, fault)
    except Conflict as fault:
        form.fault = str(fault)


def form_page(template: str, form: BrowserForm, **context: Any) -> tuple[str, int]:
    page = render_template(template, form=form, **context)
    return page, 422 if form.is_submitted() else 200


def show_errors(form: BrowserForm, fault: Invalid) -> None:
    """Show each error of a store beside its field. Other errors, such as another server's refusal
    without a reason, are shown above the fields.
    """
    fields = {field.short_name: field for field in form.schema_fields()}
    above = [] if fault.errors else [str(fault)]
    for name, sentences in fault.errors.items():
        field = fields.get(name.partition(".")[0])
        for sentence in sentences:
            if name in HIDDEN:
                above.append(sentence)
            elif field is None:
                above.append(f"{name}: {sentence}")
            else:
                field.add_fault(sentence)
    form.fault = " ".join(above)


def show_failure(form: BrowserForm, fault: WakefulError) -> int:
    """Show above the fields of ``form`` why the store did not accept it
    (``store_errors.STORE_REFUSALS``). Return the status of the answer.
    """
    form.fault = f"{fault} {outlook(fault)}"
    form.unanswered = isinstance(fault, Unavailable)
    return fault.status


def show_success(form: BrowserForm, notice: str, record: object | None = None) -> None:
    """Show on the next page that ``form`` was saved, which changes of others it replaced, and which
    values another server did not store. ``record``: the stored record; None to skip the latter.
    """
    flash(notice, "success")
    dropped = [
        _(form[name].label.text)
        for name, value in form.fields().items()
        if record is not None and name in form and not is_kept(name, value, record)
    ]
    if dropped:
        flash(_(NOT_KEPT, fields=", ".join(dropped)), "warning")
    if labels := form.overwritten():
        flash(_(OVERWRITTEN, fields=", ".join(labels)), "warning")


def flash_if_kept(name: str, value: Any, record: object, notice: str) -> None:
    """Show ``notice``, or a warning if the server accepted the value and did not store it."""
    is_stored = is_kept(name, value, record)
    flash(notice if is_stored else _(CHANGED_NOTHING), "success" if is_stored else "warning")


def is_kept(name: str, value: Any, record: object) -> bool:
    """Whether a server with the base API alone has stored a value; true if its answer does not
    contain the field. Wakeful stores what it accepts.
    """
    if not servers.is_bare():
        return True
    name = {"pause": "paused"}.get(name, name)
    if not hasattr(record, name) or name in (*record.missing, *record.misread):  # type: ignore[attr-defined]
        return True
    saved = getattr(record, name)
    if isinstance(value, datetime) and isinstance(saved, datetime):
        return value.replace(microsecond=0) == saved.replace(microsecond=0)
    if isinstance(value, tuple):
        return Counter(value) == Counter(saved)
    if isinstance(value, str) and isinstance(saved, str):
        return same_url.is_same(value, saved) if name == "url" else _plain(value) == _plain(saved)
    return value == saved or (value in (None, "") and saved in (None, ""))


def _plain(text: str) -> str:
    return " ".join(text.split())
