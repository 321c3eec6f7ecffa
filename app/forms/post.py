"""The schemas of posts, their updates and their templates (decision 12)."""

from __future__ import annotations

from typing import Any

from app.forms.fields import DateTime, RecordId, Text, WordChoice
from app.forms.lists import IdList
from app.forms.page_lists import ImpactList
from app.forms.schema import SchemaForm
from app.i18n import N_, _
from app.records import MAX_NAME, MAX_PAGE_MONITORS, MAX_POST_BODY, MAX_TEMPLATE_NAME, PostState
from app.rules import posts

NOT_OF_POST = N_("This monitor is not one of the post's monitors. Add it to monitors too.")


def state_field() -> Any:
    labels = {state: state.value.replace("_", " ").capitalize() for state in PostState}
    return WordChoice(N_("State"), labels, required=True)


def body_field() -> Any:
    return Text(
        N_("Text"), required=True, limit=MAX_POST_BODY, lines=True, unify_lines=True,
        description=N_("The text of the post. URLs become links, and line breaks are kept."),
    )  # fmt: skip


def _check_state_change(form: Any) -> None:
    """Check the new state against that of ``form.record``, a post or an update."""
    present = getattr(form.record, "state", None)
    if form.flawless(form.state) and (fault := posts.state_change_fault(present, form.state.data)):
        form.state.add_fault(fault)


class PostForm(SchemaForm):
    """A post. The store, which has the page, checks its monitors and its incident."""

    title = Text(N_("Title"), required=True, limit=MAX_NAME)
    state = state_field()
    body = body_field()
    monitors = IdList(
        N_("Monitors"), limit=MAX_PAGE_MONITORS,
        description=N_("The monitors of the page that the post is about."),
    )  # fmt: skip
    impact = ImpactList(
        N_("Impact"),
        description=N_(
            "What the page shows of these monitors while the post is open: none, degraded or "
            "outage. Of the others it shows degraded, and none for maintenance."
        ),
    )
    incident_id = RecordId(
        N_("Incident"), description=N_("The incident that the post is about, if any.")
    )
    starts_at = DateTime(
        N_("Start"), description=N_("For maintenance. A scheduled post needs both times.")
    )
    ends_at = DateTime(N_("End"))

    def check_cross_field(self) -> None:
        _check_state_change(self)
        if self.impact.sent and self.flawless(self.monitors):
            for row, id in list(self.impact.rows_with_ids()):
                if id not in self.monitors.data:
                    row.errors["key"].append(_(NOT_OF_POST))
        state, start, end = self.state, self.starts_at, self.ends_at
        if not self.flawless(state, start, end):
            return
        self.add_faults(posts.time_faults(state.data, start.data, end.data))


class PostUpdateForm(SchemaForm):
    """An update of a post, or the correction of one."""

    state = state_field()
    body = body_field()

    def check_cross_field(self) -> None:
        _check_state_change(self)


class PostTemplateForm(SchemaForm):
    """A post to start from."""

    name = Text(
        N_("Name"), required=True, limit=MAX_TEMPLATE_NAME,
        description=N_("The name in the list of templates."),
    )  # fmt: skip
    title = Text(N_("Title"), required=True, limit=MAX_NAME)
    state = state_field()
    body = body_field()
