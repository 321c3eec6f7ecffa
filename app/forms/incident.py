"""The incident's schema (API 4, decisions 4 and 7)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from app.forms.fields import DateTime, RecordId, Text, WordChoice
from app.forms.lists import IdList
from app.forms.schema import SchemaForm
from app.i18n import N_, _
from app.records import MAX_CAUSE, MAX_COMMENT, MAX_IN_BATCH, Classification
from app.rules import text
from app.rules.cross_field import INCIDENT_TIMES, incident_times


class IncidentUpdateForm(SchemaForm):
    """The fields of an incident that can be changed."""

    acknowledged_at = DateTime(N_("Acknowledged"), description=N_("When somebody acknowledged it."))
    ended_at = DateTime(N_("Ended"), description=N_("Leave empty while the incident is open."))
    cause = Text(N_("Cause"), limit=MAX_CAUSE, description=N_("What went wrong, in a few words."))
    comment = Text(
        N_("Comment"), limit=MAX_COMMENT, lines=True, unify_lines=True,
        description=N_("Notes about the incident."),
    )  # fmt: skip

    classification: Any = WordChoice(
        N_("Classified as"), Classification, none=N_("A real incident"),
        description=N_(
            "Extension: what the incident turned out to be. It corrects the statistics."
        ),
    )  # fmt: skip

    def check_cross_field(self) -> None:
        fields: dict[str, Any] = {name: self[name] for name in INCIDENT_TIMES if name in self}
        moments = [field for field in fields.values() if not field.errors]
        old = {name: getattr(self.record, name, None) for name in INCIDENT_TIMES}
        times = old | {field.name: field.data for field in moments}
        new = [field.name for field in moments if field.sent and field.data != old[field.name]]
        self.add_faults(incident_times(times, self.context.now or datetime.now(UTC), new))


class IncidentStoreForm(IncidentUpdateForm):
    """An incident reported by hand. Only the store knows whether the monitor exists."""

    classification = None  # not known yet
    monitor_id = RecordId(N_("Monitor"), required=True)
    started_at = DateTime(N_("Started"), required=True)


class IncidentIds(IdList):
    """The ids of one incident or more."""

    noun, required = "incident", True


class AcknowledgeAllForm(SchemaForm):
    """Incidents that one person acknowledges together."""

    ids = IncidentIds(
        N_("Incidents"), limit=MAX_IN_BATCH,
        description=N_("The ids of 1 to %(most)s incidents.", most=MAX_IN_BATCH),
    )  # fmt: skip

    def check_cross_field(self) -> None:
        if not self.ids.data:
            self.ids.add_fault(_(text.REQUIRED))
