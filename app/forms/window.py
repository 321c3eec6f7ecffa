"""The maintenance window's schema (decision 11)."""

from __future__ import annotations

from app.forms.fields import DateTime, Switch, Text, Zone
from app.forms.lists import IdList, Tags
from app.forms.schema import SchemaForm, defaults_of
from app.i18n import N_, _
from app.records import MAX_NAME, MAX_PAGE_DESCRIPTION, MaintenanceWindow
from app.rules.recurrence import check_repeat
from app.rules.text import END_BEFORE_START

MAX_CRON = 255
TO_THE_MINUTE = {"step": "60"}  # a browser then shows seconds only if they are not zero


@defaults_of(MaintenanceWindow)
class WindowForm(SchemaForm):
    """Planned maintenance of some monitors, or of all."""

    name = Text(N_("Name"), required=True, limit=MAX_NAME)
    start_at = DateTime(N_("Start"), required=True, render_kw=TO_THE_MINUTE)
    end_at = DateTime(
        N_("End"), required=True, render_kw=TO_THE_MINUTE,
        description=N_("Checks go on, but nobody is alerted until then."),
    )  # fmt: skip
    monitors = IdList(
        N_("Monitors"), description=N_("Leave monitors and tags empty for all monitors.")
    )
    tags = Tags(
        N_("Tags"), description=N_("All monitors that have one of these tags, now or later.")
    )
    repeat = Text(
        N_("Repeat"), limit=MAX_CRON, rule=check_repeat,
        description=N_("none, daily, weekly, monthly, or a cron expression for its starts."),
    )  # fmt: skip
    repeat_until = DateTime(
        N_("Repeat until"), description=N_("Leave empty for no end."), render_kw=TO_THE_MINUTE
    )
    zone = Zone(
        N_("Time zone"),
        description=N_("Repeats keep their time of day here when the clocks change."),
    )

    public = Switch(
        N_("Show on status pages"),
        description=N_("The pages of its monitors announce it, with its times."),
    )
    public_name = Text(
        N_("Public name"), limit=MAX_NAME,
        description=N_('What status pages call it. Leave empty for "Maintenance".'),
    )  # fmt: skip
    public_text = Text(
        N_("Public text"), limit=MAX_PAGE_DESCRIPTION, lines=True,
        description=N_("What visitors should know about it."),
    )  # fmt: skip

    def check_cross_field(self) -> None:
        start, end, until = self.start_at, self.end_at, self.repeat_until
        if not self.flawless(start, end, until) or start.data is None or end.data is None:
            return
        if end.data <= start.data:
            end.add_fault(_(END_BEFORE_START))
        if until.data is not None and until.data < start.data:
            until.add_fault(_("This is before the window starts."))
