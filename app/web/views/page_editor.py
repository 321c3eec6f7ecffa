"""The form of a status page: its lines, in order, beside a preview.

Each button sends the form to the server, which answers with the whole changed form. A script sends
the same request and replaces a part of the page.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

from flask import current_app, request, url_for
from werkzeug.wrappers import Response

from app.errors import NotFound
from app.forms.browser import BrowserForm, BrowserStatusPageForm, ExtraSwitch
from app.i18n import N_, _, _n
from app.records import (
    DEFAULT_PAGE_LANGUAGE,
    DEFAULT_PAGE_ZONE,
    MAX_PAGE_MONITORS,
    MAX_SEARCH,
    PAGE_DAYS,
    PAGE_IMAGES,
    Brand,
    Component,
    ComponentState,
    MonitorQuery,
    MonitorRef,
    PageState,
    PageTheme,
    PublicDay,
    PublicPage,
    StatusPage,
)
from app.rules import colours, images
from app.rules.text import fault_of, record_id
from app.rules.time import zone_of
from app.stores import current_store
from app.web.frame import choices
from app.web.frame.assets import asset
from app.web.frame.editing import Editing
from app.web.frame.fragments import HEADER
from app.web.frame.session import SAFE_METHODS, guarded
from app.web.frame.store_errors import STORE_REFUSALS
from app.web.many_forms import Upload
from app.web.shown import page_lines, times
from app.web.shown.page_lines import Line
from app.web.views import status_pages

blueprint = guarded("page_editor", __name__, "/status-pages")

MATCHES_SHOWN = 30  # monitors that a search shows
AT_MAX = N_("A page has at most %(most)s monitors.", most=MAX_PAGE_MONITORS)
ENTER = "enter"  # the Return key presses the form's first button
STEPS = {"up": -1, "down": 1}


class StatusPageEditorForm(BrowserStatusPageForm):
    """The form of a status page with one list of lines instead of monitors, names and groups."""

    def __init__(self, *args: Any, lines: Sequence[Line] = (), **kwargs: Any) -> None:
        self.lines = list(lines)
        super().__init__(*args, **kwargs)

    def process(self, formdata: Any = None, *args: Any, **kwargs: Any) -> None:
        sent_values = self.meta.wrap_formdata(self, formdata)
        if sent_values:
            self.lines = page_lines.lines_sent(sent_values)
            sent_values = page_lines.form_of_lines(self.lines, sent_values)
        super().process(sent_values, *args, **kwargs)

    def forget_errors(self) -> None:
        """Remove all errors: a button that changes lines does not save the form."""
        for field in self.schema_fields():
            field.errors = []
        rows: list[Any] = [*self.names.rows, *self.groups.rows]
        for row in rows:
            row.errors.clear()
        self.monitors.entry_errors = {}

    def faults_of(self, line: Line) -> list[str]:
        rows: Sequence[Any] = self.names.rows if line.monitor else self.groups.rows
        row = next((row for row in rows if row.index == str(line.index)), None)
        return list(dict.fromkeys(row.all_errors)) if row else []


@dataclass(frozen=True, slots=True)
class ButtonResult:
    """The result of a button: the monitors that a search found, and a sentence about it.
    ``focus``: the id of the element that gets the focus.
    """

    matches: Sequence[MonitorRef] | None = None
    more: bool = False
    sentence: str = ""
    focus: str = ""


class StatusPageEditing(Editing[StatusPage, StatusPageEditorForm]):
    collection, template, subject = "status_pages", "status_pages/form.html", "shown_page"
    leads_to, delete_button = "status_pages.show", N_("Delete this status page")
    deleted = N_("%(name)s deleted. Its address no longer works.")
    refs: Mapping[int, MonitorRef] = {}

    def load(self) -> StatusPage | None:
        page = super().load()
        if page is not None and request.method in SAFE_METHODS:
            self.refs = page_lines.refs_of(page)
        return page

    def consequence(self, record: StatusPage) -> str:
        return _n(
            "Its address, feeds and badges stop working. Its posts and %(num)s subscriber are"
            " deleted too; monitors and incidents are kept. This cannot be undone.",
            "Its address, feeds and badges stop working. Its posts and %(num)s subscribers are"
            " deleted too; monitors and incidents are kept. This cannot be undone.",
            record.subscribers,
            num=f"{record.subscribers:,}",
        )

    def stand_in(self, id: int) -> StatusPage:
        return StatusPage(id, request.form.get("name") or _("Status page %(id)s", id=id), "")

    def bind(self) -> StatusPageEditorForm:
        if self.record is None:
            return StatusPageEditorForm(data={"zone": times.zone().key}, lines=_first_lines())
        lines = page_lines.of_page(self.record, self.refs)
        return StatusPageEditorForm(record=self.record, lines=lines)

    def answer_button(self) -> Response | None:
        action, form = _pressed_action(), self.form
        if not action:
            return None
        form.validate()  # for the CSRF token: some buttons query the store
        lacks_token = "csrf_token" in form.errors
        form.forget_errors()
        if lacks_token:
            return self.page(400)
        try:
            result = _carry_out(form, *action.partition(":")[::2])
        except STORE_REFUSALS as fault:
            return self.refuse(fault)
        return self.page(200, result=result)

    def page(self, status: int, *, result: ButtonResult | None = None, **more: Any) -> Response:
        part = request.headers.get(HEADER) == "lines"
        self.template = "status_pages/_lines.html" if part else self.template
        form, result = self.form, result or ButtonResult()
        return super().page(
            status,
            result=result,
            typed=_typed_fields(result),
            on_page=page_lines.monitor_ids(form.lines),
            mails=page_lines.sends_mail(),
            preview="" if part else preview_html(form, self.record),
            adjusted=form.accent.data and colours.adjusted(form.accent.data),
        )


class ImagesForm(BrowserForm):
    """The images of a status page, which are stored when they are chosen."""

    logo: Any = Upload(N_("Logo"))
    favicon: Any = Upload(N_("Favicon"))
    remove_logo = ExtraSwitch(N_("Remove the logo"), default=False)
    remove_favicon = ExtraSwitch(N_("Remove the favicon"), default=False)

    def check_cross_field(self) -> None:
        upload: Any
        for upload in (self.logo, self.favicon):
            fault = None if upload.data is None else fault_of(partial(images.check, upload.data))
            if fault is not None:
                upload.add_fault(fault)

    def fields(self) -> dict[str, Any]:
        uploads = {name: self[name].data for name in PAGE_IMAGES if self[name].data is not None}
        removed = {name: None for name in PAGE_IMAGES if self[f"remove_{name}"].data}
        return removed | {name: b64encode(data).decode() for name, data in uploads.items()}


class ImagesEditing(Editing[StatusPage, ImagesForm]):
    collection, template, subject = "status_pages", "status_pages/images.html", "shown_page"
    leads_to = "status_pages.show"

    def bind(self) -> ImagesForm:
        return ImagesForm()

    def context(self) -> dict[str, Any]:
        page, address_of = self.record, status_pages.image_here
        return {"images": {name: page and address_of(page, name) for name in PAGE_IMAGES}}


ImagesEditing.register(blueprint, edit_images="/<int:id>/images")


def _first_lines() -> list[Line]:
    """The line of the monitor that the address names, as in the link on a monitor's page."""
    try:
        id = record_id(request.args.get("monitor_id", ""))
        monitor = current_store().monitors.get(id)
    except (ValueError, NotFound):
        return []
    return page_lines.of_monitors([MonitorRef(monitor.id, monitor.name, monitor.url)])


