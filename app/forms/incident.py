"""The incident's schema (API 4, decisions 4 and 7)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from app.forms.fields import DateTime, RecordId, Text, WordChoice
from app.forms.schema import SchemaForm
from app.i18n import N_, _
from app.records import CLOCK_SKEW_SECONDS, MAX_CAUSE, MAX_COMMENT, Classification

FUTURE = N_("This time is in the future. Enter a past time, or leave it empty.")


class IncidentUpdateForm(SchemaForm):
    """The fields of an incident that can be changed."""

    acknowledged_at = DateTime(N_("Acknowledged"), description=N_("When somebody acknowledged it."))
    ended_at = DateTime(N_("Ended"), description=N_("Empty: the incident is open."))
    cause = Text(N_("Cause"), most=MAX_CAUSE, description=N_("What went wrong, in a few words."))
    comment = Text(
        N_("Comment"),
        most=MAX_COMMENT,
        lines=True,
        unify_lines=True,
        description=N_("Notes about the incident."),
    )

    classification: Any = WordChoice(
        N_("Classified as"),
        words=Classification,
        none=N_("A real incident"),
        description=N_(
            "Extension: what the incident turned out to be. It corrects the statistics."
        ),
    )

    def check_together(self) -> None:
        self._check_future()
        self._check_order()

    def started(self) -> datetime | None:
        started: datetime | None = getattr(self.record, "started_at", None)
        return started

    def moments(self) -> list[DateTime]:
        return [self.acknowledged_at, self.ended_at]

    def _check_future(self) -> None:
        latest = self.time_now() + timedelta(seconds=CLOCK_SKEW_SECONDS)
        for field in self.moments():
            # A stored time was not in the future when it was stored, whatever the clock says now.
            changed = field.sent and field.data is not None and field.data != field.object_data
            if changed and not field.errors and field.data > latest:
                field.fault(_(FUTURE))

    def _check_order(self) -> None:
        acknowledged, ended, started = self.acknowledged_at, self.ended_at, self.started()
        if not self.flawless(*self.moments()) or started is None:
            return
        if all(field.data == field.object_data for field in self.moments()):
            return  # nobody touched them
        for field in (acknowledged, ended):
            if field.data is not None and field.data < started:
                field.fault(_("This is before the incident started."))
        if not self.flawless(acknowledged, ended) or not acknowledged.data or not ended.data:
            return
        if acknowledged.data > ended.data:
            if ended.sent and not acknowledged.sent:
                ended.fault(_("This is before the incident was acknowledged."))
            else:
                acknowledged.fault(_("This is after the incident ended."))


class IncidentStoreForm(IncidentUpdateForm):
    """An incident reported by hand. Only the store knows whether the monitor exists."""

    classification = None  # not known yet
    monitor_id = RecordId(N_("Monitor"), required=True)
    started_at = DateTime(N_("Started"), required=True)

    def started(self) -> datetime | None:
        started: datetime | None = self.started_at.data
        return started

    def moments(self) -> list[DateTime]:
        return [self.started_at, *super().moments()]