StatusPageEditing.register(blueprint, "new", "edit")
StatusPageEditing.register(status_pages.blueprint, "delete")


def _pressed_action() -> str:
    """The action of the pressed button; empty for the button that saves. The Return key in a field
    that adds lines counts as the button beside the field.
    """
    action = request.form.get("do", "")
    if action != ENTER:
        return action
    for name in ("find", "tag", "heading"):
        if request.form.get(name, "").strip():
            return name
    return ""


def _carry_out(form: StatusPageEditorForm, word: str, key: str) -> ButtonResult:
    """Carry out the action of a button on the lines of ``form``."""
    if word in STEPS:
        form.lines = page_lines.move(form.lines, key, STEPS[word])
        return ButtonResult(focus=f"{word}-{key}")
    if word == "remove":
        keys = [line.key for line in form.lines]
        index = keys.index(key) if key in keys else 0
        form.lines = page_lines.remove(form.lines, key)
        near = form.lines[index : index + 1] or form.lines[-1:]
        return ButtonResult(focus=f"remove-{near[0].key}" if near else "find")
    adding = {"find": _find, "add": _add_ticked, "tag": _add_tagged, "heading": _add_heading}
    return adding[word](form) if word in adding else ButtonResult(focus="preview")


def _find(_form: StatusPageEditorForm) -> ButtonResult:
    query = request.form.get("find", "")[:MAX_SEARCH].strip()
    matches = current_store().monitors.refs(search=query or None, limit=MATCHES_SHOWN + 1)
    return ButtonResult(matches[:MATCHES_SHOWN], len(matches) > MATCHES_SHOWN, focus="found")


def _add_ticked(form: StatusPageEditorForm) -> ButtonResult:
    ids = [int(text) for text in request.form.getlist("pick") if _is_id(text)]
    return _add_all(form, [page_lines.sent_ref(request.form, id) for id in ids])


def _is_id(text: str) -> bool:
    try:
        return str(record_id(text)) == text
    except ValueError:
        return False


def _add_tagged(form: StatusPageEditorForm) -> ButtonResult:
    tag = request.form.get("tag", "").strip()
    if not tag:
        return ButtonResult(sentence=_("Enter a tag first."), focus="tag")
    tagged = choices.refs_of(MonitorQuery(tag=tag), MAX_PAGE_MONITORS)
    if not tagged:
        return ButtonResult(sentence=_("No monitor has the tag %(tag)s.", tag=tag), focus="tag")
    result = _add_all(form, tagged)
    full = len(tagged) >= MAX_PAGE_MONITORS
    return replace(result, sentence=f"{result.sentence} {_(AT_MAX)}") if full else result


def _add_all(form: StatusPageEditorForm, monitors: Sequence[MonitorRef]) -> ButtonResult:
    old_count = len(form.lines)
    form.lines = page_lines.add(form.lines, monitors)
    count = len(form.lines) - old_count
    sentence = _n("%(num)s monitor added at the end.", "%(num)s monitors added at the end.", count)
    if not monitors:
        sentence = _("Select the monitors first.")
    elif not count:
        sentence = _("They are already on the page.")
    return ButtonResult(sentence=sentence, focus="answer")


def _add_heading(form: StatusPageEditorForm) -> ButtonResult:
    name = request.form.get("heading", "").strip()
    if not name:
        return ButtonResult(sentence=_("Enter a heading first."), focus="heading")
    form.lines = page_lines.add_group(form.lines, name)
    sentence = _("Heading %(name)s added at the end. Monitors below it form its group.", name=name)
    return ButtonResult(sentence=sentence, focus="answer")


def _typed_fields(result: ButtonResult) -> Mapping[str, str]:
    """The fields that add lines, as typed; empty after they have added some."""
    names = ("find", "tag", "heading")
    return {name: "" if result.focus == "answer" else request.form.get(name, "") for name in names}


# --- The preview ----------------------------------------------------------------------------------


@blueprint.post("/preview")
def preview() -> str:
    """A preview of the page from the form, even with faults in it."""
    form, id = StatusPageEditorForm(), request.args.get("id", "")
    page = current_store().status_pages.get(int(id)) if _is_id(id) else None
    return preview_html(form, page)


RESPONSE_TIME = 120  # ms


def preview_html(form: Any, stored_page: StatusPage | None) -> str:
    """The document of the preview. ``form`` may have faults, and may not be validated."""
    now = times.now()
    page = StatusPage(
        0, form.name.data or _("Your page"), "", description=form.description.data,
        zone=form.zone.data or DEFAULT_PAGE_ZONE, home_url=form.home_url.data,
        footer=form.footer.data,
    )  # fmt: skip
    accent, theme = form.accent.data, form.theme.data or PageTheme.SYSTEM
    today = now.astimezone(zone_of(page.zone)).date()
    days = [PublicDay(today - timedelta(days=n), 100.0) for n in reversed(range(PAGE_DAYS))]
    components = list(_preview_components(form, days))
    state = PageState.OPERATIONAL if components else PageState.UNKNOWN
    public = PublicPage(page, state, components, posts=(), windows=(), made_at=now)
    preview_document: str = current_app.extensions["wakeful.preview"](
        public,
        static=asset,
        brand=Brand(theme, accent, form.language.data or DEFAULT_PAGE_LANGUAGE),
        logo=stored_page and status_pages.image_here(stored_page, "logo"),
        colours=accent and url_for(".colours_of", accent=accent[1:]),
    )
    return preview_document


@blueprint.get("/colours/<accent>.css")
def colours_of(accent: str) -> Response:
    """The sheet of an accent colour that is not saved yet, for the preview."""
    if not colours.is_colour(f"#{accent}"):
        raise NotFound(N_("colour"), accent)
    return Response(colours.sheet(f"#{accent}"), mimetype="text/css")


def _preview_components(form: Any, days: Sequence[PublicDay]) -> Iterator[Component]:
    group = None
    for line in form.lines:
        if line.monitor is None:
            group = line.text
            continue
        yield Component(
            -line.monitor.id,  # the cache of bars has the real figures under the monitor's id
            line.name,
            ComponentState.OPERATIONAL,
            group=group,
            url=line.monitor.url or None if form.show_urls.data else None,
            response_time=RESPONSE_TIME if form.show_response_times.data else None,
            uptime=100.0,
            days=days,
        )
